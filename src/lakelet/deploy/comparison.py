"""Local and deployed tables side by side: schema, rows, counts of expectations, keys that differ. No Spark.

Local tables are read by delta-rs, those in the workspace by SQL statements on a warehouse, bounded in rows and time; expectations by the
events of both sides.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import quoted, split_name
from lakelet.base.text import listed
from lakelet.cdc.identity import made_with
from lakelet.deploy.differences import (
    BothSides,
    Comparison,
    DatasetDifference,
    Row,
    RowComparison,
    RowsByKey,
    comparable,
    differences,
    local_text,
    order_of,
    selected,
    type_text,
    workspace_text,
)
from lakelet.deploy.remote_updates import events, json_of, update_of, updates
from lakelet.files.paths import AnyPath
from lakelet.inspection.inspector import TableInfo, list_tables, read_rows
from lakelet.language.model import Kind
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.reading import read_events
from lakelet.storage.eventlog.states import EventType
from lakelet.storage.root import Storage
from lakelet.storage.rule_counts import summed

if TYPE_CHECKING:
    from databricks.sdk.service.sql import StatementResponse

    from lakelet.deploy.connection import Client
    from lakelet.deploy.targets import RemotePipeline, Target


SHOWN_KEYS = 20
"""Differing keys that are shown of one dataset."""
_STORED_KINDS = tuple(kind.name for kind in (Kind.STREAMING_TABLE, Kind.MATERIALIZED_VIEW, Kind.TABLE))
Counts = Mapping[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True)
class ComparisonRequest:
    """A comparison to make.

    Attributes:
        names: datasets, with or without catalog and schema; none means all.
        key: columns that identify a row; none means the keys of change tables, else all columns.
        rows: at most so many rows of each dataset are compared; 0 compares no rows.
        warehouse: ID or name; None takes the only one.
    """

    names: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    rows: int = 10_000
    warehouse: str | None = None


class _NeedsSpark(Exception):
    """A local table can be read by Spark only."""


def compare(
    storage: AnyPath, target: Target, pipeline: RemotePipeline, asked: ComparisonRequest, *, notice: Callable[[str], None]
) -> Comparison:
    """Compare the datasets of a storage with those of a deployed pipeline.

    Raises UNKNOWN_TABLE for a name that neither side has, USAGE for a missing warehouse or a key that is not a column.
    """
    local = {one.name: one for one in list_tables(storage) if one.active and one.kind is not Kind.SINK and not one.quarantine_of}
    rows = _last_update(target, pipeline)
    hosted = _names_in_workspace(rows, pipeline)
    pairs = _chosen_pairs(_dataset_pairs(local, hosted), asked.names)
    rules = _rule_counts(read_events(storage)), _rule_counts(rows)
    warehouse = find_warehouse(target.client, asked.warehouse) if any(ours and theirs for ours, theirs in pairs) else None
    found = []
    for ours, theirs in pairs:
        if ours is None or theirs is None or warehouse is None:
            found.append(DatasetDifference(ours or theirs or "", theirs, only="local" if ours else "hosted"))
            continue
        notice(f"Comparing {ours} with {theirs}")
        found.append(_DatasetPair(storage, local[ours], theirs, warehouse, asked).compared(rules))
    return Comparison(target.name, pipeline.key, tuple(found))


class _DatasetPair:
    """One dataset that both sides have."""

    def __init__(self, storage: AnyPath, table: TableInfo, hosted: str, warehouse: Warehouse, asked: ComparisonRequest) -> None:
        self._storage, self._table, self._hosted = storage, table, hosted
        self._warehouse, self._asked = warehouse, asked
        self._from = ".".join(quoted(part) for part in split_name(hosted))

    def compared(self, rules: tuple[Counts, Counts]) -> DatasetDifference:
        notes: list[str] = []
        try:
            return self._all(rules, notes)
        except LakeletError as refused:
            if refused.code != "REMOTE_QUERY_FAILED":
                raise
            gone = "TABLE_OR_VIEW_NOT_FOUND" in refused.what
            failed = None if gone else refused.what
            return DatasetDifference(self._table.name, self._hosted, "local" if gone else None, failed, notes=tuple(notes))

    def _all(self, rules: tuple[Counts, Counts], notes: list[str]) -> DatasetDifference:
        head = self._warehouse.ask(f"SELECT * FROM {self._from} LIMIT 0", limit=1)
        theirs = {name: type_text(kind) for name, kind in zip(head.names, head.types, strict=True)}
        ours = {column["name"]: type_text(column["type"]) for column in self._table.columns}
        number = self._warehouse.ask(f"SELECT count(*) AS n FROM {self._from}", limit=1).rows[0][0]
        sides = BothSides(self._table.rows or 0, int(number or 0))
        broken, judged = self._rules(*rules)
        if not judged:
            notes.append("expectations: the last update of one side reported no counts")
        compared = self._rows(ours, theirs, sides, notes) if self._asked.rows else None
        columns = _differing_columns(ours, theirs)
        return DatasetDifference(self._table.name, self._hosted, None, None, columns, sides, broken, judged, compared, tuple(notes))

    def _rules(self, here: Counts, there: Counts) -> tuple[Mapping[str, BothSides], int]:
        """The expectations with other counts, and how many were compared: none unless both sides reported some."""
        ours, theirs = (
            {rule: n for (dataset, rule), n in side.items() if dataset == _last_parts(self._table.name)} for side in (here, there)
        )
        if not ours or not theirs:
            return {}, 0
        names = sorted(ours.keys() | theirs.keys())
        return {name: BothSides(ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}, len(names)

    def _rows(self, ours: Mapping[str, str], theirs: Mapping[str, str], sides: BothSides, notes: list[str]) -> RowComparison | None:
        by_lower = {name.lower(): name for name in theirs}
        both = [(name, by_lower[name.lower()]) for name in ours if name.lower() in by_lower]
        shared = [(a, b) for a, b in both if ours[a] == theirs[b] and comparable(ours[a])]
        left_out = tuple(dict.fromkeys(n for n in (*ours, *theirs) if n.lower() not in {a.lower() for a, _ in shared}))
        names = [a for a, _ in shared]
        key = self._key(names, notes)
        if not names:
            notes.append("rows: no column can be compared")
            return None
        most = self._asked.rows
        complete = max(sides.local, sides.hosted) <= most
        hosted = dict(shared)
        order = ", ".join(quoted(hosted[a]) for a in key if not ours[a].startswith("map"))  # maps cannot be sorted
        query = f"SELECT {', '.join(f'{selected(b, theirs[b])} AS c{i}' for i, (_, b) in enumerate(shared))} FROM {self._from}"
        answer = self._warehouse.ask(query if complete or not order else f"{query} ORDER BY {order} LIMIT {most}", limit=most)
        positions = [names.index(name) for name in key]
        there = RowsByKey(positions).add(_rows_as_texts(answer.rows, [workspace_text(theirs[b]) for _, b in shared]))
        try:
            wanted = None if complete else _RowSample(there, [order_of(ours[name]) for name in key])
            here = RowsByKey(positions).add(self._local_rows(names, ours, wanted))
        except _NeedsSpark:
            notes.append("rows: the local table has a feature that only Spark reads")
            return None
        found = differences(here, there, names, key, complete=complete)
        return RowComparison(key, there.number, complete, len(found), tuple(found[:SHOWN_KEYS]), left_out)

    def _local_rows(self, names: Sequence[str], types: Mapping[str, str], wanted: _RowSample | None) -> Iterable[Row]:
        """The local rows as texts; for a sample only those that it should have."""

        def refuse(text: str) -> None:
            raise _NeedsSpark

        convert = [local_text(types[name]) for name in names]
        for found in read_rows(self._storage, self._table.name, note=refuse).rows:
            row = _row_as_texts([found[name] for name in names], convert)
            if wanted is None or wanted.should_have(row):
                yield row

    def _key(self, names: Sequence[str], notes: list[str]) -> tuple[str, ...]:
        """The columns that identify a row, of those that are compared."""
        by_lower = {name.lower(): name for name in names}
        if self._asked.key:
            absent = [name for name in self._asked.key if name.lower() not in by_lower]
            if not absent:
                return tuple(by_lower[name.lower()] for name in self._asked.key)
            if self._asked.names:
                what = f"{self._table.name} has no column {absent[0]} that both sides have with one type"
                raise LakeletError("USAGE", what, nearest=nearest_names(absent[0], names), todo=f"Its columns: {', '.join(names)}")
            notes.append(f"rows: compared by other columns, because there is no column {absent[0]}")
        made = made_with(Storage(self._storage), self._table.name.lower())
        keys = list(json.loads(made)[0]) if made else []
        if keys and "__start_at" in by_lower:
            keys.append("__start_at")
        return tuple(by_lower[name] for name in keys) if keys and all(name in by_lower for name in keys) else tuple(names)


class _RowSample:
    """The first rows of the workspace by key. `orders`: of each column of the key; None where the order of the workspace is not known."""

    def __init__(self, hosted: RowsByKey, orders: Sequence[Callable[[str], Any] | None]) -> None:
        self._hosted, self._orders = hosted, orders
        self._room = 2 * hosted.number
        known = all(order is not None for order in orders)
        self._last = max(map(self._sortable, hosted.rows)) if known and hosted.rows else None

    def should_have(self, row: Row) -> bool:
        """Whether the key is in the sample, or lies before its last one; of the latter ones only some."""
        key = self._hosted.key_of(row)
        if key in self._hosted.rows:
            return True
        if self._last is None or self._room == 0 or not self._sortable(key) < self._last:
            return False
        self._room -= 1
        return True

    def _sortable(self, key: Row) -> tuple[Any, ...]:
        """NULL comes first."""
        return tuple((False, 0) if value is None else (True, order(value)) for value, order in zip(key, self._orders, strict=True) if order)


# --- which datasets -------------------------------------------------------------------------------------------------------------------


def _last_update(target: Target, pipeline: RemotePipeline) -> list[Mapping[str, Any]]:
    """The events of the last update that has ended, as JSON values."""
    newest = next((one for one in updates(target.client, pipeline.id) if one.has_ended), None)
    if newest is None:
        todo = f"Run it first: lakelet run --remote -t {target.name}"
        raise LakeletError("USAGE", f"{pipeline.name} has no finished update that could be compared", todo=todo)
    rows = events(target.client, pipeline.id, since=newest.created)
    return [json_of(row) for row in rows if update_of(row) == newest.id]


def _names_in_workspace(rows: Iterable[Mapping[str, Any]], pipeline: RemotePipeline) -> list[str]:
    """Full names of the stored datasets that an update defined."""
    place = (pipeline.settings.get("catalog") or "main", pipeline.settings.get("schema") or pipeline.settings.get("target") or "default")
    found: dict[str, None] = {}
    for row in rows:
        kind = row["details"].get(EventType.DATASET_DEFINITION, {}).get("dataset_type")
        name = row["origin"].get("dataset_name")
        if name and row["event_type"] == EventType.DATASET_DEFINITION and kind in _STORED_KINDS:
            parts = split_name(str(name))
            found[".".join((*place[: 3 - len(parts)], *parts) if len(parts) < 3 else parts)] = None
    return list(found)


def _dataset_pairs(local: Iterable[str], hosted: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """Both names of the same datasets: the same full name, else the same schema and name, else the only one of that name."""
    left = list(hosted)
    found: list[tuple[str | None, str | None]] = []
    for name in local:
        match = None
        for parts in (3, 2, 1):
            same = [one for one in left if _last_parts(one, parts) == _last_parts(name, parts)]
            if len(same) == 1:
                match = same[0]
                left.remove(match)
                break
        found.append((name, match))
    return [*found, *((None, one) for one in left)]


def _chosen_pairs(pairs: Sequence[tuple[str | None, str | None]], names: Sequence[str]) -> list[tuple[str | None, str | None]]:
    if not names:
        return list(pairs)
    found: list[tuple[str | None, str | None]] = []
    for name in names:
        parts = len(split_name(name))
        same = [pair for pair in pairs if any(one and _last_parts(one, parts) == _last_parts(name, parts) for one in pair)]
        if not same:
            known = [one for pair in pairs for one in pair if one]
            raise LakeletError("UNKNOWN_TABLE", f"neither side has a dataset {name}", nearest=nearest_names(name, known))
        found.extend(pair for pair in same if pair not in found)
    return found


def _last_parts(name: str, parts: int = 1) -> str:
    return ".".join(split_name(name)[-parts:]).lower()


# --- facts of one side ----------------------------------------------------------------------------------------------------------------


def _rule_counts(rows: Iterable[Mapping[str, Any]]) -> Counts:
    """(passed, failed) by dataset and expectation, of the batches that were written: Databricks counts no others."""
    counts = [count for update in reduce_events(rows).updates for count in update.written_counts_by_rule.values()]
    found = summed(replace(count, dataset=_last_parts(count.dataset)) for count in counts)
    return {key: (count.passed, count.failed) for key, count in found.items()}


def _differing_columns(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Mapping[str, BothSides]:
    """The columns that only one side has or that have another type; names are compared without case."""
    here, there = ({name.lower(): (name, kind) for name, kind in side.items()} for side in (ours, theirs))
    found: dict[str, BothSides] = {}
    for lower in [*here, *(name for name in there if name not in here)]:
        local, hosted = here.get(lower), there.get(lower)
        if (local and local[1]) != (hosted and hosted[1]):
            found[(local or hosted or ("", ""))[0]] = BothSides(local and local[1], hosted and hosted[1])
    return found


def _rows_as_texts(rows: Iterable[Sequence[str | None]], convert: Sequence[Callable[[str], str]]) -> Iterable[Row]:
    return (_row_as_texts(row, convert) for row in rows)


def _row_as_texts(values: Sequence[Any], convert: Sequence[Callable[[Any], str]]) -> Row:
    return tuple(None if value is None else one(value) for value, one in zip(values, convert, strict=True))


STATEMENT_SECONDS = 600.0
"""One statement may take so long, the start of the warehouse included."""


@dataclass(frozen=True)
class StatementRows:
    """The rows of a statement: names and types of its columns, values as texts. `whole`: whether no row was cut off."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[list[str | None]]
    whole: bool


