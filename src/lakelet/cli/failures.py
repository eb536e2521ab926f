"""How the process ends: exceptions → a few lines on stderr and an exit code."""

from __future__ import annotations

import atexit
import logging
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from lakelet.base import VERSION
from lakelet.base.errors import ExitCode, LakeletError
from lakelet.base.redaction import redacted
from lakelet.cli.console import error_lines, write_lines
from lakelet.cli.summary import Line
from lakelet.files.durable import storage_failure

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
        write_lines(error_lines(refused, sys.stderr) if refused else _internal(error, debug), sys.stderr)
        return int(refused.exit_code if refused else ExitCode.FAILED)


def end_without_threads(code: int, *, patience: float = PATIENCE) -> None:
    """Let the process end with `code` even if threads that the pipeline's code started go on: they are waited for only so long."""
    left = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    if left:
        threading.Thread(target=_end, args=(left, code, patience), name="lakelet-end", daemon=True).start()


def _end(left: Sequence[threading.Thread], code: int, patience: float) -> None:
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


def _internal(error: Exception, debug: bool) -> list[Line]:
    first = str(error).strip().splitlines()[:1]
    what = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
    versions = f"lakelet {VERSION}, Python {platform.python_version()}"
    how = "above" if debug else "of the same command with --debug"
    return [
        Line(f"[INTERNAL] This is a defect in Lakelet: {what}", "bad"),
        Line(f"  Please report it with the traceback {how}, and these versions: {versions}."),
    ]
