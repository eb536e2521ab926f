"""Analyses the query of one flow: calls its function with placeholders, checks what it returns, and reads facts off its plan.

In: a declared flow and its dataset, a reader that answers the function's reads, and the inputs and the progress of the whole analysis.
Out: an `AnalyzedFlow`, or what the function, Spark or a check raises.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from lakelet.analysis import checks
from lakelet.analysis.checks import check_replacement, part_of
from lakelet.analysis.from_json_checks import check_json_columns, fields_missing, with_remedy
from lakelet.analysis.placeholders import PlaceholderReader, RowsRequested, refuse_own_rows
from lakelet.analysis.plan_facts import (
    NO_STREAM,
    StreamPlan,
    never_skippable,
    partition_source,
    plan_text,
    printed_plan,
    stream_plan,
    traced_plan,
)
from lakelet.analysis.plan_tree import Node, plan_tree
from lakelet.analysis.refused_queries import ASKS_FOR_ROWS, UNKNOWN_PLAN, reads_judged_view, reads_with_options
from lakelet.analysis.results import AnalysisInputs, AnalyzedDataset, AnalyzedFlow, BatchPlan, Findings, UnanalyzedDataset
from lakelet.analysis.rule_checks import check_rules
from lakelet.analysis.used_columns import ALL_USED, UsedColumns, used_columns
from lakelet.analysis.view_shapes import QueryFacts, identifying_columns, shape_of
from lakelet.autoloader.reader_arguments import struct_of
from lakelet.base import VERSION
from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName
from lakelet.base.user_code import call_user_code
from lakelet.cdc import generated_columns, identity
from lakelet.cdc.changes import END, START, layout
from lakelet.cdc.checks import check as check_changes
from lakelet.cdc.snapshot_versions import copy_of, sequence_of
from lakelet.cdc.state import keeps_events
from lakelet.config.properties import TOMBSTONES, look_up
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.frames import plan_json
from lakelet.language.model import ChangeSpec, Dataset, Flow, Kind, RefreshPolicy
from lakelet.language.registry import Notice, reading
from lakelet.plan.graph import GraphNode
from lakelet.plan.kinds import VIEW, FlowKind, kind_of
from lakelet.plan.refreshes import Issue
from lakelet.spark import settings
from lakelet.spark.names.reader import data_frame, rows_of
from lakelet.spark.session_clones import UpdateSession, flow_session
from lakelet.transforms.applied import recording

_HELD_FOR_EVER = (
    "rows that its watermark holds back never reach the table, as the flow runs once: read the source of an aggregate as a batch, with "
    "spark.read.table or dlt.read"
)
_ANSI = "spark.sql.ansi.enabled"
_OF_RESULTS = ("spark.sql.session.timeZone", _ANSI)
"""Settings of Spark that decide about values of a result, whoever set them."""
_ROWS_MISSING = "the function looks at rows of a table that is not there yet; while the pipeline is analysed it sees none"


@dataclass
class AnalysisProgress:
    """Progress of an analysis.

    done: results so far. stack: datasets that are being analysed, the innermost last. columns: of the queries of flows, by name of the
    flow. checked_views: views whose query and rules were checked. configured: how many datasets of the stack have settings of their own.
    """

    found: Findings = field(default_factory=Findings)
    done: dict[str, AnalyzedDataset | UnanalyzedDataset] = field(default_factory=dict)
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    columns: dict[str, StructType] = field(default_factory=dict)
    stack: list[Dataset] = field(default_factory=list)
    checked_views: set[str] = field(default_factory=set)
    configured: int = 0

    def is_uncertain(self, dataset: Dataset) -> bool:
        """Whether the columns of a dataset, or of a dataset whose analysis it interrupts, may be others once there are rows."""
        return not self.found.uncertain.isdisjoint({dataset.name.key, *(d.name.key for d in self.stack)})

    def check_rules(self, dataset: Dataset, flow: Flow, frame: DataFrame) -> None:
        """Record the errors in the rules of a dataset; raise the first one if its columns are uncertain: then the update decides."""
        found = check_rules(dataset, frame)
        if found.errors and self.is_uncertain(dataset):
            raise found.errors[0]
        self.found.errors.extend(with_remedy(error, dataset, self.found) for error in found.errors)
        self.found.notice(flow, *found.notices)

    @contextmanager
    def configured_session(self, spark: UpdateSession, conf: Mapping[str, str], flow: Flow) -> Iterator[None]:
        """Apply the settings of a flow in the block, and none of a reader whose analysis is interrupted for it."""
        if not conf and not self.configured:
            yield
            return
        self.configured += 1
        try:
            with flow_session(spark, conf):
                self.found.notice(flow, *(Notice(text, flow.where) for text in settings.apply(spark.conf, conf)))
                yield
        finally:
            self.configured -= 1


@dataclass(frozen=True)
class FlowQuery:
    """The query of one flow while it is analysed."""

    inputs: AnalysisInputs
    progress: AnalysisProgress
    dataset: Dataset
    flow: Flow
    reader: PlaceholderReader

    def analyzed(self) -> AnalyzedFlow:
        """Analyse the query; for a once flow that has run, and whose input may be gone, return the stored columns instead (DS-9)."""
        try:
            return self._analyzed()
        except Exception:  # raised by a function of the user's, or by Spark about its query
            stored = self.inputs.stored.get(self.dataset.name.key)
            if stored is None or not self.flow.runs_once or not self.inputs.has_run(self.flow):
                raise
            self._notice("it has run; a full refresh could not run it again as it is")
            self.progress.columns.pop(self.flow.name, None)
            columns = StructType.fromJson(json.loads(stored.columns)) if stored.columns else StructType()
            return AnalyzedFlow(self.flow, kind_of(self.flow, to_sink=self.dataset.sink is not None, streams=False), columns)

    def _analyzed(self) -> AnalyzedFlow:
        dataset, flow, reader, found = self.dataset, self.flow, self.reader, self.progress.found
        of_views = self._settings_of_views()
        with reading(reader), self._configured(of_views):
            with recording() as applied:
                frame, changes = self._called()
                while fields_missing(dataset, changes, frame, reader):
                    reader.restart()
                    frame, changes = self._called()
            if reader.own_is_read:
                refuse_own_rows(frame, dataset)
            transforms = tuple(dict.fromkeys(map(str, applied)))
            found.notice(flow, *reader.notices)
            self.progress.columns[flow.name] = frame.schema
            checks.check_kind(dataset, flow, frame)
            check_json_columns(dataset, frame, reader.json_columns.values())
            if flow.replaces is not None:
                check_replacement(dataset, flow, flow.replaces, frame)
            self.progress.check_rules(dataset, flow, frame)
        columns = frame.schema if changes is None else self._columns_of_changes(changes, frame)
        plan = traced_plan(frame, self.inputs.placeholders)
        streams = frame.isStreaming
        stream = self._stream(changes, frame) if streams else NO_STREAM
        complete = streams and self._runs_complete(frame)
        kind = kind_of(flow, to_sink=dataset.sink is not None, streams=streams, complete=complete)
        batch = BatchPlan() if streams else self._batch(frame, of_views, kind)
        return AnalyzedFlow(flow, kind, columns, stream, batch, tuple(reader.sources), of_views, transforms, plan)

    # ------------------------------------------------------------------------------------------- calls of the function

    def _settings_of_views(self) -> Mapping[str, str]:
        """Return the settings of the views that a flow reads, which count for the flow; finding them costs a call of its function (LG-20).

        Raises VIEW_SETTINGS_DIFFER.
        """
        if not any(d.kind is Kind.VIEW and d.spark_conf for d in self.inputs.catalog.datasets.values()):
            return {}
        with reading(self.reader), self._configured({}):
            self._called()
        own = {**self.dataset.spark_conf, **self.flow.spark_conf}
        found, notices = view_settings(self._views_read(self.reader.reads.values()), own)
        for text in notices:
            self._notice(text)
        self.reader.restart()
        return found

    def _views_read(self, names: Iterable[TableName]) -> list[Dataset]:
        """The views among these datasets, and those that they read."""
        found: dict[str, Dataset] = {}
        pending = [name.key for name in names]
        while pending:
            key = pending.pop()
            known = self.inputs.catalog.datasets.get(key)
            if known is not None and known.kind is Kind.VIEW and key not in found:
                found[key] = known
                pending += [name.key for name in self.progress.nodes[key].inputs] if key in self.progress.nodes else []
        return [found[key] for key in sorted(found)]

    def _called(self) -> tuple[DataFrame, ChangeSpec | None]:
        """Call the flow's function (`_rows`); a second time, on stored rows, if it asks for rows (decision 0019)."""
        found = None
        with suppress(RowsRequested):
            found = self._rows()
        if found is not None and not self.reader.needs_rows:
            return found
        self.reader.restart()
        found = self._rows()
        if self.reader.rows_missing:
            self.reader.notices.append(Notice(_ROWS_MISSING, self.flow.where))
        return found

    def _rows(self) -> tuple[DataFrame, ChangeSpec | None]:
        """Return the query of a flow; for snapshots from a function the first one, with its version as the sequence.

        Where the function gives none, the columns are those of the stored table. Raises CDC_NO_SNAPSHOT when there is no table either.
        """
        flow, spec = self.flow, self.flow.changes
        if spec is None or not callable(spec.snapshots):
            return rows_of(flow), spec
        self.progress.found.reads_rows.add(flow.target.key)  # a function that gives snapshots looks for them
        given = copy_of(call_user_code(spec.snapshots, None))
        if given is not None:
            sequence = sequence_of(given[1], struct_of(self.dataset.schema, self.inputs.spark))
            return data_frame(given[0], flow), replace(spec, sequence_by=sequence)
        stored = self.inputs.stored.get(self.dataset.name.key)
        if stored is None or not stored.columns:
            raise LakeletError(
                "CDC_NO_SNAPSHOT",
                "its function gave no snapshot yet, so its columns are not known",
                where=flow.where,
                todo="The next update asks again.",
            )
        known = {f.name: f for f in StructType.fromJson(json.loads(stored.columns)).fields}
        fields = [f for name, f in known.items() if spec.scd_type == 1 or name not in (START, END)]
        type_of_sequence = known[START].dataType if spec.scd_type == 2 and START in known else LongType()
        frame = self.inputs.placeholders.frame("", StructType(fields), streaming=False)
        return frame, replace(spec, sequence_by=F.lit(None).cast(type_of_sequence))

    @contextmanager
    def _configured(self, of_views: Mapping[str, str]) -> Iterator[None]:
        """Apply the settings of the views that are read, of the dataset and of the flow in the block."""
        with self.progress.configured_session(self.inputs.spark, self._conf(of_views), self.flow):
            yield

    def _conf(self, of_views: Mapping[str, str]) -> dict[str, str]:
        return {**of_views, **self.dataset.spark_conf, **self.flow.spark_conf}

    def _notice(self, text: str) -> None:
        self.progress.found.notice(self.flow, Notice(text, self.flow.where))

    # --------------------------------------------------------------------------------------------------- facts and checks

    def _columns_of_changes(self, changes: ChangeSpec, frame: DataFrame) -> StructType:
        """The columns that the change table shows. Raises for a specification that does not fit the query or the stored table."""
        dataset, found = self.dataset, self.progress.found
        check_changes(changes, frame)
        if dataset.cluster_by:
            text = "cluster_by has no effect on a change table here: its rows lie as the changes leave them"
            found.notice(self.flow, Notice(text, dataset.where))
        if look_up(dataset.table_properties, TOMBSTONES) is not None and keeps_events(changes):
            text = f"{TOMBSTONES} has no effect here: the table is computed from all events of a key, which are kept"
            found.notice(self.flow, Notice(text, dataset.where))
        shape = layout(changes, frame)
        if dataset.computed:
            generated_columns.check(dataset, shape, self.inputs.spark.range(0))
        made_with = self.inputs.made_with(dataset.name.key) if dataset.name.key in self.inputs.stored else None
        identity.check(changes, shape, made_with)
        return shape.visible

    def _stream(self, changes: ChangeSpec | None, frame: DataFrame) -> StreamPlan:
        found = stream_plan(frame, self.inputs.placeholders)
        if changes is not None and changes.once and found.watermark and found.aggregates:
            self._notice(_HELD_FOR_EVER)
        return found

    def _runs_complete(self, frame: DataFrame) -> bool:
        """Whether the result of a stream replaces the table in each micro-batch. Raises STREAM_QUERY_REFUSED."""
        if self.dataset.sink is not None:
            checks.check_sink_stream(self.inputs.placeholders, self.dataset, self.flow, frame)
            return False
        others = [f for f in self.inputs.catalog.flows[self.dataset.name.key] if f is not self.flow]
        return checks.runs_complete(self.inputs.placeholders, self.dataset, self.flow, others, frame)

    def _batch(self, frame: DataFrame, of_views: Mapping[str, str], kind: FlowKind) -> BatchPlan:
        dataset, placeholders = self.dataset, self.inputs.placeholders
        computed_rows = part_of(self.flow, frame)
        printed = printed_plan(computed_rows)
        always = ASKS_FOR_ROWS if self.reader.needs_rows else never_skippable(computed_rows, printed, placeholders)
        plan = _plan_tree(computed_rows)
        used = used_columns(plan) if plan is not None else ALL_USED
        text = plan_text(printed, used)
        fingerprint = self._fingerprint(text, used, of_views)
        judged = next((view for view in self._views_read(self.reader.reads.values()) if view.expectations), None)
        grouped = judged is None and self.flow.replaces is None
        partitions = partition_source(frame, placeholders, dataset.partition_cols) if grouped else None
        shape = None
        if kind is VIEW:
            refused = (
                reads_judged_view(str(judged.name)) if judged is not None else next(map(reads_with_options, self.reader.special), None)
            )
            ansi = self._setting(_ANSI, of_views).lower() == "true"
            facts = self._facts(frame.schema, always, refused, ansi=ansi, tries="try_sum(" in text)
            shape = shape_of(plan, facts) if plan is not None else UNKNOWN_PLAN
        return BatchPlan(fingerprint, always, tuple(self.reader.outside), partitions, shape, _identifying(plan, frame.columns))

    def _facts(self, schema: StructType, always: str | None, refused: Issue | None, *, ansi: bool, tries: bool) -> QueryFacts:
        types = [None if "collate" in f.dataType.simpleString() else f.dataType.jsonValue() for f in schema.fields]
        return QueryFacts(
            relations=self.inputs.placeholders.reads,
            reads=self.reader.columns,
            types=types,
            refused=refused,
            always=always,
            ansi=ansi,
            tries=tries,
            by_chance=_asks_for_parts(self.dataset),
        )

    def _setting(self, name: str, of_views: Mapping[str, str]) -> str:
        """A setting of Spark as the flow has it."""
        return self._conf(of_views).get(name) or str(self.inputs.spark.conf.get(name))

    def _fingerprint(self, text: str, used: UsedColumns, of_views: Mapping[str, str]) -> str:
        """Return a digest of all that a view's rows depend on besides its input rows."""
        dataset, spark = self.dataset, self.inputs.spark
        rules = sorted((r.name, r.text, r.action.value) for r in dataset.expectations)
        table = [dataset.partition_cols, checks.declared_types(dataset, spark)]  # the rest changes no row (TP-1)
        table += [(column.name, str(column.identity), column.generated) for column in dataset.identities]
        inputs = [(self.inputs.placeholders.reads.get(first), types) for first, types in used.types]
        made = spark.settings_of_code()
        conf = {
            **of_views,
            **dataset.spark_conf,
            **({"": dict(made)} if made else {}),
            **{n: self._setting(n, of_views) for n in _OF_RESULTS},
        }
        parts = [text, inputs, rules, table, conf, dict(self.inputs.parameters), VERSION, spark.version]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _plan_tree(frame: DataFrame) -> Node | None:
    """The plan of a query; None where Spark cannot write it as JSON."""
    with suppress(PySparkException, Py4JError):
        return plan_tree(plan_json(frame))
    return None


def _identifying(plan: Node | None, names: Sequence[str]) -> tuple[str, ...]:
    """See `identifying_columns`; empty for a plan of a form that is not known."""
    with suppress(LookupError, ValueError):
        return identifying_columns(plan, names) if plan is not None else ()
    return ()


def _asks_for_parts(dataset: Dataset) -> bool:
    """Whether the author asks for a refresh in part also where the result depends on the order of rows."""
    return dataset.refresh_policy in (RefreshPolicy.INCREMENTAL, RefreshPolicy.INCREMENTAL_STRICT)


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
