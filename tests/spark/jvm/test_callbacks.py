"""What an update leaves behind in a process that runs many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.utils import ForeachBatchFunction

from lakelet.jvm.streams import end_listening

PIPELINE = """
import dlt

@dlt.table
def raw():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))

dlt.create_streaming_table("latest")
dlt.apply_changes(target="latest", source="raw", keys=["id"], sequence_by="at")
"""


def test_an_update_leaves_no_function_behind_that_java_could_call(project: Any) -> None:
    made = project(PIPELINE)
    made.arrive("a.json", {"id": 1, "at": 1})
    before = kept(made.spark)  # by streams of other tests that Lakelet does not run
    made.run()
    assert kept(made.spark) <= before


@pytest.mark.long
def test_an_update_leaves_no_session_behind_that_gets_the_events_of_spark(project: Any) -> None:
    made = project(PIPELINE)
    before = listening(made.spark)
    for number in range(3):
        made.arrive(f"{number}.json", {"id": number, "at": 1})
        made.run()
    assert listening(made.spark) <= before


def test_listeners_of_the_pipeline_get_the_events_of_a_query_that_has_ended(spark: Any, tmp_path: Path) -> None:
    seen = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            seen.append("started")

        def onQueryProgress(self, event: Any) -> None:
            """Nothing to note."""

        def onQueryTerminated(self, event: Any) -> None:
            seen.append("terminated")

    session = SparkSession(spark._sc, spark._jsparkSession.cloneSession())
    session.streams.addListener(Listener())
    (tmp_path / "in").mkdir()
    rows = session.readStream.schema("id LONG").json(str(tmp_path / "in"))
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    before = listening(spark)
    end_listening(query)
    assert seen == ["started", "terminated"]
    assert listening(spark) == before - 1


def listening(spark: Any) -> int:
    """Sessions with a stream that get the events of Spark."""
    listeners = spark._jsc.sc().listenerBus().listeners()
    return sum(listeners.get(i).getClass().getSimpleName() == "StreamingQueryListenerBus" for i in range(listeners.size()))


def kept(spark: Any) -> set[int]:
    """Identities of the functions of streaming queries that Java could call."""
    functions = list(spark.sparkContext._gateway.gateway_property.pool.dict.values())
    return {id(function) for function in functions if isinstance(function, ForeachBatchFunction)}
