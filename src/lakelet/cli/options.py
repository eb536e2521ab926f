"""The options that several commands share, how their texts are read, and shell completion of names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.names import given_names


def stored_datasets(incomplete: str) -> list[str]:
    """Return the completions of a partly typed list of names with directions: `a,+te` → `a,+team_daily`."""
    before, comma, last = incomplete.rpartition(",")
    plus = "+" if last.startswith("+") else ""
    typed = last.removeprefix("+").lower()
    return [f"{before}{comma}{plus}{name}" for name in _stored_names() if name.lower().startswith(typed)]


def _stored_names() -> list[str]:
    from lakelet.config.update_config import find_storage
    from lakelet.storage.root import Storage

    try:
        registry = Storage(find_storage(None)).registry()
    except (LakeletError, OSError):  # an invalid project file, which a shell cannot report
        return []
    prefix = f"{registry.namespace.catalog}.{registry.namespace.schema}."
    return sorted(stored.name.removeprefix(prefix) for stored in registry.datasets.values() if stored.active)


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SOURCE = "Project folder (default: this one), files, folders or globs of pipeline code, or the key of a pipeline of the bundle."

Sources = Annotated[list[str] | None, typer.Argument(metavar="SOURCE", help=_SOURCE, show_default=False)]
Target = Annotated[str | None, typer.Option("--target", "-t", metavar="NAME", help="Deployment target of the bundle.")]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="NAME,...",
        help="Only these datasets: names, globs, +name, name+, state:modified.",
        autocompletion=stored_datasets,
    ),
]
FullRefresh = Annotated[
    list[str] | None, typer.Option("--full-refresh", metavar="NAME,...", help="Reset these datasets first.", autocompletion=stored_datasets)
]
FullRefreshAll = Annotated[bool, typer.Option("--full-refresh-all", help="Reset every dataset first.")]
ResetCheckpoint = Annotated[
    list[str] | None, typer.Option("--reset-checkpoint", metavar="FLOW,...", help="These flows read their sources again; rows stay.")
]
RefreshFailed = Annotated[
    bool, typer.Option("--refresh-failed", help="Refresh what the last update did not finish, and everything downstream.")
]
ReplaceWhere = Annotated[
    list[str] | None, typer.Option("--replace-where", metavar="FLOW=CONDITION", help="What this REPLACE WHERE flow computes this once.")
]
TakeOver = Annotated[
    list[str] | None, typer.Option("--take-over", metavar="NAME,...", help="Make the tables of these pipelines in the storage its own.")
]
Params = Annotated[list[str] | None, typer.Option("--param", metavar="KEY=VALUE", help="Pipeline configuration; wins over the files.")]
Map = Annotated[list[str] | None, typer.Option("--map", metavar="FROM=TO", help="Replace a path prefix in what the code reads or writes.")]
Moved = Annotated[
    list[str] | None,
    typer.Option("--moved", metavar="OLD=NEW", help="The files of the folder OLD lie in NEW now: those that were read stay read."),
]
Table = Annotated[list[str] | None, typer.Option("--table", metavar="NAME=PATH", help="Give a folder or file a table's name.")]
StorageDir = Annotated[
    str | None, typer.Option("--storage", metavar="DIR", help="Folder for tables, checkpoints and the event log (default: .lakelet).")
]
EnvironmentName = Annotated[
    str | None, typer.Option("--env", metavar="NAME", help="The environment of that name over the storage (docs: environments).")
]
Catalog = Annotated[str | None, typer.Option("--catalog", metavar="NAME", help="Catalog of unqualified names.")]
Schema = Annotated[str | None, typer.Option("--schema", metavar="NAME", help="Schema of unqualified names.")]
Master = Annotated[str | None, typer.Option("--master", metavar="URL", help="Spark master (default: this machine).")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]


def names(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Names given as `a,b` or by repeating the option; commas in back quotes stay."""
    return given_names(texts)


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping. Raises USAGE for a text without `=` or without key."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise LakeletError("USAGE", f"{option} {text}: expected KEY=VALUE", todo=f"For example: {option} landing=data")
        found[key.strip()] = value
    return found


def conditions(texts: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """`FLOW=CONDITION` texts of --replace-where. Raises USAGE."""
    return tuple(pair for text in texts or () for pair in pairs([text], "--replace-where").items())


@dataclass(frozen=True)
class CommonOptions:
    """The options that run, validate, plan and graph have in common, as typed by the user."""

    source: Sources = None
    target: Target = None
    select: Select = None
    full_refresh: FullRefresh = None
    full_refresh_all: FullRefreshAll = False
    reset_checkpoint: ResetCheckpoint = None
    refresh_failed: RefreshFailed = False
    replace_where: ReplaceWhere = None
    take_over: TakeOver = None
    param: Params = None
    map: Map = None
    table: Table = None
    moved: Moved = None
    storage: StorageDir = None
    catalog: Catalog = None
    schema: Schema = None
    master: Master = None
    as_json: AsJson = False


SELECTING = frozenset({"select", "full_refresh", "full_refresh_all", "reset_checkpoint", "refresh_failed", "replace_where"})
"""The options that say which flows run."""


def with_common_options(command: Callable[..., None], *, without: Collection[str] = (), own_first: bool = False) -> Callable[..., None]:
    """Give a command `f(asked, **own options)` one parameter per field of `CommonOptions`, in the form typer reads.

    `without`: fields that the command has no option for. `own_first`: its own arguments come before the sources.
    """
    hints = get_type_hints(CommonOptions, include_extras=True)
    common = {f.name: inspect.Parameter(f.name, _KEYWORD, default=f.default, annotation=hints[f.name]) for f in fields(CommonOptions)}
    common = {name: parameter for name, parameter in common.items() if name not in without}
    # get_type_hints would wrap options whose default is None: before Python 3.11 it hides what is said of them.
    own = [p.replace(kind=_KEYWORD) for p in list(inspect.signature(command, eval_str=True).parameters.values())[1:]]

    def wrapper(**given: Any) -> None:
        asked = CommonOptions(**{name: given.pop(name) for name in common})
        command(asked, **given)

    shown = [*own, *common.values()] if own_first else [*common.values(), *own]
    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    wrapper.__annotations__ = {p.name: p.annotation for p in shown}
    wrapper.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return wrapper
