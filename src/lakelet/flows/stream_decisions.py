"""Whether a streaming flow has something to do: what waits in each source of its query. Starts no query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from lakelet.analysis.plan_facts import StreamPlan
from lakelet.autoloader.spec import Pending, SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowRun
from lakelet.flows.positions import (
    Checkpoint,
    files_position,
    physical_filter,
    read_checkpoint,
    table_position,
    unknown_position,
    unreadable_position,
)
from lakelet.plan.decisions import Decision, SourcePosition, Strategy, stream_decision
from lakelet.storage.eventlog.states import EventType, OperationState


def decide_stream(run: FlowRun, sources: tuple[SourceSpec, ...], *, remember: bool) -> Decision:
    """Whether the flow has something to do now.

    `remember`: the flow's turn has come, so its listings become events, and versions that hold nothing for it are noted in the registry.
    """
    checkpoint = read_checkpoint(run.checkpoint())
    looked: list[tuple[SourceSpec, Pending]] = []
    positions, examined = _positions(run, checkpoint, sources, looked)
    decision = stream_decision(positions, started=checkpoint.planned >= 0, unfinished=checkpoint.unfinished)
    if decision.strategy is Strategy.SKIP and run.stored().columns is None and run.dataset.sink is None:
        decision = Decision(Strategy.STREAM, "its last update ended before the table was ready")
    if remember:
        _report_listings(run, looked)
        if examined:
            _remember_examined(run, examined)
    return decision


def _positions(
    run: FlowRun, checkpoint: Checkpoint, sources: tuple[SourceSpec, ...], looked: list[tuple[SourceSpec, Pending]]
) -> tuple[list[SourcePosition], Mapping[str, int]]:
    """Position of each source, and versions in which nothing was found; what was listed goes to `looked`."""
    stream = run.flow.stream or StreamPlan((), False)
    if checkpoint.planned < 0 or len(stream.leaves) != len(checkpoint.offsets) or not stream.is_known:
        used = [number for number in stream.files if number is not None]
        files = [_file_position(run, n, sources[n], None, looked) for n in used]
        whole = len(used) == len(stream.leaves) > 0 and checkpoint.planned < 0
        return [*files, *([] if whole else unknown_position(1))], {}
    known = run.environment.storage.registry().flow(run.dataset.name.key, run.name)
    usable = known.examined if known.filter == _filter_text(run) else {}
    found: list[SourcePosition] = []
    examined: dict[str, int] = {}
    for leaf, ((key, allowed), number, offset) in enumerate(zip(stream.leaves, stream.files, checkpoint.offsets, strict=True)):
        if key is None:
            assert number is not None
            found.append(_file_position(run, number, sources[number], offset, looked))
            continue
        dataset = run.environment.catalog.datasets[key]
        log = run.environment.memory.log(run.environment.storage.table_path(dataset.name))
        stored = run.environment.storage.registry().datasets.get(key)
        allowed = physical_filter(allowed, stored.columns if stored else None)
        position, upto = table_position(str(dataset.name), log, offset, allowed, usable.get(key, -1), feed=leaf in stream.feeds)
        found.append(position)
        if upto > usable.get(key, -1) and position.pending is False:
            examined[key] = upto
    return found, examined


def _file_position(
    run: FlowRun, number: int, spec: SourceSpec, offset: str | None, looked: list[tuple[SourceSpec, Pending]]
) -> SourcePosition:
    try:
        pending = run.environment.sources.pending(run.flow.flow, number, spec, offset)
    except LakeletError as problem:
        return unreadable_position(spec.path, problem)
    looked.append((spec, pending))
    return files_position(spec.path, pending.files, pending.bytes)


def _report_listings(run: FlowRun, looked: list[tuple[SourceSpec, Pending]]) -> None:
    """Emit an AUTO_LOADER_LISTING event for each cloudFiles source of the flow (EL-8); none if one of them could not be listed."""
    files = run.flow.stream.files if run.flow.stream else ()
    if len(looked) != sum(number is not None for number in files):
        return
    for spec, pending in looked:
        details = {"source_path": spec.path, "num_files_listed": pending.listed, "num_files_new": pending.files}
        body = {
            "type": "AUTO_LOADER_LISTING",
            "status": OperationState.COMPLETED,
            "duration_ms": round(pending.seconds * 1000),
            "auto_loader_details": details,
        }
        text = f"Flow '{run.name}' listed {pending.listed} file(s) of {spec.path}, {pending.files} of them new."
        run.environment.reporter.emit(EventType.OPERATION_PROGRESS, text, body, dataset=str(run.dataset.name), flow=run.name)


def _filter_text(run: FlowRun) -> str:
    """Return what `examined` depends on: the filters of the tables and the checkpoint's generation. A new checkpoint invalidates it."""
    leaves = run.flow.stream.leaves if run.flow.stream else ()
    return json.dumps([run.generation(), *([key, sorted((c, sorted(v)) for c, v in allowed.items())] for key, allowed in leaves)])


def _remember_examined(run: FlowRun, examined: Mapping[str, int]) -> None:
    known = run.environment.storage.registry().flow(run.dataset.name.key, run.name)
    run.environment.storage.note_flow(replace(known, filter=_filter_text(run), examined=dict(examined)))


__all__ = ["decide_stream"]
