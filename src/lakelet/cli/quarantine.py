"""quarantine show and quarantine replay: rows that drop rules left out, and their way back."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from lakelet.base.text import aligned, counted, printable
from lakelet.cli import options as o
from lakelet.cli import storage as stored
from lakelet.cli.console import shown_phases, watcher
from lakelet.cli.lines import Line, write_lines, write_note
from lakelet.cli.row_output import Form, Limit, show_rows
from lakelet.cli.run import configured, exit_code_of, stdout_for_data
from lakelet.cli.spark_start import ready_for_spark, spark_starts
from lakelet.cli.summary import summary
from lakelet.update.stopping import stoppable

quarantine_app = typer.Typer(no_args_is_help=True, help="Show rows that drop rules left out, and give them back.")

Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset with the property lakelet.quarantine.")]


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands to the application."""
    app.add_typer(quarantine_app, name="quarantine")


@quarantine_app.command("show")
def show(
    name: Dataset, limit: Limit = None, storage: o.StorageDir = None, env: o.EnvironmentName = None, as_json: o.AsJson = False
) -> None:
    """Show the rows that are held, with the rules that they broke."""
    from lakelet.inspection.inspector import read_quarantine

    with shown_phases(sys.stderr, f"Reading {printable(name)}"):
        found = read_quarantine(stored.storage_root(storage, env), name, note=spark_starts)
    if as_json:
        show_rows(found.rows, Form.JSON, limit)
        return
    gone = f", {found.released:,} released" if found.released else ""
    write_note(f"{found.table}: {counted(found.held, 'row')} held{gone}")
    if not found.held:
        return
    for line in aligned([(printable(rule), f"{rows:,}") for rule, rows in found.broken], header=("rule", "held rows"), right=(1,)):
        _write_line(line)
    _write_line("")
    show_rows(found.rows, Form.TABLE, limit)


def replay(asked: o.CommonOptions, dataset: Dataset) -> None:
    """Judge the rows in the quarantine by the present rules; those that pass go into the dataset, once."""
    from lakelet.pipeline import Pipeline

    config = configured(asked)
    ready_for_spark(config.packages)
    watch, update, listeners = watcher(as_json=False, stdout=sys.stderr, stderr=sys.stderr)
    try:
        with stoppable(), stdout_for_data(asked):
            result, found = Pipeline(config).replay(dataset, listeners=listeners)
    finally:
        watch.close()
    counts = {} if found is None else {"judged": found.judged, "released": found.released, "held": found.judged - found.released}
    rules: list[dict[str, Any]] = [] if found is None else [asdict(rule) for rule in found.rules]
    if asked.as_json:
        sys.stdout.write(json.dumps([{"dataset": dataset, "update_id": result.update_id, **counts, "rules": rules}], indent=2) + "\n")
    if found is None:
        lines = summary(update.value(), result.state, result.problems, namespace=config.namespace, storage=asked.storage)
        write_lines([Line(""), *lines], sys.stderr)
        raise typer.Exit(int(exit_code_of(result)))
    lines = [
        Line(f"{dataset}: {counted(found.judged, 'held row')} judged, {found.released:,} released, {counts['held']:,} still held", "good")
    ]
    if found.waiting:
        lines.append(Line("Rows of a batch that an update did not finish were left out; `lakelet run` decides about them.", "warning"))
    broken = [(rule.name, f"{rule.failed_records:,}") for rule in found.rules if rule.failed_records]
    header = ("rule", "judged rows that break it")
    lines += [Line(line) for line in aligned(broken, header=header, right=(1,), indent="  ")] if broken else []
    write_lines(lines, sys.stderr)


def _write_line(text: str) -> None:
    sys.stdout.write(text + "\n")


quarantine_app.command("replay")(o.with_common_options(replay, without=o.SELECTING | {"moved"}, own_first=True))
