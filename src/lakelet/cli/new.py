"""new: starts projects and tables from templates, and copies the library that a deployed project takes along."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lakelet.base.errors import LakeletError
from lakelet.cli import options as o
from lakelet.cli.lines import Line, write_lines, write_note
from lakelet.cli.summary import program

POINTS = "starter|contact-center|web|factory|audit"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Write a new project or table, or a copy of lakelet.transforms.", rich_markup_mode=None)
    group.command()(project)
    group.command()(table)
    group.command()(transforms)
    app.add_typer(group, name="new")


def project(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="The new folder, with the project's name; `.` for this one.")],
    begin_with: Annotated[str, typer.Option("--from", metavar=POINTS, help="The template.")] = "starter",
    as_json: o.AsJson = False,
) -> None:
    """Write a project that runs: sample files, bronze, silver and gold, rules, a bundle, a test."""
    from lakelet.project.editor import write_settings
    from lakelet.scaffold import new_project

    created = new_project(name, begin_with)
    for_editors = [file for file in write_settings(created.folder) if file not in created.written]
    inside = created.folder == Path.cwd()
    commands = [*([] if inside else [f"cd {shlex.quote(_shown_path(created.folder))}"]), *created.point.next_commands]
    remarks = [
        f"{_shown_path(file)} is left out: only the package great-expectations can make its checks."
        " To have them: pip install 'lakelet[quality]'"
        for file in created.left_out
    ]
    _report_files((*created.written, *for_editors), Path.cwd(), commands, as_json=as_json, remarks=remarks)


def table(
    name: Annotated[str, typer.Argument(metavar="LAYER.NAME", help="The new table, for example silver.refunds.")],
    source: Annotated[str, typer.Option("--from", metavar="TABLE", help="The stored table that it reads, for example bronze.events.")],
    where: Annotated[str | None, typer.Option("--where", metavar="SQL", help="Only the rows that meet this condition.")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Write it in SQL.")] = False,
    python: Annotated[bool, typer.Option("--python", help="Write it in Python (default).")] = False,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Write a table's code, the rules that its rows suggest, and a test."""
    from lakelet.cli.new_table import belongs, planned
    from lakelet.scaffold import write_new
    from lakelet.scaffold.tables import Language

    if sql and python:
        raise LakeletError("USAGE", "--sql and --python exclude each other")
    language = Language.SQL if sql else Language.PYTHON
    plan = planned(name, source, where=where, language=language, storage=storage, note=write_note)
    written = write_new(plan.root, plan.files)
    remarks = [] if plan.new.rules else [f"No stored row of {plan.new.source.name} suggests a rule."]
    if not belongs(plan):
        remarks.append(f"{plan.new.file} is in none of the libraries of the pipeline: add it to the bundle.")
    option = f" --storage {shlex.quote(storage)}" if storage else ""
    _report_files(
        written,
        Path.cwd(),
        [f"lakelet run{option}", f"lakelet show {plan.new.name.name}{option}", "lakelet test"],
        as_json=as_json,
        remarks=remarks,
    )


def transforms(
    folder: Annotated[
        Path | None, typer.Argument(help="The pipeline's root_path; default: the project's folder.", show_default=False)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of an earlier copy.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Write a copy of lakelet.transforms, which Databricks does not have, into the project: it is deployed with it."""
    from lakelet.config.project_sources import project_above
    from lakelet.scaffold import LIBRARY, write_library

    root = folder or project_above(Path.cwd()) or Path.cwd()
    if not root.is_dir():
        raise LakeletError("USAGE", f"{root} is not a folder", todo="Name the folder of root_path, or none for the project's.")
    root = root.resolve()
    written = write_library(root, overwrite=overwrite)
    if written or as_json:
        _report_files(written, Path.cwd(), ["lakelet deploy --plan"], as_json=as_json)
    else:
        write_note(f"{_shown_path(root / LIBRARY)} is the library of the installed Lakelet already.")


def _report_files(files: Sequence[Path], near: Path, commands: Sequence[str], *, as_json: bool, remarks: Sequence[str] = ()) -> None:
    if as_json:
        sys.stdout.write(json.dumps([_shown_path(file, near) for file in files], ensure_ascii=False) + "\n")
    else:
        write_lines([Line(f"  {name}") for name in _names_without_stubs([_shown_path(file, near) for file in files])], sys.stdout)
    write_lines([Line(remark, "warning") for remark in remarks], sys.stderr)
    typed = [Line(f"  {_command_as_typed(command)}") for command in commands]
    write_lines([Line(f"Wrote {len(files)} files. Next:", "good"), *typed], sys.stderr)


def _names_without_stubs(names: Sequence[str]) -> list[str]:
    """Return the names, with the folder `typings/` in place of the stubs in it."""
    return list(dict.fromkeys(name.partition("typings/")[0] + "typings/" if name.endswith(".pyi") else name for name in names))


def _command_as_typed(command: str) -> str:
    """Return the command with the path of `lakelet` where the shell does not find it by name."""
    return f"{program()}{command.removeprefix('lakelet')}" if command.startswith("lakelet ") else command


def _shown_path(path: Path, near: Path | None = None) -> str:
    folder = near or Path.cwd()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
