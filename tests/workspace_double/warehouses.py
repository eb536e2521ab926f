"""SQL warehouses and statements over HTTP: `/api/2.0/sql/...` (facts 1.2)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.workspace_double.sql_engine import Query, Result, SqlError, run
from tests.workspace_double.tables import Column, columns_of
from tests.workspace_double.wire import Answer, Call, denied, invalid, missing, unmodelled

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_FIELDS = {"statement", "warehouse_id", "catalog", "schema", "parameters", "row_limit", "byte_limit", "disposition", "format"}
_FIELDS |= {"wait_timeout", "on_wait_timeout", "query_tags"}
_LARGEST = 25 * 1024 * 1024  # facts 1.2: INLINE results up to 25 MiB
_NAMES = {"BIGINT": "LONG", "SMALLINT": "SHORT", "TINYINT": "BYTE", "VOID": "NULL"}
_TEXTS = ("id", "message", "level", "event_type", "maturity_level", "details")
_ORIGIN = ("pipeline_id", "pipeline_name", "update_id", "dataset_name", "table_name", "flow_name", "flow_id")
_EXCEPTION = pa.struct([("class_name", pa.string()), ("message", pa.string())])
_EVENT = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("sequence", pa.struct([("data_plane_id", pa.struct([("instance", pa.string()), ("seq_no", pa.int64())]))])),
        ("origin", pa.struct([(name, pa.string()) for name in _ORIGIN])),
        ("error", pa.struct([("fatal", pa.bool_()), ("exceptions", pa.list_(_EXCEPTION))])),
    ]
)
_PLACE = ("table_catalog", "table_schema", "table_name")
_INFORMATION = {
    "tables": pa.schema([(name, pa.string()) for name in (*_PLACE, "table_type", "data_source_format")]),
    "columns": pa.schema(
        [(name, pa.string()) for name in (*_PLACE, "column_name", "is_nullable", "data_type", "full_data_type")]
        + [("ordinal_position", pa.int64())]
    ),
}


@dataclass
class Statement:
    """One statement. `looks`: how many looks it still takes until it is done."""

    id: str
    text: str
    result: Result | None
    error: str | None
    truncated: bool
    looks: int
    state: str = "PENDING"


class Warehouses:
    """`stored`: warehouses by id. `statements`: statements by id."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.stored: dict[str, dict[str, Any]] = {}
        self.statements: dict[str, Statement] = {}
        add = workspace.routes.add
        add("GET", "/api/2.0/sql/warehouses", self._list)
        add("GET", "/api/2.0/sql/warehouses/{id}", self._get)
        add("POST", "/api/2.0/sql/statements", self._execute, reads=True)
        add("GET", "/api/2.0/sql/statements/{id}", self._look)
        add("GET", "/api/2.0/sql/statements/{id}/result/chunks/{chunk}", self._chunk)
        add("POST", "/api/2.0/sql/statements/{id}/cancel", self._cancel, reads=True)

    def add(self, name: str) -> str:
        """A running warehouse of this name; its id."""
        key = uuid.uuid5(uuid.NAMESPACE_DNS, name).hex[:16]
        self.stored[key] = {"id": key, "name": name, "state": "RUNNING", "warehouse_type": "PRO", "enable_serverless_compute": True}
        return key

    def _list(self, call: Call) -> Answer:
        return Answer({"warehouses": list(self.stored.values())})

    def _get(self, call: Call) -> Answer:
        if call.params["id"] not in self.stored:
            raise missing(f"SQL warehouse {call.params['id']} does not exist.")
        return Answer(self.stored[call.params["id"]])

    def _execute(self, call: Call) -> Answer:
        """`wait_timeout`: `0s`, or 5 to 50 seconds (facts 1.2). No time passes: `Workspace.looks_per_statement` stands for it."""
        call.only(_FIELDS, "ExecuteStatement")
        if call.text("warehouse_id") not in self.stored:
            raise invalid(f"{call.body['warehouse_id']} is not a valid endpoint id.")
        if not call.user.admin:
            raise denied(f"User {call.user.name} does not have CAN_USE permission on the SQL warehouse.")
        if call.body.get("disposition", "INLINE") != "INLINE" or call.body.get("format", "JSON_ARRAY") != "JSON_ARRAY":
            raise unmodelled("results other than INLINE and JSON_ARRAY")
        wait = call.body.get("wait_timeout", "10s")
        match = re.fullmatch(r"(\d+)s", wait)
        if not match or (int(match[1]) != 0 and not 5 <= int(match[1]) <= 50):
            raise invalid(f"wait_timeout needs to be 0s or between 5s and 50s, is {wait}")
        made = self._made(call)
        self.statements[made.id] = made
        if int(match[1]) == 0:
            made.looks += 1
        elif made.looks == 0:
            made.state = _final(made)
        elif call.body.get("on_wait_timeout", "CONTINUE") == "CANCEL":
            made.state = "CANCELED"
        else:
            made.state = "RUNNING"
        return self._shown(made)

    def _made(self, call: Call) -> Statement:
        limit = call.body.get("row_limit")
        result, error, truncated = None, None, False
        try:
            result = run(self._query(call))
            if limit is not None and len(result.rows) > int(limit):
                result, truncated = Result(result.columns, result.rows[: int(limit)]), True
            if len(json.dumps(result.rows)) > min(_LARGEST, int(call.body.get("byte_limit") or _LARGEST)):
                result, error = (
                    None,
                    "Inline byte limit exceeded. Statements executed with disposition=INLINE can have a result size of at most 25 MiB.",
                )
        except SqlError as refusal:
            error = str(refusal)
        return Statement(str(uuid.uuid4()), call.text("statement"), result, error, truncated, self._workspace.looks_per_statement)

    def _query(self, call: Call) -> Query:
        tables = self._tables()
        return Query(
            call.text("statement"),
            call.body.get("catalog") or "main",
            call.body.get("schema") or "default",
            call.body.get("parameters") or [],
            tables,
            lambda name: self._event_log(name, tables),
        )

    def _tables(self) -> dict[str, Any]:
        """What SQL can read: the tables, event logs, and `information_schema.columns` and `.tables` of each catalog."""
        tables = dict(self._workspace.tables)
        for catalog in sorted(self._workspace.catalogs):
            own = {name: columns_of(table) for name, table in self._workspace.tables.items() if name.startswith(f"{catalog}.")}
            for kind, rows in (("tables", _table_rows(own)), ("columns", _column_rows(own))):
                tables[f"{catalog}.information_schema.{kind}"] = pa.Table.from_pylist(rows, schema=_INFORMATION[kind])
        for pipeline in self._workspace.pipelines.values():
            table = _event_table(self._workspace.events.get(pipeline.id, []))
            tables[f"system.event_log.{pipeline.id}"] = table
            if log := pipeline.spec.get("event_log"):
                where = (log.get("catalog") or pipeline.spec.get("catalog"), log.get("schema") or pipeline.spec.get("schema"), log["name"])
                tables[".".join(str(part) for part in where)] = table
        return tables

    def _event_log(self, name: str, tables: Mapping[str, Any]) -> str:
        """The event log of a pipeline by the pipeline's id, by one of its tables, or by the table that it is published to."""
        owner = self._workspace.table_owners.get(name, name)
        if f"system.event_log.{owner}" in tables:
            return f"system.event_log.{owner}"
        if name in tables and name not in self._workspace.tables:
            return name
        raise SqlError(f"[EVENT_LOG_UNAVAILABLE] No event logs available for {name}. SQLSTATE: 55019")

    def _find(self, call: Call) -> Statement:
        if call.params["id"] not in self.statements:
            raise missing(f"The statement {call.params['id']} was not found.")
        return self.statements[call.params["id"]]

    def _look(self, call: Call) -> Answer:
        found = self._find(call)
        if found.state in ("PENDING", "RUNNING"):
            found.looks -= 1
            found.state = "RUNNING" if found.looks > 0 else _final(found)
        return self._shown(found)

    def _cancel(self, call: Call) -> Answer:
        """SDK docstring: an empty answer; whoever asked looks for the final state."""
        found = self._find(call)
        if found.state in ("PENDING", "RUNNING"):
            found.state = "CANCELED"
        return Answer()

    def _chunk(self, call: Call) -> Answer:
        found, number = self._find(call), int(call.params["chunk"])
        chunks = self._chunks(found) if found.state == "SUCCEEDED" else []
        if not 0 <= number < len(chunks):
            raise missing(f"The statement {found.id} has no chunk {number}.")
        return Answer(chunks[number])

    def _chunks(self, statement: Statement) -> list[dict[str, Any]]:
        assert statement.result
        size, rows = self._workspace.rows_per_chunk, statement.result.rows
        chunks: list[dict[str, Any]] = []
        for number, offset in enumerate(range(0, len(rows), size)):
            part = rows[offset : offset + size]
            chunks.append({"chunk_index": number, "row_offset": offset, "row_count": len(part), "data_array": part})
        for number, chunk in enumerate(chunks[:-1]):
            link = f"/api/2.0/sql/statements/{statement.id}/result/chunks/{number + 1}?row_offset={(number + 1) * size}"
            chunk |= {"next_chunk_index": number + 1, "next_chunk_internal_link": link}
        return chunks

    def _shown(self, statement: Statement) -> Answer:
        """facts 1.2: an error of SQL is 200 with `state=FAILED` and `status.error`."""
        body: dict[str, Any] = {"statement_id": statement.id, "status": {"state": statement.state}}
        if statement.state == "FAILED":
            body["status"]["error"] = {"error_code": "BAD_REQUEST", "message": statement.error}
            if state := re.search(r"SQLSTATE: (\w+)", statement.error or ""):
                body["status"]["sql_state"] = state[1]
        if statement.state == "SUCCEEDED" and statement.result:
            chunks = self._chunks(statement)
            body["manifest"] = _manifest(statement.result, chunks, statement.truncated)
            body["result"] = chunks[0] if chunks else {}  # public issue ray #54369: no rows, no `chunks`
        return Answer(body)


