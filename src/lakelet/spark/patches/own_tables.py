"""`DeltaTable.forName` on a dataset of the pipeline, inside a dataset's function.

Its rows are read as `spark.read.table` reads them; what would write to it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.user_code import caller_location
from lakelet.language.unsupported import unsupported

_WRITES = (
    *("delete", "update", "merge", "optimize", "vacuum", "generate", "restoreToVersion", "restoreToTimestamp"),
    *("upgradeTableProtocol", "addFeatureSupport", "dropFeatureSupport"),
)
_COPIES = ("clone", "cloneAtVersion", "cloneAtTimestamp")


class OwnTable(DeltaTable):
    """A dataset of the pipeline as a DeltaTable that is only read. `rows`: opens the dataset, and so makes it an input of the query."""

    def __init__(self, spark: SparkSession, name: str, rows: Callable[[], DataFrame]) -> None:
        self._spark, self._name, self._rows = spark, name, rows

    def toDF(self) -> DataFrame:
        return self._rows()

    def history(self, limit: int | None = None) -> DataFrame:
        found = self._spark.sql(f"DESCRIBE HISTORY {self._name}")
        return found if limit is None else found.limit(limit)

    def detail(self) -> DataFrame:
        return self._spark.sql(f"DESCRIBE DETAIL {self._name}")

    def alias(self, aliasName: str) -> OwnTable:
        return OwnTable(self._spark, self._name, lambda: self._rows().alias(aliasName))


def _refused(name: str) -> Callable[..., Any]:
    def call(self: OwnTable, *args: Any, **kwargs: Any) -> Any:
        raise LakeletError(
            "ACTION_IN_FUNCTION",
            f"DeltaTable.{name} writes to {self._name} inside a dataset's function",
            where=caller_location(),
            why="the function is called several times per update, also when nothing may be written",
            todo="Return the query: what it should write is the dataset itself. Change tables are written by create_auto_cdc_flow.",
        )

    return call


def _unknown_yet(name: str) -> Callable[..., Any]:
    def call(self: OwnTable, *args: Any, **kwargs: Any) -> Any:
        unsupported(f"DeltaTable.{name} of {self._name}, a dataset of the pipeline, inside a dataset's function")

    return call


for _name in _WRITES:
    setattr(OwnTable, _name, _refused(_name))
for _name in _COPIES:
    setattr(OwnTable, _name, _unknown_yet(_name))

__all__ = ["OwnTable"]
