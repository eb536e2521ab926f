"""env list, env promote, env drop: environments over a storage, which `run --env NAME` begins."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakelet.base.text import aligned, counted, printable
from lakelet.cli import options as o
from lakelet.cli import storage as stored
from lakelet.cli.console import watcher
from lakelet.cli.lines import Line, write_data, write_lines, write_note
from lakelet.cli.run import configured, exit_code_of, stdout_for_data
from lakelet.cli.spark_start import ready_for_spark, warm
from lakelet.cli.summary import summary
from lakelet.update.stopping import stoppable

if TYPE_CHECKING:
    from lakelet.storage.root import Storage
    from lakelet.update.promotion import PromotedDataset

env_app = typer.Typer(
    no_args_is_help=True,
    help="List, promote and drop environments. There changed datasets are computed over the stored tables, without copying them.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The environment.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands to the application."""
    app.add_typer(env_app, name="env")


@env_app.command("list")
def list_environments(storage: o.StorageDir = None, as_json: o.AsJson = False) -> None:
    """List the environments, and the tables that each has written."""
    from lakelet.storage.environments import environment_names, environment_tables, find_environment

    root = stored.storage_root(storage)
    names = environment_names(root)
    found = [(name, find_environment(root, name)) for name in names]
    tables = [table for _, environment in found for table in environment_tables(environment)]
    if as_json:
        write_data(json.dumps([asdict(table) for table in tables], indent=2, ensure_ascii=False))
        return
    if not found:
        write_note(f"There is no environment in {root}. Begin one: lakelet run --env NAME")
        return
    for name, environment in found:
        write_data(printable(f"{name}: {_facts_text(environment)}"))
        rows = [(printable(t.name), str(t.version), "new" if t.base is None else str(t.base)) for t in tables if t.env == name]
        for line in (
            aligned(rows, header=("table", "version", "base"), right=(1, 2), indent="  ") if rows else ["  nothing was computed yet"]
        ):
            write_data(line)


def _facts_text(environment: Storage) -> str:
    from lakelet.storage.root import Storage

    base, registry = environment.base, environment.registry()
    assert base is not None
    now = Storage(base.path).registry().last_update
    moved = now is not None and now.id != base.update
    return f"began {base.began[:19].replace('T', ' ')} over {counted(len(registry.datasets), 'dataset')}" + (
        "; the main storage was updated since" if moved else ""
    )


def promote(asked: o.CommonOptions, name: Name) -> None:
    """Take over what was computed where definitions and inputs are the same, and compute the rest."""
    from lakelet.pipeline import Pipeline
    from lakelet.storage.environments import environment_tables, find_environment

    config = configured(asked)
    environment = find_environment(config.storage, name)
    ready_for_spark(config.packages)
    watch, update, listeners = watcher(as_json=False, stdout=sys.stderr, stderr=sys.stderr)
    try:
        with warm(), stoppable(), stdout_for_data(asked):
            result, found = Pipeline(config).promote(environment, listeners=listeners)
    finally:
        watch.close()
    if asked.as_json:
        tables = {table.name: asdict(table) for table in environment_tables(environment)}
        facts = [{**tables.get(one.name, {"name": one.name, "env": name}), "action": one.action, "reason": one.reason} for one in found]
        write_data(json.dumps(facts, indent=2, ensure_ascii=False))
    if result is None:
        write_note(f"The environment {name} has written no dataset of this pipeline: nothing to promote.")
        return
    following = [f"lakelet env drop {name}"]
    lines = summary(update.value(), result.state, result.problems, namespace=config.namespace, storage=asked.storage, following=following)
    write_lines([Line(""), *_promoted_lines(found), Line(""), *lines], sys.stderr)
    raise typer.Exit(int(exit_code_of(result)))


def _promoted_lines(found: Sequence[PromotedDataset]) -> list[Line]:
    known = {"swapped in": "same definition, same inputs", "there": "the main storage has it already"}
    rows = [(printable(one.name), one.action, one.reason or known[one.action]) for one in found]
    return [Line(line) for line in aligned(rows, header=("dataset", "was", "because"), indent="  ")]


@env_app.command("drop")
def drop(name: Name, storage: o.StorageDir = None, as_json: o.AsJson = False) -> None:
    """Remove an environment; the main storage keeps all that it has."""
    from lakelet.storage.environments import drop_environment, environment_tables, find_environment

    environment = find_environment(stored.storage_root(storage), name)
    tables = environment_tables(environment)
    size = sum(file.stat().st_size for file in Path(str(environment.root)).rglob("*") if file.is_file())
    drop_environment(environment)
    if as_json:
        write_data(json.dumps([asdict(table) for table in tables], indent=2, ensure_ascii=False))
        return
    write_note(f"Removed the environment {name}: {counted(len(tables), 'table')}, {size / 1e6:,.1f} MB")


env_app.command("promote")(o.with_common_options(promote, without=o.SELECTING | {"moved"}, own_first=True))
