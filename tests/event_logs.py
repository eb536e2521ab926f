"""Event logs for tests of the page: rows in the form of `lakelet events --json`, made update by update."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from lakelet.base.names import TableName
from lakelet.dashboard.documents import Site, SourceTexts
from lakelet.dashboard.tables import Sample, TableFacts, TableVersion
from lakelet.language.model import Kind
from lakelet.storage.eventlog import writer
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset, new_table_path

BEGAN = datetime(2026, 3, 1, 6, tzinfo=timezone.utc)
Row = dict[str, Any]
HOSTILE = "<img src=x onerror=\"document.title='broken in'\">"
"""A name that becomes an element where a page takes data for markup."""


class Log:
    """Events of one pipeline. `rows` has them in order; `every`: the time from one update to the next."""

    def __init__(self, pipeline: str = "shop", *, every: timedelta = timedelta(hours=6)) -> None:
        self.pipeline, self.every = pipeline, every
        self.rows: list[Row] = []
        self.updates: list[LoggedUpdate] = []

    def update(self, *, cause: str = "USER_ACTION") -> LoggedUpdate:
        made = LoggedUpdate(self, len(self.updates), cause)
        self.updates.append(made)
        return made


class LoggedUpdate:
    """One update whose events are made by hand; moments are seconds from its start."""

    def __init__(self, log: Log, number: int, cause: str) -> None:
        self._log, self._sequence = log, 0
        self.id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{log.pipeline} {number}"))
        self.began = BEGAN + number * log.every
        self.emit("create_update", {"cause": cause, "full_refresh_selection": []})
        self.state("RUNNING", 0.5)

    def emit(self, kind: str, body: Mapping[str, Any], message: str = "", *, at: float = 0, level: str = "INFO", **more: Any) -> Row:
        """One event; `more`: `dataset`, `sink`, `flow`, `error` (class name, text)."""
        self._sequence += 1
        origin = {"pipeline_id": self._log.pipeline, "pipeline_name": self._log.pipeline, "update_id": self.id}
        for key in ("dataset", "sink", "flow"):
            if more.get(key):
                origin[f"{key}_name"] = more[key]
        failed = more.get("error")
        row = {
            "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.id} {self._sequence}")),
            "sequence": self._sequence,
            "timestamp": (self.began + timedelta(seconds=at)).isoformat().replace("+00:00", "Z"),
            "event_type": kind,
            "level": level,
            "message": message or f"{kind}.",
            "maturity_level": "STABLE",
            "origin": origin,
            "details": {kind: dict(body)},
            "error": failed and {"fatal": True, "exceptions": [{"class_name": failed[0], "message": failed[1], "stack": []}]},
        }
        self._log.rows.append(row)
        return row

    def state(self, state: str, at: float = 0) -> None:
        level = "ERROR" if state == "FAILED" else "INFO"
        self.emit("update_progress", {"state": state}, f"Update {self.id[:6]} is {state}.", at=at, level=level)

    def define(
        self,
        name: str,
        *,
        reads: Sequence[str] = (),
        rules: Mapping[str, tuple[str, str]] | None = None,
        kind: str = "STREAMING_TABLE",
        columns: Sequence[tuple[str, str]] = (("id", "BIGINT"),),
        source: tuple[str, int] | None = None,
        comment: str = "",
        transforms: Sequence[str] = (),
        owner: str = "",
        tags: Sequence[str] = (),
        about: Mapping[str, Mapping[str, Any]] | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> None:
        """A dataset with its default flow. `rules`: name to (constraint, action); `about`: more of a rule; `comments`: of columns."""
        said = {rule: {**({"owner": owner} if owner else {}), **(about or {}).get(rule, {})} for rule in rules or {}}
        expectations = [
            {"name": rule, "constraint": text, "action": action, **said[rule]} for rule, (text, action) in (rules or {}).items()
        ]
        described = {key: value for key, value in (("comment", comment), ("owner", owner), ("tags", list(tags))) if value}
        place = {"source_code": {"file": source[0], "line": source[1]}} if source else {}
        body = {"dataset_type": kind, "num_flows": 1, **described, "expectations": expectations, **place}
        self.emit("dataset_definition", body, dataset=name)
        noted = {column: {"comment": text} for column, text in (comments or {}).items()}
        schema = [{"name": column, "data_type": text, **noted.get(column, {})} for column, text in columns]
        flow_type = "MATERIALIZED_VIEW" if kind == "MATERIALIZED_VIEW" else "APPEND"
        about = {"output_dataset": name, "input_datasets": list(reads) or None, "flow_type": flow_type, "comment": comment}
        applied = {"transforms": list(transforms)} if transforms else {}
        self.emit("flow_definition", {**about, "language": "PYTHON", "schema": schema, **place, **applied}, dataset=name, flow=name)

    def flow(
        self,
        name: str,
        start: float | None,
        end: float | None = None,
        *,
        status: str = "COMPLETED",
        rows: int = 0,
        dropped: int = 0,
        quarantined: int = 0,
        rules: Mapping[str, tuple[int, int]] | None = None,
        error: tuple[str, str] | None = None,
        why: str = "1 new file",
        samples: Mapping[str, Sequence[Mapping[str, str | None]]] | None = None,
    ) -> None:
        """One flow from QUEUED to its end. `rules`: name to (passed, failed); `start` None: it had nothing to do or was skipped.

        `samples`: by rule, rows that broke it.
        """

        def progress(state: str, at: float, message: str = "", **body: Any) -> Row:
            level = "ERROR" if state == "FAILED" else "WARN" if state == "SKIPPED" else "INFO"
            text = message or f"Flow '{name}' is {state}."
            failed = error if state == "FAILED" else None
            return self.emit("flow_progress", {"status": state, **body}, text, at=at, dataset=name, flow=name, level=level, error=failed)

        progress("QUEUED", 0.6)
        if start is not None:
            progress("STARTING", start)
            progress("RUNNING", start + 0.05, f"Flow '{name}' is RUNNING because {why}.")
        if rows or rules:
            counted = [{"name": r, "dataset": name, "passed_records": p, "failed_records": f} for r, (p, f) in (rules or {}).items()]
            quality: Row = {"dropped_records": dropped, "expectations": counted}
            kept = [(rule, row) for rule, rows_of_rule in (samples or {}).items() for row in rows_of_rule]
            if kept:
                quality["samples"] = [
                    {"name": rule, "dataset": name, "row_json": json.dumps(row), "file": "/in/a.json"} for rule, row in kept
                ]
            if quarantined:
                quality["quarantined_records"] = quarantined
            moment = end if end is not None else (start or 0) + 1
            progress("RUNNING", moment, metrics={"num_output_rows": rows}, **({"data_quality": quality} if counted else {}))
        if status != "RUNNING":
            verb = "was" if status in ("SKIPPED", "STOPPED") else "has" if status in ("COMPLETED", "FAILED") else "is"
            progress(status, end if end is not None else 1, f"Flow '{name}' {verb} {status} because {why}." if start is None else "")

    def stopped(
        self,
        name: str,
        start: float,
        end: float,
        *,
        rule: str,
        rules: Mapping[str, tuple[int, int]],
        values: Mapping[str, str | None],
        error: tuple[str, str] = ("EXPECTATION_VIOLATION", "[EXPECTATION_VIOLATION] no"),
    ) -> None:
        """A flow that the fail rule `rule` stopped. `rules`: counts of the batch that was not written; `values`: of the first such row."""
        self.emit("flow_progress", {"status": "STARTING"}, at=start, dataset=name, flow=name)
        counted = [{"name": r, "dataset": name, "passed_records": p, "failed_records": f} for r, (p, f) in rules.items()]
        first = {"dataset": name, "rule": rule, "values": dict(values)}
        quality = {"scope": "FAILED_BATCH", "dropped_records": 0, "expectations": counted, "first_violation": first}
        body, about = {"status": "FAILED", "data_quality": quality}, {"dataset": name, "flow": name}
        self.emit("flow_progress", body, f"Flow '{name}' has FAILED.", at=end, level="ERROR", error=error, **about)

    def check(self, dataset: str, name: str, success: bool | None, *, severity: str = "warning", **about: Any) -> None:
        """A result of a table check; `success` None: it was not run. `about`: `owner`, `description`, `tags`."""
        observed = {True: "0 duplicates", False: "17 duplicates", None: ""}[success]
        message = "not run: a package is missing" if success is None else f"{observed}, expected 0 duplicates"
        body = {"dataset": dataset, "table_version": 3, "name": name, "severity": severity, "success": success, **about}
        self.emit("table_check", {**body, "observed": observed, "expected": "0 duplicates", "message": message}, at=60, dataset=dataset)


SHOP: dict[str, tuple[list[str], str, dict[str, tuple[str, str]], int, float]] = {
    # name: reads, kind, rules, rows of an update, seconds
    "bronze.orders_raw": ([], "STREAMING_TABLE", {"parsed": ("_rescued_data IS NULL", "warn")}, 48_200, 9),
    "bronze.payments_raw": ([], "STREAMING_TABLE", {}, 31_050, 6),
    "bronze.customers_feed": ([], "STREAMING_TABLE", {}, 1_240, 3),
    "silver.orders": (
        ["bronze.orders_raw"],
        "STREAMING_TABLE",
        {
            "has_id": ("order_id IS NOT NULL", "drop"),
            "amount_not_negative": ("amount >= 0", "warn"),
            "known_currency": ("currency IN ('EUR', 'USD', 'GBP', 'CHF')", "drop"),
            "ordered_in_the_past": ("ordered_at <= current_timestamp()", "warn"),
        },
        47_900,
        14,
    ),
    "silver.payments": (
        ["bronze.payments_raw", "silver.orders"],
        "STREAMING_TABLE",
        {"has_order": ("order_id IS NOT NULL", "drop"), "paid_not_negative": ("paid >= 0", "fail")},
        30_900,
        11,
    ),
    "silver.customers": (["bronze.customers_feed"], "STREAMING_TABLE", {"has_email": ("email LIKE '%@%'", "warn")}, 1_180, 5),
    "silver.refunds": (["bronze.payments_raw"], "STREAMING_TABLE", {"reason_known": ("reason IS NOT NULL", "warn")}, 420, 4),
    "gold.daily_sales": (
        ["silver.orders", "silver.payments"],
        "MATERIALIZED_VIEW",
        {"sales_not_negative": ("sales >= 0", "fail")},
        365,
        7,
    ),
    "gold.customer_value": (["silver.orders", "silver.customers"], "MATERIALIZED_VIEW", {}, 1_180, 8),
    "gold.refund_rate": (["silver.orders", "silver.refunds"], "MATERIALIZED_VIEW", {"rate_below_one": ("rate <= 1", "warn")}, 52, 3),
}
SHOP_OWNERS = {"bronze": "intake@example.com", "silver": "orders@example.com", "gold": "finance@example.com"}
ABOUT_RULES: dict[str, dict[str, Any]] = {
    "known_currency": {
        "owner": "finance@example.com",
        "description": "Sales are added up in four currencies.",
        "tags": ["money"],
    },
    "paid_not_negative": {"owner": "finance@example.com", "tags": ["money", "stops"]},
}
FAILURE = """[EXPECTATION_VIOLATION] main.silver.payments: 3 rows broke expectations whose action is fail
  pipelines/silver/payments.py, line 12
  paid_not_negative: paid >= 0
  the batch was not written; the checkpoint stays before it
  Look at the rows: lakelet show payments_raw --where 'paid < 0'"""


def shop(updates: int = 14, *, seed: int = 7, fails: bool = True) -> Log:
    """The log of a shop's pipeline; in its newest update a flow failed, a file brought a column and a rule got worse."""
    log, chance = Log(), random.Random(seed)
    for number in range(updates):
        _shop_update(log, number, chance, last=number == updates - 1, fails=fails)
    return log


