"""What `pyspark.sql.functions` exports: older names for `import *`, and functions that make columns in a process without Java."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyspark
from pyspark.sql import Column, functions

from lakelet.base.patching import Patch
from lakelet.spark.patches import owners

# --------------------------------------------------------------------------------------------------------- older names


OLDER_NAMES = (
    *("approxCountDistinct", "bitwiseNOT", "countDistinct", "shiftLeft", "shiftRight"),
    *("shiftRightUnsigned", "sumDistinct", "toDegrees", "toRadians"),
)


def _with_older_names(names: Sequence[str], _: Any) -> Sequence[str]:
    return [*names, *(name for name in OLDER_NAMES if name not in names)]


FUNCTION_NAMES: tuple[Patch, ...] = (
    Patch(owners.FUNCTIONS, "__all__", _with_older_names, "code of older versions imports * and calls countDistinct", "4.0.0"),
)
"""Patches that export older names of functions."""


# ------------------------------------------------------------------------------------------------ columns without Java


_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_NO_JAVA_WHY = "Spark's own functions need its Java process"
_MAKERS_OF_UDFS = ("udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf", "pandas_udtf")


class AnyColumn(Column):
    """Whatever is done with it gives another one."""

    def __new__(cls, *_: Any, **__: Any) -> AnyColumn:
        return object.__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


def _any_column(*_: Any, **__: Any) -> AnyColumn:
    return AnyColumn()


for _name in dir(Column):
    if callable(getattr(Column, _name)) and (not _name.startswith("__") or _name not in dir(object) or _name in _COMPARISONS):
        setattr(AnyColumn, _name, _any_column)

COLUMNS_WITHOUT_JAVA: tuple[Patch, ...] = (
    tuple(
        Patch(owners.FUNCTIONS, name, lambda _original, _context: _any_column, _NO_JAVA_WHY, pyspark.__version__)
        for name in (*functions.__all__, *OLDER_NAMES)
        if name not in _MAKERS_OF_UDFS
    )
    + FUNCTION_NAMES
)
"""Patches that make columns without Java, as long as the process lives in which `lakelet init` loads source files."""

__all__ = ["COLUMNS_WITHOUT_JAVA", "FUNCTION_NAMES", "OLDER_NAMES"]
