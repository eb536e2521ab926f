"""diff: what changed code would do to the stored tables; with --remote, tables here and on Databricks side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from lakelet.base.errors import ExitCode
from lakelet.base.redaction import redacted
from lakelet.base.text import aligned, counted, listed, printable
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.diff_texts import diff_lines, diff_markdown, verdict
from lakelet.cli.lines import write_data, write_lines, write_note
from lakelet.cli.remote import PipelineKey, Remote, opened
from lakelet.cli.run import configured, stdout_for_data
from lakelet.cli.spark_start import ready_for_spark, warm
from lakelet.cli.storage import storage_root

if TYPE_CHECKING:
    from lakelet.deploy.differences import BothSides, DatasetDifference, RowComparison


_SHOWN_COLUMNS = 6
_MOST_ROWS = 10_000

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Datasets, with what reads them (default: what changed).", show_default=False),
]
Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COL,...", help="Columns that identify a row (default: the keys that are declared)."),
]
Ignored = Annotated[list[str] | None, typer.Option("--ignore", metavar="COL,...", help="Columns that do not count.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")]
MostRows = Annotated[
    int | None,
    typer.Option("--rows", min=0, metavar="N", help="With --remote: compare at most N rows of a dataset (10,000); 0 only counts."),
]
WarehouseId = Annotated[
    str | None, typer.Option("--warehouse", metavar="ID", help="With --remote: the SQL warehouse; needed if there are several.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    without = (o.SELECTING - {"select"}) | {"source", "take_over", "moved"}
    app.command()(o.with_common_options(diff, without=without, own_first=True))


def diff(
    asked: o.CommonOptions,
    name: Names = None,
    key: Key = None,
    ignore: Ignored = None,
    markdown: Markdown = False,
    remote: Remote = False,
    pipeline: PipelineKey = None,
    rows: MostRows = None,
    warehouse: WarehouseId = None,
) -> None:
    """Show what changed code would do to the stored tables. With --remote, compare them with those of a deployed pipeline."""
    local: dict[str, object] = {"--select": asked.select, "--ignore": ignore, "--markdown": markdown}
    local |= {"--param": asked.param, "--map": asked.map, "--table": asked.table, "--master": asked.master}
    local |= {"--catalog": asked.catalog, "--schema": asked.schema}
    _refuse(local if remote else {"--pipeline": pipeline, "--rows": rows, "--warehouse": warehouse}, remote=remote)
    if remote:
        _diff_remote(asked, tuple(name or ()), o.names(key), pipeline, _MOST_ROWS if rows is None else rows, warehouse)
    else:
        _diff_here(asked, tuple(name or ()), o.names(key), o.names(ignore), markdown=markdown)


def _refuse(options: Mapping[str, object], *, remote: bool) -> None:
    """Raise USAGE for an option of the other form of the command."""
    from lakelet.base.errors import LakeletError

    given = next((option for option, value in options.items() if value is not None and value is not False), None)
    if given is not None:
        raise LakeletError("USAGE", f"{given} {'does not go' if remote else 'only goes'} with --remote", todo="Leave one of the two out.")


def _diff_here(asked: o.CommonOptions, names: tuple[str, ...], key: tuple[str, ...], ignored: tuple[str, ...], *, markdown: bool) -> None:
    from lakelet.base.errors import LakeletError
    from lakelet.inspection.pipeline_diff import DiffRequest, pipeline_diff
    from lakelet.pipeline import Pipeline

    if markdown and asked.as_json:
        raise LakeletError("USAGE", "--markdown and --json exclude each other")
    pipeline = Pipeline(configured(asked))
    with warm(), stdout_for_data(asked), shown_phases(sys.stderr):
        ready_for_spark(pipeline.config.packages)
        found = pipeline_diff(pipeline, DiffRequest(names, o.names(asked.select), key, ignored))
    if asked.as_json:
        write_data(json.dumps(found.as_json(), indent=2, ensure_ascii=False, default=str))
    elif markdown:
        write_data(diff_markdown(found))
    else:
        write_lines([replace(line, text=redacted(line.text)) for line in diff_lines(found)], sys.stdout)
    write_note(verdict(found))
    raise typer.Exit(int(ExitCode.FAILED if found.failed else ExitCode.COMPLETED if found.equal else ExitCode.CHANGES))


def _diff_remote(
    asked: o.CommonOptions, names: tuple[str, ...], key: tuple[str, ...], pipeline: str | None, rows: int, warehouse: str | None
) -> None:
    root = storage_root(asked.storage)
    where = opened(asked.target)
    chosen = where.pipeline(pipeline)
    from lakelet.deploy.comparison import ComparisonRequest, compare

    found = compare(root, where, chosen, ComparisonRequest(names, key, rows, warehouse), notice=write_note)
    if asked.as_json:
        write_data(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        for one in found.datasets:
            for line in _difference_lines(one):
                write_data(printable(line))
        different = sum(not one.equal for one in found.datasets)
        said = f"{different:,} of them different" if different else "all equal" if found.datasets else "nothing to compare"
        write_note(f"{counted(len(found.datasets), 'dataset')} compared with {found.pipeline} in {found.target}: {said}")
    raise typer.Exit(int(ExitCode.COMPLETED if found.equal else ExitCode.FAILED))


def _difference_lines(one: DatasetDifference) -> Iterator[str]:
    """One dataset: a headline, then what differs and what was not compared."""
    if one.only:
        yield f"DIFFERENT  {one.name}: only {'here' if one.only == 'local' else 'in the workspace'}"
        return
    facts = [_rows_text(one)]
    facts += [counted(one.rules_compared, "expectation")] if one.rules_compared else []
    if one.rows_compared:
        facts.append(f"{one.rows_compared.compared:,} compared by {_key_text(one.rows_compared)}")
    other = f" and {one.hosted_name}" if one.hosted_name != one.name else ""
    yield f"{'equal    ' if one.equal else 'DIFFERENT'}  {one.name}{other}: {one.failed or ', '.join(fact for fact in facts if fact)}"
    yield from _side_by_side("column", one.columns or {})
    yield from _side_by_side("expectation (passed, failed)", one.rules or {})
    if one.rows_compared:
        yield from _key_lines(one.rows_compared)
    yield from (f"  not compared: {text}" for text in one.notes)


def _rows_text(one: DatasetDifference) -> str:
    if one.rows is None:
        return ""
    same = one.rows.local == one.rows.hosted
    return counted(one.rows.local, "row") if same else f"{counted(one.rows.local, 'row')} here, {one.rows.hosted:,} in the workspace"


def _key_text(rows: RowComparison) -> str:
    return "all columns" if len(rows.key) > 3 else ", ".join(rows.key)


def _side_by_side(what: str, found: Mapping[str, BothSides]) -> Iterator[str]:
    if found:
        yield from aligned(
            [(name, _side_text(s.local), _side_text(s.hosted)) for name, s in found.items()],
            header=(what, "here", "workspace"),
            indent="  ",
        )


def _side_text(value: object) -> str:
    return "-" if value is None else ", ".join(f"{number:,}" for number in value) if isinstance(value, (tuple, list)) else str(value)


def _key_lines(rows: RowComparison) -> Iterator[str]:
    if rows.differing:
        of = "" if rows.complete else f" of the {rows.compared:,} rows that were looked for here"
        yield f"  {counted(rows.differing, 'differing key')}{of}"
    for one in rows.sample:
        key = ", ".join(f"{name}={_cell_value(value)}" for name, value in list(one.key.items())[:_SHOWN_COLUMNS])
        if not one.local_rows or not one.hosted_rows:
            yield f"    {key}: only {'in the workspace' if not one.local_rows else 'here'}"
        elif one.columns:
            shown = [f"{name} {_cell_value(s.local)} here, {_cell_value(s.hosted)} in the workspace" for name, s in one.columns.items()]
            yield f"    {key}: {'; '.join(shown[:_SHOWN_COLUMNS])}"
        else:
            yield f"    {key}: {counted(one.local_rows, 'row')} here, {one.hosted_rows:,} in the workspace"
    if len(rows.sample) < rows.differing:
        yield f"    and {rows.differing - len(rows.sample):,} more"
    if rows.left_out:
        yield f"  not compared: values of {listed(rows.left_out, _SHOWN_COLUMNS)}"
    if not rows.complete and not rows.differing:
        yield "  not compared: rows beyond the sample; a larger one with --rows N"


def _cell_value(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"
