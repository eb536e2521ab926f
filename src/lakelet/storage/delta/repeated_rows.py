"""Rows that a flow had quarantined and quarantines once more, because it reads its sources again (QU-15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.names import quoted

_KEY = "__lakelet_key_"


@dataclass(frozen=True)
class RepeatedRows:
    """Rows of a quarantine that the batch of a flow replaces.

    Args:
        dead: whether a row is of a batch that no table has, and that nobody tries again; None for none.
        earlier: whether a row was quarantined before the flow began again.
        batch: the rows of the batch, with the columns of the dataset.
    """

    dead: Column | None
    earlier: Column
    batch: DataFrame

    def some(self, rows: DataFrame) -> bool:
        """Whether `rows`, of the quarantine, have such a row."""
        if self.dead is not None and not rows.where(self.dead).isEmpty():
            return True
        return not self._met(rows).isEmpty()

    def without(self, rows: DataFrame) -> DataFrame:
        """The other rows of a quarantine."""
        live = rows.where(~F.coalesce(self.dead, F.lit(False))) if self.dead is not None else rows
        kept = live.where(~F.coalesce(self.earlier, F.lit(False)))
        found = self._met(live).distinct()
        keys = _keys(live, self._columns(live))
        old = live.where(self.earlier).withColumns({f"{_KEY}old_{n}": key for n, key in enumerate(keys)})
        same = [F.col(f"{_KEY}old_{n}").eqNullSafe(F.col(f"{_KEY}{n}")) for n in range(len(keys))]
        return kept.unionByName(old.join(found, reduce(and_, same), "left_anti").select(*map(_column, rows.columns)))

    def _met(self, rows: DataFrame) -> DataFrame:
        """The keys of rows of the batch that are equal to a row that was quarantined before: in all columns that both have."""
        columns = self._columns(rows)
        held = _keyed(rows.where(self.earlier), columns, f"{_KEY}old_")
        same = [F.col(f"{_KEY}{n}").eqNullSafe(F.col(f"{_KEY}old_{n}")) for n in range(len(columns))]
        return _keyed(self.batch, columns, _KEY).join(F.broadcast(held), reduce(and_, same), "left_semi")

    def _columns(self, rows: DataFrame) -> list[str]:
        known = set(rows.columns)
        return [name for name in self.batch.columns if name in known]


def any_of(conditions: Sequence[Column]) -> Column | None:
    """Whether one of them holds; None for none."""
    return reduce(or_, (F.coalesce(c, F.lit(False)) for c in conditions)) if conditions else None


def _keyed(rows: DataFrame, columns: Sequence[str], prefix: str) -> DataFrame:
    return rows.select(*(key.alias(f"{prefix}{n}") for n, key in enumerate(_keys(rows, columns))))


def _keys(rows: DataFrame, columns: Sequence[str]) -> list[Column]:
    """The columns as values that can be compared; maps and variants by their text."""
    return [_column(name) if _comparable(rows.schema[name].dataType) else F.to_json(F.struct(_column(name))) for name in columns]


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _comparable(data_type: Any) -> bool:
    if isinstance(data_type, T.StructType):
        return all(_comparable(f.dataType) for f in data_type.fields)
    if isinstance(data_type, T.ArrayType):
        return _comparable(data_type.elementType)
    return not isinstance(data_type, T.MapType | T.VariantType)


__all__ = ["RepeatedRows", "any_of"]
