"""Calls of the user's function that is a sink: `handler(df, batch_id)` (SK-6), and what such code, and event hooks, read and write.

The function runs in the session of its flow. It reads tables by the names that the pipeline knows; temporary views of its own come first.
What it writes by name is a path of the user's (`--table`) or a Delta table below the storage; what it writes by path lies where that says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelet.base import sentences
from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName, quoted, split_name
from lakelet.base.raised import innermost_location
from lakelet.base.user_code import call_user_code, caller_location, original_error
from lakelet.flows.context import FlowTask, RunFiles, RunReader
from lakelet.flows.environment import Environment
from lakelet.jvm.errors import Py4JJavaError
from lakelet.jvm.sessions import has_view, java_session
from lakelet.language.model import Flow, Hook, SinkHandler
from lakelet.language.registry import reading
from lakelet.spark.errors.diagnosis import essence, run_failure
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.outside import outside_tables
from lakelet.spark.names.paths import FILE_FORMATS, located, with_local_locations
from lakelet.spark.patches.created_tables import path_to_write, with_target
from lakelet.spark.session_clones import within
from lakelet.storage.root import new_table_path

_RULE_BROKEN = "EXPECTATION_VIOLATION"


def handled(task: FlowTask, handler: SinkHandler, batch: DataFrame, number: int) -> None:
    """Call the handler with one batch. Raises SINK_HANDLER_FAILED with the line of the user's file, EXPECTATION_VIOLATION for the batch."""
    environment, session = task.environment, batch.sparkSession
    try:
        with within(environment.spark, java_session(session)), beside_the_pipeline(environment, session, task.declared):
            call_user_code(handler, batch, number)
    except LakeletError as problem:
        problem.dataset, problem.where = problem.dataset or str(task.dataset.name), problem.where or task.dataset.where
        raise
    except Exception as raised:  # raised by the user's handler
        cause = original_error(raised)
        if _RULE_BROKEN in sentences.CODE.pattern.findall(str(cause)):  # of a view, found while the function read the batch
            raise run_failure(cause, dataset=str(task.dataset.name), where=task.declared.where, what="a rule was broken") from cause
        text = essence(str(cause)) if isinstance(cause, (PySparkException, Py4JJavaError)) else str(cause)
        raise LakeletError(
            "SINK_HANDLER_FAILED",
            f"its function raised {type(cause).__name__} in batch {number}",
            where=innermost_location(cause) or task.dataset.where,
            dataset=str(task.dataset.name),
            why=text or None,
            todo=f"Correct the function; the next update calls it with batch {number} again.",
        ) from cause


@contextmanager
def beside_the_pipeline(environment: Environment, session: SparkSession, flow: Flow) -> Iterator[None]:
    """Let code in the block read the pipeline's tables, and write others by name, which lie below the storage (SK-7)."""
    catalog = _Names(**{**vars(environment.catalog), "session": java_session(session)})
    reader = _Reader(session, catalog, environment=environment, flow=flow, files=RunFiles(session, environment), batch_query=True)
    with reading(reader):
        yield


@contextmanager
def around_hook(environment: Environment, hook: Hook) -> Iterator[None]:
    """Let an event hook read and write tables as the function of a sink does (RE-25)."""

    def query() -> Any:
        raise LakeletError("OUTSIDE_PIPELINE", "an event hook has no query", where=hook.where)

    flow = Flow(name=hook.name, target=TableName("", "", hook.name), query=query, where=hook.where, default=False)
    with beside_the_pipeline(environment, environment.spark, flow):
        yield


@dataclass(frozen=True)
class _Names(Catalog):
    """The pipeline's names, but for those of temporary views of the handler's."""

    session: Any = None

    def find(self, parts: Sequence[str]) -> TableName | None:
        if len(parts) == 1 and has_view(self.session, parts[0]):
            return None
        return super().find(parts)


class _Reader(RunReader):
    """Answers the handler's reads, and says where a table lies that it writes to by name."""

    takes_commands: ClassVar[bool] = True

    def sql(self, text: str, run: Callable[[str], DataFrame], args: Mapping[str, Any] | None = None) -> DataFrame:
        return super().sql(with_target(with_local_locations(text), lambda name, creating: self.target_of(name)), run, args)

    def target_of(self, name: str) -> str | None:
        """SQL of the table that a command or call names; None for what Spark knows by itself. Raises TARGET_KIND for the pipeline's own."""
        parts = split_name(name)
        if len(parts) == 2 and parts[0].lower() in FILE_FORMATS and "/" in parts[1]:
            return f"{parts[0]}.{quoted(located(parts[1], writing=True))}"
        full = self.catalog.find(parts)
        if full is None or full.catalog.lower() == "spark_catalog":
            return None
        own = self.catalog.dataset(parts)
        if own is not None and not self.catalog.is_foreign(own.name):
            raise LakeletError(
                "TARGET_KIND",
                f"the function writes to {full}, which belongs to this pipeline",
                where=caller_location(),
                todo="Let a flow write to it, or write to a table outside of the pipeline.",
            )
        table = outside_tables().by_key(full.key)
        if table is not None:
            return f"delta.{quoted(path_to_write(table))}"
        made = outside_tables().created.get(full.key)
        path = self.catalog.other_tables.get(full.key) or str(self.environment.storage.at(new_table_path(full)))
        return made or f"delta.{quoted(path)}"
