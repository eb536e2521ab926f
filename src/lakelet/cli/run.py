"""run, validate, plan, graph: the commands that load a pipeline."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.base.names import Namespace
from lakelet.base.text import counted
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases, watcher
from lakelet.cli.lines import Line, write_data, write_lines
from lakelet.cli.remote import CancelOnInterrupt, PipelineKey, Remote, refuse_here_only, refuse_without_remote, run_remote
from lakelet.cli.report import write_after_update
from lakelet.cli.spark_start import warm
from lakelet.cli.summary import summary
from lakelet.config.path_map import MAP_FORM, MOVED_FORM, TABLE_FORM, pairs_of
from lakelet.config.update_config import PipelineConfig, load_config
from lakelet.language.model import Kind
from lakelet.plan.decisions import Strategy
from lakelet.plan.definition_changes import MODIFIED, STATE, changes_text
from lakelet.plan.selection import parsed
from lakelet.storage.eventlog.states import UpdateState
from lakelet.update.stopping import stoppable

if TYPE_CHECKING:
    from lakelet.language.registry import Notice
    from lakelet.pipeline import Pipeline, UpdateResult
    from lakelet.plan.selection import Request


_EXITS = {UpdateState.COMPLETED: ExitCode.COMPLETED, UpdateState.CANCELED: ExitCode.INTERRUPTED}


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (run, validate, plan, graph):
        app.command()(o.with_common_options(command))


Continuous = Annotated[
    bool | None,
    typer.Option("--continuous/--triggered", help="Go on until stopped, or end when all is up to date (default: what the bundle says)."),
]


def run(
    asked: o.CommonOptions,
    continuous: Continuous = None,
    env: o.EnvironmentName = None,
    remote: Remote = False,
    pipeline: PipelineKey = None,
    cancel_on_interrupt: CancelOnInterrupt = False,
) -> None:
    """Bring the pipeline's datasets up to date."""
    if remote:
        refuse_here_only(env=env)
        raise typer.Exit(run_remote(asked, continuous=continuous, pipeline=pipeline, cancel=cancel_on_interrupt))
    refuse_without_remote(pipeline=pipeline, cancel_on_interrupt=cancel_on_interrupt)
    config = configured(asked, continuous=continuous)
    if env is not None:
        config, asked = _in_environment(config, asked, env)
    with nullcontext() if config.continuous else warm():  # which would not be there for any other command meanwhile
        _run_here(asked, config, env)


def _in_environment(config: PipelineConfig, asked: o.CommonOptions, name: str) -> tuple[PipelineConfig, o.CommonOptions]:
    """The configuration of an update of an environment, which begins if there is none of that name; by default of what changed.

    Raises USAGE, and as `begin_environment`.
    """
    from lakelet.storage.environments import begin_environment, environment_config, environment_root

    if config.continuous:
        raise LakeletError("USAGE", "--env and a continuous update exclude each other", todo="Add --triggered.")
    root = environment_root(config.storage, name)
    begin_environment(config.storage, root)
    if all(getattr(asked, option) == getattr(o.CommonOptions, option) for option in o.SELECTING):
        asked = replace(asked, select=[f"{MODIFIED}+"])
    return environment_config(config, root), asked


