"""Checks of queries that call `from_json` without a schema (JC-6, JC-8)."""

from __future__ import annotations

import json
from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from lakelet.analysis.results import Findings
from lakelet.analysis.rule_checks import check_rules
from lakelet.autoloader.evolving_from_json import KEY, JsonColumn
from lakelet.autoloader.reader_arguments import struct_of
from lakelet.base.errors import LakeletError
from lakelet.cdc.checks import check as check_changes
from lakelet.cdc.checks import columns_named
from lakelet.language.model import ChangeSpec, Dataset
from lakelet.spark.names.reader import TableReader
from lakelet.storage.root import StoredDataset

_FIELDS_NOT_KNOWN = (
    "The fields of a from_json without a schema are not known before the flow has run once: name those that the query uses in the option "
    "schemaHints ('id BIGINT, at TIMESTAMP'), or use them in a table that reads this one."
)
_FIELDS_LATER = "Run the tables that it reads first: the fields of a from_json without a schema are known when its flow has run."
_OF_FIELDS = ("QUERY_FAILED_ANALYSIS", "EXPECTATION_INVALID", "SCHEMA_MISMATCH", "SCHEMA_INCOMPATIBLE")
"""Codes of errors that types of fields may cause which are not known yet."""
_GIVE_SCHEMA = "Give from_json a schema: from_json(column, 'id BIGINT, at TIMESTAMP')."


def check_json_columns(dataset: Dataset, frame: DataFrame, calls: Collection[JsonColumn]) -> None:
    """Raise JSON_COLUMN_INVALID for calls in a query that is no stream, or whose sink Spark writes to by itself."""
    first = next(iter(calls), None)
    if first is None:
        return
    sink = dataset.sink
    if not frame.isStreaming:
        what = f"from_json with {KEY} needs a streaming query; this one is a batch query"
    elif sink is not None and not (sink.handler is not None or sink.is_delta or sink.is_files):
        what = f"from_json with {KEY} cannot feed a sink of the format {sink.format} here"
    else:
        return
    raise LakeletError("JSON_COLUMN_INVALID", what, where=first.call.where, dataset=str(dataset.name), todo=_GIVE_SCHEMA)


def fields_missing(dataset: Dataset, changes: ChangeSpec | None, frame: DataFrame, reader: TableReader) -> bool:
    """Whether rules or a change flow need fields of calls of which no text was seen: the query has them when it is built again."""
    if not any(call.pending for call in reader.json_columns.values()):
        return False
    for_rules = [reader.expects(error.__cause__) for error in check_rules(dataset, frame).errors]
    if any(for_rules):
        return True
    if changes is None:
        return False
    known = {column.lower() for column in frame.columns}
    if reader.expects_columns([name for name in columns_named(changes) if name.lower() not in known]):
        return True
    try:
        check_changes(changes, frame)
    except LakeletError as error:
        return reader.expects(error.__cause__)
    return False


def assumed(schema: StructType, dataset: Dataset, stored: StoredDataset | None, spark: SparkSession) -> StructType:
    """The columns of a query whose `from_json` has no fields yet, with the types that the table has or declares: others are guesses."""
    of_table = StructType.fromJson(json.loads(stored.columns)) if stored is not None and stored.columns else None
    known: dict[str, DataType] = {}
    for columns in (of_table, struct_of(dataset.schema, spark)):
        known |= {field.name.lower(): field.dataType for field in columns.fields} if columns is not None else {}
    return StructType([StructField(f.name, known.get(f.name.lower(), f.dataType), f.nullable, f.metadata) for f in schema.fields])


def with_remedy(problem: LakeletError, dataset: Dataset, found: Findings) -> LakeletError:
    """An error, with the remedy for a field that is missing where a `from_json` in or below the dataset has none yet."""
    if problem.code in _OF_FIELDS:
        if dataset.name.key in found.fields_unknown:
            problem.todo = _FIELDS_NOT_KNOWN
        elif dataset.name.key in found.below_unknown:
            problem.todo = _FIELDS_LATER
    return problem


__all__ = ["assumed", "check_json_columns", "fields_missing", "with_remedy"]
