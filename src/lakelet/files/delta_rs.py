"""Delta tables by delta-rs, for what reads a version as a whole without Spark: the page, queries, `show`, maintenance, the event log.

`delta_log` says when which engine reads a table. Paths are named here the one way that delta-rs understands. Given a path or a URI, it
takes `%20` in a folder's name for a blank, panics at `[`, splits at a backslash and refuses a line end. A table in such a folder
is opened through links to its files, which lie in a folder of a plain name.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.files.paths import LOG, AnyPath
from lakelet.files.scratch import scratch_folder
from lakelet.files.stores import delta_options

if TYPE_CHECKING:
    import pyarrow as pa

_SPARK_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_PLAIN = re.compile(r"[\w /.@+=,:~()-]*")
_numbers = itertools.count()


def open_table(path: AnyPath, **options: Any) -> Any:
    """The Delta table at a path, to be read. Raises delta-rs's TableNotFoundError."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    if isinstance(path, Path) and not (path / LOG).is_dir():
        raise TableNotFoundError(f"there is no table at {path}")
    return DeltaTable(_readable(path), storage_options=delta_options(path), **options)


def open_or_none(path: AnyPath) -> Any:
    """The Delta table at a path, None where there is none."""
    from deltalake.exceptions import TableNotFoundError

    try:
        return open_table(path)
    except TableNotFoundError:
        return None


def table_id(path: AnyPath) -> str | None:
    """Delta's id of the table at a path; None where there is none, or one that delta-rs cannot read."""
    from deltalake.exceptions import DeltaError

    try:
        return str(open_table(path).metadata().id)
    except DeltaError:  # a table that is not there among them
        return None


def schema_fields(table: Any) -> list[Mapping[str, Any]]:
    """The columns of a table, as a schema in JSON spells them."""
    found: list[Mapping[str, Any]] = json.loads(table.schema().to_json())["fields"]
    return found


def spark_type_text(kind: Any) -> str:
    """A type of a schema in its JSON form, as Spark writes it in short: `array<struct<a:int>>`."""
    if isinstance(kind, str):
        return _SPARK_NAMES.get(kind, kind)
    if kind["type"] == "struct":
        return "struct<" + ",".join(f"{f['name']}:{spark_type_text(f['type'])}" for f in kind["fields"]) + ">"
    if kind["type"] == "array":
        return f"array<{spark_type_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{spark_type_text(kind['keyType'])},{spark_type_text(kind['valueType'])}>"
    return str(kind.get("type"))


def has_variants(table: Any) -> bool:
    """Whether a column holds VARIANT values, which delta-rs does not read."""
    return '"variant"' in table.schema().to_json()


def is_mapped(table: Any) -> bool:
    """Whether the table's files hold its columns under other names; delta-rs's dataset reads those as NULL, its queries do not."""
    properties: Mapping[str, str] = table.metadata().configuration or {}
    return properties.get("delta.columnMapping.mode", "none") != "none"


def row_count(table: Any) -> int | None:
    """Rows by the statistics in the table's log; None where they are missing or do not know of deletions."""
    files = table.get_add_actions(flatten=True)
    counts = files.column("num_records").to_pylist() if "num_records" in files.schema.names else [None]
    return None if None in counts or "deletionVectors" in (table.protocol().reader_features or ()) else sum(counts)


def query(table: Any, sql: str) -> pa.RecordBatchReader:
    """The rows of a query, in which the table is called `t`."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    builder = QueryBuilder().register("t", table)
    builder.execute("SET datafusion.execution.parquet.coerce_int96 = 'us'")  # in files of other writers: nanoseconds end in 2262
    return pa.RecordBatchReader.from_stream(builder.execute(sql))


def query_rows(table: Any, sql: str) -> Iterator[dict[str, Any]]:
    """The rows of a query by column; the query calls the table `t`."""
    for batch in query(table, sql):
        yield from batch.to_pylist()


def sql_literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _readable(path: AnyPath) -> str:
    """Return the location that delta-rs opens to read the table at `path`."""
    if not isinstance(path, Path) or _PLAIN.fullmatch(str(path.resolve())):
        return str(path)
    folder = Path(_links()) / str(next(_numbers))
    folder.mkdir()
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                os.symlink(entry.path, folder / entry.name)
    return str(folder)


@functools.lru_cache(maxsize=1)
def _links() -> str:
    """The folder of this process for its links."""
    return os.path.realpath(scratch_folder("links"))
