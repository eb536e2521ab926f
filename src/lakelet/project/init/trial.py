"""Loads source files as `lakelet run` does, in a process of its own and without Spark, to learn names that only running code knows.

`lakelet.project.init.loading` starts it where reading does not suffice. The functions of datasets run too, on frames of unknown rows, with
a session that notes what code reads: tables, files, SQL texts. The code may read; what would write, connect or start a process raises.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.user_code import caller_frame, caller_location
from lakelet.spark.patches.function_exports import AnyColumn

if TYPE_CHECKING:
    from lakelet.language.model import Flow


_FILE_READERS = ("csv", "json", "parquet", "orc", "text", "xml", "textFile")


class NeedsRowsError(RuntimeError):
    """The code asks for rows or columns, which only Spark has."""


@dataclass(frozen=True)
class CodeRead:
    """Something that a query reads.

    Attributes:
        what: `table`, `path` or `sql`.
        text: the name, path or statement.
        format: that of the files of a path, "" where the code does not say it.
        file, line, cell: where the call stands.
        first, last: the lines of the function that calls; both `line` for code outside of functions.
        within: the dataset whose query reads; "" while files are loaded.
    """

    what: str
    text: str
    format: str
    file: str
    line: int
    cell: int | None
    first: int
    last: int
    within: str


class ReadNotes:
    """Takes what is read; also answers `dlt.read` and its relatives while a dataset's function runs."""

    def __init__(self) -> None:
        self.reads: list[CodeRead] = []
        self.within = ""

    def add(self, what: str, text: object, format: str = "") -> AnyFrame:
        """Note a read and return a frame that stands for its rows."""
        for one in text if isinstance(text, list | tuple) else [text]:
            where = caller_location()
            first, last = _lines_of_caller()
            found = CodeRead(what, str(one), format, where.file, where.line, where.cell, first, last, self.within)
            self.reads += [found] if found not in self.reads else []
        return AnyFrame()

    def batch(self, name: str) -> Any:
        return self.add("table", name)

    def stream(self, name: str, options: Mapping[str, str]) -> Any:
        return self.add("table", name)

    def table(self, name: str, *, streaming: bool) -> Any:
        return self.add("table", name)

    def batch_or_stream(self, name: str) -> Any:
        return self.add("table", name)

    def as_rows(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.reads]


def _lines_of_caller() -> tuple[int, int]:
    """First and last line of the function of user code that called; the line alone for code outside of functions."""
    frame = caller_frame()
    line = frame.f_lineno if frame else 0
    if frame is None or frame.f_code.co_name == "<module>":
        return line, line
    return frame.f_code.co_firstlineno, max(one[2] or line for one in frame.f_code.co_lines())


class AnyFrame:
    """A data frame of unknown rows and columns: whatever is done with it gives another one, what looks at its rows raises."""

    def __getattr__(self, name: str) -> AnyFrame:
        if name.startswith("__"):
            raise AttributeError(name)
        return AnyFrame()

    def __call__(self, *_: Any, **__: Any) -> AnyFrame:
        return AnyFrame()

    def __getitem__(self, key: object) -> Any:
        return AnyColumn()

    def _refused(self, *_: Any) -> Any:
        raise NeedsRowsError("only Spark knows the rows and columns of a table")

    __iter__ = __len__ = __bool__ = __int__ = __float__ = __index__ = __contains__ = _refused


