"""Updates that read and write topics, killed at a point and given again: once into tables, at least once into topics (KA-2, KA-8)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.kafka import Broker, kafka_broker

PIPELINE = """
import dlt

SERVERS = {"kafka.bootstrap.servers": spark.conf.get("servers")}
dlt.create_sink("out", "kafka", {**SERVERS, "topic": "out"})

@dlt.table
def events():
    reader = spark.readStream.format("kafka").options(**SERVERS).option("subscribe", "in").option("startingOffsets", "earliest")
    return reader.option("maxOffsetsPerTrigger", 4).load().selectExpr("CAST(CAST(value AS STRING) AS INT) AS n", "offset")

@dlt.append_flow(target="out")
def send():
    return spark.readStream.table("events").selectExpr("CAST(n AS STRING) AS value")
"""

KILLER = """
import os
import signal

from pyspark.sql.functions import udf

@udf("int")
def passed(n):  # the number; the first time that it is the last one for the broker, the broker dies
    if n == {last} and os.path.exists("{alive}"):
        os.remove("{alive}")
        os.kill({broker}, signal.SIGKILL)
    return n
"""
# The clients give up after seconds, not minutes.
IMPATIENT = ("default.api.timeout.ms", "request.timeout.ms", "delivery.timeout.ms", "max.block.ms")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    folder = tmp_path / "broker"
    folder.mkdir()
    with kafka_broker(folder) as running:
        running.create("in", partitions=2)
        running.create("out")
        yield running


class Updates:
    """Commands `lakelet run` in processes of their own, on one project."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder, self.servers = folder, servers
        self.words: list[str] = []
        folder.mkdir()
        (folder / "pipeline.py").write_text(PIPELINE)
        (folder / "pyproject.toml").write_text('[tool.lakelet]\npackages = ["kafka"]\n')

    def _start(self, failpoint: str | None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lakelet.cli.main", "run", "--json", "--param", f"servers={self.servers}", *self.words]
        environment = {**os.environ, **({"LAKELET_FAILPOINT": failpoint} if failpoint else {})}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def die(self, failpoint: str) -> None:
        """Run an update that is killed, with all its processes, at a failpoint."""
        process = self._start(failpoint)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, errors[-3000:]

    def fail(self) -> list[str]:
        """Run an update that fails; the codes of its errors."""
        process = self._start(None)
        out, errors = process.communicate(timeout=300)
        assert process.returncode in (1, 3), errors[-5000:]
        assert "Traceback (most" not in errors
        return [event["error"]["exceptions"][0]["class_name"] for event in map(json.loads, out.splitlines()) if event["error"]]

    def run(self) -> dict[str, str]:
        """One whole update; the last status of each flow."""
        process = self._start(None)
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-5000:]
        flows = [event for event in map(json.loads, out.splitlines()) if event["event_type"] == "flow_progress"]
        return {e["origin"]["flow_name"].rpartition(".")[2]: e["details"]["flow_progress"]["status"] for e in flows}

    def numbers(self) -> list[int]:
        table = DeltaTable(str(self.folder / ".lakelet" / "tables" / "main" / "default" / "events"))
        return sorted(table.to_pyarrow_table()["n"].to_pylist())


@pytest.mark.parametrize("failpoint", ["batch.started@2", "batch.committed", "batch.committed@3", "flow.drained"])
def test_a_killed_update_gives_each_record_once_into_the_table_and_at_least_once_into_the_topic(
    failpoint: str, broker: Broker, tmp_path: Path
) -> None:
    updates = Updates(tmp_path / f"project-{uuid.uuid4().hex[:4]}", broker.servers)
    for partition in (0, 1):
        broker.send("in", *((None, str(n)) for n in range(partition, 10, 2)), partition=partition)
    updates.die(failpoint)
    broker.send("in", (None, "10"), partition=0)
    updates.run()
    assert updates.numbers() == list(range(11))
    sent = Counter(map(int, broker.values("out")))
    assert set(sent) == set(range(11))
    broker.send("in", (None, "11"), partition=1)
    updates.run()
    assert updates.numbers() == list(range(12))
    assert Counter(map(int, broker.values("out"))) - sent == Counter([11])
    assert updates.run() == {"events": "IDLE", "send": "IDLE"}


@pytest.mark.parametrize("flow", ["events", "send"])
def test_a_broker_that_dies_in_the_middle_of_an_update_is_a_named_error_and_loses_nothing(
    flow: str, broker: Broker, tmp_path: Path
) -> None:
    updates, alive = Updates(tmp_path / "project", broker.servers), tmp_path / "alive"
    for partition in (0, 1):
        broker.send("in", *((None, str(n)) for n in range(partition, 20, 2)), partition=partition)
    alive.touch()
    killer = KILLER.format(last=6, alive=alive, broker=broker.pid)
    read, sent = '"offset")', '.selectExpr("CAST(n AS STRING) AS value")'
    passing = {
        "events": (read, f'{read}.withColumn("n", passed("n"))'),
        "send": (sent, '.select(passed("n").cast("string").alias("value"))'),
    }
    settings = ", ".join(f'"kafka.{name}": "3000"' for name in IMPATIENT)
    source = PIPELINE.replace("SERVERS = {", f'SERVERS = {{{settings}, "kafka.linger.ms": "0", ').replace(*passing[flow])
    (updates.folder / "pipeline.py").write_text(killer + source)
    updates.words = [word for name in ("numUpdateRetryAttempts", "maxFlowRetryAttempts") for word in ("--param", f"pipelines.{name}=0")]

    codes = updates.fail()
    assert not alive.exists(), "the broker did not die"
    assert set(codes) == {"KAFKA_UNREACHABLE"}
    broker.start()
    updates.run()
    assert updates.numbers() == list(range(20))
    assert set(map(int, broker.values("out"))) == set(range(20))
    assert updates.run() == {"events": "IDLE", "send": "IDLE"}
