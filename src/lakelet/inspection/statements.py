"""Statements of `lakelet sql` other than queries: `SHOW TABLES`, `DESCRIBE name`, and, which needs Spark, a table's history and detail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lakelet.base.names import Namespace, all_quoted, quoted
from lakelet.base.phases import report
from lakelet.files.delta_rs import open_or_none, schema_fields, spark_type_text
from lakelet.files.paths import AnyPath
from lakelet.files.stores import stores_of
from lakelet.inspection.inspector import Note, TableRows, all_of, first_rows, list_tables, run_sql
from lakelet.inspection.table_lookup import find_dataset, path_of, unwritten
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.reading import open_log
from lakelet.storage.root import Storage

_SHOW = re.compile(r"\s*SHOW\s+TABLES(?:\s+(?:IN|FROM)\s+(?P<schema>[\w.`]+))?\s*;?\s*", re.IGNORECASE)
_NAME = r"(?P<name>(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)\s*;?\s*"
_DESCRIBE = re.compile(rf"\s*DESC(?:RIBE)?\s+(?:TABLE\s+)?{_NAME}", re.IGNORECASE)
_FACTS = re.compile(rf"\s*DESC(?:RIBE)?\s+(?P<kind>HISTORY|DETAIL)\s+{_NAME}", re.IGNORECASE)


def run_statement(
    storage: AnyPath, text: str, *, limit: int | None = None, note: Note = lambda text: None, space: Namespace | None = None
) -> TableRows:
    """The rows of a query, of SHOW TABLES [IN schema] (dataset, kind, rows, version), of DESCRIBE name (col_name, data_type, comment), or
    of DESCRIBE HISTORY or DETAIL, with Delta's columns.

    `limit`, `note` and `space` are those of `run_sql`. Raises like it; UNKNOWN_TABLE for a name that is not stored.
    """
    shown = _SHOW.fullmatch(text)
    if shown:
        return _tables(storage, shown["schema"])
    facts = _FACTS.fullmatch(text)
    if facts:
        return _facts(storage, facts["kind"].upper(), _full_name(facts["name"], space), limit, note)
    described = _DESCRIBE.fullmatch(text)
    if described:
        return _described(storage, _full_name(described["name"], space))
    return run_sql(storage, text, limit=limit, note=note, space=space)


def _full_name(name: str, space: Namespace | None) -> str:
    """The name as `space` completes it; names of the event log stay."""
    if space is None or event_views.relation_of(tuple(name.split("."))) is not None:
        return name
    found = space.resolve(name)
    return all_quoted((found.catalog, found.schema, found.name))


def _tables(storage: AnyPath, schema: str | None) -> TableRows:
    """All tables, or those of a schema, which may have its catalog before it."""
    found = [table for table in list_tables(storage) if schema is None or _lies_in(table.name, schema)]
    rows = [(table.name, str(table.kind.value), table.rows, table.version) for table in found]
    return _rows(("dataset", "kind", "rows", "version"), ("string", "string", "bigint", "bigint"), rows)


def _lies_in(name: str, schema: str) -> bool:
    return f".{name.rpartition('.')[0]}".lower().endswith("." + schema.replace("`", "").lower())


def _described(storage: AnyPath, name: str) -> TableRows:
    registry = Storage(storage).registry()
    of_events = event_views.relation_of(tuple(name.split(".")))
    if of_events is not None and registry.namespace.resolve(name).key not in registry.datasets:
        if of_events != event_views.SOURCE:
            found = run_sql(storage, f"SELECT * FROM {event_views.EVENT_LOG}.{of_events} LIMIT 0")
            return _columns([(column, kind, None) for column, kind in zip(found.columns, found.types, strict=True)])
        table, shown = open_log(Storage(storage).events), "the event log"
    else:
        dataset = find_dataset(registry, name)
        table, shown = open_or_none(path_of(storage, dataset)), dataset.name
    if table is None:
        raise unwritten(shown)
    return _columns([(f["name"], spark_type_text(f["type"]), (f.get("metadata") or {}).get("comment")) for f in schema_fields(table)])


def _facts(storage: AnyPath, kind: str, name: str, limit: int | None, note: Note) -> TableRows:
    """The versions of a table, the newest first, or one row about it."""
    dataset = find_dataset(Storage(storage).registry(), name)
    path = path_of(storage, dataset)
    if open_or_none(path) is None:
        raise unwritten(dataset.name)
    note(f"Spark answers DESCRIBE {kind}; starting it ...")
    from lakelet.inspection.spark_queries import collected
    from lakelet.spark.launch.session import start_session
    from lakelet.spark.session_clones import quiet_pyspark

    spark = start_session(app_name="lakelet sql", stores=stores_of(storage))
    report(f"Reading the {kind.lower()} of {dataset.name} with Spark")
    with quiet_pyspark():
        return first_rows(collected(spark.sql(f"DESCRIBE {kind} delta.{quoted(str(path))}")), limit)


def _columns(rows: Sequence[tuple[str, str, str | None]]) -> TableRows:
    return _rows(("col_name", "data_type", "comment"), ("string", "string", "string"), rows)


def _rows(columns: tuple[str, ...], types: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> TableRows:
    import pyarrow as pa

    kinds = [pa.int64() if kind == "bigint" else pa.string() for kind in types]
    arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    records: Iterator[dict[str, Any]] = (dict(zip(columns, row, strict=True)) for row in rows)
    return TableRows(columns, records, types, len(rows), all_of(pa.table(arrays, names=list(columns))))
