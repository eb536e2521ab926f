"""The `artifacts` of a bundle: wheels and jars that are built before a deployment, with the rules of the Databricks CLI (decision 58).

A wheel with `dynamic_version` gets the time of its build as a part of its version: Databricks reinstalls a package only when its version
changes.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone
from glob import escape, glob
from pathlib import Path
from typing import Any

from lakelet.base import phases
from lakelet.base.errors import LakeletError, Location
from lakelet.base.redaction import redacted
from lakelet.base.text import printable
from lakelet.config.yaml_tree import ConfigNode, children, elements

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


def artifacts_of(section: ConfigNode | None, root: Path, *, dynamic: bool) -> list[Artifact]:
    """The artifacts in a section whose references are filled in. `dynamic`: the default of `dynamic_version`.

    Raises CONFIG_INVALID for an artifact with neither a build command nor files.
    """
    return [_artifact(name, node, root, dynamic) for name, node in sorted(children(section).items()) if isinstance(node.value, dict)]


def _artifact(name: str, node: ConfigNode, root: Path, dynamic: bool) -> Artifact:
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
            _run_build(artifact, artifact.command)
        files, copies = _artifact_files(artifact), cache / artifact.name
        deployed = {file: with_version_of_build(file, copies) if artifact.dynamic else file for file in files}
        if artifact.dynamic:
            for older in set(copies.iterdir()) - set(deployed.values()):
                older.unlink()
        found |= deployed
    return found


def _run_build(artifact: Artifact, command: str) -> None:
    if not artifact.folder.is_dir():
        raise _artifact_error(artifact, f"the folder {artifact.folder} of the artifact {artifact.name!r} does not exist")
    call = [artifact.shell, "/C" if artifact.shell == "cmd" else "-ec", command]
    try:
        done = subprocess.run(
            call, cwd=artifact.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as problem:
        what = f"{artifact.shell}, which builds the artifact {artifact.name!r}, cannot be started"
        raise _artifact_error(artifact, what, why=str(problem)) from None
    if done.returncode:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()[-_SHOWN_LINES:]
        raise _artifact_error(
            artifact,
            f"the build of the artifact {artifact.name!r} ended with exit code {done.returncode}",
            why="\n".join(printable(redacted(line)) for line in lines) or None,
            todo=f"Try it in {artifact.folder}: {command}",
        )


def _artifact_files(artifact: Artifact) -> list[Path]:
    found: list[Path] = []
    for source in artifact.sources:
        hits = [Path(hit) for hit in sorted(glob(source)) if os.path.isfile(hit)]
        if not hits:
            what = f"the artifact {artifact.name!r} has no file {source}"
            todo = "Correct the command or the path." if artifact.command is not None else "Build it, or give the artifact a build command."
            raise _artifact_error(artifact, what, todo=todo)
        found += hits
    return found


def _artifact_error(artifact: Artifact, what: str, **more: Any) -> LakeletError:
    return LakeletError("ARTIFACT_FAILED", what, where=artifact.where, **more)


_WHEEL_NAME_PARTS = (5, 6)
"""Distribution, version, perhaps a build number, and three tags: the parts of a wheel's name."""


def with_version_of_build(wheel: Path, folder: Path) -> Path:
    """Return a copy of the wheel in `folder` whose version ends in `+<time of its last change>`. A copy that exists is kept.

    The version is changed in the name, in the name of the `.dist-info` folder, in METADATA and in RECORD. Raises ARTIFACT_FAILED for a file
    that is not a wheel.
    """
    parts = wheel.name.removesuffix(".whl").split("-")
    if len(parts) not in _WHEEL_NAME_PARTS or wheel.suffix != ".whl":
        raise LakeletError("ARTIFACT_FAILED", f"{wheel} does not have the name of a wheel, so its version cannot be changed")
    distribution, version = parts[:2]
    changed = datetime.fromtimestamp(wheel.stat().st_mtime, timezone.utc)
    new = f"{version.partition('+')[0]}+{changed:%Y%m%d%H%M%S}{changed.microsecond // 10_000:02d}"
    target = folder / ("-".join([distribution, new, *parts[2:]]) + ".whl")
    folder.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        unfinished = target.with_suffix(f".{os.getpid()}")
        try:
            _copy_wheel(wheel, unfinished, f"{distribution}-{version}.dist-info/", f"{distribution}-{new}.dist-info/", new)
            unfinished.replace(target)
        except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as problem:
            unfinished.unlink(missing_ok=True)
            raise LakeletError(
                "ARTIFACT_FAILED", f"{wheel} is not a wheel, so its version cannot be changed", why=str(problem)
            ) from problem
    return target


def _copy_wheel(wheel: Path, target: Path, before: str, after: str, version: str) -> None:
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        metadata = _wheel_metadata(old.read(before + "METADATA").decode(), version)
        contents = {
            before + "METADATA": metadata,
            before + "RECORD": _wheel_record(old.read(before + "RECORD").decode(), before, after, metadata),
        }
        for entry in old.infolist():
            name = after + entry.filename[len(before) :] if entry.filename.startswith(before) else entry.filename
            copied = zipfile.ZipInfo(name, entry.date_time)
            copied.external_attr, copied.compress_type = entry.external_attr, entry.compress_type
            new.writestr(copied, contents.get(entry.filename) or old.read(entry))


def _wheel_metadata(text: str, version: str) -> bytes:
    """The METADATA file with another version. The description below the first empty line is not changed."""
    head, empty, description = text.partition("\n\n")
    lines = [f"Version: {version}" if line.startswith("Version:") else line for line in head.split("\n")]
    return ("\n".join(lines) + empty + description).encode()


def _wheel_record(text: str, before: str, after: str, metadata: bytes) -> bytes:
    digest = base64.urlsafe_b64encode(hashlib.sha256(metadata).digest()).rstrip(b"=").decode()
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        if row and row[0].startswith(before):
            row[0] = after + row[0][len(before) :]
        rows.writerow([row[0], f"sha256={digest}", len(metadata)] if row and row[0] == after + "METADATA" else row)
    return written.getvalue().encode()
