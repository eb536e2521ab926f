"""The `lakelet` command. Imports nothing heavy: pyspark, deltalake and pandas are loaded by the commands that need them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lakelet.base import VERSION
from lakelet.cli import (
    compare,
    deploy,
    doctor,
    init,
    maintain,
    new,
    preview,
    quarantine,
    remote,
    report,
    rules,
    schemas,
    storage,
    tests,
    updates,
)
from lakelet.cli.failures import end_without_threads, guarded
from lakelet.update.stopping import end_at_next

DEBUG = "--debug"
_COMMENT = re.compile(r"--[^\s=]*\s")
"""A comment of SQL; options have no blanks before their values."""


class _PassedOn(BaseException):
    """Carries Ctrl-C and a closed pipe past typer's own handling."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class _Group(TyperGroup):
    """The commands; Ctrl-C and a closed pipe are handled by `main`."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (KeyboardInterrupt, BrokenPipeError) as cause:
            raise _PassedOn(cause) from None


app = typer.Typer(
    name="lakelet",
    cls=_Group,
    help="Runs Delta Live Tables code unchanged on this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"lakelet {VERSION}\n")
        raise typer.Exit


@app.callback()
def _lakelet(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show Python tracebacks; works after every command too.")] = False,
) -> None:
    pass


for _module in (
    updates,
    preview,
    storage,
    quarantine,
    maintain,
    report,
    schemas,
    init,
    new,
    doctor,
    rules,
    deploy,
    remote,
    compare,
    tests,
):
    _module.register(app)


def main(arguments: Sequence[str], *, interrupted: Callable[[], None] = lambda: None) -> int:
    """Run one command line (without the program's name) and return the exit code. Prints to stdout and stderr.

    An argument that begins with a comment of SQL (`-- what it shows`) is a text and no option. `interrupted` is called first when
    Ctrl-C ended it.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    debug = DEBUG in arguments[:end]
    kept = [f" {a}" if _COMMENT.match(a) else a for i, a in enumerate(arguments) if i >= end or a != DEBUG]

    def call() -> int:
        try:
            app(args=kept, prog_name="lakelet")
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else 0
        except _PassedOn as passed:
            raise passed.cause from None
        return 0

    return guarded(call, debug=debug, interrupted=interrupted)


def entry() -> None:
    """The console script."""
    code = main(sys.argv[1:], interrupted=end_at_next)
    end_without_threads(code)
    sys.exit(code)


if __name__ == "__main__":
    entry()
