"""An event log of two updates, written by hand: what tests of queries and views read."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.storage.eventlog.events import Event, Origin

START = datetime(2026, 3, 1, 8, tzinfo=timezone.utc)
RULES = [
    {
        "name": "id_ok",
        "constraint": "id IS NOT NULL",
        "action": "DROP",
        "owner": "ids@example.com",
        "description": "To find it.",
        "tags": ["a", "b"],
    },
    {"name": "never", "constraint": "id > 0", "action": "WARN"},
]


class Log:
    """Writes events of one update after the other, a second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(
        self,
        update: str,
        kind: str,
        body: dict[str, Any],
        *,
        dataset: str | None = None,
        flow: str | None = None,
        sink: str | None = None,
        error: Exception | None = None,
    ) -> None:
        origin = Origin("p-1", "shop", update, dataset, flow, flow and f"{flow}-id", None, sink)
        number = len(self.events)
        event = Event(kind, f"{kind} {number}", origin, {kind: body}, error=error, timestamp=START + timedelta(seconds=number))
        self.events.append(Event(**{**vars(event), "sequence": number}))

    def flow(self, update: str, flow: str, status: str, *, error: Exception | None = None, sink: str | None = None, **body: Any) -> None:
        dataset = None if sink else f"main.shop.{flow}"
        self.add(update, "flow_progress", {"status": status, **body}, dataset=dataset, flow=flow, sink=sink, error=error)

    def measured(self, update: str, flow: str, rows: int, dropped: int, passed: int, failed: int, **more: Any) -> None:
        rules = [{"name": "id_ok", "dataset": f"main.shop.{flow}", "passed_records": passed, "failed_records": failed}]
        quality = {"dropped_records": dropped, "expectations": rules, **more}
        self.flow(update, flow, "RUNNING", metrics={"num_output_rows": rows}, data_quality=quality)


def first_update(log: Log) -> None:
    """Orders in two micro-batches, customers by changes, an export into a sink."""
    u = "u1"
    log.add(
        u,
        "create_update",
        {"cause": "USER_ACTION", "runtime_version": {"dbr_version": "lakelet-1"}, "refresh_selection": [], "full_refresh_selection": []},
    )
    log.add(u, "user_action", {"action": "START", "user_name": "me@example.com"})
    log.add(u, "runtime_details", {"runtime_version": {"dbr_version": "lakelet-1"}})
    listing = {"source_path": "/landing", "num_files_listed": 7, "num_files_new": 3}
    listed = {"type": "AUTO_LOADER_LISTING", "status": "COMPLETED", "duration_ms": 120, "auto_loader_details": listing}
    log.add(u, "operation_progress", listed, dataset="main.shop.orders", flow="orders")
    log.add(u, "dataset_definition", {"dataset_type": "STREAMING_TABLE", "num_flows": 1, "expectations": RULES}, dataset="main.shop.orders")
    log.add(u, "dataset_definition", {"dataset_type": "STREAMING_TABLE", "expectations": []}, dataset="main.shop.customers")
    log.add(u, "sink_definition", {"format": "json"}, sink="main.shop.export")
    definition = {
        "output_dataset": "main.shop.orders",
        "input_datasets": None,
        "flow_type": "APPEND",
        "schema": [{"name": "id", "data_type": "BIGINT"}],
    }
    log.add(u, "flow_definition", definition, dataset="main.shop.orders", flow="orders")
    definition = {"output_dataset": "main.shop.customers", "input_datasets": ["main.shop.orders", "main.shop.x"], "flow_type": "CHANGE"}
    log.add(u, "flow_definition", definition, dataset="main.shop.customers", flow="customers")
    inputs = [{"dataset": "main.shop.orders", "column": "id"}, {"dataset": "main.shop.orders", "column": "n"}]
    columns = [{"name": "key", "inputs": inputs}, {"name": "seen", "inputs": []}]
    body = {"flow_name": "customers", "output_dataset": "main.shop.customers", "columns": columns}
    log.add(u, "column_lineage", body, dataset="main.shop.customers", flow="customers")
    log.add(u, "update_progress", {"state": "RUNNING"})
    for flow in ("orders", "customers"):
        log.flow(u, flow, "QUEUED")
        log.flow(u, flow, "RUNNING", metrics={"backlog_files": 3, "backlog_bytes": 300})
    samples = [{"name": "id_ok", "dataset": "main.shop.orders", "row_json": '{"id": null}', "file": "/landing/a.json"}]
    log.measured(u, "orders", 10, 2, 10, 2, samples=samples)
    more = {"name": "id_ok", "dataset": "main.shop.orders", "row_json": '{"id": null, "note": "it\'s \\"ü\\""}'}
    log.measured(u, "orders", 5, 1, 5, 1, quarantined_records=1, samples=[*samples, more])
    log.flow(u, "customers", "RUNNING", metrics={"num_upserted_rows": 4, "num_deleted_rows": 1})
    log.flow(u, "export", "RUNNING", sink="main.shop.export", metrics={"num_output_rows": 7})
    change = {"added": [{"name": "note", "type": "string"}], "widened": [{"name": "n", "from": "int", "to": "bigint"}]}
    body = {"flow_name": "orders", "source": "/landing", "first_file": "/landing/b.json", **change}
    log.add(u, "schema_change", body, dataset="main.shop.orders", flow="orders")
    log.flow(u, "orders", "COMPLETED", metrics={"backlog_files": 0, "backlog_bytes": 0})
    log.flow(u, "customers", "COMPLETED")
    log.flow(u, "export", "COMPLETED", sink="main.shop.export")
    check = {"dataset": "main.shop.orders", "table_version": 3, "name": "unique id", "severity": "critical", "success": False}
    check |= {"owner": "shop@example.com", "description": "Once each.", "tags": ["keys"]}
    log.add(u, "table_check", {**check, "observed": "2", "expected": "0", "message": "2 values twice"}, dataset="main.shop.orders")
    log.add(u, "update_progress", {"state": "COMPLETED"})


def second_update(log: Log) -> None:
    """Only orders, in full; they fail."""
    u = "u2"
    body = {"cause": "RETRY_ON_FAILURE", "refresh_selection": ["main.shop.orders"], "full_refresh_selection": ["main.shop.orders"]}
    log.add(u, "create_update", body)
    about = {"owner": "shop@example.com", "comment": "What was bought.", "tags": ["daily"]}
    log.add(u, "dataset_definition", {"dataset_type": "STREAMING_TABLE", **about, "expectations": RULES}, dataset="main.shop.orders")
    log.add(u, "update_progress", {"state": "RUNNING"})
    log.flow(u, "customers", "EXCLUDED")
    log.flow(u, "orders", "QUEUED")
    log.flow(u, "orders", "STARTING")
    log.measured(u, "orders", 0, 0, 0, 0)
    log.flow(u, "orders", "FAILED", error=LakeletError("FLOW_FAILED", "the disk is full"))
    log.add(u, "update_progress", {"state": "FAILED"})
    technique = [
        {"maintenance_type": "MAINTENANCE_TYPE_NO_OP", "is_chosen": False},
        {"maintenance_type": "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "is_chosen": True},
    ]
    log.add(u, "planning_information", {"technique_information": technique}, dataset="main.shop.daily", flow="daily")


def two_updates() -> list[Event]:
    """The events of both."""
    log = Log()
    first_update(log)
    second_update(log)
    return log.events


def at(number: int) -> str:
    """When event `number` was, as `lakelet sql` shows it."""
    return (START + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