class AnyReader:
    """`spark.read` or `spark.readStream`."""

    def __init__(self, notes: ReadNotes, format: str = "", path: object = None) -> None:
        self._notes, self._format, self._path = notes, format, path

    def format(self, source: str) -> AnyReader:
        return AnyReader(self._notes, "" if source.lower() == "cloudfiles" else source, self._path)

    def option(self, key: str, value: object) -> AnyReader:
        if key.lower() == "cloudfiles.format":
            return AnyReader(self._notes, str(value), self._path)
        return AnyReader(self._notes, self._format, value if key.lower() == "path" else self._path)

    def options(self, **given: object) -> AnyReader:
        found = self
        for key, value in given.items():
            found = found.option(key, value)
        return found

    def schema(self, *_: Any) -> AnyReader:
        return self

    def table(self, name: str) -> AnyFrame:
        return self._notes.add("table", name)

    def load(self, path: object = None, *_: Any, **more: Any) -> AnyFrame:
        found = self.options(**more)
        path = found._path if path is None else path
        return AnyFrame() if path is None else self._notes.add("path", path, more.get("format") or found._format)

    def __getattr__(self, name: str) -> Any:
        if name in _FILE_READERS:
            return lambda path, *_, **__: self._notes.add("path", path, name)
        if name.startswith("__"):
            raise AttributeError(name)
        return AnyFrame()


class UnreadSession:
    """What stands for `spark`: it knows the parameters and notes what is read; its frames are of unknown rows."""

    sparkContext = None

    class Conf:
        """`spark.conf`."""

        def __init__(self, parameters: Mapping[str, str]) -> None:
            self._values = dict(parameters)

        def get(self, key: str, *default: Any, **named: Any) -> Any:
            given = [*default, *named.values()]
            return self._values[key] if key in self._values or not given else given[0]

        def set(self, key: str, value: Any) -> None:
            self._values[key] = str(value)

    def __init__(self, parameters: Mapping[str, str], notes: ReadNotes) -> None:
        self.conf = self.Conf(parameters)
        self._notes = notes

    @property
    def read(self) -> AnyReader:
        return AnyReader(self._notes)

    readStream = read

    def table(self, name: str) -> AnyFrame:
        return self._notes.add("table", name)

    def sql(self, sqlQuery: str, *_: Any, **__: Any) -> AnyFrame:
        return self._notes.add("sql", sqlQuery)

    def createDataFrame(self, *_: Any, **__: Any) -> AnyFrame:
        return AnyFrame()

    range = createDataFrame


_REFUSED = frozenset(
    (
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime"),
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.kill", "pty.spawn"),
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"),
    )
)


_PROBLEMS_OF_TRIAL = ("SOURCE_FAILED", "OUTSIDE_PIPELINE")
"""Errors that may come from what the trial lacks: Spark, packages, parameters, the right to write."""


def _refuse_change(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: raises for whatever would change something outside of this process."""
    writes = False
    if event == "open":
        path, mode, flags = arguments[:3]
        changing = any(sign in (mode or "") for sign in "wax+") or (not mode and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        writes = bool(changing) and path != os.devnull
    if writes or event in _REFUSED or event.startswith("shutil."):
        raise PermissionError(f"lakelet init only reads; the code asked for {event}")


def _loaded_files(asked: Mapping[str, Any]) -> dict[str, Any]:
    from lakelet.base.names import Namespace
    from lakelet.base.patching import put_on
    from lakelet.language.loader import loaded
    from lakelet.spark.patches.function_exports import COLUMNS_WITHOUT_JAVA

    put_on(COLUMNS_WITHOUT_JAVA)

    sys.addaudithook(_refuse_change)
    namespace, notes = Namespace(), ReadNotes()
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
        finished = [_run_function(flow, notes, prefix) for flow in found.definitions.flows if flow.language == "PYTHON"]
    refusals = [(one, one.where) for one in found.errors if one.code not in _PROBLEMS_OF_TRIAL and one.where is not None]
    return {
        "datasets": rows,
        "reads": notes.as_rows(),
        "refusals": [{"code": e.code, "what": e.what, "file": at.file, "line": at.line, "cell": at.cell} for e, at in refusals],
        "complete": found.complete and all(finished),
        "unfinished": sorted({part.file for part in found.failed_parts.parts}),
    }


def _run_function(flow: Flow, notes: ReadNotes, prefix: str) -> bool:
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
    answers.write("\n" + json.dumps(_loaded_files(asked)) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
