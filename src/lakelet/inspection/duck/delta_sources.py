"""Delta tables for DuckDB: one version of each, read from its Parquet files, or by delta-rs where rows were deleted or columns renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakelet.files.delta_rs import is_mapped, query, schema_fields
from lakelet.inspection.duck.queries import Stored
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import Type, duck_name, identifier, of_field
from lakelet.inspection.duck.values import text_literal

if TYPE_CHECKING:
    import duckdb

MOST_BYTES = 256 * 1024 * 1024
"""A table that delta-rs reads for DuckDB is held in memory: a larger one goes to Spark."""
_READABLE = frozenset({"timestampNtz", "deletionVectors", "columnMapping", "v2Checkpoint", "vacuumProtocolCheck", "variantType"})
_GLOBS = frozenset("*?[]{}")
_FILE = "lakelet_file"


@dataclass
class DeltaSource:
    """One version of a table. `stored`: what queries see of it."""

    table: Any
    stored: Stored

    def create(self, connection: duckdb.DuckDBPyConnection, *, by_name: bool) -> None:
        """Make the relation of that name in DuckDB. `by_name`: the files differ in their columns. Raises NotSame."""
        deleted = "deletionVectors" in (self.table.protocol().reader_features or ())
        files = None if deleted or is_mapped(self.table) else list(self._files())
        if files is None or any(file is None for file, _ in files):
            self._by_delta_rs(connection)
            return
        columns = self._columns()
        if not files:
            nothing = ", ".join(f"CAST(NULL AS {duck_name(kind)}) AS {internal}" for internal, _, kind in columns) or "1 AS one"
            connection.execute(f"CREATE TEMP VIEW {self.stored.name} AS SELECT {nothing} WHERE false")
            return
        partitions = list(self.table.metadata().partition_columns)
        shown = [
            f"CAST({'p' if name in partitions else 'f'}.{identifier(name)} AS {duck_name(kind)}) AS {internal}"
            for internal, name, kind in columns
        ]
        listed = ", ".join(text_literal(str(file)) for file, _ in files)
        by_name = by_name or (len(files) > 1 and any(kind.is_nested for _, _, kind in columns))  # else fields of later files are lost
        options = (", union_by_name = true" if by_name else "") + (f", filename = '{_FILE}'" if partitions else "")
        text = f"SELECT {', '.join(shown) or '1 AS one'} FROM read_parquet([{listed}], hive_partitioning = false{options}) AS f"
        if partitions:
            rows = ", ".join(f"({', '.join([text_literal(str(file)), *map(_literal, values)])})" for file, values in files)
            heads = ", ".join([_FILE, *map(identifier, partitions)])
            text += f" JOIN (VALUES {rows}) AS p({heads}) ON f.{_FILE} = p.{_FILE}"
        connection.execute(f"CREATE TEMP VIEW {self.stored.name} AS {text}")

    def _columns(self) -> list[tuple[str, str, Type]]:
        """Name in DuckDB, name in the table, type: of the columns that the query reads."""
        all_columns = enumerate(self.stored.columns)
        return [(f"c{at}", name, kind) for at, (name, kind) in all_columns if kind is not None and f"c{at}" in self.stored.read]

    def _files(self) -> Iterator[tuple[Path | None, list[Any]]]:
        """Each data file with the values of its partition; None for a file that DuckDB would not find under its name."""
        actions = self.table.get_add_actions(flatten=True)
        names = [f"partition.{name}" for name in self.table.metadata().partition_columns]
        values = [actions.column(name).to_pylist() for name in names]
        root = Path(self.table.table_uri.removeprefix("file://"))
        for at, path in enumerate(actions.column("path").to_pylist()):
            found = next((file for file in (root / path, root / unquote(path)) if file.is_file()), None)
            plain = found is not None and not _GLOBS & set(str(found))
            yield found if plain else None, [column[at] for column in values]

    def _by_delta_rs(self, connection: duckdb.DuckDBPyConnection) -> None:
        from deltalake.exceptions import DeltaError

        if sum(self.table.get_add_actions(flatten=True).column("size_bytes").to_pylist()) > MOST_BYTES:
            raise NotSame("a large table has deleted rows or columns of other names")
        columns = self._columns()
        listed = ", ".join(f"{identifier(name)} AS {internal}" for internal, name, _ in columns) or "1 AS one"
        try:
            rows = query(self.table, f"SELECT {listed} FROM t").read_all()
        except DeltaError:
            raise NotSame("delta-rs does not read the table") from None
        connection.register(f"{self.stored.name}_rows", rows)
        shown = ", ".join(f"CAST({internal} AS {duck_name(kind)}) AS {internal}" for internal, _, kind in columns) or "1 AS one"
        connection.execute(f"CREATE TEMP VIEW {self.stored.name} AS SELECT {shown} FROM {self.stored.name}_rows")


def delta_source(table: Any, number: int) -> DeltaSource:
    """The table as queries see it. Raises NotSame where it has features that neither engine here has."""
    features = table.protocol().reader_features or ()
    unknown = sorted(set(features) - _READABLE)
    if unknown:
        raise NotSame(f"a table has the feature {unknown[0]}")
    return DeltaSource(table, Stored(f"t{number}", tuple(_column(found) for found in schema_fields(table))))


def _column(found: Mapping[str, Any]) -> tuple[str, Type | None]:
    try:
        return of_field(found)
    except NotSame:
        return str(found["name"]), None


def _literal(value: Any) -> str:
    """The value of a partition."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date) and type(value) is date:
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, (str, Decimal)):
        return text_literal(str(value))
    raise NotSame(f"a table has partitions by a {type(value).__name__}")
