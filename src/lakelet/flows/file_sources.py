"""The file sources of a flow are known by what they read, though their state goes by their number in the query (SO-7, SO-11)."""

from __future__ import annotations

from lakelet.analysis.file_sources import reads_of
from lakelet.autoloader.state.reads import note, noted
from lakelet.flows.context import FlowTask
from lakelet.flows.remedies import other_sources
from lakelet.storage.eventlog.states import Level


def check_sources(task: FlowTask) -> None:
    """Note what each file source of a flow reads, and which of its files were moved.

    Raises STREAM_SOURCES_CHANGED where one reads what another one has read so far, and SOURCE_MOVED where it reads another folder with
    files of the same names. A source that reads something else altogether goes on: its files are new ones.
    """
    environment, flow = task.environment, task.declared
    specs = task.flow.sources
    states = [str(environment.storage.source_state(flow.target, task.name, number)) for number in range(len(specs))]
    known = [noted(state) for state in states]
    others = {reads.what: reads for reads in known if reads is not None}
    for spec, before in zip(specs, known, strict=True):
        now = reads_of(spec, environment.storage)
        if before is not None and now.what != before.what and now.what in others:
            raise other_sources(task, f"the source that reads {now.path} stands where {before.path} was read; rows would come twice")
    for number, (state, spec, before) in enumerate(zip(states, specs, known, strict=True)):
        found = environment.sources.followed(flow, number, spec)
        if found.now != before:
            note(state, found.now)
        if found.moved is not None and before is not None and found.now.moves != before.moves:
            report_move(task, *found.moved)


def report_move(task: FlowTask, old: str, new: str) -> None:
    """Emit a notice about files that a flow knows and that lie elsewhere now."""
    task.environment.sources.moves.add((old, new))
    text = f"the files that it has read in {old} lie in {new} now; they are not read again"
    task.environment.reporter.notice(
        f"Flow '{task.name}': {text}.", text=text, dataset=str(task.dataset.name), flow=task.name, level=Level.INFO
    )


__all__ = ["check_sources", "report_move"]
