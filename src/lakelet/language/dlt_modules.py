"""The import names `dlt`, `pyspark.pipelines` and `databricks.pipelines`, put in place for a while and taken away again.

Lakelet does not own the name `dlt`: another project does, and Databricks ships a stub under it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.patching import Patch, patched_with
from lakelet.language import api

_ABSENT = object()

MODULES: tuple[Patch, ...] = (
    Patch("pyspark", "pipelines", lambda _, module: module, "`from pyspark import pipelines` means Lakelet", "4.1.0", optional=True),
)
"""The attribute of pyspark that goes with the modules; the context is the module."""


@contextmanager
def dlt_modules() -> Iterator[None]:
    """`import dlt` and `from pyspark import pipelines` mean Lakelet inside the block.

    Raises FOREIGN_DLT if another package's `dlt` has been imported already: user code may hold names of it.
    """
    foreign = sys.modules.get("dlt")
    if foreign is not None:
        raise LakeletError(
            "FOREIGN_DLT",
            f"the module dlt of another package is already imported ({getattr(foreign, '__file__', 'unknown file')})",
            todo="Do not import dlt before the pipeline is loaded; see `lakelet doctor` for the package that owns it.",
        )
    replaced = {name: sys.modules.get(name, _ABSENT) for name in ("dlt", "pyspark.pipelines", "databricks.pipelines")}
    pipelines = _module("pyspark.pipelines", api.DP)
    sys.modules["dlt"] = _module("dlt", api.DLT)
    sys.modules["pyspark.pipelines"] = pipelines
    sys.modules["databricks.pipelines"] = pipelines  # its name in some runtimes of Databricks
    try:
        with patched_with(MODULES, pipelines):
            yield
    finally:
        for name, module in replaced.items():
            if module is _ABSENT:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module  # type: ignore[assignment]


def _module(name: str, names: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, "Lakelet's replacement; see lakelet.language.api.")
    vars(module).update(names)
    vars(module)["__all__"] = list(names)
    return module
