"""Everything that an update replaces in pyspark and Delta, put on and taken off together, for one pipeline at a time in a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.patching import patched_with
from lakelet.spark.names.outside import Outside, using
from lakelet.spark.patches import session_functions
from lakelet.spark.patches.all_patches import UPDATE
from lakelet.spark.patches.python_files import mapped_files
from lakelet.spark.session_clones import UpdateSession, quiet_pyspark, user_session

_holders_lock = threading.Lock()
_holders: list[int] = []  # the thread that works on a pipeline, once for each block that it is in


@contextmanager
def only_pipeline(*, nested: bool = False) -> Iterator[None]:
    """Hold the process for one pipeline for the life of the block.

    `nested`: the block may stand inside another one of the same thread.

    Raises PROCESS_BUSY while another pipeline of this process is loaded, validated, planned or run, in whatever thread: names of one would
    be looked up in the other.
    """
    with _holders_lock:
        if _holders and not (nested and _holders[0] == threading.get_ident()):
            raise LakeletError(
                "PROCESS_BUSY",
                "another pipeline is being loaded or run in this process",
                todo="Run them one after the other, or each in a process of its own.",
            )
        _holders.append(threading.get_ident())
    try:
        yield
    finally:
        with _holders_lock:
            _holders.pop()


@dataclass(frozen=True)
class UpdateContext:
    """Context of the replacements of one update.

    Attributes:
        base: the session that the update's own is a clone of.
        settings: the pipeline's parameters, as settings of the update's session.
        outside: the paths and tables from outside.
    """

    base: SparkSession
    settings: Mapping[str, str]
    outside: Outside = field(default_factory=Outside)


@contextmanager
def patched(context: UpdateContext) -> Iterator[UpdateSession]:
    """Yield the update's session, with every patch of an update on; pyspark and Delta are as before when the block ends, however it ends.

    Raises PROCESS_BUSY while another pipeline of this process is at work, and PROPERTY_INVALID for a value that a setting cannot have.
    """
    with (
        only_pipeline(),
        quiet_pyspark(),
        user_session(context.base, context.settings) as session,
        patched_with(UPDATE, session),
        mapped_files(context.outside.paths, (*context.settings.values(), *os.environ.values())),
        using(context.outside),
    ):
        session_functions.register_other_names(session)
        yield session


__all__ = ["UpdateContext", "only_pipeline", "patched"]
