"""events --remote, report --remote: the event log of a deployed pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.text import counted
from lakelet.cli.remote import note, opened

if TYPE_CHECKING:
    from lakelet.dashboard.documents import Site
    from lakelet.deploy.targets import RemotePipeline, Target

REPORTED_UPDATES = 25


def remote_events(
    target: str | None, pipeline: str | None, *, update: str | None, every: bool, event_type: str | None
) -> tuple[str, list[dict[str, Any]]]:
    """Where the events are, in words, and the events as JSON values: of the newest update, of the one whose ID begins so, or all."""
    from lakelet.deploy.watching import events, json_of, update_of, updates

    where = opened(target)
    chosen = where.pipeline(pipeline)
    name = f"the event log of {chosen.name}"
    since, wanted = None, ""
    if not every:
        known = updates(where.client, chosen.id, 100 if update else 1)
        found = [one for one in known if one.id.startswith(update or "")]
        if not found and update is None:
            return name, []
        if len(found) != 1 and update:
            what = f"{'no' if not found else 'more than one'} update of {chosen.name} begins with {update}"
            raise LakeletError("USAGE", what, todo=f"List them: lakelet status -t {where.name}")
        since, wanted = found[0].created, found[0].id
    note(f"Reading {name}")
    rows = [row for row in events(where.client, chosen.id, since=since) if not wanted or update_of(row) == wanted]
    return name, [json_of(row) for row in rows if not event_type or row.get("event_type") == event_type]


def remote_report(target: str | None, pipeline: str | None, project: Path, folder: Path | None) -> tuple[Path, Site]:
    """Write the page of a deployed pipeline's last updates, and return the folder and what it shows."""
    from lakelet.dashboard.page import write_report_of

    where = opened(target)
    chosen = where.pipeline(pipeline)
    rows = _rows(where, chosen)
    folder = folder or project / ".lakelet" / "remote" / where.name / chosen.key / "report"
    try:
        return folder, write_report_of(rows, project, folder)
    except OSError as problem:
        todo = "Name another folder: lakelet report --remote --out DIR"
        raise LakeletError("USAGE", f"the report cannot be written to {folder}", why=str(problem), todo=todo) from problem


def _rows(where: Target, chosen: RemotePipeline) -> list[dict[str, Any]]:
    from lakelet.deploy.watching import events, json_of, updates

    known = updates(where.client, chosen.id, REPORTED_UPDATES)
    oldest = min((one.created for one in known if one.created), default=None)
    note(f"Reading the events of {counted(len(known), 'update')} of {chosen.name}")
    return [json_of(row) for row in events(where.client, chosen.id, since=oldest)] if known else []
