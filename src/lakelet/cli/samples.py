"""sample and sample check: data made up for the example pipelines, and what their tables must hold."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.text import aligned, counted
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases, write_lines
from lakelet.cli.first_start import spark_starts
from lakelet.cli.storage import storage_root
from lakelet.cli.summary import Line

sample_app = typer.Typer(invoke_without_command=True, no_args_is_help=False, subcommand_metavar="[check ...]")


def register(app: typer.Typer) -> None:
    """Add the command and its subcommand to the application."""
    app.add_typer(sample_app, name="sample")


@sample_app.callback()
def sample(
    context: typer.Context,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="Lines to write, over all drops.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", help="The same seed gives the same files.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to write landing/ and expected/.")] = None,
    drops: Annotated[int, typer.Option(min=1, metavar="N", help="In how many drops the rows arrive.")] = 1,
    append: Annotated[bool, typer.Option("--append", help="Continue the sample that DIR holds.")] = False,
    beyond_watermark: Annotated[bool, typer.Option("--beyond-watermark", help="Some entries lie behind the watermark.")] = False,
) -> None:
    """Write sample data: landing files, and the expected content of every table after each drop."""
    if context.invoked_subcommand is not None:
        return
    missing = [name for name, value in (("--rows", rows), ("--seed", seed), ("--out", out)) if value is None]
    if rows is None or seed is None or out is None:
        raise LakeletError(
            "USAGE", f"missing: {', '.join(missing)}", todo="For example: lakelet sample --rows 100000 --seed 1 --out sample"
        )
    samples = _samples()

    with shown_phases(sys.stderr):
        report = samples.generate(out, rows=rows, seed=seed, drops=drops, append=append, beyond_watermark=beyond_watermark)
        samples.write_expected(out)
    lines = [Line(f"drop {d.drop}: {counted(d.lines, 'line')} in {counted(len(d.files), 'file')}") for d in report.drops]
    write_lines([*lines, Line(f"Wrote {out / 'landing'} and {out / 'expected'}.", "good")], sys.stderr)


@sample_app.command("check")
def check_sample(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The sample's folder.")],
    drop: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Compare with the result after this drop (default: the last).")
    ] = None,
    storage: o.StorageDir = None,
) -> None:
    """Compare the stored tables with what the sample expects."""
    from lakelet.inspection.inspector import read_arrow

    samples = _samples()

    root = storage_root(storage)

    def read_table(name: str) -> Any:
        return read_arrow(root, name, note=spark_starts)

    with shown_phases(sys.stderr, "Comparing tables"):
        differences = samples.check(folder, read_table, drop=drop)
    if not differences:
        write_lines([Line("Every table is as expected.", "good")], sys.stderr)
        return
    for line in aligned([(d.table, d.message) for d in differences]):
        sys.stdout.write(line + "\n")
    tables = sorted({d.table for d in differences})
    raise LakeletError("SAMPLE_MISMATCH", f"{counted(len(tables), 'table')} of {root} differ from {folder}: {', '.join(tables)}")


def _samples() -> ModuleType:
    """The generator of sample data. Raises SAMPLES_MISSING."""
    try:
        from lakelet.project import samples
    except ModuleNotFoundError as problem:
        if problem.name != "orjson":
            raise
        raise LakeletError(
            "SAMPLES_MISSING",
            "sample data is written and checked with the Python package orjson, which is not installed here",
            todo="Install the extra: pip install 'lakelet[samples]'.",
        ) from None
    return samples
