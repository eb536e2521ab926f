"""The import names `dlt`, `pyspark.pipelines` and `databricks.pipelines`, put in place for a while and taken away again.

No distribution of ours owns the name `dlt`: another project does, and Databricks ships a stub under it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.language import api

_ABSENT = object()


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
    import pyspark

    replaced = {name: sys.modules.get(name, _ABSENT) for name in ("dlt", "pyspark.pipelines", "databricks.pipelines")}
    attribute = pyspark.__dict__.get("pipelines", _ABSENT)
    sys.modules["dlt"] = _module("dlt", api.DLT)
    pipelines = sys.modules["pyspark.pipelines"] = _module("pyspark.pipelines", api.DP)
    sys.modules["databricks.pipelines"] = pipelines  # its name in some runtimes of the service
    setattr(pyspark, "pipelines", pipelines)  # noqa: B010 - mypy sees no such attribute
    try:
        yield
    finally:
        for name, module in replaced.items():
            if module is _ABSENT:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module  # type: ignore[assignment]
        if attribute is _ABSENT:
            vars(pyspark).pop("pipelines", None)
        else:
            setattr(pyspark, "pipelines", attribute)  # noqa: B010


def _module(name: str, names: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, "Lakelet's stand-in; see lakelet.language.api.")
    vars(module).update(names)
    vars(module)["__all__"] = list(names)
    return module