def _shop_update(log: Log, number: int, chance: random.Random, *, last: bool, fails: bool) -> None:
    update = log.update()
    for name, (reads, kind, rules, _, _) in SHOP.items():
        layer, _, short = name.partition(".")
        columns = [(f"{short}_id", "BIGINT"), ("amount", "DECIMAL(12,2)"), ("updated_at", "TIMESTAMP")]
        inputs = [f"main.{i}" for i in reads]
        place = (f"pipelines/{layer}/{short}.py", 12)
        update.define(
            f"main.{name}",
            reads=inputs,
            rules=rules,
            kind=kind,
            columns=columns,
            source=place,
            comment=f"{short} of the shop.",
            owner=SHOP_OWNERS[layer],
            tags=["daily"] if layer == "gold" else (),
            about=ABOUT_RULES,
            comments={"amount": "In the currency of the order."},
        )
        lineage = [{"name": c, "inputs": [{"dataset": i, "column": "amount"} for i in inputs]} for c, _ in columns[1:2]]
        if inputs:
            update.emit("column_lineage", {"flow_name": f"main.{name}", "output_dataset": f"main.{name}", "columns": lineage})
    ended: dict[str, float] = {}
    failed = {"silver.payments"} if last and fails else set()
    for name, (reads, _, rules, rows, seconds) in SHOP.items():
        start = max([ended[i] for i in reads if i in ended], default=0.7) + 0.1 + chance.random()
        end = start + seconds * (0.7 + chance.random() * 0.7)
        full = f"main.{name}"
        if name in failed:
            counts = {"has_order": (30_000, 0), "paid_not_negative": (29_997, 3)}
            error, first = ("EXPECTATION_VIOLATION", FAILURE), {"paid": "-3.0"}
            update.stopped(full, start, end, rule="paid_not_negative", rules=counts, values=first, error=error)
            continue
        if any(i in failed for i in reads):
            failed.add(name)
            update.flow(full, None, 30, status="SKIPPED", why="main.silver.payments failed")
            continue
        if name == "silver.refunds" and number % 3 == 1:
            update.flow(full, None, 2, status="IDLE", why="no file is new")
            continue
        ended[name] = end
        written = int(rows * (0.8 + chance.random() * 0.4))
        counts = {rule: (written - broken, broken) for rule in rules for broken in [_broken(rule, written, number, last, chance)]}
        dropped = sum(broken for rule, (_, broken) in counts.items() if rules[rule][1] == "drop")
        update.flow(full, start, end, rows=written, dropped=dropped, rules=counts, quarantined=dropped if name == "silver.orders" else 0)
    if last:
        added = [{"name": "gift_note", "type": "STRING"}, {"name": "channel", "type": "STRING"}]
        body = {
            "flow_name": "main.bronze.orders_raw",
            "source": "landing/orders",
            "added": added,
            "first_file": "landing/orders/0302-06.json",
        }
        update.emit("schema_change", body, at=3, dataset="main.bronze.orders_raw", flow="main.bronze.orders_raw")
        _checks(update, success=False)
    else:
        _checks(update, success=True)
    listing = {"source_path": "landing/orders", "num_files_listed": 40 + number, "num_files_new": 3}
    body = {"type": "AUTO_LOADER_LISTING", "status": "COMPLETED", "duration_ms": 4, "auto_loader_details": listing}
    update.emit("operation_progress", body, dataset="main.bronze.orders_raw", flow="main.bronze.orders_raw")
    update.state("FAILED" if failed else "COMPLETED", 62)


