"""Facts about the stored tables for the page: rows, columns, versions, samples. What delta-rs cannot read is left out, with a note."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.base.redaction import redacted
from lakelet.files.delta_rs import has_variants, open_table, query, row_count, schema_fields, spark_type_text
from lakelet.files.paths import AnyPath
from lakelet.inspection.json_values import json_rows
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

VERSIONS = 30
"""Number of newest versions to show."""
WIDEST = 200
"""Characters of a cell; longer ones are cut."""
REASONS, WHEN, RELEASED = "_broken_rules", "_quarantined_at", "_released_by"
"""Columns of a quarantine: the rules that a row broke, when it was held back, and what let it go, NULL while it is held."""


@dataclass(frozen=True)
class Sample:
    """Some rows of a table as texts, None for NULL. `note`: why there are none, or which ones these are."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class TableVersion:
    """One version of a table: what made it, by the table's own log. `at`: milliseconds since 1970; `rows`: written, None if not said."""

    number: int
    at: int | None
    operation: str
    rows: int | None


@dataclass(frozen=True)
class TableFacts:
    """One stored table as it is now. `rows` None: only Spark could count them. `quarantine`: rows held back by its rules, if it has one."""

    name: str
    rows: int | None
    version: int
    bytes: int
    files: int
    columns: tuple[tuple[str, str], ...]
    versions: tuple[TableVersion, ...]
    sample: Sample
    quarantine: Sample | None = None
    held: int | None = None


class StoredTables:
    """Reads the tables of one storage; a table is read again only in a new version.

    Args:
        sample_rows: how many rows of each table are shown; 0 shows none.
    """

    def __init__(self, storage: AnyPath, *, sample_rows: int) -> None:
        self._root, self._rows = storage, sample_rows
        self._known: dict[str, tuple[int, int | None, TableFacts]] = {}

    def facts(self, names: Sequence[str]) -> dict[str, TableFacts]:
        """The facts of those of `names` that are stored tables."""
        storage = Storage(self._root)  # a new one: it reads its registry once
        registry = storage.registry()
        found = {name: self._table_facts(name, storage, registry) for name in names}
        return {name: facts for name, facts in found.items() if facts is not None}

    def _table_facts(self, name: str, storage: Storage, registry: StorageRegistry) -> TableFacts | None:
        table = _stored_table(storage, registry.datasets.get(name.lower()))
        if table is None:
            return None
        beside = _stored_table(storage, registry.datasets.get(f"{name.lower()}_quarantine"))
        versions = table.version(), None if beside is None else beside.version()
        before = self._known.get(name)
        if before is None or before[:2] != versions:
            before = self._known[name] = (*versions, self._read_facts(name, table, beside))
        return before[2]

    def _read_facts(self, name: str, table: Any, beside: Any) -> TableFacts:
        columns = tuple((f["name"], spark_type_text(f["type"])) for f in schema_fields(table))
        files = table.get_add_actions(flatten=True)
        sizes = files.column("size_bytes").to_pylist()
        held, quarantine = None, None
        if beside is not None and REASONS in [f.name for f in beside.schema().fields]:
            held = _held_count(beside)
            quarantine = self._sample_rows(beside, f'ORDER BY "{RELEASED}" IS NULL DESC, "{WHEN}" DESC')
        facts = row_count(table), table.version(), sum(sizes), len(sizes), columns, _table_versions(table), self._sample_rows(table, "")
        return TableFacts(name, *facts, quarantine, held)

    def _sample_rows(self, table: Any, order: str) -> Sample:
        import pyarrow as pa
        from deltalake.exceptions import DeltaError

        if not self._rows:
            return Sample(note="The report was written without sample rows.")
        if has_variants(table):
            return Sample(note="VARIANT columns need Spark: lakelet show reads them.")
        try:
            batches = list(query(table, f"SELECT * FROM t {order} LIMIT {self._rows}"))
        except DeltaError:
            return Sample(note="The table uses features that need Spark: lakelet show reads it.")
        except pa.ArrowInvalid:
            return Sample(note="The table has texts that are not UTF-8: lakelet show reads it.")
        names = tuple(f.name for f in table.schema().fields)
        rows = tuple(tuple(cell_text(row.get(name)) for name in names) for batch in batches for row in json_rows(batch))
        return Sample(names, rows)


def _stored_table(storage: Storage, stored: StoredDataset | None) -> Any:
    """The Delta table, None where there is none or its log cannot be read here."""
    from deltalake.exceptions import DeltaError

    if stored is None or not stored.path:
        return None
    try:
        return open_table(storage.at(stored.path))
    except (DeltaError, OSError):
        return None


def _held_count(table: Any) -> int | None:
    """Rows that a quarantine holds; None where only Spark can count them."""
    from deltalake.exceptions import DeltaError

    try:
        return sum(int(batch.column(0)[0].as_py()) for batch in query(table, f'SELECT count(*) FROM t WHERE "{RELEASED}" IS NULL'))
    except DeltaError:
        return None


def _table_versions(table: Any) -> tuple[TableVersion, ...]:
    found = []
    for entry in table.history(VERSIONS):
        metrics: Mapping[str, Any] = entry.get("operationMetrics") or {}
        rows = metrics.get("numOutputRows", metrics.get("num_added_rows"))
        at, number = entry.get("timestamp"), entry.get("version")
        found.append(TableVersion(int(number or 0), at, str(entry.get("operation") or ""), None if rows is None else int(rows)))
    return tuple(found)


def cell_text(value: Any) -> str | None:
    """A value as the page shows it: redacted, cut at `WIDEST` characters; None for NULL."""
    if value is None:
        return None
    text = redacted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
