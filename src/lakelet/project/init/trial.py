"""Loads source files in a process of their own, without Spark, to learn names that only running code knows.

`lakelet.project.init.report` starts it where reading does not suffice. The code may read; what would write,
connect or start a process raises.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SECONDS = 20
_REFUSED = frozenset(
    (
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime"),
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.kill", "pty.spawn"),
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"),
    )
)


def datasets(
    folder: Path, files: Sequence[Path], roots: Sequence[Path], parameters: Mapping[str, str], unknown: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], bool]:
    """What the files declare when they are loaded, each with name, kind, file and line; and whether all of them came to their end.

    `unknown`: parameters without a value; where nothing can be loaded without them, they are `{key}`.
    """
    found, complete = _tried(folder, files, roots, dict(parameters))
    if not complete and unknown:
        found, complete = _tried(folder, files, roots, {**{key: "{" + key + "}" for key in unknown}, **parameters})
    return found, complete


def _tried(folder: Path, files: Sequence[Path], roots: Sequence[Path], parameters: Mapping[str, str]) -> tuple[list[dict[str, Any]], bool]:
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
        answer = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
        return [], False
    return answer["datasets"], answer["complete"]


class NoSpark:
    """What stands for `spark`: it knows the parameters, everything else needs Spark."""

    sparkContext = None

    class Conf:
        """`spark.conf`."""

        def __init__(self, parameters: Mapping[str, str]) -> None:
            self._values = dict(parameters)

        def get(self, key: str, *default: Any) -> Any:
            if key in self._values or not default:
                return self._values[key]
            return default[0]

        def set(self, key: str, value: Any) -> None:
            self._values[key] = str(value)

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.conf = self.Conf(parameters)


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
    from lakelet.spark.patches.columns_without_java import COLUMNS_WITHOUT_JAVA

    put_on(COLUMNS_WITHOUT_JAVA)

    sys.addaudithook(_refuse)
    namespace = Namespace()
    with loaded(
        [Path(file) for file in asked["files"]],
        import_roots=[Path(root) for root in asked["roots"]],
        namespace=namespace,
        injected={"spark": NoSpark(asked["parameters"])},
        parameters=asked["parameters"],
    ) as found:
        prefix = f"{namespace.catalog}.{namespace.schema}."
        rows = [
            {"name": str(d.name).removeprefix(prefix), "kind": d.kind.value, "file": d.where.file, "line": d.where.line}
            for d in found.definitions.datasets
        ]
        return {"datasets": rows, "complete": found.complete}


def main() -> None:
    """Read what is asked from stdin, answer with the last line of stdout."""
    asked = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
    answers.write("\n" + json.dumps(_loaded(asked)) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
