"""How rules judge the stored rows: how many rows each holds for, and whether its condition alone decides that. By Spark, or by DuckDB.

Spark's optimizer finds a condition that no row, or no other than NULL, can change. DuckDB does not need it where a condition has both
results: among the stored rows, or on sample rows with values that the columns can have. A condition of which both are seen is not decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.names import all_quoted, quoted, split_name
from lakelet.files.delta_rs import open_or_none, schema_fields, spark_type_text
from lakelet.files.paths import AnyPath
from lakelet.language.sql_text.spark_sql import in_spark_sql
from lakelet.storage.root import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Judgement:
    """A condition on the rows of a table. `held`: of how many `rows` it holds; `decided`: its result where no row can change it."""

    rows: int
    held: int
    decided: bool | None


Judgements = Mapping[tuple[str, str], Judgement]
"""Judgements by the table's full name and the text of the condition; none of a condition that does not fit the stored columns."""


def _holds(condition: str) -> str:
    """SQL that is true where a condition holds, and false elsewhere. A comment in the condition ends with its line."""
    return f"coalesce((\n{in_spark_sql(condition)}\n), false)"


def _stored(storage: Storage, conditions: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, AnyPath, Sequence[str]]]:
    """Name, folder and conditions of each table that the storage has."""
    paths = {one.name: one.path for one in storage.registry().datasets.values() if one.path}
    return ((name, storage.at(paths[name]), texts) for name, texts in conditions.items() if name in paths)


# --- Spark ----------------------------------------------------------------------------------------------------------------------------


def judged_by_spark(spark: SparkSession, storage: Storage, conditions: Mapping[str, Sequence[str]]) -> Judgements:
    """Judge the stored rows by the conditions of each table, by its full name. One aggregation per table."""
    found = dict[tuple[str, str], Judgement]()
    for name, path, texts in _stored(storage, conditions):
        rows = _rows(spark, path)
        if rows is not None:
            found.update({(name, text): judgement for text, judgement in _of_rows(rows, texts).items()})
    return found


def _rows(spark: SparkSession, path: AnyPath) -> DataFrame | None:
    from pyspark.errors import PySparkException

    try:
        return spark.read.format("delta").load(str(path))
    except PySparkException:  # known and not written yet
        return None


def _of_rows(rows: DataFrame, conditions: Sequence[str]) -> Mapping[str, Judgement]:
    from pyspark.sql import functions as F

    texts = [text for text in conditions if _never_met(rows, in_spark_sql(text)) is not None]
    held = [F.count_if(F.expr(_holds(text))).alias(f"h{at}") for at, text in enumerate(texts)]
    counts = rows.agg(F.count(F.lit(1)).alias("n"), *held).collect()[0]
    return {text: Judgement(counts["n"], counts[f"h{at}"], _decided(rows, text)) for at, text in enumerate(texts)}


def _decided(rows: DataFrame, condition: str) -> bool | None:
    if _never_met(rows, f"NOT {_holds(condition)}"):
        return True
    return False if _never_met(rows, _holds(condition)) else None


