"""The names that stand in every source file without an import, and the modules that hand them to helper modules."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from lakelet.base.user_code import caller_location
from lakelet.language.dbutils.parts import Locate, Note
from lakelet.language.dbutils.tools import DBUtils
from lakelet.language.notebook.running import ModuleFrame, new_module
from lakelet.language.registry import Notice

_PARTS = ("sdk", "connect")
_CONNECTIONS = (
    *("remote", "host", "token", "clusterId", "serverless", "profile", "sdkConfig", "userAgent", "header", "headers", "validateSession"),
    *("appName", "config", "withEnvironment"),
)


def _unmapped(path: str) -> str:
    return path


@dataclass
class InjectedNames:
    """Makes the injected names of a pipeline's source files.

    Attributes:
        names: `spark` and whatever else the caller injects.
        note: takes notices.
        parameters: the pipeline's configuration; answers widgets.
        environ: answers secrets.
        locate: maps paths of user code.
    """

    names: Mapping[str, Any]
    note: Note
    parameters: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    locate: Locate = _unmapped
    _loading: bool = False
    _latest: DBUtils | None = None
    _shown: set[str] = field(default_factory=set)

    def frame(self, file: Path) -> ModuleFrame:
        """What one source file runs in, with its own widgets, and with the module `dlt` where that is in place (decision 59)."""
        tools = self._latest = self._tools(file)
        names = self._globals(tools)
        if "dlt" in sys.modules:
            names = {"dlt": sys.modules["dlt"], **names}
        return ModuleFrame(new_module(file, names), tools.widgets._given)

    @contextmanager
    def while_loading(self) -> Iterator[None]:
        """The source files run inside the block; outside of it only dataset functions do."""
        self._loading = True
        try:
            yield
        finally:
            self._loading = False

    @contextmanager
    def importable(self) -> Iterator[None]:
        """`pyspark.dbutils`, `databricks.sdk.runtime` and `databricks.connect` are there inside the block, whatever is installed."""
        runtime, connect = self._runtime(), self._connect()
        modules = {"pyspark.dbutils": self._pyspark_dbutils(), "databricks.sdk.runtime": runtime, "databricks.connect": connect}
        package = made = _parent(runtime, connect)
        if "databricks" not in sys.modules and importlib.util.find_spec("databricks") is None:
            modules["databricks"] = made
        else:
            package = importlib.import_module("databricks")
        # `import databricks.sdk.runtime as …` asks the package for its attribute `sdk`; the SDK itself is not imported for that.
        added = {name: vars(made)[name] for name in _PARTS if not hasattr(package, name)}
        vars(package).update(added)
        before = {name: sys.modules.get(name) for name in modules}
        sys.modules.update(modules)
        try:
            yield
        finally:
            for name, module in before.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module
            for name in added:
                if f"databricks.{name}" not in sys.modules:  # else the code has imported the package's own
                    vars(package).pop(name, None)

    def _tools(self, file: Path) -> DBUtils:
        return DBUtils(
            file,
            note=self.note,
            parameters=self.parameters,
            environ=self.environ,
            locate=self.locate,
            loading=lambda: self._loading,
        )

    def _current(self) -> DBUtils:
        """That of the source file that was begun last: helper modules are imported by it."""
        if self._latest is None:
            self._latest = self._tools(Path("__main__.py"))
        return self._latest

    def _globals(self, tools: DBUtils) -> dict[str, Any]:
        spark = self.names.get("spark")
        context = {} if (found := getattr(spark, "sparkContext", None)) is None else {"sc": found}
        shown = {name: self._shows_nothing(name) for name in ("display", "displayHTML")}
        return {**shown, **self._shortcuts(), **context, "getArgument": tools.widgets.getArgument, "dbutils": tools, **self.names}

    def _shows_nothing(self, name: str) -> Callable[..., None]:
        def show(*_: Any, **__: Any) -> None:
            if not self._loading or name not in self._shown:  # each flow gets the notice once, by whoever keeps its notices
                self._shown |= {name} if self._loading else set()
                self.note(Notice(f"{name} shows nothing in a pipeline", caller_location()))

        show.__name__ = show.__qualname__ = name
        return show

    def _pyspark_dbutils(self) -> ModuleType:
        module = ModuleType("pyspark.dbutils", "Lakelet's replacement; see lakelet.language.dbutils.")
        vars(module)["DBUtils"] = lambda *_: self._current()
        return module

    def _runtime(self) -> ModuleType:
        """Its names are looked up when they are imported, so a helper gets those of the file that imports it."""
        module = ModuleType("databricks.sdk.runtime", "Lakelet's replacement; see lakelet.language.dbutils.")

        def lookup(name: str) -> Any:
            found = self._globals(self._current())
            found["__all__"] = [*found]
            if name not in found:
                raise AttributeError(f"module 'databricks.sdk.runtime' has no attribute {name!r}")
            return found[name]

        vars(module)["__getattr__"] = lookup
        return module

    def _connect(self) -> ModuleType:
        """`DatabricksSession.builder`, with whatever names a cluster, leads to the session of the update."""
        module = ModuleType("databricks.connect", "Lakelet's replacement; see lakelet.language.dbutils.")
        vars(module)["DatabricksSession"] = type("DatabricksSession", (), {"builder": SessionBuilder(self.names.get("spark"), self.note)})
        return module

    def _shortcuts(self) -> dict[str, Any]:
        """Names of notebooks for what the session can do."""
        from pyspark.sql.functions import udf

        spark = self.names.get("spark")
        return {"udf": udf, "sqlContext": spark, **{name: getattr(spark, name) for name in ("sql", "table") if hasattr(spark, name)}}


class SessionBuilder:
    """The builder of `databricks.connect`: its session is that of the update, on whatever cluster it is asked for."""

    def __init__(self, spark: Any, note: Note) -> None:
        self._spark, self._note = spark, note

    def getOrCreate(self) -> Any:
        return self._spark

    create = getOrCreate

    def __getattr__(self, name: str) -> Callable[..., SessionBuilder]:
        if name not in _CONNECTIONS:
            raise AttributeError(f"DatabricksSession.builder has no attribute {name!r}; here it has getOrCreate, {', '.join(_CONNECTIONS)}")
        return lambda *_, **__: self._without_effect(name)

    def _without_effect(self, name: str) -> SessionBuilder:
        self._note(Notice(f"DatabricksSession.builder.{name} has no effect here: the session is that of the update", caller_location()))
        return self


def _parent(runtime: ModuleType, connect: ModuleType) -> ModuleType:
    """`databricks` where no such package is installed: it leads to the runtime and to connect, and to nothing else."""
    package, sdk = ModuleType("databricks"), ModuleType("databricks.sdk")
    vars(package).update(__path__=[], sdk=sdk, connect=connect)
    vars(sdk).update(__path__=[], runtime=runtime)
    return package
