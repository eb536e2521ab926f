"""run --remote, status, stop, events --remote, report --remote: updates of a deployed pipeline and its event log.

Nothing of the SDK is imported before a workspace is opened.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.base.redaction import remember_secrets
from lakelet.base.text import aligned, counted, listed, printable
from lakelet.cli import options as o
from lakelet.cli.console import Watcher, watcher
from lakelet.cli.lines import Line, write_data, write_lines, write_note
from lakelet.cli.summary import program, summary
from lakelet.config.project_sources import project_above
from lakelet.storage.eventlog.fold import LiveUpdate
from lakelet.storage.eventlog.states import UpdateState
from lakelet.update.stopping import stoppable

if TYPE_CHECKING:
    from lakelet.dashboard.documents import Site
    from lakelet.deploy.remote_updates import RemoteUpdateResult, Row, UpdateRequest
    from lakelet.deploy.targets import PipelineStatus, RemotePipeline, Target, TargetStatus


Remote = Annotated[bool, typer.Option("--remote", help="In the workspace of the deployment target, not on this machine.")]
PipelineKey = Annotated[
    str | None, typer.Option("--pipeline", metavar="KEY", help="Key of the deployed pipeline in the bundle; needed if there are several.")
]
CancelOnInterrupt = Annotated[
    bool, typer.Option("--cancel-on-interrupt", help="With --remote: Ctrl-C stops the update in the workspace too.")
]

_HERE_ONLY = {
    "moved": ("--moved", "the workspace keeps its own checkpoints", "Leave it out."),
    "map": ("--map", "the workspace reads its paths as they are written", "Leave it out."),
    "table": ("--table", "the workspace has the tables of its catalogs", "Leave it out."),
    "storage": ("--storage", "the tables are in the catalog of the workspace", "Leave it out."),
    "env": ("--env", "environments are of this machine", "Deploy to a target of your own: lakelet deploy -t dev"),
    "diff": ("--diff", "a difference is one of the tables of this machine", "Leave it out."),
    "rows": ("--rows", "no rows are read from the tables of the workspace", "Leave it out."),
    "master": ("--master", "the compute is what was deployed", "Change `clusters` or `serverless` in the bundle and deploy."),
    "take_over": ("--take-over", "the workspace keeps track of owners itself", "Leave it out."),
    "catalog": ("--catalog", "the catalog is the deployed one", "Change `catalog` in the bundle and deploy."),
    "schema": ("--schema", "the schema is the deployed one", "Change `schema` in the bundle and deploy."),
}
_EXITS = {UpdateState.COMPLETED: ExitCode.COMPLETED, UpdateState.CANCELED: ExitCode.INTERRUPTED}
WAITING = "Waiting for the workspace"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (status, stop):
        app.command()(command)


def refuse_without_remote(**given: object) -> None:
    """Raise USAGE for options that mean something with --remote only."""
    for name, value in given.items():
        if value:
            option = "--" + name.replace("_", "-")
            todo = f"Add --remote, or leave {option} out."
            todo += f" Here a pipeline of the bundle is named by itself: lakelet run {value}" if name == "pipeline" else ""
            raise LakeletError("USAGE", f"{option} has a meaning with --remote only", todo=todo)


def refuse_here_only(**given: object) -> None:
    """Raise USAGE for options that mean something without --remote only."""
    for name, value in given.items():
        if value is not None and value != []:
            option, why, todo = _HERE_ONLY[name]
            raise LakeletError("USAGE", f"{option} has no meaning with --remote: {why}", todo=todo)


def opened(target: str | None, folder: Path | None = None) -> Target:
    """The deployment target of the project, its workspace connected. What is waited for is said on stderr."""
    root = folder or project_above(Path.cwd()) or Path.cwd()
    write_note(f"Connecting to the workspace{f' of the target {target}' if target else ''}")
    from lakelet.deploy.targets import open_target

    return open_target(root, target, environ=os.environ, cwd=Path.cwd(), notice=write_note)


def run_remote(asked: o.CommonOptions, *, continuous: bool | None, pipeline: str | None, cancel: bool) -> int:
    """Start an update in the workspace, show it as a local one, and return the exit code."""
    refuse_here_only(**{name: getattr(asked, name) for name in _HERE_ONLY if hasattr(asked, name)})
    if continuous is not None:
        option, todo = "--continuous" if continuous else "--triggered", "Change `continuous` in the bundle and deploy."
        raise LakeletError("USAGE", f"{option} has no meaning with --remote: the deployed pipeline is the one or the other", todo=todo)
    request = _update_request(asked)
    folder, key = _folder_and_key(asked.source, pipeline)
    target = opened(asked.target, folder)
    chosen = target.pipeline(key)
    if asked.refresh_failed:
        failed = _of_failed(target, chosen)
        if failed is None:
            write_note("The last update left nothing unfinished. Nothing was started.")
            return int(ExitCode.COMPLETED)
        request = failed
    return _Run(target, chosen, request, as_json=asked.as_json, cancel=cancel).run()


class _Run:
    """One update of a deployed pipeline, from its start to the summary."""

    def __init__(self, target: Target, pipeline: RemotePipeline, request: UpdateRequest, *, as_json: bool, cancel: bool) -> None:
        self._target, self._pipeline, self._request = target, pipeline, request
        self._as_json, self._cancel = as_json, cancel
        self._update_id: str | None = None
        self._before: frozenset[str] = frozenset()
        self._update = LiveUpdate()
        self._watch: Watcher | None = None

    def run(self) -> int:
        from lakelet.deploy.remote_updates import follow, start, successor, updates

        client, pipeline = self._target.client, self._pipeline
        try:
            with stoppable():
                self._before = frozenset(one.id for one in updates(client, pipeline.id))
                self._update_id = start(client, pipeline.id, self._request, self._before)
                self._say_started()
                self._watch, self._update, _ = watcher(as_json=self._as_json, stdout=sys.stdout, stderr=sys.stderr, waiting=WAITING)
                ended = follow(client, pipeline.id, self._update_id, self._on_row)
                while ended.state is UpdateState.FAILED and (again := successor(client, pipeline.id, ended.update_id)):
                    write_note(f"Update {ended.update_id[:6]} failed; the workspace tries again: update {again[:6]}")
                    self._update_id = again
                    ended = follow(client, pipeline.id, again, self._on_row)
        except KeyboardInterrupt:
            self._close_display()
            return self._interrupted_exit()
        except LakeletError:
            self._close_display()
            if self._update_id:
                write_lines(
                    [Line(f"Update {self._update_id[:6]} may go on in the workspace.", "warning"), *self._next_commands()], sys.stderr
                )
            raise
        finally:
            self._close_display()
        self._write_summary(ended)
        return int(_EXITS.get(ended.state, ExitCode.FAILED))

    def _on_row(self, row: Row) -> None:
        from lakelet.deploy.remote_updates import event_of, json_of

        if self._as_json:
            sys.stdout.write(json.dumps(json_of(row), default=str, ensure_ascii=False, separators=(",", ":")) + "\n")
            sys.stdout.flush()
        event = event_of(row)
        if event is not None and self._watch is not None:
            self._watch(event)
        elif event is not None:
            self._update.feed(event.as_json())

    def _close_display(self) -> None:
        """Stop drawing. Events after that are only added up."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _say_started(self) -> None:
        assert self._update_id
        where = f"{self._target.client.host}/#joblist/pipelines/{self._pipeline.id}/updates/{self._update_id}"
        if self._pipeline.settings.get("continuous"):
            write_note("The pipeline is continuous: the update goes on after Ctrl-C, until lakelet stop --remote")
        write_note(f"Update {self._update_id[:6]} of {self._pipeline.name} in {self._target.name}: {where}")

    def _write_summary(self, ended: RemoteUpdateResult) -> None:
        update = self._update.value()
        update = replace(update, id=ended.update_id, pipeline=update.pipeline or self._pipeline.name)
        errors = [ended.error] if ended.error and not any(run.failure for run in update.runs) else []
        option = self._command_options()
        following = [
            f"{program()} events --remote{option} --update {ended.update_id[:6]}",
            f"{program()} status{self._command_options(pipeline=False)}",
        ]
        if ended.state is UpdateState.COMPLETED:
            following.append(f"{program()} diff --remote{option}")
        lines = summary(update, ended.state, errors, following=following)
        write_lines(lines if self._as_json else [Line(""), *lines], sys.stderr)

    def _interrupted_exit(self) -> int:
        from lakelet.deploy.remote_updates import follow, started, stop

        client, pipeline = self._target.client, self._pipeline
        if not self._cancel:
            known = f"Update {self._update_id[:6]} goes on" if self._update_id else "An update that was just asked for may go on"
            write_lines([Line(f"Interrupted. {known} in the workspace.", "warning"), *self._next_commands()], sys.stderr)
            return int(ExitCode.INTERRUPTED)
        write_note("Stopping the update in the workspace (Ctrl-C leaves it to itself)")
        try:
            update_id = self._update_id or started(client, pipeline.id, self._request, self._before)
            if update_id:
                stop(client, pipeline.id, update_id)
                self._write_summary(follow(client, pipeline.id, update_id, self._on_row))
        except KeyboardInterrupt:
            write_lines([Line("Interrupted. The workspace was asked to stop the update.", "warning"), *self._next_commands()], sys.stderr)
        return int(ExitCode.INTERRUPTED)

    def _next_commands(self) -> list[Line]:
        option = self._command_options()
        return [Line(f"  Stop it: {program()} stop --remote{option}"), Line(f"  See it: {program()} events --remote{option}")]

    def _command_options(self, *, pipeline: bool = True) -> str:
        several = pipeline and len(self._target.pipelines) > 1
        return f" -t {shlex.quote(self._target.name)}" + (f" --pipeline {shlex.quote(self._pipeline.key)}" if several else "")


