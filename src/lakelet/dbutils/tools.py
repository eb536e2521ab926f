"""`dbutils` itself, and its parts that a pipeline has little use for: notebook, library, jobs. Layer 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lakelet.dbutils.files import FileSystem, Locate
from lakelet.dbutils.members import Group, Note
from lakelet.dbutils.values import Secrets, Widgets
from lakelet.notebook import NotebookExit

_ALONE = "A pipeline is one update on this machine."


class Workflow(Group):
    """`dbutils.notebook`."""

    _name = "dbutils.notebook"

    def __init__(self, note: Note, file: Path, loading: Callable[[], bool]) -> None:
        super().__init__(note)
        self._file, self._loading = file, loading

    def exit(self, value: Any = None) -> None:
        """End the loading of the file, without error. Raises DBUTILS_REFUSED within a dataset's function: nothing is left to end there."""
        if not self._loading():
            raise self._refused("exit", "The files are loaded; a dataset's function runs.", "Return a DataFrame, or raise an error.")
        raise NotebookExit(value)

    def run(self, path: str, timeout_seconds: int = 0, arguments: Mapping[str, str] | None = None) -> str:
        """Raises DBUTILS_REFUSED: it would start another job."""
        raise self._refused("run", _ALONE, f"Use %run {path} in a cell of its own, or import the functions you need.")

    @property
    def entry_point(self) -> Context:
        """The way in which much code asks for its own path: `entry_point.getDbutils().notebook().getContext().notebookPath().get()`."""
        return self.getContext()

    def getContext(self) -> Context:
        return Context(self._note, self._file)


class Context(Group):
    """What a source file may know of itself: its path. All else belongs to a workspace and is unknown here."""

    _name = "the notebook's context"

    def __init__(self, note: Note, file: Path) -> None:
        super().__init__(note)
        self._file = file

    def getDbutils(self) -> Context:
        return self

    def notebook(self) -> Context:
        return self

    def getContext(self) -> Context:
        return self

    def notebookPath(self) -> Option:
        return Option(str(self._file.with_suffix("")))


class Option:
    """A value as Scala wraps it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def get(self) -> str:
        return self._value

    def isDefined(self) -> bool:
        return True

    def getOrElse(self, default: Any = None) -> str:
        return self._value

    def toString(self) -> str:
        return f"Some({self._value})"


class Library(Group):
    """`dbutils.library`: packages come from this environment."""

    _name = "dbutils.library"

    def restartPython(self) -> None:
        self._without_effect("restartPython()", "nothing was installed, so nothing needs a restart")


class TaskValues(Group):
    """`dbutils.jobs.taskValues`: a pipeline is no task of a job here."""

    _name = "dbutils.jobs.taskValues"

    def get(self, taskKey: str, key: str, default: Any = None, debugValue: Any = None) -> Any:
        """`debugValue`, as in a notebook without a job; else `default`. Raises DBUTILS_REFUSED if both are absent."""
        found = default if debugValue is None else debugValue
        if found is None:
            raise self._refused("get", _ALONE, f"Give a debugValue, or read a parameter: --param {key}=VALUE.")
        return found

    def set(self, key: str, value: Any) -> None:
        self._without_effect("set(...)", "no task of a job follows")


class Jobs(Group):
    """`dbutils.jobs`."""

    _name = "dbutils.jobs"

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.taskValues = TaskValues(note)


class Data(Group):
    """`dbutils.data`."""

    _name = "dbutils.data"

    def summarize(self, df: Any, precise: bool = False) -> None:
        self._without_effect("summarize(...)")


class DBUtils(Group):
    """`dbutils` of one source file (dlt-semantics 1.8)."""

    def __init__(
        self,
        file: Path,
        *,
        note: Note,
        parameters: Mapping[str, str],
        environ: Mapping[str, str],
        locate: Locate,
        loading: Callable[[], bool],
    ) -> None:
        super().__init__(note)
        self.fs = FileSystem(note, locate)
        self.widgets = Widgets(note, parameters)
        self.secrets = Secrets(note, environ)
        self.notebook = Workflow(note, file, loading)
        self.library = Library(note)
        self.jobs = Jobs(note)
        self.data = Data(note)
