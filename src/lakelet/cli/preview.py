"""preview, watch: compute some rows of a dataset without writing them; once, or whenever a source file is saved."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import DefinitionErrors, ExitCode
from lakelet.base.redaction import redacted
from lakelet.base.text import aligned, counted, printable
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, error_lines, write_lines
from lakelet.cli.row_output import Form, show_rows
from lakelet.cli.run import configured, stdout_for_data
from lakelet.cli.spark_start import make_later_starts_quick, ready_for_spark, renewed, warm
from lakelet.update.stopping import stoppable

if TYPE_CHECKING:
    from lakelet.inspection.pipeline_watch import Finding
    from lakelet.inspection.preview import ColumnChange, Preview


SHOWN_ROWS = 10

Name = Annotated[str, typer.Argument(metavar="NAME", help="A dataset, view or sink of the pipeline.", show_default=False)]
Rows = Annotated[int, typer.Option("--rows", min=0, metavar="N", help="Number of rows to show.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    without = o.SELECTING | {"take_over", "moved"}
    app.command()(o.with_common_options(preview, without=without, own_first=True))
    app.command()(o.with_common_options(watch, without=without))


def preview(asked: o.CommonOptions, name: Name, rows: Rows = SHOWN_ROWS) -> None:
    """Compute some rows of one dataset and judge its rules on them. Nothing is written."""
    from lakelet.inspection.preview import preview as previewed
    from lakelet.pipeline import Pipeline

    pipeline = Pipeline(configured(asked))
    write_lines([Line(f"Computing {printable(name)} with Spark ...", "quiet")], sys.stderr)
    with warm(), stdout_for_data(asked), shown_phases(sys.stderr):
        ready_for_spark(pipeline.config.packages)
        found = previewed(pipeline, name, rows)
    if asked.as_json:
        sys.stdout.write(redacted(json.dumps(found.as_json(), ensure_ascii=False)) + "\n")
        return
    show(found)


def watch(asked: o.CommonOptions, rows: Rows = SHOWN_ROWS) -> None:
    """Validate and preview what changed whenever a file is saved. It has one Spark session; Ctrl-C ends it, and nothing is written."""
    from lakelet.inspection.pipeline_watch import PipelineWatch
    from lakelet.spark.launch.resident.server import SessionEnded, SessionServer, WarmUpSteps

    environ, server, warming = dict(os.environ), SessionServer(), WarmUpSteps()  # before Spark starts, for which pyspark sets variables
    write_lines([Line("Starting Spark and analysing the pipeline ...", "quiet")], sys.stderr)
    data, phases = sys.stdout, ExitStack()  # with --json, output of the pipeline's code goes to stderr

    def report(finding: Finding) -> None:
        phases.close()
        _write_json(finding, data) if asked.as_json else _write_text(finding)

    def idle() -> None:
        server.use_idle_time(warming.step)
        quick_later_starts(os.getpid())

    quick_later_starts = cache(make_later_starts_quick)
    watching = PipelineWatch(lambda: configured(asked), report, rows, turn=server.turn, check=server.check, idle=idle)
    try:
        with stoppable(), stdout_for_data(asked), phases:
            phases.enter_context(shown_phases(sys.stderr))
            ready_for_spark()
            watching.begin()
            phases.close()
            write_lines([Line("Watching; save a file. Ctrl-C ends it.", "quiet")], sys.stderr)
            watching.go_on()
    except KeyboardInterrupt:
        write_lines([Line("Nothing was written.", "quiet")], sys.stderr)
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None
    except SessionEnded as ended:
        renewed(environ, str(ended))
    finally:
        server.close()


def _write_text(finding: Finding) -> None:
    from lakelet.inspection.pipeline_watch import LoadProblem, PreviewRows, SavedFiles, ValidDefinitions

    if isinstance(finding, SavedFiles):
        names = ", ".join(Path(file).name for file in finding.files)
        changed = f": {', '.join(finding.datasets)}" if finding.datasets else ""
        write_lines([Line(""), Line(printable(f"{names} saved{changed}"), "heading")], sys.stderr)
    elif isinstance(finding, ValidDefinitions):
        what = finding.dataset or f"the pipeline with {counted(finding.datasets, 'dataset')}"
        write_lines([Line(f"  {printable(what)} is valid  ({finding.seconds:.2f} s)", "good")], sys.stderr)
    elif isinstance(finding, LoadProblem):
        write_lines(error_lines(DefinitionErrors(finding.errors, finding.notices), sys.stderr), sys.stderr)
    elif isinstance(finding, PreviewRows):
        show(finding.preview)
        write_lines([Line(f"  ({finding.seconds:.2f} s)", "quiet")], sys.stderr)


def _write_json(finding: Finding, stream: IO[str]) -> None:
    from lakelet.inspection.pipeline_watch import LoadProblem, PreviewRows, SavedFiles, ValidDefinitions

    if isinstance(finding, SavedFiles):
        found: dict[str, Any] = {"event": "saved", "files": finding.files, "datasets": finding.datasets}
    elif isinstance(finding, ValidDefinitions):
        found = {"event": "valid", "dataset": finding.dataset, "datasets": finding.datasets, "seconds": round(finding.seconds, 3)}
    elif isinstance(finding, PreviewRows):
        found = {"event": "preview", "seconds": round(finding.seconds, 3), **finding.preview.as_json()}
    elif isinstance(finding, LoadProblem):
        keys = ("code", "what", "where", "why", "todo")
        errors = [{key: str(value) if (value := getattr(e, key)) else None for key in keys} for e in finding.errors]
        found = {"event": "error", "errors": errors, **({"notices": finding.notices} if finding.notices else {})}
    stream.write(redacted(json.dumps(found, ensure_ascii=False)) + "\n")
    stream.flush()


def show(found: Preview) -> None:
    """Write the rows to stdout and everything else to stderr."""
    from lakelet.inspection.inspector import TableRows

    columns = tuple(name for name, _ in found.columns)
    if found.rows and set(found.rows[0]) != set(columns):  # change events: the table has other columns than its source
        columns = tuple(found.rows[0])
    types = dict(found.columns)
    kinds = tuple(types.get(name, "") for name in columns)
    write_lines([Line(f"{found.name} ({found.kind.replace('_', ' ')})", "heading"), *_schema_lines(found)], sys.stderr)
    show_rows(TableRows(columns, iter(dict(row) for row in found.rows), kinds, len(found.rows)), Form.TABLE, len(found.rows))
    sys.stdout.flush()
    write_lines([*_rule_lines(found), *(Line(f"  {note}", "quiet") for note in found.notes)], sys.stderr)


def _schema_lines(found: Preview) -> Iterator[Line]:
    size = counted(len(found.columns), "column")
    if found.difference is None:
        yield Line(f"  {size}; nothing is stored yet", "quiet")
        return
    yield Line(
        f"  {size}, {'as stored' if not found.difference else 'different from the stored table:'}",
        "warning" if found.difference else "quiet",
    )
    for change in found.difference:
        yield Line(f"    {_change_text(change)}", "warning")


def _change_text(change: ColumnChange) -> str:
    name = printable(change.column)
    if change.before is None:
        return f"+ {name} {change.after}"
    if change.after is None:
        return f"- {name} {change.before}"
    return f"~ {name} {change.before} -> {change.after}"


def _rule_lines(found: Preview) -> Iterator[Line]:
    dropped = f", {found.dropped:,} of them dropped" if found.dropped else ""
    yield Line(f"  judged: {counted(found.judged, 'row')}{dropped}", "quiet")
    cells = [[printable(r.name), r.action, f"{r.passed:,} passed", f"{r.failed:,} failed", printable(r.constraint)] for r in found.rules]
    for rule, text in zip(found.rules, aligned(cells, right=(2, 3)), strict=True):
        yield Line(f"  {text}", "warning" if rule.failed else "good")
