"""Growth of the schemas of `from_json`: what a batch with new fields brings, and the events about it (JC-3)."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakelet.autoloader.json_columns.columns import changes_since
from lakelet.autoloader.spec import SchemaChange
from lakelet.base.errors import LakeletError
from lakelet.files.paths import names_in
from lakelet.flows.context import FlowRun, RunReader
from lakelet.flows.metrics import emit_change
from lakelet.spark.names.json_columns import Found, has_new_fields, types_found
from lakelet.storage.eventlog.reporter import Reporter


class SchemaLearned(Exception):
    """A batch was read for its types only; the query is to be built again."""


def learn(reader: RunReader, batch: DataFrame, failure: BaseException) -> None:
    """Store the next version of each schema that the texts of a batch do not fit, if that is what the batch failed with.

    The query that the reader opened is of no use then: `reader.json_changes` says so. Raises CF_STATE_DAMAGED or FORMAT_NEWER for a schema
    log that cannot be read, and what reading the batch raises.
    """
    if not reader.json_columns or not has_new_fields(failure):
        return
    _store(reader, types_found(batch, reader.json_found))


def _store(reader: RunReader, found: Found) -> None:
    columns = [column for column in reader.json_columns.values() if column.grows and column.location in found]
    reader.json_changes += [change for column in columns if (change := column.store(found[column.location])) is not None]


def can_be_written(run: FlowRun, reader: RunReader, batch: DataFrame) -> bool:
    """Look through a batch for the schemas of which nothing is known yet; False if there is nothing to write.

    Raises SchemaLearned where the query has to be built again, and JSON_FIELDS_UNKNOWN where the texts of the batch say nothing, but the
    query uses fields: their types would be guessed.
    """
    if not any(column.pending for column in reader.json_columns.values()):
        return True
    _store(reader, types_found(batch, reader.json_found))
    if reader.json_changes:
        raise SchemaLearned("the first texts of from_json have brought its schema")
    if not any(column.expected is not None for column in reader.json_columns.values()):
        return True
    if not batch.isEmpty():
        check_fields_known(run, reader)
    return False


def check_fields_known(run: FlowRun, reader: RunReader) -> None:
    """Raise JSON_FIELDS_UNKNOWN where the query uses fields of a `from_json` of which nothing is known."""
    unknown = next((c for c in reader.json_columns.values() if c.pending and c.expected is not None), None)
    if unknown is not None and unknown.expected is not None:
        names = ", ".join(unknown.expected.fieldNames())
        raise LakeletError(
            "JSON_FIELDS_UNKNOWN",
            f"no JSON text has come yet, so the fields that the query takes from from_json are not known: {names}",
            dataset=str(run.dataset.name),
            where=unknown.call.where,
            todo="The next update looks again. To run without texts, name the fields in the option schemaHints: 'id BIGINT, at TIMESTAMP'.",
        )


def emit_json_changes(run: FlowRun, reader: RunReader) -> bool:
    """Emit what the reader's schemas have grown by; whether they have. The first version of a schema is no event."""
    for change in reader.json_changes:
        _emit(run.environment.reporter, run, change)
    return bool(reader.json_changes)


def report_json_changes(reporter: Reporter, run: FlowRun, since: str) -> None:
    """Emit again what a flow's schemas have grown by since a time (ISO 8601, UTC). Raises CF_STATE_DAMAGED or FORMAT_NEWER."""
    folder = run.environment.storage.json_schema(run.flow.flow.target, run.name, "").parent
    for name in names_in(folder):
        for change in changes_since(str(folder / name), since):
            _emit(reporter, run, change)


def _emit(reporter: Reporter, run: FlowRun, change: SchemaChange) -> None:
    if change.version_before >= 0:
        id = run.change_id(change.source, change.version_after)
        emit_change(reporter, change, dataset=str(run.dataset.name), flow=run.name, id=id)


__all__ = ["SchemaLearned", "can_be_written", "check_fields_known", "emit_json_changes", "learn", "report_json_changes"]
