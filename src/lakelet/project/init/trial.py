"""Loads source files as `lakelet run` does, in a process of their own and without Spark, to learn names that only running code knows.

`lakelet.project.init.loading` starts it where reading does not suffice. The functions of datasets run too, on frames of unknown rows.
The code may read; what would write, connect or start a process raises.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelet.language.model import Flow
    from lakelet.project.init.unread_session import Notes

SECONDS = 20
_REFUSED = frozenset(
    (
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime"),
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.kill", "pty.spawn"),
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"),
    )
)


_PROBLEMS_OF_TRIAL = ("SOURCE_FAILED", "OUTSIDE_PIPELINE")
"""Errors that may come from what the trial lacks: Spark, packages, parameters, the right to write."""


@dataclass(frozen=True)
class LoadingTrial:
    """What loading found, as rows of JSON.

    Attributes:
        datasets: each with name, kind, file and line.
        reads: what the functions read (`unread_session.Read`).
        refusals: errors that an update raises too, each with code, what, file, line and cell.
        complete: whether every file, and every function of a dataset, came to its end.
        unfinished: the files that did not come to their end, as the report names them; None where nothing was loaded.
    """

    datasets: Sequence[Mapping[str, Any]] = ()
    reads: Sequence[Mapping[str, Any]] = ()
    refusals: Sequence[Mapping[str, Any]] = ()
    complete: bool = False
    unfinished: Sequence[str] | None = None


def tried(
    folder: Path, files: Sequence[Path], roots: Sequence[Path], parameters: Mapping[str, str], unknown: Sequence[str] = ()
) -> LoadingTrial:
    """Load the files and run the functions of their datasets.

    `unknown`: parameters without a value; where nothing can be loaded without them, they are `{key}`.
    """
    found = _tried(folder, files, roots, dict(parameters))
    if not found.complete and unknown:
        with_names = _tried(folder, files, roots, {**{key: "{" + key + "}" for key in unknown}, **parameters})
        found = with_names if len(with_names.datasets) >= len(found.datasets) else found
    return found


def _tried(folder: Path, files: Sequence[Path], roots: Sequence[Path], parameters: Mapping[str, str]) -> LoadingTrial:
    asked = {"files": [*map(str, files)], "roots": [*map(str, roots)], "parameters": parameters}
    try:
        done = subprocess.run(
            [sys.executable, "-B", "-m", "lakelet.project.init.trial"],
            input=json.dumps(asked),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
        )
        return LoadingTrial(**json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
        return LoadingTrial()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: raises for whatever would change something outside of this process."""
    writes = False
    if event == "open":
        path, mode, flags = arguments[:3]
        changing = any(sign in (mode or "") for sign in "wax+") or (not mode and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        writes = bool(changing) and path != os.devnull
    if writes or event in _REFUSED or event.startswith("shutil."):
        raise PermissionError(f"lakelet init only reads; the code asked for {event}")


def _loaded(asked: Mapping[str, Any]) -> dict[str, Any]:
    from lakelet.base.names import Namespace
    from lakelet.base.patching import put_on
    from lakelet.language.loader import loaded
    from lakelet.project.init.unread_session import Notes, UnreadSession
    from lakelet.spark.patches.function_exports import COLUMNS_WITHOUT_JAVA

    put_on(COLUMNS_WITHOUT_JAVA)

    sys.addaudithook(_refuse)
    namespace, notes = Namespace(), Notes()
    with loaded(
        [Path(file) for file in asked["files"]],
        import_roots=[Path(root) for root in asked["roots"]],
        namespace=namespace,
        injected={"spark": UnreadSession(asked["parameters"], notes)},
        parameters=asked["parameters"],
    ) as found:
        prefix = f"{namespace.catalog}.{namespace.schema}."
        rows = [
            {"name": str(d.name).removeprefix(prefix), "kind": d.kind.value, "file": d.where.file, "line": d.where.line}
            for d in found.definitions.datasets
        ]
        finished = [_run(flow, notes, prefix) for flow in found.definitions.flows if flow.language == "PYTHON"]
    refusals = [(one, one.where) for one in found.errors if one.code not in _PROBLEMS_OF_TRIAL and one.where is not None]
    return {
        "datasets": rows,
        "reads": notes.as_rows(),
        "refusals": [{"code": e.code, "what": e.what, "file": at.file, "line": at.line, "cell": at.cell} for e, at in refusals],
        "complete": found.complete and all(finished),
        "unfinished": sorted({part.file for part in found.lost.parts}),
    }


def _run(flow: Flow, notes: Notes, prefix: str) -> bool:
    """Run the function of a flow; whether it came to its end."""
    from lakelet.base.user_code import user_code_block
    from lakelet.language.registry import reading

    notes.within = str(flow.target).removeprefix(prefix)
    try:
        with reading(notes), user_code_block():
            flow.query()
    except Exception:  # raised by the user's function, which needs rows
        return False
    return True


def main() -> None:
    """Read what is asked from stdin, answer with the last line of stdout."""
    asked = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    answers.write("\n" + json.dumps(_loaded(asked)) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
