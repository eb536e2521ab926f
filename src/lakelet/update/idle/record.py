"""The record of an idle update: the facts that it depends on, and the events that it would emit. One file in the storage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lakelet.base import VERSION
from lakelet.files.durable import write_atomically
from lakelet.language.model import Kind
from lakelet.plan.decisions import PlanStep, Strategy
from lakelet.plan.refreshes import NO_OP
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import EventType, Level
from lakelet.storage.root import Storage
from lakelet.update.idle.facts import Fact, FactKind

FORMAT = 2
FILE = "idle.json"
PLACEHOLDER_ID = "5ca1ab1e-0000-4000-8000-000000000000"
"""Placeholder of the update's id in the events of a record."""
_NAMING = frozenset({EventType.UPDATE_PROGRESS, EventType.CREATE_UPDATE})
"""Types of events whose messages contain the first characters of the update's id."""
_SHORT = 6


@dataclass(frozen=True)
class IdleRecord:
    """Record of an update with nothing to do.

    Attributes:
        key: key of the digests among the facts.
        facts: everything that the result depends on.
        events: the events of the update, with `PLACEHOLDER_ID` for its id.
        steps: for each flow, that it is skipped, and why.
        checked: the valid pipeline as JSON values (`Checked.from_json`); None where a secret is in one of its texts.
    """

    key: bytes
    facts: tuple[Fact, ...]
    events: tuple[Event, ...]
    steps: tuple[PlanStep, ...]
    checked: Mapping[str, Any] | None

    def to_json(self) -> str:
        return json.dumps(
            {
                "format": FORMAT,
                "lakelet": VERSION,
                "key": self.key.hex(),
                "facts": [[fact.kind.name, fact.name, fact.value] for fact in self.facts],
                "events": [_stored_event(event) for event in self.events],
                "steps": [_stored_step(step) for step in self.steps],
                "checked": self.checked,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> IdleRecord | None:
        """Return the record, or None for the text of another version of Lakelet and for any other text."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT or data["lakelet"] != VERSION:
                return None
            return cls(
                bytes.fromhex(data["key"]),
                tuple(Fact(FactKind[kind], name, value) for kind, name, value in data["facts"]),
                tuple(map(_event, data["events"])),
                tuple(map(_step, data["steps"])),
                data["checked"],
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def record_file(storage: Storage) -> Path | None:
    """Return the path of the record; None for a storage that is not on this machine, which has none."""
    found = storage.system / FILE
    return found if isinstance(found, Path) else None


def load_record(storage: Storage) -> IdleRecord | None:
    """Return the stored record; None where there is none that can be used."""
    file = record_file(storage)
    try:
        return IdleRecord.from_json(file.read_text(encoding="utf-8")) if file is not None else None
    except (OSError, ValueError):
        return None


def save_record(storage: Storage, text: str) -> None:
    """Replace the stored record. Only for the process that holds the lease. Raises STORAGE_FAILED."""
    file = record_file(storage)
    if file is not None:
        write_atomically(file, text)


def remove_record(storage: Storage) -> None:
    """Remove the stored record if there is one."""
    file = record_file(storage)
    if file is not None:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def stale_reason_json(reason: str) -> str:
    """Return the text that is stored in place of a record: the reason why the next update must start Spark."""
    return json.dumps({"format": FORMAT, "lakelet": VERSION, "doubt": reason})


def for_update(event: Event, update_id: str, seconds: Mapping[str, float]) -> Event:
    """Return an event of a record as an event of an update that runs now. `seconds`: duration of listing each folder, by path."""
    message = event.message
    if event.event_type in _NAMING:
        message = message.replace(PLACEHOLDER_ID[:_SHORT], update_id[:_SHORT])
    found = Event(event.event_type, message, replace(event.origin, update_id=update_id), event.details, level=event.level)
    listed = event.body.get("auto_loader_details") if event.event_type is EventType.OPERATION_PROGRESS else None
    if not listed:
        return found
    source = str(listed["source_path"])
    trees = [path for path in seconds if source == path or source.startswith(path.rstrip("/") + "/")]
    taken = seconds[max(trees, key=len)] if trees else 0.0
    return replace(found, details={event.event_type: {**event.body, "duration_ms": round(taken * 1000)}})


def names_placeholder_id(events: Sequence[Event]) -> bool:
    """Return whether the placeholder occurs where `for_update` does not replace it; such events cannot be recorded."""
    return any(
        PLACEHOLDER_ID in event.details_json()
        or PLACEHOLDER_ID in event.message
        or (event.event_type not in _NAMING and PLACEHOLDER_ID[:_SHORT] in event.message)
        for event in events
    )


def _stored_event(event: Event) -> Mapping[str, Any]:
    origin = {name: value for name, value in vars(event.origin).items() if value is not None}
    return {"type": event.event_type.value, "message": event.message, "origin": origin, "body": event.body, "level": event.level.value}


def _event(stored: Mapping[str, Any]) -> Event:
    kind = EventType(stored["type"])
    moment = datetime.fromtimestamp(0, timezone.utc)  # `for_update` makes events with the current time
    return Event(
        kind, stored["message"], Origin(**stored["origin"]), {kind: stored["body"]}, level=Level(stored["level"]), timestamp=moment
    )


def _stored_step(step: PlanStep) -> Mapping[str, Any]:
    """Return a step without the facts about a view. Of its refresh it says whether there is one: it is skipped."""
    plain = {name: value for name, value in vars(step).items() if name != "view"}
    return {**plain, "kind": step.kind.value, "strategy": step.strategy.value, "refresh": step.refresh is not None}


def _step(stored: Mapping[str, Any]) -> PlanStep:
    lists = {name: tuple(stored[name]) for name in ("inputs", "transforms")}
    words = {"kind": Kind(stored["kind"]), "strategy": Strategy(stored["strategy"]), "refresh": NO_OP if stored["refresh"] else None}
    return PlanStep(**{**stored, **lists, **words})