def _checks(update: LoggedUpdate, *, success: bool) -> None:
    checks = [
        ("order_id is unique", "critical", success, "0 duplicates" if success else "17 duplicates", "0 duplicates"),
        ("fresh", "warning", True, "2 h", "< 1 day"),
    ]
    for name, severity, held, observed, expected in checks:
        body = {"dataset": "main.silver.orders", "table_version": 3, "name": name, "severity": severity, "success": held}
        body |= {"owner": SHOP_OWNERS["silver"], "tags": ["keys"]} if severity == "critical" else {}
        message = f"{observed}, expected {expected}"
        update.emit(
            "table_check", {**body, "observed": observed, "expected": expected, "message": message}, at=60, dataset="main.silver.orders"
        )


def _broken(rule: str, rows: int, number: int, last: bool, chance: random.Random) -> int:
    share = {"parsed": 0.0004, "known_currency": 0.012, "amount_not_negative": 0.002, "has_email": 0.03, "reason_known": 0.08}.get(
        rule, 0.0
    )
    if rule == "known_currency" and last:
        share = 0.064
    if rule == "has_email" and number < 6:
        share = 0.09
    return int(rows * share * (0.6 + chance.random() * 0.8))


def site(log: Log, *, tables: Mapping[str, TableFacts] | None = None, live: bool = False, root: Path = Path("nowhere")) -> Site:
    """The documents of a log, written an hour after its last update."""
    moment = int((BEGAN + len(log.updates) * log.every).timestamp() * 1000)
    return Site(reduce_events(log.rows), tables or {}, SourceTexts(root), moment, live)


