"""Events as values, and the reporter by which the engine emits them. `writer` writes them, the console shows them. No Spark.

Names and shapes are those of Databricks (EL-1); `details` always has exactly one key, the event type.
"""

from __future__ import annotations

import json
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.redaction import redacted, redacted_values
from lakelet.storage.eventlog.states import EventType, Level, Maturity

if TYPE_CHECKING:
    from lakelet.storage.root import Storage


@dataclass(frozen=True)
class Origin:
    """Which pipeline, update, dataset, flow and micro-batch an event is about. Maintenance belongs to no update; it has its own id."""

    pipeline_id: str
    pipeline_name: str
    update_id: str | None
    dataset_name: str | None = None
    flow_name: str | None = None
    flow_id: str | None = None
    batch_id: int | None = None
    sink_name: str | None = None
    maintenance_id: str | None = None

    @property
    def target_name(self) -> str | None:
        """The dataset or sink."""
        return self.dataset_name or self.sink_name


@dataclass(frozen=True)
class Event:
    """One row of the event log.

    Secrets are blotted out of message and details.
    `id` is random, or derived from (flow, reset epoch, batch) for the metrics of a micro-batch, so that a repeated write is recognised.
    """

    event_type: EventType
    message: str
    origin: Origin
    details: Mapping[str, Any]
    level: Level = Level.INFO
    error: BaseException | None = None
    timestamp: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    sequence: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_type", EventType(self.event_type))
        object.__setattr__(self, "level", Level(self.level))
        object.__setattr__(self, "message", redacted(self.message))
        object.__setattr__(self, "details", redacted_values(self.details))

    @property
    def maturity(self) -> Maturity:
        """STABLE, or EVOLVING for types of our own, which Databricks does not have (EL-3)."""
        return Maturity.EVOLVING if self.event_type.is_of_lakelet else Maturity.STABLE

    @property
    def body(self) -> Mapping[str, Any]:
        """The content of `details` below its one key."""
        body: Mapping[str, Any] = self.details[self.event_type]
        return body

    def as_json(self) -> dict[str, Any]:
        """The event as plain JSON values, the form of `lakelet run --json` and `lakelet events --json`; `details` stays an object."""
        return {
            "id": self.id,
            "sequence": self.sequence,
            "timestamp": self.timestamp.isoformat().replace("+00:00", "Z"),
            "event_type": self.event_type.value,
            "level": self.level.value,
            "message": self.message,
            "maturity_level": self.maturity.value,
            "origin": {k: v for k, v in vars(self.origin).items() if v is not None},
            "details": dict(self.details),
            "error": error_struct(self.error),
        }

    def details_json(self) -> str:
        return json.dumps(self.details, default=str, separators=(",", ":"))


def error_struct(error: BaseException | None) -> dict[str, Any] | None:
    """`{fatal, exceptions: [{class_name, message, stack}]}`: the error and its causes, outermost first (EL-4)."""
    if error is None:
        return None
    exceptions: list[dict[str, Any]] = []
    current: BaseException | None = error
    while current is not None and len(exceptions) < 10:
        name = current.code if isinstance(current, LakeletError) else f"{type(current).__module__}.{type(current).__qualname__}"
        frames = [
            {"declaring_class": None, "method_name": f.name, "file_name": f.filename, "line_number": f.lineno}
            for f in traceback.extract_tb(current.__traceback__)[-20:]
        ]
        exceptions.append({"class_name": name, "message": redacted(str(current)), "stack": frames})
        current = current.__cause__
    return {"fatal": True, "exceptions": exceptions}


Write = Callable[[Event], object]
"""Takes an event on its way to the log: `EventWriter.emit`, or something else that keeps it."""


@dataclass(frozen=True)
class Reporter:
    """Reports the events of one update.

    `sinks`: keys of the datasets that are sinks; an event names them as such. `write`: where the events go.
    """

    pipeline_id: str
    pipeline_name: str
    update_id: str
    storage: Storage
    sinks: frozenset[str]
    write: Write

    def emit(
        self,
        event_type: EventType,
        message: str,
        body: Mapping[str, Any],
        *,
        dataset: str | None = None,
        flow: str | None = None,
        level: Level = Level.INFO,
        error: BaseException | None = None,
        id: str | None = None,
        batch_id: int | None = None,
    ) -> None:
        """Report one event. `body`: the content of its details; `id`: one derived from what is reported, so that it is reported once."""
        event = Event(event_type, message, self._origin(dataset, flow, batch_id), {event_type: dict(body)}, level=level, error=error)
        self.write(replace(event, id=id) if id else event)

    def notice(self, message: str, *, dataset: str | None = None, flow: str | None = None, level: Level = Level.WARN, **body: Any) -> None:
        """Emit a notice to the user; `body`: `text`, the message itself where it is not given, and more."""
        self.emit(EventType.NOTICE, message, {"text": message, **body}, dataset=dataset, flow=flow, level=level)

    def of_update(self, update_id: str, write: Write) -> Reporter:
        """Return a reporter of events of another update of this pipeline."""
        return replace(self, update_id=update_id, write=write)

    def _origin(self, dataset: str | None, flow: str | None, batch_id: int | None) -> Origin:
        sink = dataset if dataset is not None and dataset.lower() in self.sinks else None
        flow_id = self._flow_id(dataset, flow)
        return Origin(self.pipeline_id, self.pipeline_name, self.update_id, None if sink else dataset, flow, flow_id, batch_id, sink)

    def _flow_id(self, dataset: str | None, flow: str | None) -> str | None:
        """Stays the same over updates, is new after a full refresh, a reset of the checkpoint or a full recompute of a view (EL-5)."""
        if dataset is None or flow is None:
            return None
        key = dataset.lower()
        recomputed = self.storage.registry().flow(key, flow).recomputed
        state = self.storage.reset_id(key, flow) + (f"c{recomputed}" if recomputed else "")
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.pipeline_id}|{flow}|{state}"))
