"""Whether a streaming flow has something to do: what waits in each source of its query. Starts no query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from lakelet.autoloader.spec import SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowTask
from lakelet.flows.positions import (
    Checkpoint,
    files_position,
    physical_filter,
    read_checkpoint,
    table_position,
    unknown_position,
    unreadable_position,
)
from lakelet.plan.decisions import Decision, Listing, SourcePosition, Strategy, stream_decision
from lakelet.storage.eventlog.states import EventType, OperationState


def decide_stream(task: FlowTask) -> Decision:
    """Whether the flow has something to do now."""
    checkpoint = read_checkpoint(task.checkpoint())
    listings: list[Listing] = []
    positions, examined = _positions(task, checkpoint, listings)
    decision = stream_decision(positions, started=checkpoint.planned >= 0, unfinished=checkpoint.unfinished)
    if decision.strategy is Strategy.SKIP and task.stored().columns is None and task.dataset.sink is None:
        decision = Decision(Strategy.STREAM, "its last update ended before the table was ready")
    complete = len(listings) == sum(number is not None for number in task.flow.stream.files)
    return replace(decision, listings=tuple(listings) if complete else (), examined=examined)


def note_decision(task: FlowTask, decision: Decision) -> None:
    """A flow's turn has come: its listings become events, and versions that hold nothing for it are noted in the registry."""
    for listing in decision.listings:
        _report_listing(task, listing)
    if decision.examined:
        known = task.environment.storage.registry().flow(task.target, task.name)
        task.environment.storage.note_flow(replace(known, filter=_filter_text(task), examined=dict(decision.examined)))


def _positions(task: FlowTask, checkpoint: Checkpoint, listings: list[Listing]) -> tuple[list[SourcePosition], Mapping[str, int]]:
    """Position of each source, and versions in which nothing was found; what was listed goes to `listings`."""
    stream, sources = task.flow.stream, task.flow.sources
    if checkpoint.planned < 0 or len(stream.leaves) != len(checkpoint.offsets) or not stream.is_known:
        used = [number for number in stream.files if number is not None]
        files = [_file_position(task, n, sources[n], None, listings) for n in used]
        whole = len(used) == len(stream.leaves) > 0 and checkpoint.planned < 0
        return [*files, *([] if whole else unknown_position(1))], {}
    known = task.environment.storage.registry().flow(task.dataset.name.key, task.name)
    usable = known.examined if known.filter == _filter_text(task) else {}
    found: list[SourcePosition] = []
    examined: dict[str, int] = {}
    for leaf, ((key, allowed), number, offset) in enumerate(zip(stream.leaves, stream.files, checkpoint.offsets, strict=True)):
        if key is None:
            assert number is not None
            found.append(_file_position(task, number, sources[number], offset, listings))
            continue
        dataset = task.environment.catalog.datasets[key]
        log = task.environment.memory.log(task.environment.storage.table_path(dataset.name))
        stored = task.environment.storage.registry().datasets.get(key)
        allowed = physical_filter(allowed, stored.columns if stored else None)
        position, upto = table_position(str(dataset.name), log, offset, allowed, usable.get(key, -1), feed=leaf in stream.feeds)
        found.append(position)
        if upto > usable.get(key, -1) and position.pending is False:
            examined[key] = upto
    return found, examined


def _file_position(task: FlowTask, number: int, spec: SourceSpec, offset: str | None, listings: list[Listing]) -> SourcePosition:
    try:
        pending = task.environment.sources.pending(task.declared, number, spec, offset)
    except LakeletError as problem:
        return unreadable_position(spec.path, problem)
    listings.append(Listing(spec.path, pending.listed, pending.files, pending.seconds))
    return files_position(spec.path, pending.files, pending.bytes)


def _report_listing(task: FlowTask, listing: Listing) -> None:
    """Emit the AUTO_LOADER_LISTING event of a cloudFiles source (EL-8)."""
    body = {
        "type": "AUTO_LOADER_LISTING",
        "status": OperationState.COMPLETED,
        "duration_ms": round(listing.seconds * 1000),
        "auto_loader_details": {"source_path": listing.path, "num_files_listed": listing.files, "num_files_new": listing.new},
    }
    text = f"Flow '{task.name}' listed {listing.files} file(s) of {listing.path}, {listing.new} of them new."
    task.environment.reporter.emit(EventType.OPERATION_PROGRESS, text, body, dataset=str(task.dataset.name), flow=task.name)


def _filter_text(task: FlowTask) -> str:
    """Return what `examined` depends on: the filters of the tables and the checkpoint's generation. A new checkpoint invalidates it."""
    leaves = task.flow.stream.leaves
    return json.dumps([task.generation(), *([key, sorted((c, sorted(v)) for c, v in allowed.items())] for key, allowed in leaves)])


__all__ = ["decide_stream", "note_decision"]
