"""The techniques that bring a view up to date in part, each in one commit (IV-26 to IV-31).

In: what was decided, and runs of the author's query on other rows. Out: a write, or `WholeRefresh` where the facts of the run speak against
the technique. Stored rows stay in their files wherever no changed row can be in these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.failpoints import reached
from lakelet.base.names import quoted
from lakelet.flows.context import RunReader
from lakelet.flows.key_ranges import KeyRanges
from lakelet.flows.metrics import new_observation
from lakelet.flows.views.leaf_rows import LeafRows, reads_of, rows_that_come
from lakelet.flows.views.query_runs import QueryRuns, WholeRefresh, all_present, check_places, in_one_place
from lakelet.flows.views.touched_keys import TouchedKeys, touched_keys
from lakelet.language.model import Expectation
from lakelet.plan.refresh_choice import reconsidered
from lakelet.plan.refreshes import Issue, IssueType, Merge, Refresh, Technique
from lakelet.spark.expectations.measure import judged
from lakelet.storage.delta import schemas
from lakelet.storage.delta.batch_metrics import BatchMetrics, size_of
from lakelet.storage.delta.replaced_rows import add_rows, rewrite_rows
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.delta.tables import WriteResult
from lakelet.storage.delta.transaction import Transaction

_LARGE = 64 << 20
"""Of an input of so many bytes the files that a refresh reads are looked up before it is chosen."""

CHANGED = Issue(IssueType.OTHER_DATA, "its table was changed by something else, or is described in another way")


@dataclass(frozen=True)
class Outcome:
    """How a view was brought up to date. `written`: None where no row of it can be another one, and nothing was committed."""

    refresh: Refresh
    written: WriteResult | None = None


class Measures(Protocol):
    """Gives what the commit keeps, from what was observed while rows were written."""

    def __call__(self, reader: RunReader, observation: Observation, refresh: Refresh, *, plus: BatchMetrics | None = None) -> BatchMetrics:
        """`plus`: counts of rules on rows that are there already."""


@dataclass(frozen=True)
class InPart:
    """One refresh in part. `measure`: see `Measures`."""

    runs: QueryRuns
    measure: Measures

    def run(self, refresh: Refresh) -> Outcome:
        """Carry out the technique that was chosen. Raises WholeRefresh."""
        technique = _TECHNIQUES.get(refresh.technique)
        if technique is None:
            raise WholeRefresh.because(f"{refresh.technique.name} is not carried out in part")
        return technique(self, refresh)

    # ------------------------------------------------------------------------------------------------------- append

    def append(self, refresh: Refresh) -> Outcome:
        """Add the query of the new rows."""
        runs, rules = self.runs, self._rules
        with runs.on(self._new_rows(), judges=len(runs.plan.shape.leaves) == 1) as (reader, frame):
            check_places(frame)
            spec, observation = self._spec(frame), new_observation()
            rows = self._judged(frame, observation)
            last = runs.plan.last if rules or reader.watches else None

            def measure() -> BatchMetrics:
                return self.measure(reader, observation, refresh, plus=last)

            written = add_rows(runs.spark, runs.task.path(), rows, spec, based_on=self._based_on, measure=measure)
        return self._outcome(refresh, written)

    def _new_rows(self) -> Mapping[tuple[str, int], Callable[[DataFrame], DataFrame]]:
        rows = rows_that_come(self.runs.plan.shape, self.runs.changed)
        if rows is None:
            raise WholeRefresh.because("new rows come together with other new rows")
        present = [read for read, kind in rows.items() if kind is LeafRows.PRESENT]
        return {**in_one_place(present), **self.runs.of_rows(rows, finds_keys=False)}

    # ----------------------------------------------------------------------------------------------- touched keys

    def by_key(self, refresh: Refresh) -> Outcome:
        """Compute the rows with touched keys again, and replace those that the view has."""
        runs = self.runs
        with touched_keys(runs) as keys:
            reached("view.keys_found")
            if not keys.count:
                return Outcome(refresh)
            refresh = self._reconsidered(refresh, keys)
            pruning = {read: one.rows for read, one in keys.pruning(runs.plan.shape).items()}
            bound = {**all_present(reads_of(runs.plan.shape)), **pruning}
            with runs.on(bound) as (reader, frame):
                spec, observation = self._spec(frame, [frame.columns[at] for at in keys.positions]), new_observation()
                computed = schemas.aligned(keys.rows_with(frame), spec.schema)

                def rows(stored: DataFrame) -> DataFrame:
                    return self._judged(keys.rows_without(stored).unionByName(computed), observation)

                def measure() -> BatchMetrics:
                    return self.measure(reader, observation, refresh)

                within = None if self._rules or not keys.is_ranged else keys.within
                written = rewrite_rows(runs.spark, runs.task.path(), rows, spec, based_on=self._based_on, within=within, measure=measure)
        return self._outcome(refresh, written)

    def _reconsidered(self, refresh: Refresh, keys: TouchedKeys) -> Refresh:
        """The choice with the number of keys. Raises WholeRefresh if it turned."""
        facts, last = self.runs.plan.facts, self.runs.plan.last
        assert facts is not None
        groups = last.view.rows if last is not None and last.view is not None else None
        found = reconsidered(refresh, facts, keys=keys.count, groups=groups, pruned_bytes=self._pruned_bytes(keys))
        if found.technique is Technique.FULL:
            raise WholeRefresh(found.issues[0])
        return found

    def _pruned_bytes(self, keys: TouchedKeys) -> int:
        """About how many bytes of the inputs are read for the keys. Of a large table Delta says which files it leaves out."""
        runs, total = self.runs, 0
        pruning = keys.pruning(runs.plan.shape)
        for key, files in runs.plan.files.items():
            size = files.change.size or 0
            reads = [pruning.get(read) for read in reads_of(runs.plan.shape) if read[0] == key]
            if size >= _LARGE and reads and all(one is not None and one.is_ranged for one in reads):
                transaction = Transaction(runs.spark, runs.path_of(key))
                size = max(size_of(transaction.files_of(one.ranged(transaction.rows()))) for one in reads if one is not None)
            total += size
        return total

    # -------------------------------------------------------------------------------------------------------- merge

    def merge(self, refresh: Refresh) -> Outcome:
        """Put the aggregates of the new rows together with the stored ones."""
        runs = self.runs
        with runs.on(self._new_rows(), judges=len(runs.plan.shape.leaves) == 1) as (reader, frame):
            if reader.watches:
                raise WholeRefresh(Issue(IssueType.EXPECTATIONS, "rules of a view that it reads count all of its rows"))
            check_places(frame)
            self._check_overflow(frame)
            names = frame.columns
            keys = [names[at] for at in runs.plan.shape.keys]
            spec, observation = self._spec(frame, names), new_observation()
            new = schemas.aligned(frame, spec.schema).persist()
            try:
                found = KeyRanges.of(new, _columns(keys), [frame.schema[name].dataType for name in keys])
                reached("view.keys_found")
                if not found.count:
                    return Outcome(refresh)
                merges = {names[at]: merge for at, merge in (runs.plan.shape.merges or {}).items()}
                merged = _Merged(keys, merges, spec.schema, new)

                def rows(stored: DataFrame) -> DataFrame:
                    return self._judged(merged.with_stored(stored), observation)

                def within(stored: DataFrame) -> DataFrame:
                    return stored.where(found.condition(_columns(keys)))

                def measure() -> BatchMetrics:
                    return self.measure(reader, observation, refresh)

                ranged = any(one is not None for one in found.ranges) and not self._rules
                written = rewrite_rows(
                    *(runs.spark, runs.task.path(), rows, spec),
                    based_on=self._based_on,
                    within=within if ranged else None,
                    measure=measure,
                )
            finally:
                new.unpersist()
        return self._outcome(refresh, written)

    def _check_overflow(self, frame: DataFrame) -> None:
        """Raise WholeRefresh where a sum that grew too large may be stored as NULL, which a later one would not be."""
        sums = [at for at, merge in (self.runs.plan.shape.merges or {}).items() if merge is Merge.SUM]
        decimal = any(isinstance(frame.schema.fields[at].dataType, T.DecimalType) for at in sums)
        if decimal and self.runs.spark.conf.get("spark.sql.ansi.enabled", "true") != "true":
            raise WholeRefresh.because("a sum that is too large is NULL without ANSI mode")

    # -------------------------------------------------------------------------------------------------------- common

    @property
    def _rules(self) -> tuple[Expectation, ...]:
        return self.runs.task.dataset.expectations

    def _judged(self, rows: DataFrame, observation: Observation) -> DataFrame:
        """The rows with what their rules count observed. Raises WholeRefresh if a rule needs more than the columns of the result."""
        try:
            return judged(rows, self._rules, observation, samples=self.runs.task.samples)
        except AnalysisException:
            raise WholeRefresh(
                Issue(IssueType.EXPECTATIONS, "a rule needs more than the columns of the result", remedy="Let the rule name these alone.")
            ) from None

    @property
    def _based_on(self) -> int:
        version = self.runs.plan.stored.version
        assert version is not None
        return version

    def _spec(self, frame: DataFrame, kept: Sequence[str] = ()) -> TableSpec:
        """How the table is described. Raises WholeRefresh if one of the columns `kept` is stored with another type than the query gives."""
        spec = self.runs.task.table_spec(frame.schema)
        stored = {field.name.lower(): field.dataType for field in spec.schema.fields}
        other = next((name for name in kept if stored.get(name.lower()) != frame.schema[name].dataType), None)
        if other is not None:
            raise WholeRefresh.because(f"the column {other} is stored with another type than the query gives")
        return spec

    def _outcome(self, refresh: Refresh, written: WriteResult | None) -> Outcome:
        if written is None:
            raise WholeRefresh(CHANGED)
        return Outcome(refresh, written)


_TECHNIQUES: Mapping[Technique, Callable[[InPart, Refresh], Outcome]] = {
    Technique.APPEND: InPart.append,
    Technique.ROWS: InPart.by_key,
    Technique.GROUPS: InPart.by_key,
    Technique.WINDOWS: InPart.by_key,
    Technique.MERGE: InPart.merge,
}

_FUNCTIONS: Mapping[Merge, Callable[[Column], Column]] = {
    Merge.SUM: F.sum,
    Merge.MIN: F.min,
    Merge.MAX: F.max,
    Merge.EVERY: F.bool_and,
    Merge.SOME: F.bool_or,
}


@dataclass(frozen=True)
class _Merged:
    """Rows of aggregates put together by their keys. `keys`, `merges`: by names of columns; `schema`: of the table; `new`: rows like it."""

    keys: Sequence[str]
    merges: Mapping[str, Merge]
    schema: T.StructType
    new: DataFrame

    def with_stored(self, stored: DataFrame) -> DataFrame:
        both = stored.unionByName(self.new)
        if not self.merges:
            return both.distinct()
        types = {field.name.lower(): field.dataType for field in self.schema.fields}
        values = [_FUNCTIONS[merge](F.col(quoted(name))).cast(types[name.lower()]).alias(name) for name, merge in self.merges.items()]
        return both.groupBy(*_columns(self.keys)).agg(*values)


def _columns(names: Sequence[str]) -> list[Column]:
    return [F.col(quoted(name)) for name in names]


__all__ = ["CHANGED", "InPart", "Measures", "Outcome"]
