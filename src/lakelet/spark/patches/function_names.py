"""Older names of functions for `from pyspark.sql.functions import *`: pyspark 4 still has them, but not in `__all__`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelet.base.patching import Patch
from lakelet.spark.patches import owners

OLDER_NAMES = (
    *("approxCountDistinct", "bitwiseNOT", "countDistinct", "shiftLeft", "shiftRight"),
    *("shiftRightUnsigned", "sumDistinct", "toDegrees", "toRadians"),
)


def _with_older(names: Sequence[str], _: Any) -> Sequence[str]:
    return [*names, *(name for name in OLDER_NAMES if name not in names)]


FUNCTION_NAMES: tuple[Patch, ...] = (
    Patch(owners.FUNCTIONS, "__all__", _with_older, "code of older versions imports * and calls countDistinct", "4.0.0"),
)
"""Patches that export older names of functions."""

__all__ = ["FUNCTION_NAMES", "OLDER_NAMES"]