def _run_here(asked: o.CommonOptions, config: PipelineConfig, env: str | None) -> None:
    import psutil

    pipeline, request = _pipeline_and_request(config, asked)
    if not asked.as_json:
        size = counted(len(config.files), "source file")
        write_lines([Line(f"{config.name}: {size}, storage {config.storage}", "quiet")], sys.stderr)
    watch, update, listeners = watcher(as_json=asked.as_json, stdout=sys.stdout, stderr=sys.stderr)
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    shown: dict[str, Any] = {"namespace": config.namespace, "storage": asked.storage, "env": env, "sources": asked.source or ()}
    shown["width"] = width
    if config.continuous:
        write_lines([Line("continuous update: it goes on until Ctrl-C; --triggered ends when all is up to date", "quiet")], sys.stderr)
    try:
        with stoppable(), stdout_for_data(asked):
            result = pipeline.run(request, listeners=listeners, new_process=True)
    except KeyboardInterrupt:
        watch.close()
        if update.value().runs:
            write_lines([Line(""), *summary(update.value(), UpdateState.CANCELED, **shown)], sys.stderr)
        raise
    finally:
        watch.close()
    done = replace(update.value(), id=result.update_id)
    elapsed = time.time() - psutil.Process().create_time()
    lines = summary(done, result.state, result.problems, elapsed=elapsed, needs_spark=result.needs_spark, **shown)
    if _only_states(request) and all(step.strategy is Strategy.EXCLUDED for step in result.steps):
        lines = [*lines, Line("No definition changed since the last update: nothing was selected.", "quiet")]
    lines = [*lines, *_on_all_rows(result, env, config.namespace)]
    write_lines([Line(""), *lines] if not asked.as_json else lines, sys.stderr)
    write_after_update(config)
    raise typer.Exit(int(exit_code_of(result)))


def _on_all_rows(result: UpdateResult, env: str | None, namespace: Namespace) -> list[Line]:
    """How to compute streaming tables of an environment on all their rows, where nothing new came for them."""
    steps = [step for step in result.steps if step.kind is Kind.STREAMING_TABLE and step.strategy is Strategy.SKIP]
    if env is None or not steps:
        return []
    prefix = f"{namespace.catalog}.{namespace.schema}."
    names = ",".join(dict.fromkeys(step.dataset.removeprefix(prefix) for step in steps))
    text = f"A changed definition of a streaming table applies to new rows. On all rows: lakelet run --env {env} --full-refresh {names}"
    return [Line(text, "quiet")]


def _only_states(request: Request) -> bool:
    """Whether only changed datasets were asked for."""
    return bool(request.select) and all(parsed(text).name.startswith(STATE) for text in request.select)


def exit_code_of(result: UpdateResult) -> ExitCode:
    """3 if every failure is the machine's, such as a full disk; 1 for a failed critical check or publication; else by the state."""
    of_machine = bool(result.errors) and all(error.exit_code is ExitCode.ENVIRONMENT for error in result.errors)
    if of_machine:
        return ExitCode.ENVIRONMENT
    return ExitCode.FAILED if result.failed_checks or result.unpublished else _EXITS.get(result.state, ExitCode.FAILED)


def validate(asked: o.CommonOptions) -> None:
    """Load the pipeline and check every definition. Nothing is written."""
    config = configured(asked)
    pipeline, request = _pipeline_and_request(config, asked)
    with warm(), stdout_for_data(asked), shown_phases(sys.stderr):
        checked = pipeline.check(request, new_process=True)
    found = checked.graph
    flows = sum(len(node.flows) for node in found.nodes)
    rules = sum(len(node.expectations) for node in found.nodes)
    if asked.as_json:
        facts = {"valid": True, "pipeline": config.name, "datasets": len(found.nodes), "flows": flows, "expectations": rules}
        notices = [{"text": notice.text, "where": str(notice.where)} for notice in (*checked.unchecked, *checked.notices)]
        changes = {"changes": [change.as_json() for change in checked.changes]} if checked.changes else {}
        write_data(json.dumps({**facts, "notices": notices, **changes}, ensure_ascii=False))
        return
    size = f"{counted(len(found.nodes), 'dataset')}, {counted(flows, 'flow')}, {counted(rules, 'expectation')}"
    write_lines([*_notice_lines(checked.unchecked), *_notice_lines(checked.notices)], sys.stderr)
    size += f", {len(checked.unchecked):,} not checked" if checked.unchecked else ""
    write_lines([Line(text) for text in changes_text(checked.changes)], sys.stderr)
    write_lines([Line(f"{config.name} is valid: {size}", "good")], sys.stderr)


