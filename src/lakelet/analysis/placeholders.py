"""Reads of a dataset's function during analysis: placeholders with the right columns and no rows, unless it asks for rows.

In: what the function reads by name, path or option. Out: DataFrames, and notes of what was read. A function that asks for rows is called
again on stored ones; a write is refused: a function is called several times per update, also when nothing may be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakelet.analysis import checks
from lakelet.analysis.results import STRICT, AnalysisInputs, AnalyzedDataset, Findings
from lakelet.autoloader.evolving_from_json import JsonColumn
from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName
from lakelet.base.user_code import ControlSignal, caller_location
from lakelet.cdc import change_feed
from lakelet.config.named_tables import files_fingerprint
from lakelet.jvm.frames import analyzed
from lakelet.language.model import Dataset, Kind
from lakelet.language.registry import Notice
from lakelet.plan.kinds import COMPLETE
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.names.cloud_files_state import STATES
from lakelet.spark.names.from_json import JsonSchemas
from lakelet.spark.names.outside import outside_tables
from lakelet.spark.names.reader import Options
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.storage.delta import schemas

_ACTION = "{action}() runs a query each time the function is called, several times per update; a join or an aggregate would do it once"

_SHOWN = (
    "show() runs a query each time the function is called, several times per update, and nobody reads what it prints: leave it out. "
    "To look at the rows: lakelet preview {name}, or lakelet show {name} after an update"
)


class Resolver(Protocol):
    """Analyses the datasets that a query reads."""

    def usable(self, dataset: Dataset) -> AnalyzedDataset: ...
    def check_view(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None: ...
    def note_failed_view(self, dataset: Dataset, reads: Mapping[tuple[str, bool], TableName]) -> None: ...
    def without_cycle(self, dataset: Dataset) -> AbstractContextManager[None]: ...


@dataclass
class PlaceholderReader(QueryReader):
    """Reader for one call of a dataset's function: gives placeholders with the columns that `resolver` finds.

    `given`: opens what is no dataset of the pipeline. `found`: gets what is found out about the flow.
    """

    given: AnalysisInputs = field(kw_only=True)
    found: Findings = field(kw_only=True)
    resolver: Resolver = field(kw_only=True)
    opened: dict[str, int] = field(default_factory=dict)
    columns: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)  # of what was opened, by dataset and copy
    special: dict[str, None] = field(default_factory=dict)  # datasets of which a version or the change feed was opened
    outside: dict[str, None] = field(default_factory=dict)
    needs_rows: bool = False  # the function runs actions on tables, so it gets stored rows
    rows_missing: bool = False  # some of these tables have no rows yet
    own_is_read: bool = False  # the function reads what the last update left of the table that it writes

    def on_action(self, action: str, frame: DataFrame, where: Location) -> bool:
        """Note an action of the function. The first one on a placeholder raises RowsRequested: the call is repeated on stored rows.

        `show` is left out: nothing of the query depends on it, and rows of an analysis are none to look at.
        """
        changes = self.flow.changes
        if changes is not None and callable(changes.snapshots):
            self.on_look()
            return True  # a function that gives snapshots may look for them
        if self.given.strict:
            self.on_look()
            raise action_refused(action, where)
        if action == "show":
            self.notices.append(Notice(_SHOWN.format(name=self.flow.target.name), where))
            return False
        self.on_look()
        if not self.needs_rows and not frame.isStreaming and self.given.placeholders.is_placeholder(frame):
            self.needs_rows = True
            raise RowsRequested
        self.notices.append(Notice(_ACTION.format(action=action), where))
        return True

    def on_look(self) -> None:
        """Note that the function reads data: what it raises then may be for want of rows."""
        self.found.reads_rows.add(self.flow.target.key)

    def restart(self) -> None:
        """Forget the reads of the call so far, before the function is called again."""
        known = (self.reads, self.external, self.sources, self.watches, self.notices, self.json_columns, self.opened, self.outside)
        for memory in (*known, self.columns, self.special):
            memory.clear()
        self._views = 0

    def open(self, dataset: Dataset, *, streaming: bool, jreader: Any = None, options: Options = None) -> DataFrame:
        """As always; of the table that the function itself writes, a batch of the rows that the last update left (LG-32)."""
        if options and not streaming:
            self.special[dataset.name.key] = None
        if dataset.name.key != self.flow.target.key or self._scopes or streaming or options:
            return super().open(dataset, streaming=streaming, jreader=jreader, options=options)
        found = self.given.open_rows(dataset, jreader)
        if found is None:
            raise not_yet_there(dataset)
        self.own_is_read = True
        if not self.needs_rows:
            found = self.given.placeholders.frame(dataset.name.key, found.schema, streaming=False)
        return marked_as_own(found).alias(dataset.name.name)

    def open_table(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool) -> DataFrame:
        schema = self.resolver.usable(dataset).schema
        if self.needs_rows and not streaming and not feed:
            rows = self.given.open_rows(dataset, jreader)
            if rows is not None:
                return schemas.conformed(rows, schema)
            self.rows_missing = True
            self.found.uncertain.add(self.flow.target.key)
        if feed:
            self.catalog.reads.feeds.add(dataset.name.key)
            schema = StructType([*schema.fields, *change_feed.COLUMNS])
        if not (streaming or feed):
            self.catalog.reads.queried.add(dataset.name.key)
        copy = self.opened[dataset.name.key] = self.opened.get(dataset.name.key, -1) + 1
        self.columns[dataset.name.key, copy] = tuple(schema.names)
        return self.given.placeholders.frame(dataset.name.key, schema, streaming=streaming, copy=copy)

    def aliased(self, frame: DataFrame, name: str) -> DataFrame:
        return self.given.placeholders.aliased(frame, name)

    def streamed(self, dataset: Dataset, options: Mapping[str, str]) -> None:
        found = self.resolver.usable(dataset)
        complete = any(f.kind is COMPLETE for f in found.flows)
        # The source of a change flow is read by the engine, unless a view's function does it.
        own = self.flow.changes is not None and not self._scopes
        where = self.flow.where if own else caller_location()
        flows = self.catalog.flows[dataset.name.key]
        text = checks.check_streamed(dataset, found.kind, flows, options, complete=complete, where=where)
        if found.kind is Kind.MATERIALIZED_VIEW or any(f.changes is not None for f in flows):
            self.catalog.reads.streamed.add(dataset.name.key)
        if text:
            self.notices.append(Notice(text, where))

    @property
    def json_schemas(self) -> JsonSchemas:
        return self.given.json_schemas

    def json_opened(self, column: JsonColumn) -> None:
        if column.pending:  # its fields are known when the flow has run (JC-6)
            self.found.fields_unknown.add(self.flow.target.key)

    def file_states(self, dataset: Dataset) -> DataFrame:
        # A row keeps the query from being skipped: what the state says changes without a new version of the dataset's table.
        return self.spark.createDataFrame([(None,) * len(STATES.fields)], STATES)

    def opened_outside(self, key: str, frame: DataFrame) -> None:
        table = outside_tables().readable(key)
        if table is not None and files_fingerprint(table) is not None:
            self.outside[key] = None
            self.given.placeholders.mark_versioned(frame)

    def view_opened(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        self.resolver.check_view(dataset, frame, reads)

    def view_failed(self, dataset: Dataset, reads: Mapping[tuple[str, bool], TableName]) -> None:
        self.resolver.note_failed_view(dataset, reads)

    @contextmanager
    def resolving(self, dataset: Dataset) -> Iterator[None]:
        with self.resolver.without_cycle(dataset):
            yield


# --- functions that ask for rows (DS-18, decision 19) -----------------------------------------------------------------------------


class RowsRequested(ControlSignal):
    """A function under analysis asks for rows of tables that have placeholders. No Exception, so that functions do not catch it."""


def action_refused(action: str, where: Location) -> LakeletError:
    """The error of an action where they are not wanted."""
    return LakeletError(
        "ACTION_IN_FUNCTION",
        f"{action}() runs a query inside a dataset's function, and {STRICT} is true",
        where=where,
        why="the function is called several times per update, and should only describe a query",
        todo="Write it as a part of the query: a join, an aggregate, a window. Actions at the top level of a file are fine.",
    )


# --- functions that read the rows which the last update left of the table that they write (LG-32) ---------------------------------
#
# They may read its schema and its rows: `.schema(spark.table("orders").schema)`, the highest key so far. The rows may not be part of what
# the function returns: a dataset cannot be computed from itself.

_MARK = "lakelet_own_rows"


def marked_as_own(frame: DataFrame) -> DataFrame:
    """The rows of the table that the function itself writes, marked: a query that reads them is recognised."""
    return frame.alias(_MARK)


def refuse_own_rows(frame: DataFrame, dataset: Dataset) -> None:
    """Raise CYCLE for a query that reads the rows of the table that it is computed for."""
    if f"SubqueryAlias {_MARK}" in str(analyzed(frame).treeString()):
        raise circle(dataset)


def not_yet_there(dataset: Dataset) -> MissingTable:
    """The error for a function that, before the first update, reads the table that it writes. The function may catch it as Spark's."""
    found = circle(dataset)
    return MissingTable(str(dataset.name), found.what, where=found.where, todo=found.todo or "", kind=found.code)


def circle(*datasets: Dataset) -> LakeletError:
    """The error for datasets each of which reads the next, the last one the first."""
    names = [str(dataset.name) for dataset in (*datasets, datasets[0])]
    return LakeletError(
        "CYCLE",
        "datasets read each other in a circle: " + " → ".join(names),
        where=datasets[0].where,
        todo="Break the circle: one of them must not read the next.",
    )
