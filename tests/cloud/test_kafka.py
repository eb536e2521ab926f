"""Topics of a real broker as sources and sinks: rows into a topic, the expected table out (KA-2 to KA-9)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelet.spark.launch.environment import cache_folder
from tests.kafka import Broker, kafka_broker
from tests.paths import ROOT
from tests.spark.conftest import Project

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with the connector; the other tests of this folder run commands in processes of their own."""
    from lakelet.spark.launch.session import start_session

    session = start_session(app_name="kafka", input_bytes=0, packages=("kafka",))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def project(tmp_path: Path, spark: Any, broker: Broker, topic: str) -> Callable[..., Project]:
    """A project whose parameters are the broker's address and the topic."""

    def make(source: str, name: str = "pipeline.py") -> Project:
        made = Project(tmp_path / "project", spark)
        made.parameters |= {"servers": broker.servers, "topic": topic}
        return made.write(source, name)

    return make


READ = """
import dlt
from pyspark.sql import functions as F

def topic(reader, **options):
    reader = reader.format("kafka").option("kafka.bootstrap.servers", spark.conf.get("servers"))
    return reader.option("subscribe", spark.conf.get("topic")).options(**options).load()

@dlt.table
@dlt.expect_or_drop("not bad", "text != 'bad' OR text IS NULL")
def events():
    return topic(spark.readStream, startingOffsets="earliest").select(
        F.expr("string(key)").alias("key"), F.expr("string(value)").alias("text"), "partition", "offset")
"""


def test_rows_of_a_topic_arrive_once_and_in_the_order_of_each_partition(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic, partitions=2)
    broker.send(topic, ("a", "1"), ("a", "bad"), ("a", "2"), partition=0)
    broker.send(topic, ("b", "3"), (None, None), partition=1)
    p = project(READ)
    p.run()
    assert p.rows("events", "partition", "offset", "key", "text") == [
        (0, 0, "a", "1"),
        (0, 2, "a", "2"),
        (1, 0, "b", "3"),
        (1, 1, None, None),
    ]
    assert p.quality("events") == {"not bad": (4, 1)}


