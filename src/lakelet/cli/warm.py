"""The session of `lakelet watch`: other commands use its Java process, and it is renewed when one of them has left it unusable."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.text import printable
from lakelet.cli.console import write_lines
from lakelet.cli.summary import Line


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


__all__ = ["renewed", "warm"]
