"""Streaming queries: what Spark reports about one, and what one leaves behind when it ends: its Python function, its listeners."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql.utils import ForeachBatchFunction

from lakelet.jvm.errors import Py4JError
from lakelet.jvm.scala import items, mapping


def progress_since(query: Any, after: int) -> list[str]:
    """Spark's reports, as JSON, of the micro-batches behind `after`; `query.recentProgress` reads all that it keeps."""
    kept = query._jsq.recentProgress()
    first = len(kept)
    while first > 0 and int(kept[first - 1].batchId()) > after:
        first -= 1
    return [str(kept[n].json()) for n in range(first, len(kept))]


def observed_metrics(query: Any) -> dict[str, dict[str, Any]]:
    """The metrics observed in the current micro-batch, by name: `lastProgress` has those of the one before."""
    found = mapping(_execution(query).observedMetrics())
    return {name: json.loads(row.json()) for name, row in found.items()}


def total_of(query: Any, counter: str) -> int:
    """The sum of a counter over the operators of the current micro-batch."""
    return sum(int(metrics.apply(counter).value()) for metrics in _metrics(_execution(query).executedPlan()) if metrics.contains(counter))


def _execution(query: Any) -> Any:
    return query._jsq.streamingQuery().lastExecution()


def _metrics(node: Any) -> Iterator[Any]:
    yield node.metrics()
    for child in items(node.children()):
        yield from _metrics(child)


def release(spark: SparkSession, function: Callable[..., Any]) -> None:
    """Forget the function of a streaming query's `foreachBatch`, after the query has ended.

    py4j keeps the function until Java drops its proxy. Java drops it with the query, and the query with its session; the function
    holds both in Python. Neither side's garbage collector sees the whole circle: without this call every flow would leave a session behind.
    """
    with suppress(AttributeError):
        gateway: Any = spark.sparkContext._gateway
        pool = gateway.gateway_property.pool
        with pool.lock:
            ended = [key for key, kept in pool.dict.items() if isinstance(kept, ForeachBatchFunction) and kept.func is function]
            for key in ended:
                del pool.dict[key]


def metrics_of(spark: SparkSession, observation: Observation) -> Mapping[str, Any] | None:
    """The metrics of a query that has ended; None if it did not need the observed rows.

    Such a query completes the observation with a row without columns, which pyspark cannot read, or not at all: `get` would wait for ever.
    """
    java: Any = observation._jo
    if java is None:
        return None
    context: Any = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    if not java.future().isCompleted() or java.getRow().length() == 0:
        return None
    found: Mapping[str, Any] = observation.get
    return found


def end_listening(query: Any) -> None:
    """Take the session of a query that has ended off Spark's events; its own listeners get what has been posted before.

    Spark's `StreamingQueryManager`, one for each session with a stream, gets every event of the process as long as that lives, and
    holds its session: with a session per flow and round, memory and the time of each event would grow without end. Other queries of the
    session must have ended too. `query`: a StreamingQuery, or None if it was not started.
    """
    if query is None:
        return
    with suppress(Py4JError, OSError):  # also where the Java process has ended
        session = query._jsq.sparkSession()
        manager, events = session.sessionState().streamingQueryManager(), session.sparkContext().listenerBus()
        if len(manager.listListeners()):
            events.waitUntilEmpty()
        bus = manager.getClass().getDeclaredField("listenerBus")  # private: nothing else leads to it
        bus.setAccessible(True)
        events.removeListener(bus.get(manager))
