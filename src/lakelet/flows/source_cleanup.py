"""After a flow has read all its files: the commit is noted, and `cloudFiles.cleanSource` does its work (AL-25).

Trouble here is a warning. It never fails a flow, whose rows are in the table by then.
"""

from __future__ import annotations

from typing import Any

from lakelet.autoloader.spec import SourceSpec
from lakelet.flows.context import FlowTask
from lakelet.flows.positions import read_checkpoint
from lakelet.storage.eventlog.states import EventType, Level


def clean_sources(task: FlowTask) -> None:
    """Let every file source of a drained flow move or delete what it has read long enough ago."""
    sources, stream = task.flow.sources, task.flow.stream
    if not sources:
        return
    checkpoint = read_checkpoint(task.checkpoint())
    if checkpoint.unfinished or len(stream.files) != len(checkpoint.offsets):
        return
    for number, offset in zip(stream.files, checkpoint.offsets, strict=True):
        if number is None:
            continue
        spec = sources[number]
        try:
            done = task.environment.sources.open(task.declared, number, spec, dry=False).clean(offset)
        except Exception as problem:  # the rows are committed: cleaning is tried again in the next update
            _emit(task, spec, f"could not clean {spec.path}: {problem}", {"failed": 1, "problems": [str(problem)]}, Level.WARN)
            continue
        if done is None or not (done.files or done.changed or done.failed):
            continue
        body = {"mode": done.mode, "files": done.files, "changed": done.changed, "failed": done.failed, "problems": done.problems}
        parts = [f"{'moved' if done.mode == 'MOVE' else 'deleted'} {done.files} file(s) of {spec.path}"]
        parts += [f"{done.changed} file(s) changed since they were read and stay"] if done.changed else []
        parts += [f"{done.failed} file(s) could not be cleaned, the first: {done.problems[0]}"] if done.failed else []
        _emit(task, spec, "; ".join(parts), body, Level.WARN if done.changed or done.failed else Level.INFO)


def _emit(task: FlowTask, spec: SourceSpec, text: str, body: dict[str, Any], level: Level) -> None:
    details = {"flow_name": task.name, "source": spec.path, **body}
    task.environment.reporter.emit(
        EventType.CLEAN_SOURCE, f"Flow '{task.name}' {text}.", details, dataset=str(task.dataset.name), flow=task.name, level=level
    )


__all__ = ["clean_sources"]
