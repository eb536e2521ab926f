"""An update with nothing to do is answered without Java, as it is with it (IF-3 to IF-10). Each run is a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.spark.cli.installed import LAKELET, NEEDS_LAKELET

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    NEEDS_LAKELET,
]

PIPELINE = """\
import dlt
from pyspark.sql import functions as F

from helper import twice

dlt.create_streaming_table("latest")
dlt.apply_changes("latest", "raw", keys=["id"], sequence_by="at")


@dlt.table(comment="As it came")
@dlt.expect("positive", "id > 0")
def raw():
    options = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    return spark.readStream.format("cloudFiles").options(**options).load(spark.conf.get("landing"))


@dlt.view
def doubled():
    return dlt.read_stream("raw").select(twice(F.col("id")).alias("id"), "kind")


@dlt.table(partition_cols=["kind"])
def silver():
    return dlt.read_stream("doubled")


@dlt.table
def gold():
    return dlt.read("silver").join(spark.table("kinds"), "kind").groupBy("name").count()


@dlt.table
def once_more():
    return dlt.read_stream("silver").where("kind = 'b'")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "helper.py").write_text("def twice(x):\n    return x * 2\n")
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.json").write_text('{"id": 1, "kind": "a", "at": 1}\n{"id": 2, "kind": "b", "at": 2}\n')
    (tmp_path / "kinds.csv").write_text("kind,name\na,first\nb,second\n")
    return tmp_path


def run(folder: Path, **environ: str) -> tuple[list[dict[str, Any]], str]:
    """The events of one update, and what it says on stderr."""
    command = [str(LAKELET), "run", "pipeline.py", "--param", f"landing={folder / 'landing'}", "--table", "kinds=kinds.csv", "--json"]
    environment = {**os.environ, **environ}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def plain(events: list[dict[str, Any]]) -> list[Any]:
    """What the events say, without what differs between any two updates: ids, times, durations. Those of flows come in any order."""
    update = events[0]["origin"]["update_id"]
    text = [json.dumps([e["event_type"], e["level"], e["message"], e["origin"], e["details"], e["error"]], sort_keys=True) for e in events]
    found = [re.sub(r'"duration_ms": \d+', "", one.replace(update, "ID").replace(update[:6], "ID")) for one in text]
    return sorted(found)


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / ".lakelet" / "system" / "idle.json").read_text())
    return found


def recorded(folder: Path) -> dict[str, Any]:
    """Run updates until one has left a record: the first may have made tables with other columns than it was analysed with."""
    for _ in range(2):
        run(folder)
        if "doubt" not in record(folder):
            break
    assert "doubt" not in record(folder), record(folder)
    return record(folder)


def was_quick(folder: Path, before: dict[str, Any]) -> bool:
    """Whether the update left the record alone; one that starts Spark writes another, with a key of its own."""
    return record(folder) == before


def test_an_idle_update_is_answered_without_java_until_something_changes(folder: Path) -> None:
    first = recorded(folder)

    quick, said = run(folder)
    assert was_quick(folder, first)
    assert "5 datasets: 5 idle; 0 rows written" in said
    assert "Nothing new" in said
    logged = subprocess.run([str(LAKELET), "events", "--json"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert [json.loads(line)["id"] for line in logged.splitlines()] == [event["id"] for event in quick]

    slow, _ = run(folder, LAKELET_IDLE_ANSWER="off")
    assert plain(quick) == plain(slow)

    (folder / "landing" / "b.json").write_text('{"id": 3, "kind": "b", "at": 3}\n')
    changed, _ = run(folder)
    assert "COMPLETED" in {event["details"].get("flow_progress", {}).get("status") for event in changed}
    after = record(folder) if "doubt" not in record(folder) else recorded(folder)
    run(folder)
    assert was_quick(folder, after)
