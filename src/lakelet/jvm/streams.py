"""What a streaming query leaves behind when it ends: the Python function that Java calls back, and the listeners of its session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.utils import ForeachBatchFunction


def release(spark: SparkSession, function: Callable[..., Any]) -> None:
    """Forget the function of a streaming query's `foreachBatch`, after the query has ended.

    py4j keeps the function until Java drops its proxy. Java drops it with the query, and the query with its session; the function
    holds both in Python. Neither side's garbage collector sees the whole circle: without this call every flow would leave a session behind.
    """
    gateway: Any = spark.sparkContext._gateway
    pool: Any = gateway.gateway_property.pool
    with pool.lock:
        ended = [key for key, kept in pool.dict.items() if isinstance(kept, ForeachBatchFunction) and kept.func is function]
        for key in ended:
            del pool.dict[key]


def end_listening(query: Any) -> None:
    """Take the session of a query that has ended off Spark's events; its own listeners get what has been posted before.

    Spark's `StreamingQueryManager`, one for each session with a stream, gets every event of the process for as long as that lives, and
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
