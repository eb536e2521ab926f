"""The Spark session of a command: what the first start on a machine fetches, and the session of a `lakelet watch` of the folder."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.phases import Phase, report_phase
from lakelet.base.text import printable, seconds_text
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines

if TYPE_CHECKING:
    from lakelet.spark.launch.first_preparation import StartStep

_LATER_STARTS = "Later starts of Spark will be quicker: a process in the background prepares them now, once (a minute or so)."


def ready_for_spark(packages: Sequence[str] = ()) -> None:
    """Fetch Delta's jars, and those of the packages, where they are missing, with a line on stderr for each, and on a terminal a bar.

    At the end of the command a process is started that makes the class-data archive, where that is missing. Raises JAVA_MISSING or
    JARS_MISSING.
    """
    from lakelet.spark.launch.first_preparation import prepare

    with shown_phases(sys.stderr):
        prepare(StepLines(), packages)
    atexit.unregister(make_later_starts_quick)  # it may be called again, as by each query of a shell
    atexit.register(make_later_starts_quick, os.getpid())


def make_later_starts_quick(process: int) -> None:
    """Let another process make the class-data archive where it is missing, and write a line on stderr; not in forks of `process`."""
    from lakelet.spark.launch.first_preparation import start_archive

    if os.getpid() == process and start_archive():
        with suppress(OSError):
            write_lines([Line(_LATER_STARTS, "quiet")], sys.stderr)


def spark_starts(reason: str) -> None:
    """Write on stderr why Spark starts, then do what `ready_for_spark` does. Queries that may need Spark call it right before."""
    write_lines([Line(printable(reason), "quiet")], sys.stderr)
    ready_for_spark()


class StepLines:
    """Reports each step as a phase, and writes a line on stderr at its end."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}

    def __call__(self, step: StartStep) -> None:
        first = step.what not in self._began
        began = self._began.setdefault(step.what, time.monotonic())
        phase = Phase(f"Fetching {step.part}" if step.part else step.what, step.done or 0, step.total, in_bytes=True)
        if not step.ended:
            report_phase(phase)
        if step.ended:
            sys.stderr.write(str(phase) + ("" if first else f"  {seconds_text(time.monotonic() - began)}") + "\n")
            sys.stderr.flush()


@contextmanager
def warm() -> Iterator[None]:
    """In the block Spark is that of a `lakelet watch` of this folder, where one fits. Raises SESSION_ENDED where that was the failure."""
    from lakelet.spark.launch.resident.client import session_client

    with session_client(lambda text: write_lines([Line(printable(text), "quiet")], sys.stderr)) as client:
        try:
            yield
        except typer.Exit as ended:
            if ended.exit_code and client.has_lost_session():
                raise _session_ended() from None
            raise
        except Exception as problem:
            if client.has_lost_session():
                raise _session_ended() from problem
            raise


def _session_ended() -> LakeletError:
    return LakeletError(
        "SESSION_ENDED",
        "the session of lakelet watch ended while this command used it",
        why="lakelet watch or its Java process was stopped or killed",
        todo="Give the command again: it starts Spark itself where there is no session. An update goes on where this one stopped.",
    )


def renewed(environ: Mapping[str, str], why: str) -> NoReturn:
    """Give this command line again, in this process. `environ`: the environment that it was started with."""
    write_lines([Line(""), Line(f"The session ended: {why}. Starting again ...", "warning")], sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, dict(environ))
