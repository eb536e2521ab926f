"""Growth of the schemas of `from_json` while a flow runs, and the events about it (JC-3, JC-6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from lakelet.autoloader.evolving_from_json import changes_since
from lakelet.autoloader.source_spec import SchemaEvolution
from lakelet.base.errors import LakeletError
from lakelet.files.paths import names_in, remove_tree
from lakelet.flows.checkpoints import Checkpoint
from lakelet.flows.context import FlowTask, RunReader
from lakelet.flows.metrics import emit_change
from lakelet.flows.target_table import has_batch
from lakelet.storage.eventlog.events import Reporter


class SchemaGrew(Exception):
    """The texts of a batch have fields that a schema has now and the query has not: nothing of the batch is committed."""


def begin(task: FlowTask, reader: RunReader, spark: SparkSession, state: Checkpoint) -> None:
    """Remove from the checkpoint what an earlier start of the flow has left there with other types, before the query starts.

    That is the state of operators, where no batch was completed, and the plan of a batch whose fields were not known: the batch is planned
    again, with the rows that have arrived since.
    """
    calls, checkpoint = reader.json_columns.values(), task.checkpoint()
    if calls and state.completed < 0:
        remove_tree(checkpoint / "state")
    by_number = task.dataset.sink is not None and task.dataset.sink.is_files  # such a sink knows by its number whether it has a batch
    if any(call.guessed for call in calls) and state.unfinished and not by_number and not has_batch(task, spark, state.planned):
        (checkpoint / "offsets" / str(state.planned)).unlink()


def check_grown(reader: RunReader) -> None:
    """Raise SchemaGrew where the tasks so far have found new fields, after storing them. Called between writing a batch and its commit."""
    if reader.json_columns and reader.growth.store(reader.json_columns.values()):
        raise SchemaGrew("a schema of from_json has grown")


@contextmanager
def growth_checked(task: FlowTask, reader: RunReader, batch: DataFrame, *, kept: bool = False) -> Iterator[DataFrame]:
    """Yield a batch to be written. Where new fields were found, SchemaGrew is raised instead of what the writing fails with.

    A batch of a query whose fields are not known is only read. `kept`: rows cannot be taken back once they were handed over, so the
    batch is computed before, and once. Raises JSON_FIELDS_UNKNOWN.
    """
    calls = reader.json_columns.values()
    if not calls:
        yield batch
        return
    unknown = fields_unknown(task, reader)
    persists = kept and unknown is None
    try:
        if persists:
            batch.persist()
        if persists or unknown is not None:
            batch.write.format("noop").mode("overwrite").save()
            check_grown(reader)
        if unknown is not None:
            raise unknown
        yield batch
    except SchemaGrew:
        raise
    except Exception:
        check_grown(reader)
        raise
    finally:
        if persists:
            batch.unpersist()


def fields_unknown(task: FlowTask, reader: RunReader) -> LakeletError | None:
    """The error for a query that uses fields of a `from_json` of which no text was seen; None where there is no such call."""
    call = next((call for call in reader.json_columns.values() if call.guessed), None)
    if call is None or call.expected is None:
        return None
    names = ", ".join(call.expected.fieldNames())
    return LakeletError(
        "JSON_FIELDS_UNKNOWN",
        f"no JSON text has come yet, so the fields that the query takes from from_json are not known: {names}",
        dataset=str(task.dataset.name),
        where=call.call.where,
        todo="The next update looks again. To run without texts, name the fields in the option schemaHints: 'id BIGINT, at TIMESTAMP'.",
    )


def emit_json_changes(task: FlowTask, reader: RunReader) -> bool:
    """Emit what the reader's schemas have grown by; whether they have. The first version of a schema is no event."""
    for change in reader.growth.changes if reader.json_columns else ():
        _emit(task.environment.reporter, task, change)
    return bool(reader.json_columns and reader.growth.changes)


def report_json_changes(reporter: Reporter, task: FlowTask, since: str) -> None:
    """Emit again what a flow's schemas have grown by since a time (ISO 8601, UTC). Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN."""
    folder = task.environment.storage.json_schema(task.declared.target, task.name, "").parent
    for name in names_in(folder):
        for change in changes_since(str(folder / name), since):
            _emit(reporter, task, change)


def _emit(reporter: Reporter, task: FlowTask, change: SchemaEvolution) -> None:
    if change.version_before >= 0:
        id = task.change_id(change.source, change.version_after)
        emit_change(reporter, change, dataset=str(task.dataset.name), flow=task.name, id=id)


__all__ = ["SchemaGrew", "begin", "check_grown", "emit_json_changes", "fields_unknown", "growth_checked", "report_json_changes"]
