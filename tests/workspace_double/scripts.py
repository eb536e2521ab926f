"""What an update does: scripts that tests write, and the stages that they become.

A script is a list of items. `dataset(...)` is reported while tables are set up, `flow(...)` and `failing_flow(...)` while the update runs,
one stage each; `event(...)` is any other event, reported with the flow before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ACTIVE = ("CREATED", "QUEUED", "WAITING_FOR_RESOURCES", "INITIALIZING", "RESETTING", "SETTING_UP_TABLES", "RUNNING", "STOPPING")


@dataclass(frozen=True)
class Event:
    """An event before it has an id, a time and an update. `dataset`, `flow`: what stands in its `origin`."""

    type: str
    message: str
    details: Mapping[str, Any]
    level: str = "INFO"
    dataset: str | None = None
    flow: str | None = None
    error: Mapping[str, Any] | None = None
    maturity: str = "STABLE"


@dataclass(frozen=True)
class Item:
    """One item of a script. `name`: the dataset that it is about, None for none. `fails`: whether the update fails with it."""

    kind: str
    events: tuple[Event, ...]
    name: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class Stage:
    """What happens at one step of an update: its state from then on, and the events that are told."""

    state: str
    events: tuple[Event, ...] = ()
    failure: str | None = None


def dataset(name: str, type: str = "STREAMING_TABLE", *, inputs: Sequence[str] = (), flow: str | None = None, **fields: Any) -> Item:
    """A dataset and its flow as they are defined (facts 4: `dataset_definition`, `flow_definition`).

    Args:
        type: `STREAMING_TABLE`, `MATERIALIZED_VIEW` or `VIEW`.
        inputs: the datasets that its flow reads; told as objects with a `name`, as public readers of this REST answer expect them.
        flow: the flow's name, the dataset's own one by default.
        fields: further fields of `dataset_definition`: `schema`, `expectations`, `comment` …
    """
    flow_name = flow or name
    kind = "APPEND" if type == "STREAMING_TABLE" else "COMPLETE" if type == "MATERIALIZED_VIEW" else "VIEW"
    definition = {"dataset_type": type, "num_flows": 1, **fields}
    body = {"output_dataset": name, "input_datasets": [{"name": each} for each in inputs], "flow_type": kind}
    return Item(
        "definition",
        (
            Event("dataset_definition", f"Dataset '{name}' defined as {type}.", {"dataset_definition": definition}, dataset=name),
            Event("flow_definition", f"Flow '{flow_name}' defined as {kind}.", {"flow_definition": body}, flow=flow_name),
        ),
        name,
    )


def flow(
    name: str,
    *,
    rows: int = 0,
    dropped: int | None = None,
    expectations: Mapping[str, tuple[int, int]] | None = None,
    dataset: str | None = None,
    metrics: Mapping[str, int] | None = None,
    type: str = "STREAMING_TABLE",
) -> Item:
    """A flow that completes (facts 4: `flow_progress`).

    The numbers of a streaming table are in an event of level METRICS after each micro-batch, those of a materialized view in the event of
    its end, of level INFO: public queries of event logs read expectations from `COMPLETED` events with this schema.

    Args:
        rows: `num_output_rows`.
        dropped: `dropped_records`; the sum of the failed ones by default where there are expectations.
        expectations: name to (passed, failed) records.
        dataset: the dataset of its expectations, the flow's own name by default.
        metrics: further metrics: `num_upserted_rows`, `backlog_bytes` …
        type: `STREAMING_TABLE` or `MATERIALIZED_VIEW`.
    """
    target = dataset or name
    told: dict[str, Any] = {
        "status": "COMPLETED" if type == "MATERIALIZED_VIEW" else "RUNNING",
        "metrics": {"num_output_rows": rows, **(metrics or {})},
    }
    if expectations or dropped is not None:
        rules = [
            {"name": rule, "dataset": target, "passed_records": p, "failed_records": f} for rule, (p, f) in (expectations or {}).items()
        ]
        lost = sum(failed for _, failed in (expectations or {}).values()) if dropped is None else dropped
        told["data_quality"] = {"dropped_records": lost, "expectations": rules}
    events = [_status(name, target, "STARTING"), _status(name, target, "RUNNING")]
    if type == "MATERIALIZED_VIEW":
        events.append(Event("flow_progress", f"Flow '{name}' has COMPLETED.", {"flow_progress": told}, "INFO", target, name))
    else:
        measured = f"Completed a streaming update of '{target}'."
        events.append(Event("flow_progress", measured, {"flow_progress": told}, "METRICS", target, name))
        events.append(_status(name, target, "COMPLETED"))
    return Item("flow", tuple(events), target)


def failing_flow(name: str, message: str, *, error_class: str = "org.apache.spark.sql.streaming.StreamingQueryException") -> Item:
    """A flow that fails, and the update with it."""
    error = {"fatal": True, "exceptions": [{"class_name": error_class, "message": message, "stack": []}]}
    failed = Event("flow_progress", f"Flow '{name}' has FAILED.", {"flow_progress": {"status": "FAILED"}}, "ERROR", name, name, error)
    return Item("flow", (_status(name, name, "STARTING"), _status(name, name, "RUNNING"), failed), name, f"{name} failed. {message}")


def event(
    type: str, message: str = "", details: Mapping[str, Any] | None = None, *, level: str = "INFO", dataset: str | None = None
) -> Item:
    """Any other event; `details` are those of its type: `{"planning_information": …}` is written as `{…}`."""
    return Item("event", (Event(type, message, {type: dict(details or {})}, level, dataset),), dataset)


def _status(name: str, target: str, status: str) -> Event:
    verb = "has" if status == "COMPLETED" else "is"
    return Event("flow_progress", f"Flow '{name}' {verb} {status}.", {"flow_progress": {"status": status}}, "INFO", target, name)


DEFAULT = (
    dataset("events"),
    dataset("events_by_day", "MATERIALIZED_VIEW", inputs=["events"]),
    flow("events", rows=10, expectations={"valid_id": (9, 1)}),
    flow("events_by_day", rows=3, type="MATERIALIZED_VIEW"),
)


def stages(script: Iterable[Item], selection: Sequence[str], *, reset: bool, validate_only: bool, continuous: bool) -> list[Stage]:
    """The stages of an update. A selection leaves the flows of other datasets out (EXCLUDED); an unknown name in it fails the update."""
    items = list(script)
    known = {item.name for item in items if item.name}
    head = [Stage("WAITING_FOR_RESOURCES"), Stage("INITIALIZING")]
    unknown = [name for name in selection if not any(_is(name, each) for each in known)]
    if unknown:
        return [*head, Stage("FAILED", failure=f"Unable to resolve the selected tables: {', '.join(unknown)}.")]
    if reset:
        head.append(Stage("RESETTING"))
    head.append(Stage("SETTING_UP_TABLES", tuple(each for item in items if item.kind == "definition" for each in item.events)))
    if validate_only:
        return [*head, Stage("COMPLETED")]
    head.append(Stage("RUNNING"))
    failures = []
    for item in [item for item in items if item.kind != "definition"]:
        if item.kind == "flow" and selection and not any(_is(name, item.name or "") for name in selection):
            name = item.name or ""
            head.append(Stage("RUNNING", (_status(name, name, "EXCLUDED"),)))
            continue
        head.append(Stage("RUNNING", item.events))
        failures += [item.fails] if item.fails else []
    if failures:
        return [*head, Stage("FAILED", failure=failures[0])]
    return head if continuous else [*head, Stage("COMPLETED")]


def _is(asked: str, name: str) -> bool:
    """Names in events are qualified or not (facts 4), so the last parts are compared."""
    shorter, longer = sorted((asked.split("."), name.split(".")), key=len)
    return longer[-len(shorter) :] == shorter
