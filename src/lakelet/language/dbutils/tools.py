"""`dbutils` itself, and its parts that a pipeline has little use for: notebook, library, jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lakelet.base.redaction import remember
from lakelet.base.user_code import caller_location
from lakelet.language.dbutils.parts import DBUtilsPart, FileSystem, Locate, Note, Secrets, UnknownMember, Widgets
from lakelet.language.notebook import NotebookExit
from lakelet.language.registry import Notice

HOST, TOKEN = "DATABRICKS_HOST", "DATABRICKS_TOKEN"
_ALONE = "A pipeline is one update on this machine."


class Workflow(DBUtilsPart):
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


class Context(DBUtilsPart):
    """What a source file may know of itself: its path, its user, and what the environment says of a workspace (DS-24).

    Cluster, job, run and workspace have no id here.
    """

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

    def notebookPath(self) -> ScalaOption:
        return ScalaOption(str(self._file.with_suffix("")))

    def userName(self) -> ScalaOption:
        return ScalaOption(_user())

    def tags(self) -> Tags:
        return Tags(self._note)

    def apiUrl(self) -> ScalaOption:
        """The address of the workspace, that of DATABRICKS_HOST."""
        return ScalaOption(self._of_workspace("apiUrl()", HOST))

    def apiToken(self) -> ScalaOption:
        """A token for the workspace, that of DATABRICKS_TOKEN. Messages do not show it."""
        token = self._of_workspace("apiToken()", TOKEN)
        remember(token)
        return ScalaOption(token)

    def browserHostName(self) -> ScalaOption:
        return ScalaOption(os.environ.get(HOST, "").rstrip("/").rpartition("/")[2] or None)

    def workspaceId(self) -> ScalaOption:
        return ScalaOption(None)

    def clusterId(self) -> ScalaOption:
        return ScalaOption(None)

    def jobId(self) -> ScalaOption:
        return ScalaOption(None)

    def currentRunId(self) -> ScalaOption:
        return ScalaOption(None)

    def notebookId(self) -> ScalaOption:
        return ScalaOption(None)

    def toJson(self) -> str:
        """Return path and user as JSON text, under the names that they have on the service."""
        return json.dumps({"currentRunId": None, "tags": {"user": _user()}, "extraContext": {"notebook_path": self.notebookPath().get()}})

    def safeToJson(self) -> str:
        return json.dumps({"attributes": {"notebook_path": self.notebookPath().get(), "user": _user()}})

    def _of_workspace(self, call: str, variable: str) -> str:
        """The value of a variable, or an empty text and a notice: most code only keeps the value."""
        if variable not in os.environ:
            text = f"{self._name} has no workspace: {call} gives an empty text. {variable} in the environment gives it a value"
            self._note(Notice(text, caller_location()))
        return os.environ.get(variable, "")


class Tags(DBUtilsPart):
    """`getContext().tags()`; only that of the user has a value here."""

    _name = "tags() of the notebook's context"

    def apply(self, key: str) -> str:
        """Raises DBUTILS_UNKNOWN for another tag than `user`."""
        found = self.get(key)
        if not found.isDefined():
            raise UnknownMember("DBUTILS_UNKNOWN", f"{self._name} has no {key!r}", where=caller_location(), todo="Here it has user.")
        return found.get()

    def get(self, key: str) -> ScalaOption:
        return ScalaOption(_user() if key == "user" else None)


def _user() -> str:
    """Return the user that runs the update; on Databricks it is an e-mail address."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "local"


class ScalaOption:
    """A value as Scala wraps it."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    def get(self) -> str:
        """Raises ValueError if there is none."""
        if self._value is None:
            raise ValueError("None.get: this machine has no such value; getOrElse(…) gives another one")
        return self._value

    def isDefined(self) -> bool:
        return self._value is not None

    def getOrElse(self, default: Any = None) -> Any:
        return default if self._value is None else self._value

    def toString(self) -> str:
        return "None" if self._value is None else f"Some({self._value})"


class Library(DBUtilsPart):
    """`dbutils.library`: packages come from this environment."""

    _name = "dbutils.library"

    def restartPython(self) -> None:
        self._without_effect("restartPython()", "nothing was installed, so nothing needs a restart")


class TaskValues(DBUtilsPart):
    """`dbutils.jobs.taskValues`: a pipeline is not a task of a job here."""

    _name = "dbutils.jobs.taskValues"

    def get(self, taskKey: str, key: str, default: Any = None, debugValue: Any = None) -> Any:
        """`debugValue`, as in a notebook without a job; else `default`. Raises DBUTILS_REFUSED if both are absent."""
        found = default if debugValue is None else debugValue
        if found is None:
            raise self._refused("get", _ALONE, f"Give a debugValue, or read a parameter: --param {key}=VALUE.")
        return found

    def set(self, key: str, value: Any) -> None:
        self._without_effect("set(...)", "no task of a job follows")


class Jobs(DBUtilsPart):
    """`dbutils.jobs`."""

    _name = "dbutils.jobs"

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.taskValues = TaskValues(note)


class Data(DBUtilsPart):
    """`dbutils.data`."""

    _name = "dbutils.data"

    def summarize(self, df: Any, precise: bool = False) -> None:
        self._without_effect("summarize(...)")


class DBUtils(DBUtilsPart):
    """`dbutils` of one source file (DS-24)."""

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

    @property
    def entry_point(self) -> Context:
        """The same as `dbutils.notebook.entry_point`; much code calls it by this shorter name."""
        return self.notebook.getContext()
