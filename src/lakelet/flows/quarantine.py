"""The quarantine of a flow's dataset (docs/semantics/quarantine.md)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.files.delta_log import TableLog
from lakelet.flows.context import FlowRun
from lakelet.jvm.frames import analyzed
from lakelet.jvm.scala import items
from lakelet.spark.expectations.measure import SOURCE_FILE
from lakelet.storage.delta.quarantine import Quarantine, newest_view
from lakelet.storage.delta.table_spec import EPOCH
from lakelet.storage.delta.transaction import Transaction
from lakelet.storage.root import StoredDataset, new_table_path


def quarantine_of(run: FlowRun, *, looks: bool = False) -> Quarantine | None:
    """The quarantine that the flow's next batches have to do with; None if there is none. Registers a new one.

    One that was switched off keeps its rows, but not those of a batch that is tried again, nor those from before a reset.
    `looks`: see `Quarantine`.
    """
    dataset, storage = run.dataset, run.environment.storage
    active = dataset.keeps_dropped and dataset.sink is None
    known = storage.registry().datasets.get(dataset.quarantine.key)
    if not active and (known is None or known.quarantine_of is None):
        return None
    stored = run.stored()
    if active:
        fresh = StoredDataset(name=str(dataset.quarantine), kind=stored.kind, path=new_table_path(dataset.quarantine), owner=stored.owner)
        wanted = replace(known or fresh, kind=run.analyzed.kind, private=dataset.private, active=True, quarantine_of=str(dataset.name))
        wanted = replace(wanted, epoch=stored.epoch)
        if wanted != known:
            storage.remember(wanted)
        known = wanted
    assert known is not None
    path = storage.at(known.path)
    behind = stored.epoch > 0 and TableLog(path).version() >= 0
    if behind:
        behind = int(Transaction(run.environment.spark, path).properties.get(EPOCH, "0")) < stored.epoch
    update_id = run.environment.reporter.update_id
    return Quarantine(
        path, str(dataset.name), dataset.where, active, update_id, run.name, behind=behind, looks=looks, rereads=run.has_begun_again()
    )


def with_source_file(run: FlowRun, stream: DataFrame) -> DataFrame:
    """The stream with the column that says which file a row comes from, where its source is Auto Loader and its query hands it on.

    Not where the query keeps rows as state, which has the columns that it began with.
    """
    if not run.environment.sources.of(run.name) or _keeps_state(analyzed(stream)):
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


def is_behind(run: FlowRun) -> bool:
    """Whether the quarantine of a materialized view does not have the rows that the view's last computation left out.

    It is new, was switched off meanwhile, or its rows are of an update that did not get to the view.
    """
    if not run.dataset.keeps_dropped:
        return False
    known = run.environment.storage.registry().datasets.get(run.dataset.quarantine.key)
    found = newest_view(run.environment.memory.log(run.environment.storage.at(known.path))) if known is not None else None
    stored = run.stored()
    return found is None or (found["fingerprint"], dict(found["inputs"])) != (stored.fingerprint, dict(stored.input_versions))


__all__ = ["is_behind", "quarantine_of", "with_source_file"]
