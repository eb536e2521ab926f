"""`df.display()` of notebooks: Databricks' data frames have it, pyspark's do not."""

from __future__ import annotations

from typing import Any

from lakelet.base.patching import Patch, without_context
from lakelet.spark.patches import owners
from lakelet.spark.patches.notices import tell


def _display(_: Any) -> Any:
    def display(self: Any, *args: Any, **kwargs: Any) -> None:
        tell("display shows nothing in a pipeline")

    return display


DISPLAY: tuple[Patch, ...] = (
    Patch(
        owners.FRAME,
        "display",
        without_context(_display),
        "notebooks show rows; a pipeline has no reader",
        "4.0.0",
        optional=True,
    ),
)
"""Patches that give data frames the method `display`."""

__all__ = ["DISPLAY"]
