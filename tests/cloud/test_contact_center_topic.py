"""The contact center with the router's messages in a topic, in place of files: the tables of the same oracle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lakelet.files.paths import any_path
from lakelet.inspection.inspector import read_arrow
from sampledata import check, generate, write_expected
from tests.kafka import kafka_broker

PROJECT = Path(__file__).parents[2]
FILES = """\
        spark.readStream.format("cloudFiles")
        .option("cloudFiles.format", "json")
        .option("cloudFiles.inferColumnTypes", "true")
        .option("cloudFiles.schemaHints", HINTS)
        .load(f"{spark.conf.get('landing')}/router_logs")
        .withColumn("source_file", F.col("_metadata.file_name"))
"""
TOPIC = """\
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", spark.conf.get("servers"))
        .option("subscribe", "router")
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr(
            "string(key) AS source_file",
            f"from_json(string(value), NULL, map('schemaLocationKey', 'router', 'schemaHints', '{HINTS}')) AS entry",
        )
        .select("entry.*", "source_file")
"""


def test_the_router_s_messages_from_a_topic_give_the_tables_of_the_oracle(tmp_path: Path) -> None:
    project, sample, folder = tmp_path / "project", tmp_path / "sample", tmp_path / "broker"
    project.mkdir()
    folder.mkdir()
    for name in ("pipelines", "expectations", "resources"):
        shutil.copytree(PROJECT / name, project / name)
    shutil.copy(PROJECT / "databricks.yml", project)
    (project / "pyproject.toml").write_text('[tool.lakelet]\npackages = ["kafka"]\n')
    bronze = project / "pipelines" / "bronze" / "router_logs.py"
    text = bronze.read_text()
    assert FILES in text
    bronze.write_text(text.replace(FILES, TOPIC))
    generate(sample, rows=300, seed=7)
    write_expected(sample)
    with kafka_broker(folder) as broker:
        broker.create("router", partitions=1)
        for file in sorted((sample / "landing" / "router_logs").rglob("*.json*")):
            lines = [line for line in file.read_bytes().split(b"\n") if line.strip()]
            broker.send("router", *((file.name, line) for line in lines))
        command = [sys.executable, "-m", "lakelet.cli.main", "run", "--json", "--storage", str(tmp_path / "lake")]
        command += ["--param", f"landing={sample / 'landing'}", "--param", f"servers={broker.servers}"]
        done = subprocess.run(command, cwd=project, env=dict(os.environ), capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    states = [json.loads(line)["details"].get("update_progress", {}).get("state") for line in done.stdout.splitlines()]
    assert [state for state in states if state][-1] == "COMPLETED"
    storage = any_path(str(tmp_path / "lake"))
    assert [str(one) for one in check(sample, lambda name: read_arrow(storage, name))] == []
