"""deploy, rollback, destroy: from the project to a workspace and back; a deployment's plan as text, Markdown or JSON.

Nothing of the SDK is imported before a workspace is opened.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import DefinitionErrors, ExitCode, LakeletError
from lakelet.base.redaction import redacted
from lakelet.base.text import aligned, counted, printable, seconds_text
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines, write_note
from lakelet.cli.summary import program
from lakelet.config.project_sources import project_above

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client
    from lakelet.deploy.deployment import DeploymentOptions, PreparedDeployment
    from lakelet.deploy.desired_state import User
    from lakelet.deploy.plan import DeploymentPlan, PlanLine


PlanOnly = Annotated[bool, typer.Option("--plan", help="Show what would be done and do nothing; exit code 4 if there is something.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="The plan as text for a comment of a pull request.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what others changed in the workspace.")]
ForceLock = Annotated[bool, typer.Option("--force-lock", help="Take the lock of this target over, whoever holds it.")]
Variables = Annotated[list[str] | None, typer.Option("--var", metavar="KEY=VALUE", help="Value of a variable of the bundle.")]
WithData = Annotated[
    list[str] | None,
    typer.Option("--with-data", metavar="KEY,...", help="Resources to delete with what they hold: schemas, volumes, pipelines."),
]
NoValidate = Annotated[bool, typer.Option("--no-validate", help="Do not analyse the pipelines on this machine first.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
To = Annotated[int | None, typer.Option("--to", metavar="N", min=1, help="Number of the deployment to return to; default: the one before.")]

_OF_THIS_MACHINE = frozenset(
    (
        *("PATH_NOT_MAPPED", "MAP_TARGET_MISSING", "TABLE_PLACE_MISSING", "FILE_NOT_FOUND", "SECRET_MISSING", "CF_SOURCE_UNSUPPORTED"),
        *("CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE", "CF_PATH_DOES_NOT_EXIST_FOR_READ_FILES"),
    )
)
"""Errors of an analysis that say that data or secrets are not on this machine: the workspace may have them."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (deploy, rollback, destroy):
        app.command()(command)


def deploy(
    target: o.Target = None,
    plan: PlanOnly = False,
    force: Force = False,
    force_lock: ForceLock = False,
    var: Variables = None,
    with_data: WithData = None,
    no_validate: NoValidate = False,
    markdown: Markdown = False,
    as_json: o.AsJson = False,
) -> None:
    """Deploy the project to a Databricks workspace. It plans first, then uploads and changes only what differs."""
    from lakelet.deploy import deployment
    from lakelet.deploy.bundle import desired_state
    from lakelet.deploy.plan import refuse_conflicts
    from lakelet.deploy.workspace_objects import workspace_lookup

    begun = time.monotonic()
    options, root = _deployment_options(force, force_lock, with_data, markdown, as_json), _project_root()
    variables = o.pairs(var, "--var")
    client, user = _connected_target(root, target)
    lookup = workspace_lookup(client.sdk)
    desired = desired_state(root, target, user, environ=os.environ, cwd=Path.cwd(), variables=variables, lookup=lookup)
    write_note(f"Comparing {counted(len(desired.resources), 'resource')} and {counted(len(desired.files), 'file')} with {client.host}")
    for text, where in desired.remarks:
        write_lines([Line(f"{where}: {text}", "warning")], sys.stderr)
    prepared = deployment.prepare(client, desired, options)
    if not prepared.plan.empty and not no_validate:
        _validate_pipelines(target, [resource.key.name for resource in desired.resources if resource.key.kind == "pipelines"])
    title = f"Plan for {desired.bundle}, target {desired.target}"
    if plan:
        _show_plan(prepared, title, markdown=markdown, as_json=as_json)
        refuse_conflicts(prepared.plan)
        raise typer.Exit(int(ExitCode.COMPLETED if prepared.plan.empty else ExitCode.CHANGES))
    refuse_conflicts(prepared.plan)
    if not as_json:
        _show_plan(prepared, title, markdown=markdown, as_json=False)
    done = deployment.deploy(client, prepared, user, options, notice=write_note)
    if as_json:
        _show_plan(done, title, markdown=False, as_json=True)
    if done.plan.empty:
        write_note("Nothing was written.")
        return
    _write_success(
        f"Deployed {desired.bundle} to {desired.target} as number {done.state.serial} in {seconds_text(time.monotonic() - begun)}"
    )
    write_note(f"Next: {program()} run --remote -t {desired.target} · {program()} rollback -t {desired.target}")