Explain = Annotated[
    list[str] | None,
    typer.Option(
        "--explain", metavar="NAME,...", help="All about the refresh of these materialized views.", autocompletion=o.stored_datasets
    ),
]


def plan(asked: o.CommonOptions, explain: Explain = None) -> None:
    """Show what an update would do, and why. Nothing is written."""
    config = configured(asked)
    pipeline, request = _pipeline_and_request(config, asked)
    with warm(), stdout_for_data(asked), shown_phases(sys.stderr):
        found = pipeline.plan(request, new_process=not explain)
    write_lines(_notice_lines(found.unchecked), sys.stderr)
    from lakelet.plan.explanation import plan_json, plan_text
    from lakelet.plan.view_explanation import explained_steps, explanation_json, explanation_text

    if explain:
        steps = explained_steps(found, o.names(explain), config.namespace)
        write_data(_json_text(explanation_json(steps)) if asked.as_json else explanation_text(steps))
        return
    write_data(_json_text(plan_json(found)) if asked.as_json else plan_text(found))


Mermaid = Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flow chart.")]
Svg = Annotated[bool, typer.Option("--svg", help="As a picture: lakelet graph --svg > graph.svg")]
Html = Annotated[bool, typer.Option("--html", help="As a page with the picture: lakelet graph --html > graph.html")]


def graph(asked: o.CommonOptions, mermaid: Mermaid = False, svg: Svg = False, html: Html = False) -> None:
    """Show the datasets and what they read. Nothing is written."""
    if sum((mermaid, svg, html, asked.as_json)) > 1:
        raise LakeletError("USAGE", "--mermaid, --svg, --html and --json exclude each other")
    config = configured(asked)
    pipeline, request = _pipeline_and_request(config, asked)
    with warm(), stdout_for_data(asked), shown_phases(sys.stderr):
        checked = pipeline.check(request, new_process=True)
    found = checked.graph
    write_lines(_notice_lines(checked.unchecked), sys.stderr)
    from lakelet.plan.explanation import graph_html, graph_json, graph_mermaid, graph_svg, graph_text

    if mermaid or svg or html:
        states = pipeline.states()
        drawn = graph_mermaid(found, states) if mermaid else graph_svg(found, states) if svg else graph_html(found, config.name, states)
        write_data(drawn)
        return
    write_data(_json_text(graph_json(found, checked.definitions)) if asked.as_json else graph_text(found))


def _notice_lines(notices: Iterable[Notice]) -> list[Line]:
    return [Line(f"{notice.where}: {notice.text}", "warning") for notice in notices]


def configured(asked: o.CommonOptions, *, continuous: bool | None = None) -> PipelineConfig:
    return load_config(
        asked.source or (),
        target=asked.target,
        params=o.pairs(asked.param, "--param"),
        storage=asked.storage,
        catalog=asked.catalog,
        schema=asked.schema,
        master=asked.master,
        maps=pairs_of(asked.map, "--map", **MAP_FORM),
        tables=pairs_of(asked.table, "--table", **TABLE_FORM),
        moved=pairs_of(asked.moved, "--moved", **MOVED_FORM),
        continuous=continuous,
        take_over=o.names(asked.take_over),
    )


def _pipeline_and_request(config: PipelineConfig, asked: o.CommonOptions) -> tuple[Pipeline, Request]:
    from lakelet.cli.spark_start import ready_for_spark
    from lakelet.pipeline import Pipeline
    from lakelet.plan.selection import Request

    ready_for_spark(config.packages)
    request = Request(
        o.names(asked.select),
        o.names(asked.full_refresh),
        asked.full_refresh_all,
        o.names(asked.reset_checkpoint),
        asked.refresh_failed,
        o.conditions(asked.replace_where),
    )
    return Pipeline(config), request


def stdout_for_data(asked: o.CommonOptions) -> AbstractContextManager[Any]:
    """With --json, what the pipeline's own code prints goes to stderr."""
    return redirect_stdout(sys.stderr) if asked.as_json else nullcontext()


def _json_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
