"""Delta tables opened and queried by delta-rs: paths and SQL in, Arrow batches out. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakelet.files.delta_rs_paths import open_table
from lakelet.files.paths import AnyPath

if TYPE_CHECKING:
    import pyarrow as pa


def open_or_none(path: AnyPath) -> Any:
    """The Delta table, None where there is none."""
    from deltalake.exceptions import TableNotFoundError

    try:
        return open_table(path)
    except TableNotFoundError:
        return None


def query(table: Any, sql: str) -> pa.RecordBatchReader:
    """The result of a query on a table, which it calls `t`."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    builder = QueryBuilder().register("t", table)
    builder.execute("SET datafusion.execution.parquet.coerce_int96 = 'us'")  # nanoseconds, as other engines write them, end in 2262
    return pa.RecordBatchReader.from_stream(builder.execute(sql))


def query_rows(table: Any, sql: str) -> Iterator[dict[str, Any]]:
    """The rows of a query on a table, which it calls `t`, by column."""
    for batch in query(table, sql):
        yield from batch.to_pylist()


def sql_literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
