"""Everything that an update replaces in pyspark and Delta, put on and taken off together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from lakelet.base.patching import patched_with
from lakelet.spark.names.outside import Outside, using
from lakelet.spark.patches import other_names
from lakelet.spark.patches.exclusive import only_pipeline
from lakelet.spark.patches.python_files import mapped_files
from lakelet.spark.patches.table import UPDATE
from lakelet.spark.session_clones import UpdateSession, quiet_pyspark, user_session


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
        other_names.register(session)
        yield session


__all__ = ["UpdateContext", "patched"]
