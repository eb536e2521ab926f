"""Analyses the declared datasets before anything runs: kinds, columns, dependencies, and all errors in definitions.

Each function is called once with placeholders for the tables it reads. An error in a definition refuses the whole update. A failure that
depends on data, on stored tables or on the user's code (missing folder, another kind of table, exception in a function) is kept for the
run, where it fails its own branch (RE-1, RE-2).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from lakelet.analysis import actions, checks, own_rows
from lakelet.analysis.analyzed import Analysis, AnalyzedDataset, AnalyzedFlow, Findings, OpenRows, OpenSource
from lakelet.analysis.json_columns import assumed, check_json_columns, fields_missing, with_remedy
from lakelet.analysis.later_reads import missing_later
from lakelet.analysis.partitions import partition_source
from lakelet.analysis.placeholders import PlaceholderReader
from lakelet.analysis.plan_facts import Placeholders, never_skippable, plan_text, stream_plan, traced_plan, unversioned
from lakelet.analysis.replacing_checks import check_replacement, part_of
from lakelet.analysis.rule_checks import check_rules
from lakelet.analysis.sink_paths import sink_path
from lakelet.analysis.unchecked import Unusable, fails_alone, refused, unchecked
from lakelet.autoloader.loading import struct_of
from lakelet.base import VERSION
from lakelet.base.errors import DefinitionErrors, ExitCode, LakeletError
from lakelet.base.names import TableName
from lakelet.base.phases import report
from lakelet.base.user_code import call_user_code
from lakelet.cdc import computed, identity
from lakelet.cdc.changes import END, START, layout
from lakelet.cdc.checks import check as check_changes
from lakelet.cdc.state import keeps_events
from lakelet.cdc.versions import copy_of, sequence_of
from lakelet.config.properties import TOMBSTONES, look_up
from lakelet.language.lost import Lost
from lakelet.language.model import ChangeSpec, Dataset, Flow, Kind
from lakelet.language.registry import Notice, reading
from lakelet.plan.graph import Graph, Node, topological
from lakelet.spark import settings
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.errors.user_errors import coded
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.from_json import JsonSchemas
from lakelet.spark.names.reader import data_frame, rows_of
from lakelet.spark.session_clones import UpdateSession, flow_session
from lakelet.storage.root import StoredDataset
from lakelet.transforms.applied import recording

# Errors that may disappear once the function has rows to look at, and with them the columns.
_OF_COLUMNS = {
    *("QUERY_FAILED_ANALYSIS", "SCHEMA_MISMATCH", "SCHEMA_INCOMPATIBLE", "EXPECTATION_INVALID"),
    *("CDC_UNKNOWN_COLUMN", "CDC_STATE_CHANGED", "CDC_RESERVED_COLUMN"),
}

_HELD_FOR_EVER = (
    "rows that its watermark holds back never reach the table, as the flow runs once: read the source of an aggregate as a batch, with "
    "spark.read.table or dlt.read"
)
_ROWS_MISSING = "the function looks at rows of a table that is not there yet; while the pipeline is analysed it sees none"


@dataclass
class _Progress:
    """Progress of an analysis.

    done: analysed datasets, None for those whose analysis failed. stack: datasets that are being analysed, the innermost last.
    checked_views: views whose query and rules were checked. configured: how many datasets of the stack have settings of their own.
    """

    done: dict[str, AnalyzedDataset | None] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    stack: list[Dataset] = field(default_factory=list)
    checked_views: set[str] = field(default_factory=set)
    configured: int = 0


@dataclass(frozen=True, eq=False)
class Analyzer:
    """One analysis.

    Args:
        stored: what the storage knows, by key.
        parameters: the pipeline's configuration.
        open_source, open_rows: open what a function reads.
        json_schemas: of the flows' calls of `from_json`.
        has_run: whether a flow that runs once has run.
        made_with: what a change table was made with, by key (`cdc.identity`).
        ever_run: an update of this storage has begun before.
    """

    spark: UpdateSession
    catalog: Catalog
    stored: Mapping[str, StoredDataset]
    parameters: Mapping[str, str]
    open_source: OpenSource
    open_rows: OpenRows
    json_schemas: JsonSchemas
    has_run: Callable[[Flow], bool]
    made_with: Callable[[str], str | None]
    ever_run: bool
    found: Findings = field(default_factory=Findings, init=False)
    _progress: _Progress = field(default_factory=_Progress, init=False)

    def __post_init__(self) -> None:
        """Raises PROPERTY_INVALID for a wrong value of lakelet.strictActions, also where no function asks for rows."""
        actions.strict(self.parameters)

    @cached_property
    def strict(self) -> bool:
        """Whether a function that asks for rows is refused."""
        return actions.strict(self.parameters)

    @cached_property
    def placeholders(self) -> Placeholders:
        return Placeholders(self.spark)

    def run(self, found: Sequence[LakeletError] = (), *, lost: Lost | None = None, checking: bool = False) -> Analysis:
        """Analyse every dataset. Raises DefinitionErrors with all errors: those `found` before, and those of the queries.

        `lost`: what did not run of the sources. A name that it may declare is not reported as unknown.
        `checking`: a function that raises is an error, unless only an update can check it (decision 0044); so it is beside other errors.
        """
        lost = lost or Lost()
        stored = sum(dataset.kind is not Kind.VIEW for dataset in self.catalog.datasets.values())
        for dataset in self.catalog.datasets.values():
            report("Analysing", len(self._progress.done), stored)
            if dataset.kind is Kind.VIEW:
                self._check_unread_view(dataset)
            else:
                self._analyzed(dataset)
        errors = [*found, *(e for e in self.found.errors if not (isinstance(e, MissingTable) and lost.may_declare(e.name)))]
        if checking or errors:
            errors += refused(self.found, lost)
        if errors:
            raise DefinitionErrors(_distinct(errors))
        inputs = {key: [n.key for n in node.inputs] for key, node in self._progress.nodes.items()}
        order = topological([k for k in self.catalog.datasets if k in self._progress.nodes], inputs)
        usable = {key: found for key, found in self._progress.done.items() if found is not None}
        graph = Graph(tuple(self._progress.nodes[key] for key in order))
        return Analysis(graph, usable, self.found.failures, unchecked(self.found))

    def dataset(self, key: str) -> AnalyzedDataset | None:
        """Analyse one dataset and what it reads; None if that fails."""
        return self._analyzed(self.catalog.datasets[key])

    # ------------------------------------------------------------------------------------ called back by the reader

    def usable(self, dataset: Dataset) -> AnalyzedDataset:
        """Return the analysis of a stored dataset that a query reads. Raises Unusable if it failed."""
        found = self._analyzed(dataset)
        readers = [d.name.key for d in self._progress.stack]
        if dataset.name.key in self.found.uncertain | self.found.growing:
            self.found.uncertain.update(readers)
        if dataset.name.key in self.found.waiting | self.found.growing:
            self.found.waiting.update(readers)
        if found is None:
            raise Unusable
        return found

    @contextmanager
    def without_cycle(self, dataset: Dataset) -> Iterator[None]:
        """Record CYCLE and raise Unusable if resolving `dataset` in the block leads back to itself."""
        keys = [d.name.key for d in self._progress.stack]
        if dataset.name.key in keys:
            self.found.errors.append(own_rows.circle(*self._progress.stack[keys.index(dataset.name.key) :]))
            raise Unusable
        # A view is entered here; a stored dataset by `_analyzed`, which keeps its result.
        if dataset.kind is Kind.VIEW:
            self._progress.stack.append(dataset)
            try:
                yield
            except Unusable:
                raise
            except Exception as error:  # raised by a function of the user's
                raise Unusable(self._recorded(error, dataset, self.catalog.flows[dataset.name.key][0])) from None
            finally:
                self._progress.stack.pop()
        else:
            yield

    def check_view(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Record a view's node and check its rules, the first time that a query reads it."""
        if dataset.name.key in self._progress.checked_views:
            return
        before = len(self.found.errors)
        self._check_rules(dataset, self.catalog.flows[dataset.name.key][0], frame)
        if len(self.found.errors) > before:
            raise Unusable
        self._progress.checked_views.add(dataset.name.key)
        self._progress.nodes[dataset.name.key] = self._node(dataset, Kind.VIEW, frame.schema, reads, {})

    def note_failed_view(self, dataset: Dataset, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Record what a view reads that could not be opened: what reads the view is skipped with what failed above it."""
        self._progress.nodes.setdefault(dataset.name.key, self._node(dataset, Kind.VIEW, StructType(), reads, {}))

    # ------------------------------------------------------------------------------------------------------- inside

    def _check_unread_view(self, dataset: Dataset) -> None:
        if dataset.name.key in self._progress.nodes:
            return
        flow = self.catalog.flows[dataset.name.key][0]
        self._run_guarded(dataset, flow, lambda: self._analyze_unread_view(self._reader(flow), dataset))
        self._progress.nodes.setdefault(dataset.name.key, self._node(dataset, Kind.VIEW, StructType(), {}, {}))

    def _analyze_unread_view(self, reader: PlaceholderReader, dataset: Dataset) -> None:
        """Analyse a view that no analysed flow reads; a second time if its function asks for rows, as `_called`."""
        flow = self.catalog.flows[dataset.name.key][0]
        with reading(reader), self._configured(dataset, flow, {}), self.without_cycle(dataset):
            with suppress(actions.RowsRequested):
                reader.query_of_view(dataset)
                return
            reader.restart()
            reader.query_of_view(dataset)

    def _analyzed(self, dataset: Dataset) -> AnalyzedDataset | None:
        key = dataset.name.key
        if key in self._progress.done:
            return self._progress.done[key]
        self._progress.stack.append(dataset)
        try:
            flows = [self._flow(dataset, flow) for flow in self.catalog.flows[key]]
        finally:
            self._progress.stack.pop()
        usable = [f for f in flows if f is not None]
        result = None
        if len(usable) == len(flows) and usable:
            result = self._run_guarded(dataset, usable[0].flow, lambda: self._dataset(dataset, usable))
        self._progress.done[key] = result
        return result

    def _dataset(self, dataset: Dataset, flows: list[AnalyzedFlow]) -> AnalyzedDataset:
        kind = dataset.kind
        if kind is Kind.TABLE:
            own = next(f for f in flows if f.flow.default)
            kind = Kind.STREAMING_TABLE if own.streaming else Kind.MATERIALIZED_VIEW
        stored = self.stored.get(dataset.name.key)
        checks.check_flows(dataset, kind, [f.flow for f in flows], stored)
        node = self._progress.nodes[dataset.name.key]
        if dataset.sink is not None:
            sink_path(dataset, self.catalog)
            self._progress.nodes[dataset.name.key] = replace(node, kind=kind, columns=())
            return AnalyzedDataset(dataset, kind, StructType(), tuple(flows))
        found = [f.schema for f in flows]
        if dataset.name.key in self.found.growing:
            found = [assumed(schema, dataset, stored, self.spark) for schema in found]
        schema = checks.table_schema(dataset, kind, found, stored, self.spark, has_run=self.ever_run)
        columns = tuple((f.name, f.dataType.simpleString()) for f in schema.fields)
        self._progress.nodes[dataset.name.key] = replace(node, kind=kind, columns=columns)
        return AnalyzedDataset(dataset, kind, schema, tuple(flows))

    def _flow(self, dataset: Dataset, flow: Flow) -> AnalyzedFlow | None:
        reader = self._reader(flow)
        frames: list[DataFrame] = []
        result: AnalyzedFlow | None = self._run_guarded(dataset, flow, lambda: self._query_or_stored(dataset, flow, reader, frames))
        found = frames[0].schema if frames else StructType()
        node = self._node(dataset, dataset.kind, found, reader.reads, reader.external)
        before = self._progress.nodes.get(dataset.name.key)
        if before is not None:
            inputs = tuple(dict.fromkeys((*before.inputs, *node.inputs)))
            node = replace(node, inputs=inputs, external=tuple(dict.fromkeys((*before.external, *node.external))))
        self._progress.nodes[dataset.name.key] = node
        return result

    def _query_or_stored(self, dataset: Dataset, flow: Flow, reader: PlaceholderReader, frames: list[DataFrame]) -> AnalyzedFlow:
        """Return `_query`, or the stored columns where it fails for a once flow that has run: its input may be gone (DS-9)."""
        try:
            return self._query(dataset, flow, reader, frames)
        except Exception:  # raised by a function of the user's, or by Spark about its query
            stored = self.stored.get(dataset.name.key)
            runs_once = flow.once or (flow.changes is not None and flow.changes.once)
            if stored is None or not runs_once or not self.has_run(flow):
                raise
            self.found.notice(flow, Notice("it has run; a full refresh could not run it again as it is", flow.where))
            frames.clear()
            columns = StructType.fromJson(json.loads(stored.columns)) if stored.columns else StructType()
            return AnalyzedFlow(flow, False, columns, None, "", None)

    def _query(self, dataset: Dataset, flow: Flow, reader: PlaceholderReader, frames: list[DataFrame]) -> AnalyzedFlow:
        of_views = self._settings_of_views(dataset, flow, reader)
        with reading(reader), self._configured(dataset, flow, of_views):
            with recording() as applied:
                frame, changes = self._called(dataset, flow, reader)
                while fields_missing(dataset, changes, frame, reader):
                    reader.restart()
                    frame, changes = self._called(dataset, flow, reader)
            if reader.own_is_read:
                own_rows.refuse_own_rows(frame, dataset)
            transforms = tuple(dict.fromkeys(map(str, applied)))
            self.found.notice(flow, *reader.notices)
            frames.append(frame)
            checks.check_kind(dataset, flow, frame)
            check_json_columns(dataset, frame, reader.json_columns.values())
            if flow.replaces is not None:
                check_replacement(dataset, flow, flow.replaces, frame)
            self._check_rules(dataset, flow, frame)
        columns = frame.schema
        if changes is not None:
            check_changes(changes, frame)
            if dataset.cluster_by:
                text = "cluster_by has no effect on a change table here: its rows lie as the changes leave them"
                self.found.notice(flow, Notice(text, dataset.where))
            if look_up(dataset.table_properties, TOMBSTONES) is not None and keeps_events(changes):
                text = f"{TOMBSTONES} has no effect here: the table is computed from all events of a key, which are kept"
                self.found.notice(flow, Notice(text, dataset.where))
            shape = layout(changes, frame)
            if dataset.computed:
                computed.check(dataset, shape, self.spark.range(0))
            identity.check(changes, shape, self.made_with(dataset.name.key) if dataset.name.key in self.stored else None)
            columns = shape.visible
        plan = traced_plan(frame, self.placeholders)
        if frame.isStreaming:
            stream, complete = stream_plan(frame, self.placeholders), False
            if changes is not None and changes.once and stream.watermark and stream.aggregates:
                self.found.notice(flow, Notice(_HELD_FOR_EVER, flow.where))
            if dataset.sink is not None:
                checks.check_sink_stream(self.placeholders, dataset, flow, frame)
            else:
                others = [f for f in self.catalog.flows[dataset.name.key] if f is not flow]
                complete = checks.runs_complete(self.placeholders, dataset, flow, others, frame)
            facts = AnalyzedFlow(flow, True, columns, stream, "", None, complete, of_views=of_views, plan=plan, transforms=transforms)
            return replace(facts, unversioned=unversioned(frame, self.placeholders))
        computed_rows = part_of(flow, frame)
        always = "its function looks at rows" if reader.needs_rows else never_skippable(computed_rows, self.placeholders)
        fingerprint, earlier = self._fingerprints(dataset, computed_rows, of_views)
        outside = tuple(reader.outside)
        facts = AnalyzedFlow(
            flow, False, columns, None, fingerprint, always, outside=outside, of_views=of_views, plan=plan, transforms=transforms
        )
        judged = any(view.expectations for view in self._views_read(reader.reads.values()))
        partitions = None if judged or flow.replaces is not None else partition_source(frame, self.placeholders, dataset.partition_cols)
        return replace(facts, earlier_fingerprint=earlier, partitions=partitions)

    def _settings_of_views(self, dataset: Dataset, flow: Flow, reader: PlaceholderReader) -> Mapping[str, str]:
        """Return the settings of the views that a flow reads, which count for the flow; finding them costs a call of its function (LG-20).

        Raises VIEW_SETTINGS_DIFFER.
        """
        if not any(d.kind is Kind.VIEW and d.spark_conf for d in self.catalog.datasets.values()):
            return {}
        with reading(reader), self._configured(dataset, flow, {}):
            self._called(dataset, flow, reader)
        own = {**dataset.spark_conf, **flow.spark_conf}
        found, notices = view_settings(self._views_read(reader.reads.values()), own)
        self.found.notice(flow, *(Notice(text, flow.where) for text in notices))
        reader.restart()
        return found

    def _views_read(self, names: Iterable[TableName]) -> list[Dataset]:
        """The views among these datasets, and those that they read."""
        found: dict[str, Dataset] = {}
        waiting = [name.key for name in names]
        while waiting:
            key = waiting.pop()
            known = self.catalog.datasets.get(key)
            if known is not None and known.kind is Kind.VIEW and key not in found:
                found[key] = known
                waiting += [name.key for name in self._progress.nodes[key].inputs] if key in self._progress.nodes else []
        return [found[key] for key in sorted(found)]

    def _called(self, dataset: Dataset, flow: Flow, reader: PlaceholderReader) -> tuple[DataFrame, ChangeSpec | None]:
        """Call the flow's function (`_rows`); a second time, on stored rows, if it asks for rows (decision 0019)."""
        found = None
        with suppress(actions.RowsRequested):
            found = self._rows(dataset, flow)
        if found is not None and not reader.needs_rows:
            return found
        reader.restart()
        found = self._rows(dataset, flow)
        if reader.rows_missing:
            reader.notices.append(Notice(_ROWS_MISSING, flow.where))
        return found

    def _rows(self, dataset: Dataset, flow: Flow) -> tuple[DataFrame, ChangeSpec | None]:
        """Return the query of a flow; for snapshots from a function the first one, with its version as the sequence.

        Where the function gives none, the columns are those of the stored table. Raises CDC_NO_SNAPSHOT when there is no table either.
        """
        spec = flow.changes
        if spec is None or not callable(spec.snapshots):
            return rows_of(flow), spec
        self.found.looked.add(flow.target.key)  # a function that gives snapshots looks for them
        given = copy_of(call_user_code(spec.snapshots, None))
        if given is not None:
            return data_frame(given[0], flow), replace(spec, sequence_by=sequence_of(given[1], struct_of(dataset.schema, self.spark)))
        stored = self.stored.get(dataset.name.key)
        if stored is None or not stored.columns:
            raise LakeletError(
                "CDC_NO_SNAPSHOT",
                "its function gave no snapshot yet, so its columns are not known",
                where=flow.where,
                todo="The next update asks again.",
            )
        columns = StructType.fromJson(json.loads(stored.columns))
        known = {f.name: f for f in columns.fields}
        fields = [f for name, f in known.items() if spec.scd_type == 1 or name not in (START, END)]
        sequence = known[START].dataType if spec.scd_type == 2 and START in known else LongType()
        return self.placeholders.frame("", StructType(fields), streaming=False), replace(spec, sequence_by=F.lit(None).cast(sequence))

    @contextmanager
    def _configured(self, dataset: Dataset, flow: Flow, of_views: Mapping[str, str]) -> Iterator[None]:
        """Apply the settings of this dataset and flow in the block, and none of a reader whose analysis is interrupted for it."""
        conf = {**of_views, **dataset.spark_conf, **flow.spark_conf}
        if not conf and not self._progress.configured:
            yield
            return
        self._progress.configured += 1
        try:
            with flow_session(self.spark, conf):
                notices = [Notice(text, flow.where) for text in settings.apply(self.spark.conf, conf)]
                self.found.notice(flow, *notices)
                yield
        finally:
            self._progress.configured -= 1

    def _fingerprints(self, dataset: Dataset, frame: DataFrame, of_views: Mapping[str, str]) -> tuple[str, str]:
        """Return digests of all that a view's rows depend on besides its input rows: in the present form, and in that of older versions."""
        rules = sorted((r.name, r.text, r.action.value) for r in dataset.expectations)
        table = [dataset.partition_cols, checks.declared_types(dataset, self.spark)]  # the rest changes no row (TP-1)
        table += [(column.name, str(column.identity), column.generated) for column in dataset.identities]
        once = [dataset.comment, dict(dataset.table_properties), dataset.partition_cols, dataset.cluster_by, str(dataset.schema)]
        made = self.spark.settings_of_code()
        conf = {**of_views, **dataset.spark_conf, **({"": dict(made)} if made else {})}
        plan, parameters = plan_text(frame), dict(self.parameters)

        def digest(of_table: list[Any]) -> str:
            parts = [plan, rules, of_table, conf, parameters, VERSION, self.spark.version]
            return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

        return digest(table), digest(once)

    def _reader(self, flow: Flow) -> PlaceholderReader:
        return PlaceholderReader(self.spark, self.catalog, label=flow.name, analyzer=self, flow=flow)

    def _node(
        self, dataset: Dataset, kind: Kind, schema: StructType, reads: Mapping[tuple[str, bool], TableName], external: Mapping[str, None]
    ) -> Node:
        return Node(
            name=dataset.name,
            kind=kind,
            inputs=tuple(dict.fromkeys(reads.values())),
            external=tuple(external),
            flows=tuple(f.name for f in self.catalog.flows[dataset.name.key]),
            columns=tuple((f.name, f.dataType.simpleString()) for f in schema.fields),
            expectations=dataset.expectations,
            where=dataset.where,
        )

    def _run_guarded(self, dataset: Dataset, flow: Flow, work: Callable[[], Any]) -> Any:
        """Run `work` and return its result; on failure return None and record a definition error, or a failure for the update to report."""
        try:
            return work()
        except Unusable as unusable:
            failure = unusable.failure
            self.found.errors += self._further_missing(unusable, dataset, flow)
        except Exception as error:  # raised by a function of the user's, or by Spark about its query
            failure = self._recorded(error, dataset, flow)
        if failure is not None:
            self.found.failures.setdefault(dataset.name.key, failure)
        return None

    def _is_uncertain(self, dataset: Dataset) -> bool:
        return not self.found.uncertain.isdisjoint({dataset.name.key, *(d.name.key for d in self._progress.stack)})

    def _check_rules(self, dataset: Dataset, flow: Flow, frame: DataFrame) -> None:
        """Record the errors in the rules of a dataset; raise the first one if its columns are uncertain: then the update decides."""
        found = check_rules(dataset, frame)
        if found.errors and self._is_uncertain(dataset):
            raise found.errors[0]
        self.found.errors.extend(with_remedy(error, dataset, self.found) for error in found.errors)
        self.found.notice(flow, *found.notices)

    def _recorded(self, error: Exception, dataset: Dataset, flow: Flow) -> LakeletError | None:
        """Record a definition error, and those of further tables that the query does not find; return an error that only the update is to
        report, else None.
        """
        further, problem = self._further_missing(error, dataset, flow), with_remedy(coded(error, dataset, flow), dataset, self.found)
        if problem.code == "SCHEMA_OUTGROWN":
            self.found.notice(flow, Notice(f"an update fails {dataset.name}: {problem.what}", dataset.where))
        only_in_update = problem.exit_code is ExitCode.FAILED or (problem.code in _OF_COLUMNS and self._is_uncertain(dataset))
        only_in_update = only_in_update or fails_alone(problem, stored=dataset.name.key in self.stored)
        self.found.errors += further if only_in_update else [problem, *further]
        return problem if only_in_update else None

    def _further_missing(self, error: Exception, dataset: Dataset, flow: Flow) -> list[LakeletError]:
        """Return the errors about tables that a query does not find besides the error that it ended with."""
        reader = self._reader(flow)
        with reading(reader):
            found = [*getattr(error, "others", ()), *missing_later(flow, error, reader.batch)]
        for missing in found:
            missing.dataset = str(dataset.name)
        return found


def _distinct(errors: list[LakeletError]) -> list[LakeletError]:
    """Return each error once: one inside a view occurs for every reader of the view."""
    return list({(e.code, str(e.where), e.what, e.why): e for e in reversed(errors)}.values())[::-1]


# --- settings of views --------------------------------------------------------------------------------------------------------------------


_OF_TABLES = "pipelines."


def view_settings(views: Iterable[Dataset], own: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings that a flow takes over from the views it reads, and notices about those that it has another value for (LG-20 ff).

    `own`: those of the flow and of its dataset, which win. Raises VIEW_SETTINGS_DIFFER where two views do not agree and `own` says nothing.
    """
    found: dict[str, Dataset] = {}
    notices = []
    for view in views:
        for key, value in view.spark_conf.items():
            first = found.setdefault(key, view)
            if key.startswith(_OF_TABLES):
                continue
            if key in own:
                if own[key] != value:
                    notices.append(f"{key} = {value} of the view {view.name} has no effect here: the flow that reads it sets {own[key]}")
            elif first.spark_conf[key] != value:
                raise LakeletError(
                    "VIEW_SETTINGS_DIFFER",
                    f"it reads the views {first.name} and {view.name}, whose spark_conf give {key} the values "
                    f"{first.spark_conf[key]!r} and {value!r}",
                    where=view.where,
                    todo="Give both one value, or set it in the spark_conf of the flow or table that reads them.",
                )
    return {key: view.spark_conf[key] for key, view in found.items() if key not in own and not key.startswith(_OF_TABLES)}, notices
