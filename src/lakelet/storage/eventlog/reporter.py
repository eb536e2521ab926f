"""The one way by which the engine reports what happens in an update: `Reporter.emit`. No Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import EventType, Level
from lakelet.storage.root import Storage

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
        """Stays the same over updates, is new after a full refresh or a reset of the checkpoint (EL-5)."""
        if dataset is None or flow is None:
            return None
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.pipeline_id}|{flow}|{self.storage.reset_id(dataset.lower(), flow)}"))
