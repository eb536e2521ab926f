"""The table that a flow writes to: its kind, its columns and description, its quarantine, and which batches it has.

In: a `FlowTask`. A table that is now made in another way (DS-8) is refused, or remade by a full refresh: what appends and what replaces
share one folder, where the first commit takes the old rows away. A change table has an internal log beside the visible one, so it never
takes the folder of a table that had none, nor leaves it its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakelet.analysis.results import AnalyzedDataset, UnanalyzedDataset
from lakelet.base.errors import LakeletError
from lakelet.cdc import target_declarations, writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import Layout
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowTask
from lakelet.flows.metrics import Totals, emit_warnings
from lakelet.jvm.errors import Py4JJavaError
from lakelet.jvm.frames import analyzed
from lakelet.jvm.scala import items
from lakelet.language.model import Kind
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.expectations.measure import SOURCE_FILE
from lakelet.storage.delta import column_mapping, schemas, tables
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.quarantine import Quarantine, newest_view
from lakelet.storage.delta.table_spec import EPOCH
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.eventlog.states import Level
from lakelet.storage.root import INTERNAL, StoredDataset, new_table_path

# --- kind ----------------------------------------------------------------------------------------------------------------------


def check_role(task: FlowTask) -> None:
    """Raise KIND_CHANGED if the table was filled by changes and is now appended to, or the other way round."""
    if task.dataset.kind is Kind.SINK or not _changes_role(task.path(), task.analyzed):
        return
    before, now = "the target of change flows", "a table that flows append rows to"
    if _applies_changes(task.analyzed):
        before, now = now, before
    raise LakeletError(
        "KIND_CHANGED",
        f"it was {before}, and is now {now}",
        dataset=str(task.dataset.name),
        where=task.dataset.where,
        todo=f"Change it back, give it another name, or drop its rows and compute it again: lakelet run --full-refresh {task.dataset.name}",
    )


def remade(root: AnyPath, stored: StoredDataset, result: AnalyzedDataset | UnanalyzedDataset, *, taken: Collection[str]) -> StoredDataset:
    """The entry of a dataset that is reset, with the kind it now has, and another folder where it needs one (none of `taken`)."""
    if isinstance(result, UnanalyzedDataset):
        return stored
    found = replace(stored, kind=result.kind)
    if Kind.SINK in (stored.kind, found.kind):  # what a sink wrote lies where it says, and stays
        return found if stored.kind is found.kind else replace(found, path=new_table_path(result.dataset.name))
    if not _changes_role(root / stored.path, result):
        return found
    return replace(found, path=next(path for n in count(1) if (path := f"{stored.path}~{stored.epoch + n}") not in taken))


def _changes_role(path: AnyPath, found: AnalyzedDataset) -> bool:
    is_change_table = TableLog(path / INTERNAL).version() >= 0
    if is_change_table == _applies_changes(found):
        return False
    return is_change_table or TableLog(path).version() >= 0


def _applies_changes(found: AnalyzedDataset) -> bool:
    return any(flow.kind.changes for flow in found.flows)


# --- batches, columns and description -----------------------------------------------------------------------------------------------


def has_batch(task: FlowTask, spark: SparkSession, number: int) -> bool:
    """Whether the target has committed batch `number` of the flow; False for a target that keeps no record of batches."""
    app_id: str | None = f"{task.name}/{task.checkpoint_name()}"
    path = task.path() / INTERNAL if task.flow.kind.changes else task.path()
    if task.dataset.sink is not None:
        app_id = _query_id(task) if task.dataset.sink.is_delta else None
    if app_id is None or TableLog(path).version() < 0:
        return False
    return Transaction(spark, path).done(Txn(app_id, number))


def _query_id(task: FlowTask) -> str | None:
    """The id of the flow's query, which marks its batches in a Delta sink."""
    with suppress(FileNotFoundError, ValueError, KeyError):
        return str(json.loads((task.checkpoint() / "metadata").read_text())["id"])
    return None


def finish(task: FlowTask, totals: Totals, shape: Layout | None = None, ran: StructType | None = None) -> None:
    """Make the table if no batch did, remember its columns, and warn about what did not fit.

    `shape`: of a change table. `ran`: the columns of the query that ran, where analysis may have known others.
    """
    environment, path = task.environment, task.path()
    wanted = task.table_spec(task.analyzed.schema if ran is None else ran)
    quarantine = quarantine_of(task)
    if quarantine is not None:
        quarantine.create(wanted, environment.spark)
    if shape is not None:
        writing.create_if_absent(
            environment.spark, ChangeTable(path, task.change_specs, wanted, task.is_streamed(), task.dataset.computed), shape
        )
    elif tables.create_if_absent(environment.spark, path, wanted, user_metadata={}):
        emit_mapping(task, wanted.schema)
    with lock_of(path).alone():  # another flow may be adding columns
        found = tables.stored_schema(environment.spark, path)
        columns, stored = found.json(), task.stored()
        if shape is not None:
            emit_first_odd_names(task, found)
        if stored.columns != columns or task.dataset.name.key not in environment.storage.registry().datasets:
            environment.storage.remember(replace(stored, columns=columns))
    environment.memory.widened |= found.simpleString() != task.analyzed.schema.simpleString()
    emit_warnings(environment.reporter, totals, dataset=str(task.dataset.name), flow=task.name)