def rollback(
    target: o.Target = None,
    to: To = None,
    plan: PlanOnly = False,
    force: Force = False,
    force_lock: ForceLock = False,
    with_data: WithData = None,
    markdown: Markdown = False,
    as_json: o.AsJson = False,
) -> None:
    """Return to the deployment before. Its settings and its files come back, byte for byte. Tables stay as they are."""
    from lakelet.deploy.bundle import location_of
    from lakelet.deploy.deployment import prepare_rollback, roll_back
    from lakelet.deploy.plan import refuse_conflicts

    options, root = _deployment_options(force, force_lock, with_data, markdown, as_json), _project_root()
    client, user = _connected_target(root, target)
    place = location_of(root, target, user, environ=os.environ, cwd=Path.cwd())
    back = prepare_rollback(client, place.workspace, options, to)
    title = f"Rollback of {place.bundle}, target {place.target}, to deployment {back.earlier.serial}"
    _show_plan(back.prepared, title, markdown=markdown, as_json=as_json)
    refuse_conflicts(back.prepared.plan)
    if plan:
        raise typer.Exit(int(ExitCode.COMPLETED if back.prepared.plan.empty else ExitCode.CHANGES))
    done = roll_back(client, back, user, options, notice=write_note)
    if done.plan.empty:
        write_note("Nothing was written.")
        return
    earlier = f"deployment {back.earlier.serial} of {back.earlier.deployed_at}"
    _write_success(f"{place.bundle}, target {place.target}, is as {earlier} again; this is number {done.state.serial}")


def destroy(
    target: o.Target = None, with_data: WithData = None, force_lock: ForceLock = False, yes: Yes = False, as_json: o.AsJson = False
) -> None:
    """Take away what was deployed to a target. It lists it, and asks, before. Data stays unless it is named."""
    from lakelet.deploy.bundle import location_of
    from lakelet.deploy.deployment import destroy as take_away
    from lakelet.deploy.deployment import prepare_destroy

    options, root = _deployment_options(False, force_lock, with_data, False, as_json), _project_root()
    client, user = _connected_target(root, target)
    place = location_of(root, target, user, environ=os.environ, cwd=Path.cwd())
    prepared = prepare_destroy(client, place.workspace, options)
    _show_plan(prepared, f"Destroy {place.bundle}, target {place.target}, in {client.host}", markdown=False, as_json=as_json)
    _explain_data(prepared)
    if not yes:
        _confirm_target(place.target)
    left = take_away(client, prepared, user, options, notice=write_note)
    kept = ", ".join(str(key) for key in sorted(left.resources))
    _write_success(f"{place.bundle}, target {place.target}, is taken away" + (f"; still there: {kept}" if kept else ""))


def _deployment_options(force: bool, force_lock: bool, with_data: Sequence[str] | None, markdown: bool, as_json: bool) -> DeploymentOptions:
    from lakelet.deploy.deployment import DeploymentOptions

    if markdown and as_json:
        raise LakeletError("USAGE", "--markdown and --json exclude each other")
    return DeploymentOptions(force, force_lock, o.names(with_data))


def _project_root() -> Path:
    return project_above(Path.cwd()) or Path.cwd()


def _connected_target(root: Path, target: str | None) -> tuple[Client, User]:
    from lakelet.deploy.bundle import workspace_of
    from lakelet.deploy.connection import connect

    said = workspace_of(root, target, environ=os.environ, cwd=Path.cwd())
    write_note(f"Connecting to the workspace{f' of the target {target}' if target else ''}")
    client = connect(said.pop("host", None), said.pop("profile", None), said, environ=os.environ, notice=write_note)
    return client, client.user()


def _validate_pipelines(target: str | None, pipelines: Sequence[str]) -> None:
    """Analyse the pipelines on this machine: graph, rules, SQL. What it lacks data for is a warning."""
    from lakelet.cli.run import configured, stdout_for_data
    from lakelet.pipeline import Pipeline

    for key in pipelines:
        write_note(f"Validating the pipeline {key} on this machine (--no-validate leaves it out)")
        asked = o.CommonOptions(source=[key] if len(pipelines) > 1 else None, target=target, as_json=True)
        try:
            with stdout_for_data(asked), shown_phases(sys.stderr):
                Pipeline(configured(asked)).validate()
        except LakeletError as error:
            errors = error.errors if isinstance(error, DefinitionErrors) else [error]
            if any(one.code not in _OF_THIS_MACHINE for one in errors):
                raise
            lines = [Line(f"Not validated as a whole: {line}", "warning") for one in errors for line in one.lines()[:1]]
            write_lines(lines, sys.stderr)


def _show_plan(prepared: PreparedDeployment, title: str, *, markdown: bool, as_json: bool) -> None:
    """The plan on stdout, its title and totals on stderr."""
    plan = prepared.plan
    if as_json:
        sys.stdout.write(plan_json(plan.changes))
    elif markdown:
        sys.stdout.write(plan_markdown(plan.changes, title, plan))
    else:
        write_lines([Line(title, "heading")], sys.stderr)
        if plan.changes:
            write_lines(plan_lines(plan.changes), sys.stdout)
        write_lines([Line(plan_totals(plan))], sys.stderr)
    sys.stdout.flush()
    pending = prepared.state.pending
    if pending:
        write_note(f"A {pending.operation} of {pending.user} that began {pending.since} did not end: this one goes on from there.")


