"""Whether a streaming flow has something to do: what is pending in each source of its query. Starts no query.

In: a task, its checkpoint, the logs of its sources. Out: a `Decision` with a `SourcePosition` for each source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelet.analysis.file_sources import SOURCE_MOVED
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.flows.checkpoints import Checkpoint, read_checkpoint
from lakelet.flows.context import FlowTask
from lakelet.flows.planning_events import note_recompute
from lakelet.flows.topics import topics_position
from lakelet.plan.decisions import UNKNOWN_SOURCE, Decision, SourceListing, SourcePosition, Strategy, stream_decision
from lakelet.storage.eventlog.states import EventType, OperationState


def decide_stream(task: FlowTask) -> Decision:
    """Whether the flow has something to do now."""
    checkpoint = read_checkpoint(task.checkpoint())
    listings: list[SourceListing] = []
    positions, examined = _positions(task, checkpoint, listings)
    decision = stream_decision(positions, started=checkpoint.planned >= 0, unfinished=checkpoint.unfinished)
    if decision.strategy is Strategy.SKIP and task.stored().columns is None and task.dataset.sink is None:
        decision = Decision(Strategy.STREAM, "its last update ended before the table was ready")
    complete = len(listings) == sum(number is not None for number in task.flow.stream.files)
    return replace(decision, listings=tuple(listings) if complete else (), examined=examined)


def note_decision(task: FlowTask, decision: Decision) -> None:
    """A flow's turn has come: its listings become events, and versions that hold nothing for it are noted in the registry.

    So is that a materialized view is computed as a whole again, from which on its flow has another id (EL-5).
    """
    for listing in decision.listings:
        _report_listing(task, listing)
    if decision.examined:
        known = task.environment.storage.registry().flow(task.target, task.name)
        task.environment.storage.note_flow(replace(known, filter=_filter_text(task), examined=dict(decision.examined)))
    if decision.strategy is Strategy.FULL:
        note_recompute(task)


def _positions(task: FlowTask, checkpoint: Checkpoint, listings: list[SourceListing]) -> tuple[list[SourcePosition], Mapping[str, int]]:
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
        if key is None and (options := stream.topics[leaf]) is not None:
            found.append(topics_position(task, leaf, options, offset))
            continue
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


def _file_position(task: FlowTask, number: int, spec: SourceSpec, offset: str | None, listings: list[SourceListing]) -> SourcePosition:
    try:
        pending = task.environment.sources.pending(task.declared, number, spec, offset)
    except LakeletError as problem:
        return unreadable_position(spec.path, problem)
    listings.append(SourceListing(spec.path, pending.listed, pending.files, pending.seconds))
    return files_position(spec.path, pending.files, pending.bytes)


def _report_listing(task: FlowTask, listing: SourceListing) -> None:
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
    """Return what `examined` depends on: the filters of the tables and the checkpoint's name. A new checkpoint invalidates it."""
    leaves = task.flow.stream.leaves
    return json.dumps([task.checkpoint_name(), *([key, sorted((c, sorted(v)) for c, v in allowed.items())] for key, allowed in leaves)])


def table_position(
    name: str, log: TableLog, offset: str | None, allowed: Mapping[str, frozenset[str]], examined: int, *, feed: bool = False
) -> tuple[SourcePosition, int]:
    """Whether a Delta source has rows for a flow beyond its offset, and the version up to which that is known.

    `allowed`: the flow's filter on partition values. `examined`: version up to which an earlier look found nothing. `feed`: the flow reads
    the table's change feed.
    """
    latest = log.version()
    if latest < 0:
        return SourcePosition(name, True, f"{name} does not exist yet"), examined
    position = json.loads(offset) if offset else None
    read = None if position is None else _read_version(log, position, feed=feed)
    if position is None or read is None:
        return SourcePosition(name, True, f"{name} was read in part"), examined
    known = log.table_id()
    if known is not None and position.get("reservoirId", known) != known:
        return SourcePosition(name, True, f"{name} is not the table it has read so far"), -1
    after = max(read, examined)
    if latest <= after:
        return SourcePosition(name, False, f"{name} has no new version", 0), after
    commits = log.commits(after, latest)
    if commits is None or any(c.changed for c in commits):
        return SourcePosition(name, True, f"{name} changed"), examined
    files = [values for c in commits for values in c.added]
    matching = sum(_may_match(values, allowed) for values in files)
    if matching:
        return SourcePosition(name, True, f"{name} has {matching} new file(s)", matching), examined
    text = f"no new file of {name} can match its filter" if files else f"{name} has no new rows"
    return SourcePosition(name, False, text, 0), latest


def _read_version(log: TableLog, position: Mapping[str, Any], *, feed: bool) -> int | None:
    """Return the version up to which everything was read according to an offset; None if it stopped inside a version.

    Offset (v, -1): everything before version v. Offset (v, i): files 0 to i of version v too. A stream of changes that has read all files
    of change data of a version stays there; after any other version it has the offset (v + 1, -1).
    """
    index = position.get("index")
    if position.get("isStartingVersion") or index is None:  # also the offset of another source, which has no version
        return None
    version = int(position["reservoirVersion"])
    if index == -1:
        return version - 1
    commit = log.commit(version) if feed else None
    return version if commit is not None and commit.change_files == index + 1 else None


def physical_filter(allowed: Mapping[str, frozenset[str]], columns: str | None) -> Mapping[str, frozenset[str]]:
    """The filter with the names that partition values have in the log: other ones where the table maps its columns (Delta column mapping).

    `columns`: Spark schema JSON of the stored table, or None.
    """
    if not columns or "delta.columnMapping.physicalName" not in columns:
        return allowed
    fields = json.loads(columns)["fields"]
    physical = {f["name"].lower(): f["metadata"].get("delta.columnMapping.physicalName", f["name"]).lower() for f in fields}
    return {physical.get(column, column): values for column, values in allowed.items()}


def _may_match(values: Mapping[str, str | None], allowed: Mapping[str, frozenset[str]]) -> bool:
    """Whether a file with these partition values can hold rows that pass the filter."""
    lower = {k.lower(): v for k, v in values.items()}
    return all(column not in lower or lower[column] in wanted for column, wanted in allowed.items())


def files_position(path: str, pending: int, size: int) -> SourcePosition:
    """The position of a cloudFiles source with `pending` new files."""
    if pending:
        return SourcePosition(path, True, f"{path} has {pending} new file(s), {size / 1e6:.1f} MB", pending, size)
    return SourcePosition(path, False, f"{path} has no new file", 0, 0)


def unreadable_position(path: str, problem: LakeletError) -> SourcePosition:
    text = problem.what if problem.code == SOURCE_MOVED else f"{path} cannot be listed: {problem.what}"
    return SourcePosition(path, None, text)


def unknown_position(count: int) -> Sequence[SourcePosition]:
    return [SourcePosition("source", None, UNKNOWN_SOURCE)] * min(count, 1)


__all__ = [
    "decide_stream",
    "files_position",
    "note_decision",
    "physical_filter",
    "table_position",
    "unknown_position",
    "unreadable_position",
]
