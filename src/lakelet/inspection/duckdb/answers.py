"""Answers one query of Spark SQL with DuckDB, or says why it cannot."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from lakelet.inspection.duckdb.queries import Queries, Query, parsed
from lakelet.inspection.duckdb.tables import Tables
from lakelet.inspection.duckdb.values import NotSame, arrow_type
from lakelet.inspection.json_values import distinct_names

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


COUNTING_SECONDS = 1.0
"""The rows that are not shown are counted for so long."""


def answer(tables: Tables, text: str, *, limit: int | None = None) -> tuple[pa.Table, int | None]:
    """The rows of a query, with the names and types that Spark gives them, and how many there are, None where that is not known.

    With a limit, at most one row more than that is read, which says that there are more; all are counted if that takes less than
    `COUNTING_SECONDS`. Raises NotSame, with the reason, where DuckDB is not known to give what Spark gives.
    """
    try:
        found = Queries(tables.find).query(parsed(text))
    except RecursionError:
        raise NotSame("the query is too deep") from None
    unnamed = [at for at, (name, _) in enumerate(found.columns, 1) if not name]
    if unnamed:
        raise NotSame(f"column {unnamed[0]} has no alias, and Spark's own name for it is not known")
    return _run(tables, found, limit)


def _run(tables: Tables, query: Query, limit: int | None) -> tuple[pa.Table, int | None]:
    import duckdb
    import pyarrow as pa

    names = distinct_names([name for name, _ in query.columns])
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, (_, kind) in zip(names, query.columns, strict=True)])
    problem: Exception = NotSame("")
    for by_name in (False, True):  # files of one table that differ in their columns cost more to read
        with duckdb.connect(config=_settings()) as connection:
            try:
                connection.execute("SET TimeZone = 'UTC'")
                for source in tables.sources:
                    source.create(connection, by_name=by_name)
                text = query.sql if limit is None else f"SELECT * FROM ({query.sql}) LIMIT {limit + 1}"
                rows = connection.execute(text).to_arrow_table().rename_columns(schema.names).cast(schema)
                if limit is None or rows.num_rows <= limit:
                    return rows, rows.num_rows
                return rows, _count(connection, query)
            except (duckdb.Error, pa.ArrowException) as failed:
                problem = failed
    first = str(problem).partition("\n")[0]
    raise NotSame(f"it fails in DuckDB: {first}") from problem


def _count(connection: duckdb.DuckDBPyConnection, query: Query) -> int | None:
    """The number of rows of a query, of which none is kept; None if it takes longer than `COUNTING_SECONDS`."""
    import duckdb

    timer = threading.Timer(COUNTING_SECONDS, connection.interrupt)
    timer.start()
    try:
        found = connection.execute(f"SELECT count(*) FROM ({query.sql})").fetchone()
    except duckdb.Error:
        return None
    finally:
        timer.cancel()
    return int(found[0]) if found else None


def _settings() -> dict[str, str | bool | int | float | list[str]]:
    """Nothing is fetched from anywhere; what does not fit in memory goes where temporary files go."""
    folder = Path(tempfile.gettempdir()) / "lakelet-duckdb"
    return {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "temp_directory": str(folder)}
