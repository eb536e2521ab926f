"""Lakelet runs Delta Live Tables code unchanged on a laptop, on any Spark cluster and on Databricks.

    import lakelet

    pipeline = lakelet.load("my_project", spark=spark)
    result = pipeline.run()

Importing this package starts and imports nothing heavy: pyspark is imported by the first call that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelet.base import VERSION
from lakelet.base.errors import (
    DefinitionError,
    DefinitionErrors,
    ExpectationFailed,
    FlowError,
    LakeletError,
    MachineError,
    SourceError,
    StateError,
)

if TYPE_CHECKING:
    from lakelet.pipeline import Checked, Pipeline, Request, UpdateResult, load

__version__ = VERSION

_FACADE = ("Checked", "Pipeline", "Request", "UpdateResult", "load")

__all__ = [
    "Checked",
    "DefinitionError",
    "DefinitionErrors",
    "ExpectationFailed",
    "FlowError",
    "LakeletError",
    "MachineError",
    "Pipeline",
    "Request",
    "SourceError",
    "StateError",
    "UpdateResult",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _FACADE:
        from lakelet import pipeline

        return getattr(pipeline, name)
    raise AttributeError(f"module 'lakelet' has no attribute {name!r}")
