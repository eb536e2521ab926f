"""Functions that make columns, in a process without Spark: each gives a column that stands for any.

For the process in which `lakelet init` loads source files, as long as it lives.
"""

from __future__ import annotations

from typing import Any

import pyspark
from pyspark.sql import Column, functions

from lakelet.base.patching import Patch
from lakelet.spark.patches import owners
from lakelet.spark.patches.function_names import FUNCTION_NAMES, OLDER_NAMES

_COMPARING = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_WHY = "Spark's own functions need its Java process"
_OF_USERS = ("udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf", "pandas_udtf")


class AnyColumn(Column):
    """Whatever is done with it gives another one."""

    def __new__(cls, *_: Any, **__: Any) -> AnyColumn:
        return object.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


def _any_column(*_: Any, **__: Any) -> AnyColumn:
    return AnyColumn()


for _name in dir(Column):
    if callable(getattr(Column, _name)) and (not _name.startswith("__") or _name not in dir(object) or _name in _COMPARING):
        setattr(AnyColumn, _name, _any_column)

COLUMNS_WITHOUT_JAVA: tuple[Patch, ...] = (
    tuple(
        Patch(owners.FUNCTIONS, name, lambda _original, _context: _any_column, _WHY, pyspark.__version__)
        for name in (*functions.__all__, *OLDER_NAMES)
        if name not in _OF_USERS
    )
    + FUNCTION_NAMES
)
"""Patches that make columns without Java."""

__all__ = ["COLUMNS_WITHOUT_JAVA"]