def refresh_description(task: FlowTask) -> None:
    """Give the table of a flow comment, properties, clustering and NOT NULL as declared, unless the registry has them (TP-1 ff).

    Raises NOT_NULL_VIOLATED, SCHEMA_INCOMPATIBLE for other partition columns, and FLOW_FAILED for what Delta refuses.
    """
    environment = task.environment
    known = environment.storage.registry().datasets.get(task.dataset.name.key)
    wanted = task.description()
    if task.dataset.sink is not None or known is None or known.described == wanted:
        return
    spec, path = column_mapping.without_automatic(task.dataset, task.table_spec(task.analyzed.schema)), task.path()
    change = target_declarations.redescribe if task.flow.kind.changes else tables.redescribe
    try:
        described = change(environment.spark, path, spec)
    except (LakeletError, schemas.Incompatible, PySparkException, Py4JJavaError) as problem:
        what = "its table could not be described as declared"
        raise run_failure(problem, dataset=str(task.dataset.name), where=task.dataset.where, what=what) from None
    if described:
        environment.storage.remember(replace(task.stored(), described=wanted))


def emit_mapping(task: FlowTask, schema: StructType) -> None:
    """Report that the flow's table has just got column mapping. One warning per update; the other tables follow from the first one."""
    environment, name = task.environment, str(task.dataset.name)
    if not column_mapping.automatic(task.dataset):
        return
    names = list(column_mapping.odd_names(schema))
    level = Level.INFO if environment.memory.mapped else Level.WARN
    environment.memory.mapped.append(name)
    message, text = column_mapping.switched_on(names, name), "column mapping by name was switched on"
    environment.reporter.notice(message, text=text, columns=names, dataset=name, flow=task.name, level=level)


def emit_first_odd_names(task: FlowTask, columns: StructType) -> None:
    """Report that a change table has got column mapping since the registry recorded its columns; `columns`: those that it has now."""
    noted = task.stored().columns
    before = StructType.fromJson(json.loads(noted)) if noted else StructType()
    odd_now, odd_before = (next(column_mapping.odd_names(schema), None) for schema in (columns, before))
    if odd_now is not None and odd_before is None and str(task.dataset.name) not in task.environment.memory.mapped:
        emit_mapping(task, columns)


# --- quarantine (docs/semantics/quarantine.md) ---------------------------------------------------------------------------------------


def quarantine_of(task: FlowTask, *, looks: bool = False) -> Quarantine | None:
    """The quarantine that the flow's next batches have to do with; None if there is none. Registers a new quarantine.

    A quarantine that was switched off keeps its rows, but not those of a batch that is tried again, nor those from before a reset.
    `looks`: see `Quarantine`.
    """
    dataset, storage = task.dataset, task.environment.storage
    active = dataset.keeps_dropped and dataset.sink is None
    known = storage.registry().datasets.get(dataset.quarantine.key)
    if not active and (known is None or known.quarantine_of is None):
        return None
    stored = task.stored()
    if active:
        fresh = StoredDataset(name=str(dataset.quarantine), kind=stored.kind, path=new_table_path(dataset.quarantine), owner=stored.owner)
        wanted = replace(known or fresh, kind=task.analyzed.kind, private=dataset.private, active=True, quarantine_of=str(dataset.name))
        wanted = replace(wanted, epoch=stored.epoch)
        if wanted != known:
            storage.remember(wanted)
        known = wanted
    assert known is not None
    path = storage.at(known.path)
    behind = stored.epoch > 0 and TableLog(path).version() >= 0
    if behind:
        behind = int(Transaction(task.environment.spark, path).properties.get(EPOCH, "0")) < stored.epoch
    update_id = task.environment.reporter.update_id
    return Quarantine(
        path, str(dataset.name), dataset.where, active, update_id, task.name, behind=behind, looks=looks, rereads=task.has_begun_again()
    )


def with_source_file(task: FlowTask, stream: DataFrame) -> DataFrame:
    """The stream with the column that says which file a row comes from, where its source is Auto Loader and its query hands it on.

    Not where the query keeps rows as state, which has the columns that it began with.
    """
    if not task.flow.sources or _keeps_state(analyzed(stream)):
        return stream
    with suppress(PySparkException):
        return stream.withColumn(SOURCE_FILE, F.col("_metadata.file_path"))
    return stream


_STATEFUL = (
    "EventTimeWatermark",
    "Deduplicate",
    "Distinct",
    "FlatMapGroups",
    "TransformWithState",
    "Aggregate",
    "GlobalLimit",
    "LocalLimit",
)


def _keeps_state(node: Any) -> bool:
    """Whether a node of an analysed plan, or one below, keeps rows of the stream; a join does so with another stream."""
    children = [child for child in items(node.children()) if child.isStreaming()]
    name = str(node.nodeName())
    return name.startswith(_STATEFUL) or (name == "Join" and len(children) > 1) or any(map(_keeps_state, children))


def is_behind(task: FlowTask) -> bool:
    """Whether the quarantine of a materialized view does not have the rows that the view's last computation left out.

    It is new, was switched off meanwhile, or its rows are of an update that did not get to the view.
    """
    if not task.dataset.keeps_dropped:
        return False
    known = task.environment.storage.registry().datasets.get(task.dataset.quarantine.key)
    found = newest_view(task.environment.memory.log(task.environment.storage.at(known.path))) if known is not None else None
    stored = task.stored()
    return found is None or (found["fingerprint"], dict(found["inputs"])) != (stored.fingerprint, dict(stored.input_versions))


__all__ = [
    "check_role",
    "emit_first_odd_names",
    "emit_mapping",
    "finish",
    "has_batch",
    "is_behind",
    "quarantine_of",
    "refresh_description",
    "remade",
    "with_source_file",
]
