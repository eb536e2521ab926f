"""An update with nothing to do is answered without Java, as it is with it (IF-3 to IF-11). Each run is a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from deltalake import write_deltalake

from lakelet.spark.launch.environment import cache_folder
from tests.spark.cli.installed import LAKELET, NEEDS_LAKELET, NotedJava

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    NEEDS_LAKELET,
]

PIPELINE = """\
import os

import dlt
from pyspark.sql import functions as F

from helper import twice

with open("settings/limit.txt") as settings:
    LIMIT = int(settings.read()) + int(os.environ["SHOP_LIMIT"])
if os.path.exists("flags/none") or "none.txt" in os.listdir("settings"):
    LIMIT = 0

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
    return dlt.read_stream("doubled").where(F.col("id") < LIMIT)


@dlt.table
def gold():
    return dlt.read("silver").join(spark.table("kinds"), "kind").groupBy("name").count()


@dlt.table
def once_more():
    return dlt.read_stream("silver").where("kind = 'b'")
"""


RULES = """\
datasets:
  raw:
    warn:
      known: kind IS NOT NULL
"""

DECISION = """\
import json, os, sys
sys.path[0] = {bin!r}
import lakelet.pipeline
from lakelet.cli.main import main
from lakelet.storage.root import Storage
from lakelet.update.idle.facts import Here, unchanged
from lakelet.update.idle.record import load_record


def decision(config, listeners):
    record = load_record(Storage(config.storage))
    here = Here(config, record.key, dict(os.environ))
    changed = [[fact.kind.name, fact.name] for fact in record.facts if unchanged([fact], here)]
    print(json.dumps([str(unchanged(record.facts, here)), changed]), file=sys.__stdout__, flush=True)
    os._exit(0)


lakelet.pipeline.idle_answer = decision
main(sys.argv[1:])
"""
"""`lakelet run` up to its decision whether the update needs Java: prints the reason, and each thing that was recorded and has changed."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The project's folder. Java lies beside it: a new name in a folder that Python imports from is a change."""
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "pipeline.py").write_text(PIPELINE)
    (shop / "helper.py").write_text("def twice(x):\n    return x * 2\n")
    (shop / "settings").mkdir()
    (shop / "settings" / "limit.txt").write_text("90")
    (shop / "flags").mkdir()
    (shop / "expectations").mkdir()
    (shop / "expectations" / "rules.yml").write_text(RULES)
    (shop / "landing").mkdir()
    (shop / "landing" / "a.json").write_text('{"id": 1, "kind": "a", "at": 1}\n{"id": 2, "kind": "b", "at": 2}\n')
    write_deltalake(str(shop / "kinds"), pa.table({"kind": ["a", "b"], "name": ["first", "second"]}))
    NotedJava.made(tmp_path / "java")
    return shop


