"""The `lakelet` command, and how its process ends. Commands load pyspark, deltalake and pandas by themselves."""

from __future__ import annotations

import atexit
import logging
import os
import platform
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from lakelet.base import VERSION
from lakelet.base.errors import ExitCode, LakeletError
from lakelet.base.redaction import redacted
from lakelet.cli import (
    deploy,
    diff,
    doctor,
    environments,
    init,
    maintain,
    new,
    preview,
    publish,
    quarantine,
    remote,
    report,
    rules,
    run,
    schemas,
    storage,
    tests,
)  # fmt: skip
from lakelet.cli.help import GroupedCommands
from lakelet.cli.lines import Line, error_lines, write_lines
from lakelet.files.durable import storage_failure
from lakelet.update.stopping import end_at_next

PATIENCE = 5.0
"""Seconds that the end of the process waits for threads of the pipeline's code."""


def guarded(action: Callable[[], int], *, debug: bool, interrupted: Callable[[], None] = lambda: None) -> int:
    """Do `action` and return its exit code; errors go to stderr, with a traceback only when `debug`.

    `interrupted` is called first when Ctrl-C ended it.
    """
    if not debug:
        logging.getLogger().addFilter(_not_from_py4j)
    try:
        return action()
    except LakeletError as error:
        if debug:
            sys.stderr.write(redacted(traceback.format_exc()))
        write_lines(error_lines(error, sys.stderr), sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        interrupted()
        write_lines([Line("Interrupted. What was finished is kept.", "warning")], sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of our output (head, less) went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.COMPLETED)
    except Exception as error:  # the last handler of the process: what no other one expected
        if debug:
            sys.stderr.write(redacted(traceback.format_exc()))
        refused = storage_failure(error)
        write_lines(error_lines(refused, sys.stderr) if refused else _defect_lines(error, debug), sys.stderr)
        return int(refused.exit_code if refused else ExitCode.FAILED)


def end_without_threads(code: int, *, patience: float = PATIENCE) -> None:
    """Let the process end with `code` even if threads that the pipeline's code started go on: they are waited for only so long."""
    left = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    if left:
        threading.Thread(target=_end_process, args=(left, code, patience), name="lakelet-end", daemon=True).start()


def _end_process(left: Sequence[threading.Thread], code: int, patience: float) -> None:
    deadline = time.monotonic() + patience
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    alive = [thread.name for thread in left if thread.is_alive()]
    if alive:
        text = f"Threads of the pipeline's code are still running and end with the process: {', '.join(alive)}"
        write_lines([Line(text, "warning")], sys.stderr)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    """Py4j logs a traceback to the root logger when Ctrl-C hits it in the middle of a call."""
    return "py4j" not in record.pathname


def _defect_lines(error: Exception, debug: bool) -> list[Line]:
    first = str(error).strip().splitlines()[:1]
    what = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
    versions = f"lakelet {VERSION}, Python {platform.python_version()}"
    how = "above" if debug else "of the same command with --debug"
    return [
        Line(f"[INTERNAL] This is a defect in Lakelet: {what}", "bad"),
        Line(f"  Please report it with the traceback {how}, and these versions: {versions}."),
    ]


DEBUG = "--debug"
_COMMENT = re.compile(r"--[^\s=]*\s")
"""A comment of SQL; options have no blanks before their values."""


class _PassedOn(BaseException):
    """Carries Ctrl-C and a closed pipe past typer's own handling."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class _Group(GroupedCommands):
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
    run,
    preview,
    storage,
    quarantine,
    environments,
    maintain,
    publish,
    report,
    schemas,
    init,
    new,
    doctor,
    rules,
    deploy,
    remote,
    diff,
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