def test_the_next_update_goes_on_where_the_last_one_stopped(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    broker.send(topic, ("a", "1"), ("a", "2"))
    p = project(READ)
    p.run()
    p.run()
    assert p.rows("events", "offset") == [0, 1]
    broker.send(topic, ("a", "3"))
    p.run()
    assert p.rows("events", "offset", "text") == [(0, "1"), (1, "2"), (2, "3")]


def test_a_full_refresh_reads_the_topic_from_the_start(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    broker.send(topic, ("a", "1"), ("a", "2"))
    p = project(READ)
    p.run()
    broker.delete_records(topic, before=1)
    p.run(full_refresh=("events",))
    assert p.rows("events", "offset", "text") == [(1, "2")]


def test_keys_values_and_headers_are_bytes_as_they_were_sent(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    broker.send(topic, (b"\x00k", b"\xff\x00v"), headers={"trace": b"\x01\x02"})
    p = project(
        """
        import dlt

        @dlt.table
        def raw():
            reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", spark.conf.get("servers"))
            return (reader.option("subscribe", spark.conf.get("topic")).option("startingOffsets", "earliest")
                    .option("includeHeaders", "true").load())
        """
    )
    p.run()
    assert p.rows("raw", "key", "value", "topic", "headers") == [(b"\x00k", b"\xff\x00v", topic, [{"key": "trace", "value": b"\x01\x02"}])]
    assert {field.name: str(field.type) for field in p.table("raw").schema} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int32",
        "offset": "int64",
        "timestamp": "timestamp[us, tz=UTC]",
        "timestampType": "int32",
        "headers": "list<element: struct<key: string, value: binary>>",
    }


def test_a_stream_begins_at_the_end_of_the_topic_unless_it_says_where(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    broker.send(topic, ("a", "1"), ("a", "2"), ("a", "3"))
    p = project(
        READ
        + """
@dlt.table
def latest():
    return topic(spark.readStream).select("offset")

@dlt.table
def second():
    return topic(spark.readStream, startingOffsets='{"%s": {"0": 1}}' % spark.conf.get("topic")).select("offset")
"""
    )
    p.run()
    assert (p.rows("latest"), p.rows("second")) == ([], [1, 2])
    broker.send(topic, ("a", "4"))
    p.run()
    assert (p.rows("latest"), p.rows("second")) == ([3], [1, 2, 3])


def test_a_materialized_view_reads_all_that_the_topic_has(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic, partitions=2)
    broker.send(topic, ("a", "1"), ("b", "2"), ("c", "3"))
    p = project(
        READ
        + """
@dlt.table
def per_key():
    return topic(spark.read).groupBy(F.expr("string(key)").alias("k")).agg(F.count("*").alias("n"))
"""
    )
    p.run()
    broker.send(topic, ("a", "4"))
    p.run()
    assert p.rows("per_key") == [("a", 2), ("b", 1), ("c", 1)]


# ------------------------------------------------------------------------------------------------------------------ sinks


SEND = """
import dlt

dlt.create_sink("bus", "kafka", {"kafka.bootstrap.servers": spark.conf.get("servers"), "topic": spark.conf.get("topic")})

@dlt.table
def orders():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
            .load(spark.conf.get("landing")).select("id", "text"))

@dlt.append_flow(target="bus")
def send():
    return spark.readStream.table("orders").selectExpr("string(id) AS key", "text AS value")
"""


def test_rows_are_sent_to_a_topic_and_only_new_ones_by_the_next_update(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    p = project(SEND)
    p.arrive("a.json", {"id": 1, "text": "x"}, {"id": 2, "text": "y"})
    p.run()
    assert sorted((r.key, r.value) for r in broker.records(topic)) == [(b"1", b"x"), (b"2", b"y")]
    p.run()
    assert p.statuses() == {"orders": "IDLE", "send": "IDLE"}
    p.arrive("b.json", {"id": 3, "text": "z"})
    p.run()
    assert broker.values(topic)[2:] == ["z"]


def test_a_full_refresh_of_the_sink_sends_everything_again_and_deletes_nothing(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    p = project(SEND)
    p.arrive("a.json", {"id": 1, "text": "x"})
    p.run()
    p.run(full_refresh=("bus",))
    assert broker.values(topic) == ["x", "x"]


def test_a_flow_in_sql_and_one_that_runs_once_send_to_a_sink(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    p = project(SEND.partition("@dlt.append_flow")[0])
    p.write("CREATE FLOW live AS INSERT INTO bus BY NAME SELECT text AS value, 'live' AS key FROM STREAM orders;", "live.sql")
    p.write(
        "import dlt\n\n@dlt.append_flow(target='bus', once=True)\ndef old():\n"
        "    return spark.createDataFrame([('old', 'w')], 'key STRING, value STRING')\n",
        "old.py",
    )
    p.arrive("a.json", {"id": 1, "text": "x"})
    p.run()
    p.run()
    assert sorted((r.key, r.value) for r in broker.records(topic)) == [(b"live", b"x"), (b"old", b"w")]


# ------------------------------------------------------------------------------------------------- offsets before a query


def reasons(p: Project) -> dict[str, str]:
    return {step.dataset.rpartition(".")[2]: step.reason for step in p.pipeline.plan().steps}


def test_a_plan_says_how_many_offsets_are_new_and_a_flow_without_any_starts_no_query(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic, partitions=2)
    broker.send(topic, ("a", "1"), partition=0)
    p = project(READ)
    assert reasons(p) == {"events": "it has not run yet"}
    p.run()
    assert reasons(p) == {"events": f"the topic {topic} has no new offset"}
    p.run()
    assert p.statuses() == {"events": "IDLE"}
    broker.send(topic, ("b", "2"), ("c", "3"), partition=1)
    assert reasons(p) == {"events": f"the topic {topic} has 2 new offsets"}
    p.run()
    assert p.rows("events", "text") == ["1", "2", "3"]


def test_a_topic_that_was_deleted_and_made_again_is_an_error_until_the_user_decides(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    broker.send(topic, ("a", "1"), ("a", "2"))
    p = project(READ)
    p.run()
    broker.delete(topic)
    broker.create(topic)
    broker.send(topic, ("b", "3"), ("b", "4"), ("b", "5"))  # Spark alone would read the last one, and lose two
    assert reasons(p) == {"events": f"the topic {topic} was deleted and made again"}
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.what) == ("KAFKA_DATA_LOST", f"the topic {topic} was deleted and made again")
    assert "--reset-checkpoint" in error.todo
    p.run(expect="FAILED")
    assert p.rows("events", "text") == ["1", "2"]
    p.run(reset_checkpoint=("events",))
    assert p.rows("events", "text") == ["1", "2", "3", "4", "5"]
    p.run()
    assert p.statuses() == {"events": "IDLE"}


def test_ids_of_topics_in_another_format_or_cut_are_refused_and_stay(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    broker.send(topic, ("a", "1"))
    p = project(READ)
    p.run()
    (note,) = p.storage.root.rglob("topics.json")
    note.write_text(note.read_text().replace('"format": 1', '"format": 2'))
    broker.send(topic, ("a", "2"))
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert error.code == "FORMAT_UNKNOWN"
    assert str(note) in error.what
    assert '"format": 2' in note.read_text()
    note.write_text("{")
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.what) == ("STORAGE_DAMAGED", f"{note} cannot be read")


def test_records_that_were_deleted_before_they_were_read_are_an_error_unless_the_source_says_otherwise(
    project: Any, broker: Broker, topic: str
) -> None:
    broker.create(topic)
    broker.send(topic, ("a", "1"))
    p = project(READ)
    p.run()
    broker.send(topic, ("a", "2"), ("a", "3"), ("a", "4"))
    broker.delete_records(topic, before=3)
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.where.line) == ("KAFKA_DATA_LOST", 9)
    assert error.what == f"2 records of partition 0 of the topic {topic} were deleted before they were read (offsets 1 to 2)"
    p.write(READ.replace('startingOffsets="earliest"', 'startingOffsets="earliest", failOnDataLoss="false"'))
    p.run()
    assert p.rows("events", "text") == ["1", "4"]
    assert any("2 records of partition 0" in e.message for e in p.events if e.event_type == "notice")


def test_a_topic_that_does_not_exist_and_a_broker_that_does_not_answer_have_names(project: Any, broker: Broker, topic: str) -> None:
    p = project(READ)
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.what) == ("KAFKA_TOPIC_MISSING", f"the broker {broker.servers} has no topic {topic}")
    broker.create(topic)
    broker.send(topic, ("a", "1"))
    p.run()
    p.parameters["servers"] = "127.0.0.1:1"
    p.write(READ.replace('startingOffsets="earliest"', '**{"startingOffsets": "earliest", "kafka.default.api.timeout.ms": "2000"}'))
    p.parameters |= {"pipelines.numUpdateRetryAttempts": "0", "pipelines.maxFlowRetryAttempts": "0"}
    p.run(expect="FAILED")
    assert [error.code for error in p.result.errors] == ["KAFKA_UNREACHABLE"]


def test_a_sink_s_topic_that_does_not_exist_is_a_named_error_and_the_next_update_sends_the_rows(
    project: Any, broker: Broker, topic: str
) -> None:
    p = project(
        """
        import dlt

        options = {"kafka.bootstrap.servers": spark.conf.get("servers"), "topic": spark.conf.get("topic"), "kafka.max.block.ms": "2000"}
        dlt.create_sink("out", "kafka", options)

        @dlt.table
        def files():
            return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("text STRING")
                    .load(spark.conf.get("landing")))

        @dlt.append_flow(target="out")
        def send():
            return spark.readStream.table("files").selectExpr("text AS value")
        """
    )
    p.parameters |= {"pipelines.numUpdateRetryAttempts": "0", "pipelines.maxFlowRetryAttempts": "0"}
    p.arrive("a.json", {"text": "x"})
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert error.code == "KAFKA_UNREACHABLE"
    assert f"Topic {topic} not present in metadata" in str(error)
    broker.create(topic)
    p.run()
    assert broker.values(topic) == ["x"]


def _new_records(broker: Broker, topic: str) -> set[tuple[int, str | None]]:
    """Offsets and texts of what a topic has beyond its first two records."""
    return {(one.offset, None if one.value is None else one.value.decode()) for one in broker.records(topic) if one.offset > 1}


def test_a_compacted_topic_gives_the_records_that_are_left_and_offsets_may_have_gaps(project: Any, broker: Broker, topic: str) -> None:
    quick = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_ms": "100", "delete_retention_ms": "100"}
    broker.create(topic, **quick)
    p = project(READ)
    broker.send(topic, ("a", "1"), ("b", "2"))
    p.run()
    broker.send(topic, ("a", "3"), ("b", "4"), ("a", "5"), ("b", None))
    while len(broker.records(topic)) > 3:  # the newest segment is not compacted: each record makes another one
        broker.send(topic, ("a", "6"))
    before = _new_records(broker, topic)
    p.run()
    rows, after = p.rows("events", "offset", "text"), _new_records(broker, topic)  # the broker may have compacted meanwhile
    assert after <= {row for row in rows if row[0] > 1} <= before
    assert len(rows) < 2 + len(range(2, max(rows)[0] + 1)), "offsets have gaps"
    assert [row for row in rows if row[0] < 2] == [(0, "1"), (1, "2")]
    assert p.run().statuses() == {"events": "IDLE"}


# ---------------------------------------------------------------------------------------------------------------- secrets


LOCKED = """
import os
import dlt

MODULE = "kafkashaded.org.apache.kafka.common.security.plain.PlainLoginModule"  # as Databricks names it
ACCESS = {
    "kafka.bootstrap.servers": spark.conf.get("servers"),
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": f'{MODULE} required username="ann" password="{os.environ["TOPIC_WORD"]}";',
}
dlt.create_sink("out", "kafka", {**ACCESS, "topic": spark.conf.get("topic") + "-out"})

@dlt.table
def events():
    reader = spark.readStream.format("kafka").options(**ACCESS).option("subscribe", spark.conf.get("topic"))
    return reader.option("startingOffsets", "earliest").load().selectExpr("string(value) AS text")

@dlt.append_flow(target="out")
def send():
    return spark.readStream.table("events").selectExpr("text AS value")
"""


def everything_written(p: Project) -> Iterator[tuple[str, str]]:
    """Every text that an update leaves behind: files of the storage, rows of the event log, errors, logs of Spark."""
    yield "event log", json.dumps(p.logged(), default=str)
    yield "errors", "\n".join(map(str, p.result.errors))
    for folder in (p.storage.root, cache_folder() / "logs"):
        for file in folder.rglob("*"):
            if file.is_file():
                yield str(file), file.read_bytes().decode(errors="replace")


def test_a_password_is_in_no_table_event_error_log_or_page(
    project: Any, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create(topic)
    broker.create(f"{topic}-out")
    broker.send(topic, ("a", "1"))
    p = project(LOCKED)
    p.parameters |= {"servers": broker.locked, "pipelines.numUpdateRetryAttempts": "0", "pipelines.maxFlowRetryAttempts": "0"}
    monkeypatch.setenv("TOPIC_WORD", broker.password)
    p.run()
    assert (p.rows("events"), broker.values(f"{topic}-out")) == (["1"], ["1"])
    assert [name for name, text in everything_written(p) if broker.password in text] == []
    wrong = f"wrong-{broker.password[::-1]}"
    monkeypatch.setenv("TOPIC_WORD", wrong)
    p.run(expect="FAILED")
    assert [error.code for error in p.result.errors] == ["KAFKA_UNREACHABLE"]
    assert "SaslAuthenticationException" in str(p.result.errors[0])
    page = p.folder / "page"
    command = [sys.executable, "-m", "lakelet.cli.main", "report", "--storage", str(p.storage.root), "--out", str(page)]
    subprocess.run(command, check=True, cwd=p.folder, capture_output=True, timeout=120)
    texts = [*everything_written(p), *((str(file), file.read_text(errors="replace")) for file in page.rglob("*") if file.is_file())]
    assert len(texts) > 20
    assert [name for name, text in texts if broker.password in text or wrong in text] == []


# -------------------------------------------------------------------------------------------------------------------- SQL


def test_sql_reads_a_topic_as_a_stream_and_as_a_batch_by_named_arguments(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic, partitions=2)
    broker.send(topic, ("a", '{"id": 1}'), ("b", '{"id": 2}'), headers={"h": b"x"}, partition=0)
    broker.send(topic, ("c", '{"id": 3}'), partition=1)
    p = project(
        """
        CREATE OR REFRESH STREAMING TABLE events AS
        SELECT string(key) AS key, from_json(string(value), 'id INT').id AS id, topic, partition, offset
        FROM STREAM read_kafka(bootstrapServers => '${servers}', subscribe => '${topic}', startingOffsets => 'earliest');

        CREATE OR REFRESH STREAMING TABLE raw AS
        SELECT * FROM STREAM read_kafka(
          bootstrapServers => '${servers}', subscribePattern => '${topic}.*', startingOffsets => 'earliest', includeHeaders => true);

        CREATE OR REFRESH MATERIALIZED VIEW from_second AS
        SELECT offset FROM read_kafka(
          bootstrapServers => '${servers}', assign => '{"${topic}": [0]}', startingOffsets => '{"${topic}": {"0": 1}}');

        CREATE OR REFRESH MATERIALIZED VIEW counted AS
        SELECT count(*) AS n FROM read_kafka(bootstrapServers => '${servers}', subscribe => '${topic}');
        """,
        "topics.sql",
    )
    p.run()
    assert p.rows("events") == [("a", 1, topic, 0, 0), ("b", 2, topic, 0, 1), ("c", 3, topic, 1, 0)]
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    assert p.table("raw").column_names == columns
    assert p.rows("raw", "value", "headers") == [
        (b'{"id": 1}', [{"key": "h", "value": b"x"}]),
        (b'{"id": 2}', [{"key": "h", "value": b"x"}]),
        (b'{"id": 3}', None),
    ]
    assert (p.rows("from_second"), p.rows("counted")) == ([1], [3])
    broker.send(topic, ("d", '{"id": 4}'), partition=1)
    p.run()
    assert (p.rows("events", "id"), p.rows("counted")) == ([1, 2, 3, 4], [4])
    p.run()
    assert {name: status for name, status in p.statuses().items() if name in ("events", "raw")} == {"events": "IDLE", "raw": "IDLE"}


def test_topics_of_one_name_in_two_clusters_are_told_apart(project: Any, broker: Broker, topic: str, tmp_path: Path) -> None:
    with kafka_broker(tmp_path) as other:
        for each, key in ((broker, "a"), (other, "b")):
            each.create(topic)
            each.send(topic, (key, "1"))
        p = project(
            READ.partition("@dlt.table")[0]
            + """
@dlt.table
def both():
    options = {"startingOffsets": "earliest", "kafka.bootstrap.servers": spark.conf.get("other")}
    found = topic(spark.readStream, startingOffsets="earliest").unionAll(topic(spark.readStream, **options))
    return found.selectExpr("string(key) AS key", "offset")
"""
        )
        p.parameters["other"] = other.servers
        p.run()
        p.run()
        assert (p.rows("both"), p.statuses()) == ([("a", 0), ("b", 0)], {"both": "IDLE"})
        other.send(topic, ("b", "2"))
        p.run()
        assert p.rows("both") == [("a", 0), ("b", 0), ("b", 1)]


def test_options_mean_to_lakelet_what_they_mean_to_spark(project: Any, broker: Broker, topic: str) -> None:
    for name in (topic, f"{topic}-more"):
        broker.create(name, partitions=2)
        broker.send(name, ("a", "1"), partition=0)
        broker.send(name, ("b", "2"), partition=1)
    p = project(
        """
        import dlt

        @dlt.table
        def listed():
            reader = spark.readStream.format("kafka").option("KAFKA.Bootstrap.Servers", spark.conf.get("servers"))
            names = spark.conf.get("topic")
            reader = reader.option("subscribe", f"{names} , {names}-more").option("kafka.request.timeout.ms", "60000")
            return reader.option("startingOffsets", "earliest").load().selectExpr("topic", "string(value) AS text")

        @dlt.table
        def assigned():
            reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", spark.conf.get("servers"))
            reader = reader.option("assign", '{"%s": [1]}' % spark.conf.get("topic"))
            return reader.option("startingOffsets", "earliest").load().selectExpr("string(value) AS text")
        """
    )
    p.run()
    assert p.rows("listed") == [(topic, "1"), (topic, "2"), (f"{topic}-more", "1"), (f"{topic}-more", "2")]
    assert p.rows("assigned") == ["2"]
    broker.send(topic, ("c", "3"), partition=0)
    p.run()
    assert p.statuses() == {"listed": "COMPLETED", "assigned": "IDLE"}


def test_a_topic_in_place_of_a_table_is_refused_with_what_to_do(project: Any, broker: Broker, topic: str) -> None:
    broker.create(topic)
    source = """
        import dlt

        @dlt.table
        def files():
            return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id LONG, text STRING")
                    .load(spark.conf.get("landing")))

        @dlt.table
        def texts():
            return spark.readStream.table("files").select("text")
        """
    p = project(source)
    p.arrive("a.json", {"id": 1, "text": "x"})
    p.run()
    options = '.format("kafka").option("kafka.bootstrap.servers", spark.conf.get("servers")).option("subscribe", spark.conf.get("topic"))'
    p.write(source.replace('.table("files").select("text")', f'{options}.load().selectExpr("string(value) AS text")'))
    assert "is read in place of another source" in str(p.pipeline.plan())
    p.run(expect="FAILED")
    assert [error.code for error in p.result.errors] == ["STREAM_SOURCES_CHANGED"]
    assert p.rows("texts") == ["x"]


# --------------------------------------------------------------------------------------------------------- the guide's blocks


def blocks(language: str) -> list[str]:
    """The blocks of docs/kafka.md in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/kafka.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_pipelines_of_the_guide_run_as_they_are_written(project: Any, broker: Broker) -> None:
    for name in ("messages", "replies", "router"):
        broker.create(name)
    broker.send("messages", ("a", "hello"))
    broker.send("router", (None, '{"id": 1, "queue": "sales"}'))
    (in_python,), (in_sql, json_texts), (settings,) = blocks("python"), blocks("sql"), blocks("toml")
    p = project(in_python, "messages.py")
    p.parameters["kafka_servers"] = broker.servers
    p.write(json_texts, "entries.sql")
    p.run()
    assert (p.rows("messages", "key", "text", "offset"), broker.values("replies")) == ([("a", "hello", 0)], ["HELLO"])
    assert p.rows("entries", "id", "queue") == [(1, "sales")]
    p.files.remove(p.folder / "messages.py")
    p.write(in_sql, "messages.sql").run(full_refresh=("messages",))
    assert p.rows("messages", "key", "text", "offset") == [("a", "hello", 0)]
    assert settings.splitlines()[1:] == ["[tool.lakelet]", 'packages = ["kafka"]']
