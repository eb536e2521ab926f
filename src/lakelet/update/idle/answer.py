"""Runs an update that has nothing to do without Java: same events, same result (IF-3). Other commands show the same record (IF-11)."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import PipelineConfig
from lakelet.plan.checked import Checked
from lakelet.plan.decisions import PlanStep
from lakelet.plan.selection import EVERYTHING, Request
from lakelet.storage.eventlog.states import UpdateState
from lakelet.storage.root import LastUpdate, Storage
from lakelet.update.idle.facts import Here, unchanged
from lakelet.update.idle.record import IdleRecord, for_update, load_record
from lakelet.update.result import UpdateResult

if TYPE_CHECKING:
    from lakelet.storage.eventlog.writer import Listener

SWITCH = "LAKELET_IDLE_ANSWER"
"""Environment variable; `off` makes every update start Spark."""


def is_asked(config: PipelineConfig, request: Request) -> bool:
    """Return whether such an update may run without Spark: one of the whole pipeline, triggered, with its storage on this machine."""
    wanted = request == EVERYTHING and not config.continuous and not config.take_over
    return wanted and isinstance(config.storage, Path) and os.environ.get(SWITCH, "").lower() != "off"


class KnownPipeline(NamedTuple):
    """A valid pipeline that has nothing to do. `steps`: for each flow, that it is skipped, and why."""

    checked: Checked
    steps: tuple[PlanStep, ...]


def known_pipeline(config: PipelineConfig) -> KnownPipeline | None:
    """Return what the last update recorded, if nothing has changed since then; None where that is not certain, or not recorded."""
    found = _valid_record(config)
    if found is None or found.record.checked is None:
        return None
    return KnownPipeline(Checked.from_json(found.record.checked), found.record.steps)


class _ValidRecord(NamedTuple):
    """A record, and the process and machine for which nothing of it has changed."""

    record: IdleRecord
    here: Here


def _valid_record(config: PipelineConfig) -> _ValidRecord | None:
    """Return the stored record if nothing has changed since it was made; None where there is none, or that is not certain."""
    record = load_record(Storage(config.storage))
    if record is None:
        return None
    here = Here(config, record.key, dict(os.environ))
    return _ValidRecord(record, here) if unchanged(record.facts, here) is None else None


def idle_answer(config: PipelineConfig, listeners: Sequence[Listener]) -> UpdateResult | None:
    """Run an update that has nothing to do; return None, with nothing written and no event emitted, where that is not certain.

    Raises LAKELET_STORAGE_BUSY if another update holds the lease, and STORAGE_FAILED or EVENT_LOG_FAILED for a log that cannot be written.
    """
    started, storage, found = time.monotonic(), Storage(config.storage), _valid_record(config)
    if found is None:
        return None
    record, here = found
    update_id = str(uuid.uuid4())
    with storage.lease(update_id):
        if unchanged(record.facts, here) is not None:  # another update has ended in between
            return None
        errors = _emitted(record, here, storage, update_id, listeners)
    state = UpdateState.FAILED if errors else UpdateState.COMPLETED
    return UpdateResult(update_id, state, errors, time.monotonic() - started, record.steps)


def _emitted(record: IdleRecord, here: Here, storage: Storage, update_id: str, listeners: Sequence[Listener]) -> tuple[LakeletError, ...]:
    """Register the update and write its events, in the order of any update, so that a crash leaves the same states; return its errors."""
    from lakelet.storage.eventlog.writer import EventWriter

    registry, now = storage.reload(), datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    events = EventWriter(storage.events, listeners=listeners)
    events.start()
    storage.save(replace(registry, last_update=LastUpdate(update_id, now, clean=False)))
    for event in record.events:
        events.emit(for_update(event, update_id, here.seconds))
    try:
        events.close()
    except LakeletError as failure:
        return (failure,)
    storage.save(replace(registry, last_update=LastUpdate(update_id, now, clean=True)))
    return ()


__all__ = ["SWITCH", "KnownPipeline", "idle_answer", "is_asked", "known_pipeline"]