def facts(name: str, *, rows: int = 1000, held: int | None = None) -> TableFacts:
    """A table of three columns, two of its rows, with a quarantine if rows are `held`."""
    moment = int(BEGAN.timestamp() * 1000)
    columns = (("id", "bigint"), ("amount", "decimal(12,2)"), ("gift_note", "string"))
    sample = Sample(("id", "amount", "gift_note"), (("1", "12.50", None), ("2", "-3.00", "two\nlines")))
    own = ("id", "amount", "_broken_rules", "_quarantined_at", "_update_id", "_flow_name", "_source_file", "_released_by")
    broken = ("9", "1.00", '["known_currency"]', "2026-03-04T12:00:09Z", "5b2c", name, "landing/orders/0302-06.json", None)
    versions = tuple(TableVersion(n, moment + n * 1000, "STREAMING UPDATE", rows // 4) for n in (3, 2, 1, 0))
    quarantine = Sample(own, (broken, broken)) if held is not None else None
    return TableFacts(name, rows, 3, rows * 40, 4, columns, versions, sample, quarantine, held)


def shop_tables() -> dict[str, TableFacts]:
    return {
        f"main.{n}": facts(f"main.{n}", rows=rows * 12, held=3120 if n == "silver.orders" else None)
        for n, (_, _, _, rows, _) in SHOP.items()
    }


def many(datasets: int, updates: int, *, seed: int = 3, busy: float = 0.125, whole: int | None = None) -> Log:
    """A large log: layers of datasets that read two of the layer before, a rule in three of four.

    `busy`: share of the flows that have something to do; only the newest `whole` updates name the others too.
    """
    log, chance = Log("many", every=timedelta(minutes=30)), random.Random(seed)
    layers = ["bronze", "silver", "silver", "gold"]
    names = [f"main.{layers[min(3, i * 4 // datasets)]}.table_{i:03d}" for i in range(datasets)]
    reads = [
        [names[j] for j in sorted({chance.randrange(max(1, i - datasets // 4)) for _ in range(2)})] if i >= datasets // 4 else []
        for i in range(datasets)
    ]
    for number in range(updates):
        update = log.update()
        if number >= updates - 2:
            for i, name in enumerate(names):
                rules = {f"rule_{k}": (f"c{k} IS NOT NULL", "drop" if k else "warn") for k in range(i % 4)}
                update.define(name, reads=reads[i], rules=rules, columns=[(f"c{k}", "STRING") for k in range(12)])
        for i, name in enumerate(names):
            if chance.random() > busy:
                if whole is None or number >= updates - whole:
                    update.flow(name, None, 2, status="IDLE", why="no file is new")
                continue
            start, broken = 1 + 60 * i / datasets + chance.random(), chance.choice([0, 0, 0, 3, 40])
            counts = {f"rule_{k}": (1000 - broken, broken) for k in range(i % 4)}
            update.flow(name, start, start + 1 + 4 * chance.random(), rows=1000, dropped=broken if i % 4 > 1 else 0, rules=counts)
        update.state("COMPLETED", 70)
    return log


def store(storage: Path, rows: Sequence[Row]) -> None:
    """Append rows to the event log of a storage, as an update does."""
    events = []
    for row in rows:
        origin = {
            key: row["origin"].get(key) for key in ("pipeline_id", "pipeline_name", "update_id", "dataset_name", "flow_name", "sink_name")
        }
        moment = datetime.fromisoformat(row["timestamp"].replace("Z", "+00:00"))
        event = Event(
            row["event_type"], row["message"], Origin(**origin), row["details"], level=row["level"], timestamp=moment, id=row["id"]
        )
        events.append(Event(**{**vars(event), "sequence": row["sequence"]}))
    writer.append(Storage(storage).events, events)


def store_table(storage: Path, name: str, table: Any, *, kind: Kind = Kind.STREAMING_TABLE) -> None:
    """A stored dataset with rows (a pyarrow table)."""
    from deltalake import write_deltalake

    root, full = Storage(storage), TableName(*name.split("."))
    path = new_table_path(full)
    (storage / path).parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(str(storage / path), table, mode="append")
    registry = root.registry()
    known = {**registry.datasets, full.key: StoredDataset(name, kind, path)}
    root.save(StorageRegistry(registry.pipeline_id, registry.namespace, known, registry.flows, registry.last_update, registry.pipelines))
