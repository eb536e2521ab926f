"""rules list, check, test, suggest, convert: the rules of a pipeline and what they find."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import ExitCode
from lakelet.base.text import aligned, counted, printable, shortener
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_data, write_lines, write_note
from lakelet.cli.row_output import cell_text
from lakelet.cli.run import configured, stdout_for_data
from lakelet.cli.spark_start import ready_for_spark, spark_starts
from lakelet.cli.storage import storage_root

if TYPE_CHECKING:
    from lakelet.pipeline import Pipeline


SHOWN_ROWS = 20
_OF_UPDATES = ("select", "full_refresh", "full_refresh_all", "reset_checkpoint", "refresh_failed", "replace_where", "take_over", "moved")
"""Options that only mean something to an update."""

rules_app = typer.Typer(no_args_is_help=True, help="List, check, test, suggest and convert the pipeline's rules.")


class RuleForm(str, Enum):
    """What `convert` writes."""

    GX = "gx"
    SQL = "sql"
    YAML = "yaml"


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands to the application."""
    app.add_typer(rules_app, name="rules")
    rules_app.command("list")(o.with_common_options(list_rules, without=_OF_UPDATES))
    rules_app.command("check")(o.with_common_options(check, without=_OF_UPDATES))
    for name, command in (("test", judge), ("suggest", suggest), ("convert", convert)):
        rules_app.command(name)(command)


def list_rules(
    asked: o.CommonOptions,
    owner: Annotated[str, typer.Option("--owner", metavar="NAME", help="Only the rules of this owner.")] = "",
) -> None:
    """List all rules: those of the rule files and those that the code declares."""
    from lakelet.rules import checking

    pipeline, folder = _pipeline(asked)
    with stdout_for_data(asked), shown_phases(sys.stderr):
        found = [rule for rule in checking.list_rules(pipeline, folder, new_process=True) if owner in ("", rule.owner)]
    if asked.as_json:
        _write_json(rule.as_json() for rule in found)
        return
    short = shortener([rule.dataset for rule in found if rule.dataset])
    rows = [
        (
            short(rule.dataset or "-") if rule.used else "(no dataset)",
            *(rule.name, rule.action, printable(rule.owner) or "-", printable(rule.constraint), str(rule.where)),
        )
        for rule in found
    ]
    for line in aligned(rows, header=("dataset", "rule", "action", "owner", "constraint", "")):
        write_data(line)
    if not found:
        write_note(f"No rule has the owner {owner}." if owner else "The pipeline has no rules.")


def check(asked: o.CommonOptions) -> None:
    """Find errors in rules: unknown columns, no condition, a name twice, used by no dataset, never failing or never holding."""
    from lakelet.rules import checking

    pipeline, folder = _pipeline(asked)
    with stdout_for_data(asked), shown_phases(sys.stderr):
        found = checking.check_rules(pipeline, folder, new_process=True)
    errors, warnings = (sum(f.severity == severity for f in found) for severity in ("error", "warning"))
    if asked.as_json:
        _write_json(finding.as_json() for finding in found)
    else:
        for finding in (f for f in found if f.severity != "info"):
            nearest = f"; did you mean {' or '.join(map(repr, finding.nearest))}?" if finding.nearest else ""
            style = "bad" if finding.is_error else "warning"
            write_lines([Line(f"{finding.where}: {finding.severity}: {finding.problem}{nearest}", style)], sys.stderr)
        quiet = len(found) - errors - warnings
        if quiet:
            write_note(f"{counted(quiet, 'rule')} that warn hold for all stored rows (--json lists them).")
        counts = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        write_lines([Line(counts, "bad" if errors else "warning" if warnings else "good")], sys.stderr)
    if errors:
        raise typer.Exit(int(ExitCode.INVALID))


def judge(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The name of a rule of the table, or a condition as SQL text.")],
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A stored table.")],
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="At most N of the rows that break it.")] = SHOWN_ROWS,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Judge the stored rows of a table: how many break the rule, and which. Exit code 1 if any does."""
    from lakelet.config.rule_files import folder_above
    from lakelet.rules.trial import try_rule

    root = storage_root(storage)
    write_note(f"Judging {table} ...")
    with shown_phases(sys.stderr, "Running the query"):
        found = try_rule(root, folder_above(Path.cwd()), rule, table, limit=limit, note=spark_starts)
    if as_json:
        _write_json([found.as_json()])
    else:
        for line in aligned(
            [[cell_text(row.get(c)) for c in found.columns] for row in found.examples], header=[*map(printable, found.columns)]
        ):
            write_data(line)
        shown = f" The first {len(found.examples):,} are shown." if len(found.examples) < found.failed else ""
        of = f"{found.failed:,} of {counted(found.rows, 'row')}"
        text = f"{of} of {found.dataset} break {found.rule or 'the rule'}: {found.constraint}.{shown}"
        write_lines([Line(text, "warning" if found.failed else "good")], sys.stderr)
    if found.failed:
        raise typer.Exit(int(ExitCode.FAILED))


def suggest(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A stored table.")],
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Suggest rules that all or nearly all stored rows of a table meet, as YAML; nothing is written."""
    from lakelet.config.rule_files import folder_above
    from lakelet.rules import suggestions

    root = storage_root(storage)
    write_note(f"Profiling {table} ...")
    with shown_phases(sys.stderr, "Running the queries"):
        found = suggestions.suggest(root, folder_above(Path.cwd()), table, note=spark_starts)
    if as_json:
        _write_json(one.as_json() for one in found)
        return
    if not found:
        write_note(f"Nothing to suggest for {table}: it has no rows, or its rules say all that its rows do.")
        return
    write_data(suggestions.suggested_yaml(found))
    dropping = sum(one.action == "drop" and one.dropped > 0 for one in found)
    few = f", {dropping:,} of which would have dropped rows" if dropping else ""
    write_note(f"{counted(len(found), 'suggestion')}{few}. Ranges and sets are those of today's rows: keep what is true of tomorrow's too.")


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rule file, a suite of Great Expectations, or SQL.")],
    to: Annotated[
        RuleForm, typer.Option("--to", metavar="gx|sql|yaml", help="What to write: a suite, CONSTRAINT clauses, or a rule file.")
    ],
) -> None:
    """Print rules in another form; what that form has no word for is named on stderr."""
    from lakelet.rules.conversion import convert as converted

    found = converted(file, to.value)
    if found.text:
        write_data(found.text)
    write_lines([Line(f"not carried over: {note}", "warning") for note in found.notes], sys.stderr)


def _pipeline(asked: o.CommonOptions) -> tuple[Pipeline, Path]:
    """The pipeline and its folder of rule files."""
    from lakelet.config.rule_files import FOLDER
    from lakelet.pipeline import Pipeline

    config = configured(asked)
    ready_for_spark(config.packages)
    return Pipeline(config), config.root / FOLDER


def _write_json(objects: Iterable[Mapping[str, Any]]) -> None:
    write_data(json.dumps(list(objects), indent=1, ensure_ascii=False, default=str))