class Warehouse:
    """Answers statements. `id`: of the warehouse."""

    def __init__(self, client: Client, id: str, *, seconds: float = STATEMENT_SECONDS, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client, self.id = client, id
        self._seconds, self._sleep = seconds, sleep

    def ask(self, sql: str, *, limit: int) -> StatementRows:
        """Return at most `limit` rows of a query. Raises REMOTE_QUERY_FAILED with the workspace's text, or when the time is over."""
        from databricks.sdk.service.sql import StatementState

        api = self._client.sdk.statement_execution
        deadline, pause = time.monotonic() + self._seconds, 0.5
        found = api.execute_statement(sql, self.id, row_limit=limit, wait_timeout="30s")
        while _statement_state(found) in (StatementState.PENDING, StatementState.RUNNING):
            if time.monotonic() > deadline:
                api.cancel_execution(found.statement_id or "")
                raise LakeletError("REMOTE_QUERY_FAILED", f"the warehouse took longer than {self._seconds:.0f} s", why=sql)
            self._sleep(pause)
            pause = min(5.0, pause * 1.5)
            found = api.get_statement(found.statement_id or "")
        if _statement_state(found) is not StatementState.SUCCEEDED:
            said = found.status.error.message if found.status and found.status.error else None
            raise LakeletError(
                "REMOTE_QUERY_FAILED", f"the warehouse answered {_statement_state(found)}: {said or 'without a reason'}", why=sql
            )
        columns = (found.manifest.schema.columns if found.manifest and found.manifest.schema else None) or []
        return StatementRows(
            tuple(column.name or "" for column in columns),
            tuple(column.type_text or "" for column in columns),
            [row for chunk in self._chunks(found) for row in chunk],
            not (found.manifest and found.manifest.truncated),
        )

    def _chunks(self, found: StatementResponse) -> Iterator[list[list[str | None]]]:
        result = found.result
        while result is not None:
            yield [list(row) for row in result.data_array or ()]
            if result.next_chunk_index is None:
                return
            result = self._client.sdk.statement_execution.get_statement_result_chunk_n(found.statement_id or "", result.next_chunk_index)


def find_warehouse(client: Client, wanted: str | None) -> Warehouse:
    """The warehouse of this ID or name; without one, the only one there is. Raises USAGE where one has to be named."""
    if wanted is None and client.sdk.config.warehouse_id:
        return Warehouse(client, client.sdk.config.warehouse_id)
    known = {one.id or "": one.name or "" for one in client.sdk.warehouses.list()}
    chosen = [id for id, name in known.items() if wanted in (None, id, name)]
    if len(chosen) == 1:
        return Warehouse(client, chosen[0])
    if not known:
        raise LakeletError(
            "USAGE", "the workspace has no SQL warehouse that this user may see", todo="Make one, or ask for the right to use one."
        )
    what = (
        "the workspace has several SQL warehouses"
        if wanted is None
        else f"{'no' if not chosen else 'more than one'} SQL warehouse is {wanted}"
    )
    todo = f"Name one by its ID: --warehouse {next(iter(known))}\nThere are: {listed([f'{id} ({name})' for id, name in known.items()], 6)}"
    raise LakeletError("USAGE", what, todo=todo)


def _statement_state(found: StatementResponse) -> object:
    return found.status.state if found.status else None