def _explain_data(prepared: PreparedDeployment) -> None:
    kept = [change.resource for change in prepared.plan.changes if change.action == "keep"]
    if kept:
        text = f"What these hold stays: {', '.join(kept)}. To delete it, too: --with-data {','.join(kept)}"
        write_lines([Line(text, "warning")], sys.stderr)


def _confirm_target(target: str) -> None:
    if not sys.stdin.isatty():
        todo = "Look at the list above, then: lakelet destroy --yes"
        raise LakeletError("USAGE", "destroy asks before it deletes, and there is no terminal to ask on", todo=todo)
    sys.stderr.write(f"Type the name of the target ({target}) to delete this: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != target:
        write_note("Nothing was deleted.")
        raise typer.Exit(int(ExitCode.FAILED))


def _write_success(text: str) -> None:
    write_lines([Line(text, "good")], sys.stderr)


_COLOURS = {
    "create": "good",
    "upload": "good",
    "delete": "bad",
    "remove file": "bad",
    "conflict": "bad",
    "drift": "warning",
    "keep": "quiet",
}
_MANY = 20
_LONGEST = 60
_COMMENT = 60_000  # a comment of a pull request takes 65,536 characters
_HEADER = ("action", "resource", "field", "before", "after")


def plan_json(changes: Iterable[PlanLine]) -> str:
    """All changes as an array of objects."""
    rows = [{name: _plain_value(getattr(change, name)) for name in _HEADER} for change in changes]
    return redacted(json.dumps(rows, indent=2, ensure_ascii=False)) + "\n"


def plan_lines(changes: Sequence[PlanLine]) -> list[Line]:
    """The changes as an aligned table. What is made is one line each; of many files the first ones are named."""
    rows = _plan_rows(changes)
    texts = aligned([tuple(printable(cell) for cell in cells) for _, *cells in rows], header=_HEADER)
    styles = ["heading", *(_COLOURS.get(action, "") for action, *_ in rows)]
    return [Line(redacted(text), style) for text, style in zip(texts, styles, strict=True)]


def plan_markdown(changes: Sequence[PlanLine], title: str, plan: DeploymentPlan) -> str:
    """The changes as text for a comment of a pull request."""
    parts = [f"### {_markdown_cell(title)}", "", f"**{plan_totals(plan)}**", ""]
    rows = _plan_rows(changes)
    if rows:
        parts += [f"| {' | '.join(_HEADER)} |", "|---|---|---|---|---|"]
    size = sum(map(len, parts))
    for number, (_, *cells) in enumerate(rows):
        line = "| " + " | ".join(_markdown_cell(cell) for cell in cells) + " |"
        size += len(line) + 1
        if size > _COMMENT:
            parts += ["", f"… and {counted(len(rows) - number, 'more line')}: `lakelet deploy --plan`"]
            break
        parts.append(line)
    return redacted("\n".join(parts)) + "\n"


def plan_totals(plan: DeploymentPlan) -> str:
    """What a plan does, in one line: `1 to create, 2 to change, 3 files to upload`."""
    changed = {change.resource for change in plan.changes if change.action in ("change", "permission", "publish")}
    made = {str(key) for key in plan.creates}
    drift = sum(change.action == "drift" for change in plan.changes)
    counts = [
        (len(made), f"{len(made)} to create"),
        (len(changed - made), f"{len(changed - made)} to change"),
        (len(plan.deletes), f"{len(plan.deletes)} to delete"),
        (len(plan.uploads), f"{counted(len(plan.uploads), 'file')} to upload"),
        (len(plan.removals), f"{counted(len(plan.removals), 'file')} to remove"),
    ]
    text = ", ".join(words for number, words in counts if number)
    if not text:
        text = "Nothing to do" if plan.empty else "An earlier deployment to finish"
    return text + (f"; {counted(drift, 'setting')} changed in the workspace and kept" if drift else "")


def _plan_rows(changes: Sequence[PlanLine]) -> list[tuple[str, str, str, str, str, str]]:
    """Rows of text; the action first, once more as it is shown."""
    rows = []
    created = {change.resource for change in changes if change.action == "create"}
    shown = [one for one in changes if not (one.resource in created and (one.field is not None or one.action == "publish"))]
    for action, group in groupby(shown, key=lambda change: str(change.action)):
        items = list(group)
        few = items if action not in ("upload", "remove file") or len(items) <= _MANY else items[: _MANY - 1]
        rows += [(action, action, one.resource, one.field or "", _short_value(one.before), _short_value(one.after)) for one in few]
        if len(few) < len(items):
            rows.append((action, action, f"… and {len(items) - len(few):,} more files", "", "", ""))
    return rows


def _short_value(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _markdown_cell(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _plain_value(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