def status(target: o.Target = None, as_json: o.AsJson = False) -> None:
    """Show what is deployed to a target, and the state of it. That is pipelines, their last updates, and who deploys now."""
    from lakelet.deploy.targets import read_status

    found = read_status(opened(target))
    if as_json:
        write_data(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        return
    for line in _status_lines(found):
        write_data(line)


def stop(
    remote: Remote = False,
    target: o.Target = None,
    pipeline: PipelineKey = None,
    as_json: o.AsJson = False,
) -> None:
    """Stop the active update of a deployed pipeline. A local update is stopped by Ctrl-C."""
    if not remote:
        raise LakeletError(
            "USAGE", "stop is for updates in a workspace", todo="Write lakelet stop --remote. A local update stops by Ctrl-C."
        )
    where = opened(target)
    chosen = where.pipeline(pipeline)
    from lakelet.deploy.remote_updates import follow
    from lakelet.deploy.remote_updates import stop as stop_update

    found = stop_update(where.client, chosen.id)
    if found is None:
        write_note(f"{chosen.name} has no active update. Nothing was stopped.")
    else:
        write_note(f"Stopping update {found.id[:6]} of {chosen.name} ({found.state})")
        ended = follow(where.client, chosen.id, found.id, lambda row: None)
        write_lines([Line(f"Update {found.id[:6]} of {chosen.name} {ended.state}", "good")], sys.stderr)
    if as_json:
        result = {
            "pipeline": chosen.key,
            "pipeline_id": chosen.id,
            "update_id": found and found.id,
            "state": found and str(ended.state),
        }
        write_data(json.dumps(result, ensure_ascii=False))


def _status_lines(found: TargetStatus) -> list[str]:
    lines = [f"{found.bundle} in {found.target}: {found.host}"]
    if not found.serial:
        return [*lines, f"Nothing is deployed. Deploy it: {program()} deploy -t {found.target}"]
    lines.append(f"deployment {found.serial} of {found.deployed_at} by {found.deployed_by}, {counted(found.files, 'file')}")
    if found.pending:
        lines.append(f"not finished: {found.pending}. Give `{program()} deploy -t {found.target}` again.")
    if found.lock:
        lines.append(f"locked by {found.lock.described(datetime.now(timezone.utc))}")
    lines += ["", *aligned([(str(one.key), one.name, one.id) for one in found.resources], header=("resource", "name", "id"))]
    for pipeline in found.pipelines:
        lines += ["", *_pipeline_lines(pipeline)]
    return [printable(line) for line in lines]


def _pipeline_lines(pipeline: PipelineStatus) -> list[str]:
    health = f", {pipeline.health}" if pipeline.health else ""
    lines = [f"{pipeline.name}: {pipeline.state}{health}"]
    rows = [(one.id[:6], one.state, one.cause, f"{one.created:%Y-%m-%d %H:%M:%S}" if one.created else "") for one in pipeline.updates]
    return [*lines, *(aligned(rows, header=("update", "state", "cause", "started (UTC)"), indent="  ") if rows else ["  no update yet"])]


def _folder_and_key(source: Sequence[str] | None, pipeline: str | None) -> tuple[Path | None, str | None]:
    """The project folder and the key of the pipeline that SOURCE and --pipeline name."""
    if not source:
        return None, pipeline
    folders = [Path(one) for one in source if Path(one).is_dir()]
    keys = [one for one in source if not Path(one).exists()]
    if len(folders) > 1 or len(keys) > 1 or len(folders) + len(keys) < len(source) or (keys and pipeline and keys[0] != pipeline):
        what = f"--remote goes with one project folder and one key of a pipeline, not with {listed(list(source), 4)}"
        raise LakeletError("USAGE", what, todo="The sources that run are the deployed ones: lakelet deploy uploads changed files.")
    return (folders[0].absolute() if folders else None), (keys[0] if keys else pipeline)


def _update_request(asked: o.CommonOptions) -> UpdateRequest:
    from lakelet.deploy.remote_updates import UpdateRequest

    select, reset, flows = o.names(asked.select), o.names(asked.full_refresh), o.names(asked.reset_checkpoint)
    for option, given in (("--select", select), ("--full-refresh", reset)):
        for name in given:
            if name.startswith("+") or name.endswith("+") or any(sign in name for sign in "*?["):
                what = f"{option} {name}: the workspace takes names of datasets only, no patterns and no directions"
                raise LakeletError("USAGE", what, todo="List the names: lakelet graph")
    if asked.full_refresh_all and (select or reset):
        raise LakeletError("USAGE", "--full-refresh-all goes neither with --select nor with --full-refresh")
    if asked.refresh_failed and (select or reset or flows or asked.full_refresh_all or asked.replace_where):
        raise LakeletError("USAGE", "--refresh-failed goes with no other selection and no reset", todo="Run it alone.")
    parameters = o.pairs(asked.param, "--param")
    remember_secrets(parameters)
    return UpdateRequest(select, reset, asked.full_refresh_all, flows, parameters, o.conditions(asked.replace_where))


def _of_failed(target: Target, pipeline: RemotePipeline) -> UpdateRequest | None:
    """What the last update left unfinished, None for nothing: the workspace has no request of its own for it."""
    from lakelet.deploy.remote_updates import UpdateRequest, events, unfinished, update_of, updates

    newest = next(iter(updates(target.client, pipeline.id, 1)), None)
    if newest is None:
        return None
    rows = events(target.client, pipeline.id, since=newest.created)
    names = unfinished(row for row in rows if update_of(row) == newest.id)
    if names:
        write_note(f"Refreshing what update {newest.id[:6]} did not finish: {listed(names, 6)}")
    return UpdateRequest(names) if names else None


REPORTED_UPDATES = 25


def remote_events(
    target: str | None, pipeline: str | None, *, update: str | None, every: bool, event_type: str | None
) -> tuple[str, list[dict[str, Any]]]:
    """Where the events are, in words, and the events as JSON values: of the newest update, of the one whose ID begins so, or all."""
    from lakelet.deploy.remote_updates import events, json_of, update_of, updates

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
    write_note(f"Reading {name}")
    rows = [row for row in events(where.client, chosen.id, since=since) if not wanted or update_of(row) == wanted]
    return name, [json_of(row) for row in rows if not event_type or row.get("event_type") == event_type]


def remote_report(target: str | None, pipeline: str | None, project: Path, folder: Path | None) -> tuple[Path, Site]:
    """Write the page of a deployed pipeline's last updates, and return the folder and what it shows."""
    from lakelet.dashboard.page import write_report_of

    where = opened(target)
    chosen = where.pipeline(pipeline)
    rows = _event_rows(where, chosen)
    folder = folder or project / ".lakelet" / "remote" / where.name / chosen.key / "report"
    try:
        return folder, write_report_of(rows, project, folder)
    except OSError as problem:
        todo = "Name another folder: lakelet report --remote --out DIR"
        raise LakeletError("USAGE", f"the report cannot be written to {folder}", why=str(problem), todo=todo) from problem


def _event_rows(where: Target, chosen: RemotePipeline) -> list[dict[str, Any]]:
    from lakelet.deploy.remote_updates import events, json_of, updates

    known = updates(where.client, chosen.id, REPORTED_UPDATES)
    oldest = min((one.created for one in known if one.created), default=None)
    write_note(f"Reading the events of {counted(len(known), 'update')} of {chosen.name}")
    return [json_of(row) for row in events(where.client, chosen.id, since=oldest)] if known else []
