"""Streaming queries that stay alive between the rounds of a continuous update (docs/decisions/0050-kept-queries.md).

Starting a query costs more than a small micro-batch does: a session, the flow's function, two Python processes, Spark's analysis. A query
that reads the files of one source and nothing else has no other way to learn of changes than its source, so it can wait for the next round.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

from pyspark.sql import SparkSession

from lakelet.analysis.analyzed import AnalyzedFlow
from lakelet.autoloader.rounds import QueryRounds
from lakelet.jvm.streams import end_listening, release
from lakelet.language.model import Dataset
from lakelet.plan.kinds import APPEND

MOST_QUERIES = 16
"""Each one has a Python process, some 20 MB: further flows start a query for each of their rounds."""


class KeptQuery(Protocol):
    """A running query with what writes its micro-batches. `rounds`: by which its source is told when to look for files."""

    @property
    def query(self) -> Future[Any]: ...
    @property
    def rounds(self) -> QueryRounds | None: ...
    def __call__(self, batch: Any, number: int) -> None: ...


class KeptQueries:
    """The queries that stay for their flows' next rounds, by flow. `on`: in a continuous update, the only one with rounds."""

    def __init__(self) -> None:
        self.on = False
        self._queries: dict[str, Any] = {}

    def take_more(self) -> bool:
        """Whether one more query may stay."""
        return self.on and len(self._queries) < MOST_QUERIES

    def of(self, flow: str, spark: SparkSession) -> Any:
        """The flow's query; None if it has none, or one that has ended meanwhile: a new one goes on from the checkpoint."""
        kept = self._queries.get(flow)
        if kept is not None and not kept.query.result().isActive:
            self.end(flow, spark)
            return None
        return kept

    def add(self, flow: str, query: KeptQuery) -> None:
        """Keep a query that was started, in the place of one that has ended."""
        self._queries[flow] = query

    def end(self, flow: str, spark: SparkSession) -> None:
        """End the flow's query, if there is one. Errors of one that has ended, or whose Java process has, are of no interest here."""
        kept = self._queries.pop(flow, None)
        if kept is None:
            return
        if kept.rounds is not None:
            kept.rounds.close()
        with suppress(Exception):
            kept.query.result().stop()
        release(spark, kept)
        end_listening(kept.query.result())

    def close(self, spark: SparkSession) -> None:
        """End all of them. Their micro-batches have ended before."""
        self.on = False
        for flow in tuple(self._queries):
            self.end(flow, spark)


def may_stay(dataset: Dataset, flow: AnalyzedFlow) -> bool:
    """Whether the flow's query depends on the files of one source alone, and has nothing to do without new ones.

    A watermark lets Spark add batches without rows; tables that the query reads as they are would stay as they were; what a quarantine does
    depends on the state in which a query finds it.
    """
    stream = flow.stream
    if flow.kind is not APPEND or dataset.keeps_dropped or len(flow.sources) != 1 or stream.files != (0,):
        return False
    return not (stream.watermark or stream.processor or stream.groups or stream.aggregates or stream.unversioned)


def new_rounds() -> QueryRounds | None:
    """What a query that is to stay is started with; None where the machine's temporary folder has too long a name for a socket."""
    with suppress(OSError):
        return QueryRounds()
    return None


__all__ = ["KeptQueries", "KeptQuery", "may_stay", "new_rounds"]