def _never_met(rows: DataFrame, condition: str) -> bool | None:
    """Whether Spark knows from the condition alone that no row meets it; None for what does not analyse on the stored columns."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from lakelet.jvm.frames import optimized

    try:
        plan = optimized(rows.where(F.expr(condition)))
    except PySparkException:
        return None
    return bool(plan.nodeName() == "LocalRelation")


# --- DuckDB ---------------------------------------------------------------------------------------------------------------------------

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_SAMPLES: Mapping[str, tuple[str, str]] = {
    "boolean": ("false", "true"),
    **dict.fromkeys((*_WHOLE_NUMBERS, "float", "double", "decimal"), ("-1", "100")),
    "string": ("''", "'a text of no meaning'"),
    "date": ("DATE '1000-01-01'", "DATE '9999-12-31'"),
    "timestamp": ("TIMESTAMP '1000-01-01 00:00:00'", "TIMESTAMP '9999-12-31 00:00:00'"),
}
"""Values that a column can have, by its type. Other types are sampled by NULL alone."""


def judged_without_spark(storage: Storage, conditions: Mapping[str, Sequence[str]]) -> Judgements | None:
    """Judge as Spark would; return None where only Spark can.

    That is where DuckDB may evaluate a condition differently, and where all rows, stored and sampled, give a condition one result.
    """
    found = dict[tuple[str, str], Judgement]()
    for name, path, texts in _stored(storage, conditions):
        table = open_or_none(path)
        judged = _of_table(storage.root, name, schema_fields(table), texts) if table is not None else {}
        if judged is None:
            return None
        found.update({(name, text): judgement for text, judgement in judged.items()})
    return found


def _of_table(
    storage: AnyPath, name: str, fields: Sequence[Mapping[str, Any]], conditions: Sequence[str]
) -> Mapping[str, Judgement] | None:
    texts = [text for text in conditions if not _is_column(text)]
    if not texts:
        return {}
    if any(not field["nullable"] and _samples_of(field) is None for field in fields):
        return None
    table = all_quoted(split_name(name))
    plain = f"(SELECT * FROM {table}) AS judged"
    counts: list[list[int]] = []
    for relations in ([plain, _sample(table, fields, None)], [_sample(table, fields, 0)], [_sample(table, fields, 1)]):
        more = _counts(storage, relations, texts)
        if more is None:
            return None
        counts += more
        (rows, *held), *seen = counts
        found = {text: Judgement(rows, held[at], None) for at, text in enumerate(texts)}
        if all(_both(found[text], [one[at + 1] for one in seen]) for at, text in enumerate(texts)):
            return found
    return None


def _both(judgement: Judgement, sampled: Sequence[int]) -> bool:
    """Whether a condition holds for some row and does not for another. `sampled`: for each sample row, 1 if it holds."""
    return (judgement.held > 0 or 1 in sampled) and (judgement.held < judgement.rows or 0 in sampled)


def _is_column(text: str) -> bool:
    """Whether a condition is shown as pyspark shows a Column, which is not SQL: no engine judges it here."""
    return text.startswith("Column<") and text.endswith(">")


def _samples_of(field: Mapping[str, Any]) -> tuple[str, str] | None:
    return _SAMPLES.get(spark_type_text(field["type"]).partition("(")[0])


def _sample(table: str, fields: Sequence[Mapping[str, Any]], position: int | None) -> str:
    """A relation of one row with the columns of a table: NULL, but where the column does not allow it, or the values at a position."""
    columns = []
    for field in fields:
        name, values = quoted(field["name"]), _samples_of(field)
        if values is not None and (position is not None or not field["nullable"]):
            name = f"coalesce({name}, CAST({values[position or 0]} AS {spark_type_text(field['type'])})) AS {name}"
        columns.append(name)
    return f"(SELECT {', '.join(columns)} FROM (SELECT 1 AS one) AS a LEFT JOIN {table} AS b ON false) AS judged"


def _counts(storage: AnyPath, relations: Sequence[str], conditions: Sequence[str]) -> list[list[int]] | None:
    """For each relation, its number of rows and how many of them meet each condition; None where DuckDB may not give what Spark gives."""
    from lakelet.inspection.duckdb.values import NotSame
    from lakelet.inspection.inspector import duck_table

    parts = []
    for number, relation in enumerate(relations):
        held = "".join(f", count_if({_holds(text)}) AS h{number}_{at}" for at, text in enumerate(conditions))
        parts.append(f"(SELECT count(*) AS n{number}{held} FROM {relation}) AS counts{number}")
    try:
        (row,) = duck_table(storage, f"SELECT * FROM {' CROSS JOIN '.join(parts)}").to_pylist()
    except (NotSame, LakeletError):
        return None
    values, size = list(row.values()), len(conditions) + 1
    return [values[start : start + size] for start in range(0, len(values), size)]
