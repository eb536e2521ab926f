"""Which updates of real pipelines record what the next one depends on, and why the others do not (IF-7, IF-8). On the tests' session."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base import redaction
from lakelet.plan.checked import Checked
from lakelet.plan.selection import EVERYTHING
from lakelet.storage.eventlog.events import Event
from lakelet.update.idle.record import load_record
from lakelet.update.idle.recording_begun import Recording
from tests.unity import unity_server

pytestmark = pytest.mark.long

STREAM = """\
import dlt
from pyspark.sql import functions as F

from helper import kept

with open("landing/limit.txt") as file:
    LIMIT = int(file.read())


@dlt.table
def orders():
    stream = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id LONG")
    return kept(stream.load(spark.conf.get("landing") + "/*.json")).where(F.col("id") < LIMIT)
"""
HELPER = "def kept(orders):\n    return orders\n"


def doubt(p, while_running: Callable[[], object] = lambda: None) -> str | None:
    """Why an update made no record; None if it made one. `while_running` is called when the first flow runs."""
    for name, module in list(sys.modules.items()):  # other tests have loaded modules from folders that are gone
        if not os.path.exists(getattr(module, "__file__", None) or os.sep):
            del sys.modules[name]
    recording = Recording.begin(p.pipeline.config)
    assert recording is not None
    began = replace(recording, moment=time.time())  # the process of the tests began long ago
    called = []

    def listen(event: Event) -> None:
        if event.body.get("status") == "RUNNING" and not called:
            called.append(event)
            while_running()

    result = p.pipeline._update(EVERYTHING, (listen,), 0, began)
    assert (result.state, bool(called)) == ("COMPLETED", True)
    found = json.loads((p.storage.system / "idle.json").read_text())
    assert ("doubt" in found) is ("facts" not in found)
    return found.get("doubt")


def of_table(body: str, more: str = "") -> str:
    return f"{STREAM}\n\n{more}\n\n@dlt.table\ndef derived():\n    return {body}\n"


@pytest.fixture
def stream(project, monkeypatch: pytest.MonkeyPatch):
    """Make a project with a stream of files, with or without another table."""

    def make(source: str = STREAM):
        p = project(source)
        p.helper(HELPER, "helper.py")
        p.arrive("a.json", {"id": 1}, {"id": 2})
        (p.landing / "limit.txt").write_text("90")
        monkeypatch.chdir(p.folder)
        return p

    return make


NO_DOUBT = {
    "a stream of files": STREAM,
    "a count": of_table('dlt.read("orders").groupBy("id").count()'),
    "the time in a stream": of_table('dlt.read_stream("orders").withColumn("at", F.current_timestamp())'),
    "a Python function in a stream": of_table('dlt.read_stream("orders").select(F.udf(lambda id: f"no {id}")("id").alias("name"))'),
}
DOUBTS = {
    "the time": (
        of_table('dlt.read("orders").withColumn("at", F.current_timestamp())'),
        "derived would run: it uses the current time or user",
    ),
    "a Python function": (
        of_table('dlt.read("orders").select(twice("id").alias("twice"))', "@F.udf('long')\ndef twice(id):\n    return id * 2"),
        "derived would run: it calls Python functions",
    ),
    "chance": (of_table('dlt.read("orders").withColumn("share", F.rand())'), "derived would run: it is not deterministic"),
    "a hook": (f"{STREAM}\n\n@dlt.on_event_hook\ndef tell(event):\n    pass\n", "the pipeline has event hooks"),
    "cleanSource": (
        STREAM.replace(
            ".schema(", '.option("cloudFiles.cleanSource", "MOVE").option("cloudFiles.cleanSource.moveDestination", "done").schema('
        ),
        "has something to do as time passes",
    ),
}


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize("source", NO_DOUBT.values(), ids=NO_DOUBT)
def test_what_depends_on_recorded_things_alone_makes_a_record(stream, source: str) -> None:
    assert doubt(stream(source)) is None


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize(("source", "told"), DOUBTS.values(), ids=DOUBTS)
def test_what_time_or_spark_alone_can_tell_is_a_doubt(stream, source: str, told: str) -> None:
    found = doubt(stream(source))
    assert found is not None
    assert told in found


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize("name", ["pipeline.py", "helper.py", "landing/limit.txt"])
def test_what_was_read_and_changed_while_the_update_ran_makes_no_record(stream, name: str) -> None:
    p = stream()
    file: Path = p.folder / name
    found = doubt(p, lambda: file.write_text(file.read_text() + "\n"))
    assert found == f"{file} has changed since the update began, or as it did"


def test_a_table_that_only_a_catalog_knows_is_a_doubt_and_a_catalog_that_nobody_asks_is_none(stream) -> None:
    p = stream()
    p.catalogs = {"uc": "http://127.0.0.1:1"}
    assert doubt(p) is None
    with unity_server() as unity:
        write_deltalake(p.folder / "others", pa.table({"id": [1]}))
        unity.somebody_makes("main.sales.customers", (p.folder / "others").as_uri())
        p.catalogs = {"uc": unity.address}
        found = doubt(p.write(of_table('spark.read.table("sales.customers")')))
        assert found is not None
        assert "reads main.sales.customers, and only a catalog knows where that lies" in found
        found = doubt(p.write(of_table("spark.createDataFrame([(spark.catalog.tableExists('sales.nobody'),)], 'known BOOLEAN')")))
        assert found is not None
        assert "reads main.sales.nobody" in found


WITH_RULES = of_table('dlt.read("orders").groupBy("id").count()').replace(
    "@dlt.table\ndef orders", '@dlt.table(table_properties={"lakelet.owner": "shop"})\n@dlt.expect("known", "id IS NOT NULL")\ndef orders'
)


def test_what_is_recorded_of_a_pipeline_is_what_an_analysis_finds(stream) -> None:
    p = stream(WITH_RULES)
    assert doubt(p) is None
    record = load_record(p.storage)
    assert record is not None
    assert record.checked is not None
    found = p.pipeline.check()
    assert [rule.name for one in found.rules for rule in one.expectations] == ["known"]
    assert record.checked == json.loads(json.dumps(found.as_json()))
    assert Checked.from_json(record.checked).as_json() == found.as_json()
    assert record.steps == p.pipeline.plan().steps


def test_a_pipeline_with_a_secret_in_a_rule_is_not_recorded(stream, monkeypatch: pytest.MonkeyPatch) -> None:
    p = stream(WITH_RULES.replace("id IS NOT NULL", "id IS NOT NULL AND 'open sesame' <> ''"))
    monkeypatch.setattr(redaction, "_values", {"open sesame"})
    assert doubt(p) is None
    record = load_record(p.storage)
    assert record is not None
    assert record.checked is None
    assert "sesame" not in (p.storage.system / "idle.json").read_text()