def _final(statement: Statement) -> str:
    return "FAILED" if statement.error else "SUCCEEDED"


def _manifest(result: Result, chunks: list[dict[str, Any]], truncated: bool) -> dict[str, Any]:
    columns = [_column(column, place) for place, column in enumerate(result.columns)]
    shown: dict[str, Any] = {"format": "JSON_ARRAY", "schema": {"column_count": len(columns), "columns": columns}}
    shown |= {"total_chunk_count": len(chunks), "total_row_count": len(result.rows), "truncated": truncated}
    if chunks:
        shown["chunks"] = [{key: chunk[key] for key in ("chunk_index", "row_offset", "row_count")} for chunk in chunks]
    return shown


def _column(column: Column, place: int) -> dict[str, Any]:
    shown = {"name": column.name, "position": place, "type_name": type_name(column.type), "type_text": column.type}
    if match := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", column.type):
        shown |= {"type_precision": int(match[1]), "type_scale": int(match[2])}
    return shown


def type_name(type: str) -> str:
    """The name of a type in manifests and in Unity Catalog: `LONG` for `BIGINT` (`ColumnInfoTypeName` of the SDK)."""
    base = type.partition("(")[0].partition("<")[0]
    return _NAMES.get(base, base)


def _table_rows(tables: Mapping[str, list[Column]]) -> list[dict[str, Any]]:
    """`information_schema.tables` (documentation page "TABLES" of the information schema)."""
    kind = {"table_type": "MANAGED", "data_source_format": "DELTA"}
    return [{**dict(zip(_PLACE, name.split("."), strict=True)), **kind} for name in tables]


def _column_rows(tables: Mapping[str, list[Column]]) -> list[dict[str, Any]]:
    """`information_schema.columns` (documentation page "COLUMNS" of the information schema)."""
    return [
        {**dict(zip(_PLACE, name.split("."), strict=True)), "column_name": column.name, "ordinal_position": number, "is_nullable": "YES"}
        | {"data_type": type_name(column.type), "full_data_type": column.type.lower()}
        for name, columns in tables.items()
        for number, column in enumerate(columns)
    ]


def _event_table(events: list[dict[str, Any]]) -> pa.Table:
    """Events as the table function `event_log` gives them: structs, and `details` as a JSON string (facts 4)."""
    rows = []
    for event in events:
        moment = datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00"))
        rows.append({**event, "timestamp": moment, "details": json.dumps(event["details"])})
    return pa.Table.from_pylist(rows, schema=_EVENT)
