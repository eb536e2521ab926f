"""The keys of a view whose rows can be others than before, found from the changed rows of its inputs (IV-24, IV-25).

More keys than changed cost time and change nothing. A key that is missing would be a wrong row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.names import quoted
from lakelet.cdc.literals import literal
from lakelet.flows.key_ranges import KeyRange, KeyRanges
from lakelet.flows.views.leaf_rows import Read, pruned_columns, rows_that_touch
from lakelet.flows.views.query_runs import QueryRuns, WholeRefresh
from lakelet.jvm.errors import Py4JJavaError
from lakelet.jvm.key_plans import KeyPlan, NoKeyPlan
from lakelet.plan.refreshes import Range, ViewShape
from lakelet.storage.delta import schemas

MOST_SENT = 200_000
"""Up to this many keys are sent to each task that compares rows with them."""

_UNITS = {
    "YEAR": "12 MONTHS",
    "QUARTER": "3 MONTHS",
    "MONTH": "1 MONTH",
    "WEEK": "7 DAYS",
    "DAY": "1 DAY",
    "HOUR": "1 HOUR",
    "MINUTE": "1 MINUTE",
}
_MARGIN = "1 DAY"
"""By so much a range of times is widened: the length of a day depends on the time zone."""


@dataclass(frozen=True)
class TouchedKeys:
    """The keys, each once, kept in memory.

    Attributes:
        columns: names of the result's columns that the keys are of.
        positions: where these are in the result.
        kinds: their types.
        frame: one column for each, under the names `name`.
        found: how many there are, and their ranges.
    """

    columns: tuple[str, ...]
    positions: tuple[int, ...]
    kinds: tuple[T.DataType, ...]
    frame: DataFrame
    found: KeyRanges

    @property
    def count(self) -> int:
        return self.found.count

    @staticmethod
    def name(at: int) -> str:
        return f"__lakelet_key_{at}"

    def within(self, stored: DataFrame) -> DataFrame:
        """The stored rows of the view under a condition that is true for those with one of the keys."""
        return stored.where(self.found.condition([F.col(quoted(name)) for name in self.columns]))

    @property
    def is_ranged(self) -> bool:
        """Whether `within` may leave out a file."""
        return any(one is not None for one in self.found.ranges)

    def rows_with(self, rows: DataFrame) -> DataFrame:
        """The rows of the view that have one of the keys; NULL is a value like others."""
        return rows.join(self._sent, self._same_key(), "left_semi")

    def rows_without(self, rows: DataFrame) -> DataFrame:
        """The other ones."""
        return rows.join(self._sent, self._same_key(), "left_anti")

    @property
    def _sent(self) -> DataFrame:
        return F.broadcast(self.frame) if self.count <= MOST_SENT else self.frame

    def _same_key(self) -> Column:
        pairs = [F.col(quoted(column)).eqNullSafe(F.col(self.name(at))) for at, column in enumerate(self.columns)]
        return reduce(lambda a, b: a & b, pairs)

    def pruning(self, shape: ViewShape) -> dict[Read, ReadFilter]:
        """The reads that need not give all their rows, each with what leaves out rows that can contribute to none of the keys."""
        numbers = {shape.keys.index(position): at for at, position in enumerate(self.positions)}
        found = {}
        for read, (within, ranges) in pruned_columns(shape, numbers).items():
            columns = {name: numbers[key] for name, key in within.items()}
            spans = tuple((name, one, known) for name, one in ranges.items() if (known := self.found.ranges[numbers[one.key]]) is not None)
            if columns or spans:
                found[read] = ReadFilter(self, columns, spans)
        return found


@dataclass(frozen=True)
class ReadFilter:
    """What one read leaves out. `columns`: those that equal a key, by its number; `spans`: those that a key is a function of."""

    keys: TouchedKeys
    columns: Mapping[str, int]
    spans: Sequence[tuple[str, Range, KeyRange]]

    def ranged(self, rows: DataFrame) -> DataFrame:
        """The rows within the ranges of the keys; by these Delta leaves out files."""
        conditions = [known.condition(F.col(quoted(name))) for name, at in self.columns.items() if (known := self.keys.found.ranges[at])]
        conditions += [_span(F.col(quoted(name)), rows.schema[name].dataType, one, known) for name, one, known in self.spans]
        return rows.where(reduce(lambda a, b: a & b, conditions)) if conditions else rows

    @property
    def is_ranged(self) -> bool:
        return bool(self.spans) or any(self.keys.found.ranges[at] is not None for at in self.columns.values())

    def rows(self, rows: DataFrame) -> DataFrame:
        """The rows with one of the keys, as far as that is seen in the read by itself."""
        rows = self.ranged(rows)
        if not self.columns or self.keys.count > MOST_SENT:
            return rows
        names = [self.keys.name(at) for at in self.columns.values()]
        same = [F.col(quoted(column)).eqNullSafe(F.col(name)) for column, name in zip(self.columns, names, strict=True)]
        return rows.join(F.broadcast(self.keys.frame.select(*names).distinct()), reduce(lambda a, b: a & b, same), "left_semi")


def _span(column: Column, kind: T.DataType, one: Range, known: KeyRange) -> Column:
    """A condition on a column of times that is true for all values whose `date` or `date_trunc` is one of the keys."""
    unit = _UNITS.get("DAY" if one.function == "date" else one.unit.upper())
    if unit is None or not isinstance(kind, T.TimestampType | T.TimestampNTZType | T.DateType):
        return F.lit(True)
    if known.least is None:
        return column.isNull()
    least, greatest = (literal(value, known.kind).cast(kind) for value in (known.least, known.greatest))
    inside = (column >= least - F.expr(f"INTERVAL {_MARGIN}")) & (
        column < greatest + F.expr(f"INTERVAL {unit}") + F.expr(f"INTERVAL {_MARGIN}")
    )
    return inside | column.isNull() if known.nulls else inside


@contextmanager
def touched_keys(runs: QueryRuns) -> Iterator[TouchedKeys]:
    """The keys that the changed rows of the inputs touch, usable in the context. Runs one job. Raises WholeRefresh."""
    plans, positions = _key_plans(runs)
    names = [TouchedKeys.name(at) for at in range(len(positions))]
    fields = [plans[0].frame.schema.fields[at] for at in positions]
    kinds = tuple(one.dataType for one in fields)
    if not all(map(schemas.comparable, kinds)):
        raise WholeRefresh.because("a key has a type whose values Spark does not compare")
    with _failures_of_keys():
        keys = reduce(DataFrame.union, [plan.select(positions).toDF(*names) for plan in plans]).distinct().persist()
    try:
        with _failures_of_keys():
            found = KeyRanges.of(keys, [F.col(name) for name in names], kinds)
        yield TouchedKeys(tuple(one.name for one in fields), positions, kinds, keys, found)
    finally:
        keys.unpersist()


def _key_plans(runs: QueryRuns) -> tuple[list[KeyPlan], tuple[int, ...]]:
    """The plans that find keys, one for each changed read, and the positions of the keys that all of them have."""
    shape, plans = runs.plan.shape, []
    wanted = rows_that_touch(shape, runs.changed)
    if not wanted:
        raise WholeRefresh.because("a table is joined with itself")
    for rows in wanted:
        with runs.on(runs.of_rows(rows, finds_keys=True)) as (_, frame):
            try:
                plans.append(KeyPlan.of(frame))
            except NoKeyPlan as problem:
                raise WholeRefresh.because(f"its keys cannot be found below {problem}") from None
    positions = tuple(at for at in shape.keys if all(at in plan.positions for plan in plans))
    if not positions:
        raise WholeRefresh.because("none of its keys says which rows a change of this input touches")
    return plans, positions


@contextmanager
def _failures_of_keys() -> Iterator[None]:
    """Make WholeRefresh of what Spark raises: conditions that are left out may have kept an expression from values that it fails on."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        name = problem.getCondition() if isinstance(problem, PySparkException) else None
        raise WholeRefresh.because(f"its keys could not be found: {name or type(problem).__name__}") from problem


__all__ = ["ReadFilter", "TouchedKeys", "touched_keys"]