def command(folder: Path, *program: str, landing: str = "landing", **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `lakelet run`, or another program with its arguments, in a process of its own."""
    arguments = ["run", "pipeline.py", "--param", f"landing={folder / landing}", "--table", "kinds=kinds", "--json"]
    environment = {**os.environ, "JAVA_HOME": str(folder.parent / "java"), "SHOP_LIMIT": "10", **environ}
    asked = [*(program or [str(LAKELET)]), *arguments]
    return subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=300, env=environment, check=False)


def run(folder: Path, **environ: str) -> tuple[list[dict[str, Any]], str]:
    """The events of one update, and what it says on stderr."""
    done = command(folder, **environ)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def changed(folder: Path, *, landing: str = "landing", **environ: str) -> tuple[str, set[tuple[str, str]]]:
    """Why the next update starts Java ("None": it does not), and all things of the record that are not as they were."""
    done = command(folder, sys.executable, "-c", DECISION.format(bin=str(LAKELET.parent)), landing=landing, **environ)
    assert done.returncode == 0, done.stderr
    reason, found = json.loads(done.stdout)
    return reason, {(kind, name) for kind, name in found}


def plain(events: list[dict[str, Any]]) -> list[Any]:
    """What the events say, without what differs between any two updates: ids, times, durations. Those of flows come in any order."""
    update = events[0]["origin"]["update_id"]
    text = [json.dumps([e["event_type"], e["level"], e["message"], e["origin"], e["details"], e["error"]], sort_keys=True) for e in events]
    found = [re.sub(r'"duration_ms": \d+', "", one.replace(update, "ID").replace(update[:6], "ID")) for one in text]
    return sorted(found)


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / ".lakelet" / "system" / "idle.json").read_text())
    return found


def commit_to(table: Path) -> None:
    """Add a version without rows to a Delta table."""
    newest = max((table / "_delta_log").glob("*.json"))
    newest.with_name(f"{int(newest.stem) + 1:020d}.json").write_text('{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}\n')


def recorded(folder: Path) -> None:
    """Run updates until one has left a record: the first may have made tables with other columns than it was analysed with."""
    for _ in range(2):
        run(folder)
        if "doubt" not in record(folder):
            break
    assert "doubt" not in record(folder), record(folder)


def test_an_idle_update_is_answered_without_java_until_something_changes(folder: Path) -> None:
    recorded(folder)
    java = NotedJava(folder.parent / "java")
    first, starts = record(folder), java.starts
    assert starts
    jars = [str(cache_folder() / "jars"), os.path.join(os.path.dirname(pyspark.__file__), "jars")]
    assert {sysconfig.get_path("purelib"), *jars} <= {name for kind, name, _ in first["facts"] if kind == "NAMES"}, "packages and jars"

    java.forbidden.touch()
    quick, said = run(folder)
    rule, above = "the rule 'known' of datasets.raw.warn", '@dlt.expect_all(rules("raw", "warn"))'
    commands = re.sub(r"/\S*/(?=lakelet )", "", said)  # with the folder of the program where PATH does not have it
    assert re.sub(r"\b[0-9a-f]{6}\b|[\d.]+(?= s\b)", "…", commands).splitlines() == [
        "Warnings",
        f"  expectations/rules.yml, line 4: no dataset applies {rule}: write {above} above the function in pipeline.py, line 17",
        "",
        "Update … of pipeline COMPLETED in … s, … s with start-up",
        "  5 datasets: 5 idle; 0 rows written",
        "  Nothing new: no table was touched.",
        "Next: lakelet show  ·  lakelet events",
    ]
    assert (record(folder), java.starts) == (first, starts)
    logged = subprocess.run([str(LAKELET), "events", "--json"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert [json.loads(line)["id"] for line in logged.splitlines()] == [event["id"] for event in quick]

    java.forbidden.unlink()
    slow, _ = run(folder, LAKELET_IDLE_ANSWER="off")
    assert java.starts > starts
    assert plain(quick) == plain(slow)

    assert changed(folder) == ("None", set())
    assert changed(folder, SHOP_LIMIT="11") == ("the environment variable SHOP_LIMIT changed", {("VARIABLE", "SHOP_LIMIT")})
    assert changed(folder, landing="elsewhere") == ("the configuration changed", {("CONFIGURATION", "")})
    assert changed(folder) == ("None", set())

    storage = folder / ".lakelet"
    inputs: list[tuple[str, str, Callable[[], object]]] = [
        ("TREE", "landing", lambda: (folder / "landing" / "b.json").write_text('{"id": 3, "kind": "b", "at": 3}\n')),
        ("TREE", "kinds", lambda: write_deltalake(str(folder / "kinds"), pa.table({"kind": ["c"], "name": ["third"]}), mode="append")),
        ("TREE", "expectations", lambda: (folder / "expectations" / "rules.yml").write_text(RULES.replace("known", "kind_known"))),
        ("ENTRIES", "settings", lambda: (folder / "settings" / "more.txt").write_text("")),
        ("FILE", "settings/limit.txt", lambda: (folder / "settings" / "limit.txt").write_text("91")),
        ("FILE", "flags/none", lambda: (folder / "flags" / "none").write_text("")),
        ("FILE", "helper.py", lambda: (folder / "helper.py").write_text("def twice(x):\n    return x + x\n")),
        ("FILE", "pipeline.py", lambda: (folder / "pipeline.py").write_text(PIPELINE.replace("As it came", "As it comes"))),
        ("NAMES", "", lambda: (folder / "yaml.py").write_text("raise ImportError('not the package')")),
        ("LOG", ".lakelet/tables/main/default/once_more", lambda: commit_to(storage / "tables" / "main" / "default" / "once_more")),
        ("STATE", "checkpoints", lambda: (storage / "checkpoints" / "another").write_text("")),
        ("STATE", "autoloader", lambda: (storage / "autoloader" / "another").write_text("")),
    ]
    before: set[tuple[str, str]] = set()
    for kind, name, change in inputs:
        change()
        reason, found = changed(folder)
        noticed = found - before
        path = name if kind == "STATE" else os.path.join(folder, name).rstrip(os.sep)
        assert (reason != "None", (kind, path) in noticed) == (True, True), noticed
        assert [fact for fact in noticed if not fact[1].startswith(path)] == [], f"something else has changed than {name}"
        before = found
    for file in (folder / "yaml.py", folder / "flags" / "none", storage / "checkpoints" / "another", storage / "autoloader" / "another"):
        file.unlink()

    java.forbidden.touch()
    starts = java.starts
    assert command(folder).returncode == 3
    assert java.starts > starts
    java.forbidden.unlink()
    events, _ = run(folder)
    assert "COMPLETED" in {event["details"].get("flow_progress", {}).get("status") for event in events}


LOOKING = (("plan",), ("graph",), ("validate",), ("rules", "list"), ("rules", "check"))
"""Commands that show a pipeline and write nothing."""


def test_commands_that_only_look_are_answered_without_java(folder: Path) -> None:
    recorded(folder)
    java = NotedJava(folder.parent / "java")
    given = ("--param", f"landing={folder / 'landing'}", "--table", "kinds=kinds")
    environ = {**os.environ, "JAVA_HOME": str(java.home), "SHOP_LIMIT": "10"}

    def printed(*words: str, **more: str) -> tuple[int, str, str]:
        asked = [str(LAKELET), *words, "pipeline.py", *given]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=300, env={**environ, **more}, check=False)
        return done.returncode, done.stdout, done.stderr

    java.forbidden.touch()
    starts, before = java.starts, sorted((path, path.stat().st_mtime_ns) for path in (folder / ".lakelet").rglob("*"))
    quick = {words: printed(*words) for look in LOOKING for words in (look, (*look, "--json"))}
    assert java.starts == starts
    assert sorted((path, path.stat().st_mtime_ns) for path in (folder / ".lakelet").rglob("*")) == before
    assert printed("plan", "--explain", "gold")[0] == 3

    java.forbidden.unlink()
    assert {code for code, _, _ in quick.values()} == {0}
    for words in (("plan", "--json"), ("graph", "--json"), ("rules", "list", "--json"), ("rules", "check", "--json")):
        assert quick[words] == printed(*words, LAKELET_IDLE_ANSWER="off"), words


@pytest.mark.slow
def test_the_reason_why_spark_is_started_is_told(folder: Path) -> None:
    (folder / "pipeline.py").write_text("import time\n\nimport dlt\n\n\n@dlt.table\ndef numbers():\n    return spark.range(3)\n")
    run(folder)
    _, said = run(folder)
    assert "Spark was started to find that out: pipeline.py:1 imports time." in said


STARTING_POINTS = {
    "starter": [],
    "factory": ["generate.py", "landing"],
    "audit": ["generate.py", "landing"],
    "web": ["generate.py", "1"],
}
"""Starting points of projects, and the program with its arguments that writes their input."""


@pytest.mark.slow
@pytest.mark.parametrize("point", STARTING_POINTS)
def test_the_second_run_of_a_new_project_starts_no_java(point: str, tmp_path: Path) -> None:
    java = NotedJava.made(tmp_path / "java")
    environ = {**os.environ, "JAVA_HOME": str(java.home), "LAKELET_SECRET_WEB_PII_KEY": "only for the tests: 32 bytes of it"}

    def called(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        return done

    called("-m", "lakelet", "new", "project", "demo", "--from", point, folder=tmp_path)
    demo = tmp_path / "demo"
    if STARTING_POINTS[point]:
        called(*STARTING_POINTS[point], folder=demo)
    time.sleep(0.1)  # files of the hundredths of a second in which the update begins are doubted: see process_start
    update = ["-m", "lakelet", "run", *(["--param", "landing=landing"] if point == "web" else [])]
    assert "COMPLETED" in called(*update, folder=demo).stderr
    starts = java.starts
    assert starts
    java.forbidden.touch()
    assert "Nothing new: no table was touched." in called(*update, folder=demo).stderr, record(demo).get("doubt")
    assert java.starts == starts
