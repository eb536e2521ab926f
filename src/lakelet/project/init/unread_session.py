"""A session without Spark that notes what code reads: tables, files, SQL texts. Whatever would need rows raises. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lakelet.base.user_code import caller_frame, caller_location
from lakelet.spark.patches.columns_without_java import AnyColumn

_FILE_READERS = ("csv", "json", "parquet", "orc", "text", "xml", "textFile")


class NeedsRowsError(RuntimeError):
    """The code asks for rows or columns, which only Spark has."""


@dataclass(frozen=True)
class Read:
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


class Notes:
    """Takes what is read; also answers `dlt.read` and its relatives while a dataset's function runs."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.within = ""

    def add(self, what: str, text: object, format: str = "") -> AnyFrame:
        """Note a read and return a frame that stands for its rows."""
        for one in text if isinstance(text, list | tuple) else [text]:
            where = caller_location()
            first, last = _lines_of_caller()
            found = Read(what, str(one), format, where.file, where.line, where.cell, first, last, self.within)
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

    def __init__(self, notes: Notes, format: str = "", path: object = None) -> None:
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

    def __init__(self, parameters: Mapping[str, str], notes: Notes) -> None:
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
