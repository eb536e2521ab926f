"""How the process ends: exceptions → a few lines on stderr and an exit code."""

from __future__ import annotations

import logging
import os
import platform
import sys
import traceback
from collections.abc import Callable

from lakelet import __version__
from lakelet.cli.console import error_lines, write_lines
from lakelet.cli.summary import Line
from lakelet.errors import ExitCode, LakeletError
from lakelet.redaction import redacted


def guarded(action: Callable[[], int], *, debug: bool) -> int:
    """Do `action` and return its exit code; errors are told on stderr, with a traceback only when `debug`."""
    if not debug:
        logging.getLogger().addFilter(_not_from_py4j)
    try:
        return action()
    except LakeletError as error:
        if debug:
            sys.stderr.write(redacted(traceback.format_exc()))
        write_lines(error_lines(error), sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        write_lines([Line("Interrupted. What was finished is kept.", "warning")], sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of our output (head, less) went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.COMPLETED)
    except Exception as error:
        if debug:
            sys.stderr.write(redacted(traceback.format_exc()))
        write_lines(_internal(error, debug), sys.stderr)
        return int(ExitCode.FAILED)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    """Py4j logs a traceback to the root logger when Ctrl-C hits it in the middle of a call."""
    return "py4j" not in record.pathname


def _internal(error: Exception, debug: bool) -> list[Line]:
    first = str(error).strip().splitlines()[:1]
    what = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
    versions = f"lakelet {__version__}, Python {platform.python_version()}"
    how = "above" if debug else "of the same command with --debug"
    return [
        Line(f"[INTERNAL] This is a defect in Lakelet: {what}", "bad"),
        Line(f"  Please report it with the traceback {how}, and these versions: {versions}."),
    ]
