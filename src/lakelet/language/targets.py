"""Checks which flows may write to which targets, when all files have been read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.language.failed_parts import FailedParts
from lakelet.language.model import Dataset, Definitions, Flow, Kind


def target_problems(found: Definitions, failed_parts: FailedParts) -> Iterator[LakeletError]:
    """The contradictions between flows and targets, without those that a part of the sources which did not run may resolve."""
    datasets = {dataset.name.key: dataset for dataset in found.datasets}
    names = [str(dataset.name) for dataset in found.datasets if dataset.kind not in (Kind.VIEW, Kind.MATERIALIZED_VIEW)]
    for flow in found.flows:
        target = datasets.get(flow.target.key)
        problem = _wrong_target(flow, target) if target is not None else _no_target(flow, names)
        if problem is not None and (target is not None or not failed_parts.may_declare(flow.target.name)):
            yield problem
    flows, sinks = found.flows_by_target(), {dataset.name.key for dataset in found.sinks}
    for key, group in flows.items():
        disagreement = _disagreement_of_flows(group) if key not in sinks else None
        if disagreement is not None:
            yield disagreement
    for dataset in found.datasets:
        if dataset.kind is Kind.STREAMING_TABLE and not flows[dataset.name.key] and not failed_parts.mentions(dataset.name.name):
            yield LakeletError(
                "DATASET_WITHOUT_FLOW",
                "the streaming table has no query and no flow writes to it",
                where=dataset.where,
                dataset=str(dataset.name),
                todo=f'Add a flow: @dlt.append_flow(target="{dataset.name.name}"), in SQL CREATE FLOW … AS INSERT INTO ….',
            )


def idle_sinks(found: Definitions) -> Iterator[Dataset]:
    """The sinks to which no flow writes."""
    flows = found.flows_by_target()
    return (dataset for dataset in found.sinks if not flows[dataset.name.key])


def _no_target(flow: Flow, known: Sequence[str]) -> LakeletError:
    return LakeletError(
        "UNKNOWN_TARGET",
        f"flow {flow.name!r} writes to {flow.target}, which no file defines",
        where=flow.where,
        nearest=nearest_names(str(flow.target), known),
        todo="Define it: create_streaming_table(...), in SQL CREATE STREAMING TABLE; or create_sink(...).",
    )


def _wrong_target(flow: Flow, target: Dataset) -> LakeletError | None:
    """Why the flow cannot write to this target (DS-5, SK-1); None if it can."""
    what, todo = f"flow {flow.name!r} writes to {flow.target}, ", ""
    if not flow.default and target.kind in (Kind.MATERIALIZED_VIEW, Kind.VIEW):
        what += f"a {target.kind.value.replace('_', ' ')}"
        todo = "Flows write to streaming tables and sinks only."
    elif target.sink is not None and flow.changes is not None:
        what += "a sink, which has no rows that could change"
        todo = "Apply changes to a streaming table; a flow can read its change feed and write that to the sink."
    elif target.sink is not None and flow.replaces is not None:
        what += f"a sink, which has no rows that a {flow.replaces.clause} flow could replace"
        todo = "Write the rows to a streaming table; or merge them in a sink of the user's own: @dp.foreach_batch_sink."
    elif flow.update and target.sink is None:
        what += "a table, and update flows write to sinks only"
        todo = "Write @dp.append_flow; or compute the aggregate in a materialized view."
    elif flow.update and target.sink is not None and (target.sink.is_delta or target.sink.is_files):
        what += f"a sink of format {target.sink.format}, which takes appended rows only"
        todo = "Write @dp.append_flow, or a sink of the user's own that merges: @dp.foreach_batch_sink."
    else:
        return None
    return LakeletError("UNKNOWN_TARGET" if target.sink is None and not flow.update else "TARGET_KIND", what, where=flow.where, todo=todo)


def _disagreement_of_flows(flows: Sequence[Flow]) -> LakeletError | None:
    """Why change flows cannot share their target with the other flows of it (DS-6); None if they can."""
    first = next((f for f in flows if f.changes is not None), None)
    other = next((f for f in flows if first and f.replaces is None and _state_of(f) != _state_of(first)), None)
    if first is None or other is None:
        return None
    why, todo = "one appends rows and the other applies changes", "Give each of them its own table."
    if other.changes is not None:
        differing = [name for name, a, b in zip(_STATE, _state_of(first), _state_of(other), strict=True) if a != b]
        why = f"they differ in {', '.join(differing)}"
        if differing == [_FEED] and any(flow.changes and flow.changes.snapshots and flow.changes.once for flow in flows):
            todo += " A first copy goes into the table of the events with create_auto_cdc_flow(once=True), which takes its sequence_by."
    return LakeletError(
        "CDC_FLOWS_DIFFER",
        f"flows {first.name!r} and {other.name!r} cannot share a target",
        where=other.where,
        dataset=str(first.target),
        why=f"{why}; {first.name!r} is in {first.where}",
        todo=todo,
    )


_FEED = "events or snapshots"
_STATE = ("keys", "SCD type", "bitemporal or not", "tracked columns", _FEED)


def _state_of(flow: Flow) -> tuple[object, ...]:
    """What all change flows of a target have in common, because its stored state depends on it."""
    spec = flow.changes
    if spec is None:
        return ()
    lists = (spec.track_history_column_list, spec.track_history_except_column_list)
    tracked = tuple(None if paths is None else frozenset(str(path).lower() for path in paths) for paths in lists)
    return frozenset(str(path).lower() for path in spec.keys), spec.scd_type, spec.bitemporal, tracked, spec.snapshots is None
