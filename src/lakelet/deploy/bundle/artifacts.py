"""The `artifacts` of a bundle: wheels and jars that are built before a deployment, with the rules of the Databricks CLI (decision 58)."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from glob import escape, glob
from pathlib import Path
from typing import Any

from lakelet.base import phases
from lakelet.base.errors import LakeletError, Location
from lakelet.base.redaction import redacted
from lakelet.base.text import printable
from lakelet.config.nodes import children, elements
from lakelet.config.yaml_tree import Node
from lakelet.deploy.bundle.wheels import with_version_of_build

_DEFAULT_WHEEL = "python3 setup.py bdist_wheel"
_SHELLS = ("bash", "sh")
_SHOWN_LINES = 12


@dataclass(frozen=True)
class Artifact:
    """One artifact.

    Attributes:
        folder: the working folder of its command.
        command: the command that builds it; None if its files exist without a build.
        shell: the program that runs the command.
        sources: absolute paths and glob patterns of its files.
        dynamic: whether the deployed wheel has the time of its build in its version.
    """

    name: str
    where: Location
    folder: Path
    command: str | None
    shell: str
    sources: tuple[str, ...]
    dynamic: bool


def artifacts_of(section: Node | None, root: Path, *, dynamic: bool) -> list[Artifact]:
    """The artifacts in a section whose references are filled in. `dynamic`: the default of `dynamic_version`.

    Raises CONFIG_INVALID for an artifact with neither a build command nor files.
    """
    return [_artifact(name, node, root, dynamic) for name, node in sorted(children(section).items()) if isinstance(node.value, dict)]


def _artifact(name: str, node: Node, root: Path, dynamic: bool) -> Artifact:
    beside = node.file.parent
    folder, command, shell = node.get("path"), node.get("build"), node.get("executable")
    is_wheel = (kind := node.get("type")) is not None and kind.text == "whl"
    written = [source.text for file in elements(node.get("files")) if (source := file.get("source")) is not None]
    place = Path(os.path.normpath(beside / folder.text)) if folder is not None else root
    own = node.get("dynamic_version")
    builds = command.text if command is not None else _DEFAULT_WHEEL if is_wheel and not written else None
    if builds is None and not written:
        raise node.bad(f"the artifact {name!r} has neither a build command nor files", todo="Write build: …, or files: [{source: …}].")
    return Artifact(
        name=name,
        where=node.where,
        folder=place,
        command=builds,
        shell=shell.text if shell is not None else next((one for one in _SHELLS if shutil.which(one)), "sh"),
        sources=tuple(os.path.normpath(os.path.join(escape(str(beside)), text)) for text in written)
        or ((os.path.join(escape(str(place)), "dist", "*.whl"),) if is_wheel else ()),
        dynamic=is_wheel and (dynamic if own is None else own.value is True),
    )


def built(artifacts: list[Artifact], cache: Path) -> dict[Path, Path]:
    """Build the artifacts one after the other. Return each of their files with the file that is deployed instead of it.

    `cache`: a folder for copies of wheels; older copies are removed. Raises ARTIFACT_FAILED for a command that fails, and for an artifact
    that has no files after it.
    """
    found: dict[Path, Path] = {}
    for number, artifact in enumerate(artifacts):
        phases.report(f"Building {printable(artifact.name)}", number, len(artifacts))
        if artifact.command is not None:
            _run(artifact, artifact.command)
        files, copies = _files(artifact), cache / artifact.name
        deployed = {file: with_version_of_build(file, copies) if artifact.dynamic else file for file in files}
        if artifact.dynamic:
            for older in set(copies.iterdir()) - set(deployed.values()):
                older.unlink()
        found |= deployed
    return found


def _run(artifact: Artifact, command: str) -> None:
    if not artifact.folder.is_dir():
        raise _failed(artifact, f"the folder {artifact.folder} of the artifact {artifact.name!r} does not exist")
    call = [artifact.shell, "/C" if artifact.shell == "cmd" else "-ec", command]
    try:
        done = subprocess.run(
            call, cwd=artifact.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as problem:
        what = f"{artifact.shell}, which builds the artifact {artifact.name!r}, cannot be started"
        raise _failed(artifact, what, why=str(problem)) from None
    if done.returncode:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()[-_SHOWN_LINES:]
        raise _failed(
            artifact,
            f"the build of the artifact {artifact.name!r} ended with exit code {done.returncode}",
            why="\n".join(printable(redacted(line)) for line in lines) or None,
            todo=f"Try it in {artifact.folder}: {command}",
        )


def _files(artifact: Artifact) -> list[Path]:
    found: list[Path] = []
    for source in artifact.sources:
        hits = [Path(hit) for hit in sorted(glob(source)) if os.path.isfile(hit)]
        if not hits:
            what = f"the artifact {artifact.name!r} has no file {source}"
            todo = "Correct the command or the path." if artifact.command is not None else "Build it, or give the artifact a build command."
            raise _failed(artifact, what, todo=todo)
        found += hits
    return found


def _failed(artifact: Artifact, what: str, **more: Any) -> LakeletError:
    return LakeletError("ARTIFACT_FAILED", what, where=artifact.where, **more)


__all__ = ["Artifact", "artifacts_of", "built"]
