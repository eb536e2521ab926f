"""A standalone cluster of two workers, whose Python knows nothing of Lakelet, and a storage on S3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lakelet.files.paths import any_path
from lakelet.inspection.inspector import read_arrow
from sampledata import check, generate, write_expected
from tests.cloud.cluster import worker_environment
from tests.cloud.conftest import Lake

PROJECT = Path(__file__).parents[2]
ABSENT = ("numpy", "pandas", "orjson", "deltalake", "lakelet")

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    @F.udf("string")
    def seen(n):
        import importlib.util, json, os, sys
        found = {name: bool(importlib.util.find_spec(name)) for name in ("numpy", "pandas", "orjson", "deltalake")}
        import lakelet
        return json.dumps({**found, "python": sys.executable, "lakelet": os.path.abspath(lakelet.__file__), "worker": os.getcwd()})

    @dlt.table
    def raw():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))

    @dlt.table
    def machines():
        return spark.read.table("raw").repartition(8).select("id", seen("id").alias("seen"))

    @dlt.table
    def sizes():
        names = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")
        return spark.range(1).select(*(F.lit(spark.conf.get(name)).alias(name.rpartition(".")[2]) for name in names))
"""


def test_the_worker_environment_holds_none_of_our_packages(tmp_path: Path) -> None:
    python = worker_environment(tmp_path / "worker-environment")
    code = f"import importlib.util, pyspark, pyarrow, json; print(json.dumps([n for n in {ABSENT!r} if importlib.util.find_spec(n)]))"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment)
    assert json.loads(done.stdout) == []


def test_lakelet_s_code_travels_to_workers_and_new_columns_are_followed(on_cluster: Lake, tmp_path: Path) -> None:
    lake = on_cluster
    lake.write(PIPELINE)
    words = ("pipeline.py", "--param", f"landing={lake.store.uri('landing')}")
    for name in "abcd":
        lake.store.put(f"landing/{name}.json", "".join(f'{{"id": "{name}{n}"}}\n' for n in range(20)))
    lake.run(*words)
    assert lake.rows("sizes") == [{"partitions": "2", "snapshotPartitions": "2"}]  # of S3 nobody knows how much is new
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 7\n")
    lake.store.put("landing/e.json", '{"id": "e", "extra": "new"}\n')
    lake.run(*words, "--full-refresh", "sizes")
    assert lake.rows("sizes") == [{"partitions": "7", "snapshotPartitions": "2"}]
    rows = lake.rows("raw")
    assert len(rows) == 81
    assert [r["extra"] for r in rows if r["id"] == "e"] == ["new"]
    found = [json.loads(row["seen"]) for row in lake.rows("machines")]
    assert {f["python"] for f in found} == {str(tmp_path / "worker-environment" / "bin" / "python")}
    assert not any(f[name] for f in found for name in ("numpy", "pandas", "orjson", "deltalake"))
    assert {Path(f["worker"]).relative_to(tmp_path).parts[0] for f in found} == {"worker0", "worker1"}
    elsewhere = [f["lakelet"] for f in found if not f["lakelet"].startswith(f["worker"])]
    assert elsewhere == []  # the code came with the session and is not read from a folder of the driver's


def test_system_a_gives_the_tables_of_the_oracle(on_cluster: Lake, tmp_path: Path) -> None:
    lake = on_cluster
    project = tmp_path / "project"  # without src/, so that nothing of ours lies on the workers' path
    project.mkdir()
    for name in ("pipelines", "expectations", "resources"):
        shutil.copytree(PROJECT / name, project / name)
    shutil.copy(PROJECT / "databricks.yml", project)
    sample = tmp_path / "sample"
    generate(sample, rows=300, seed=7)
    write_expected(sample)
    lake.store.upload(sample / "landing", "landing")
    lake.run("--param", f"landing={lake.store.uri('landing')}", cwd=project)
    storage = any_path(lake.storage)
    assert [str(one) for one in check(sample, lambda name: read_arrow(storage, name))] == []


LOCAL_CLUSTER = """
    import dlt
    from pyspark.sql import functions as F

    @F.udf("int")
    def doubled(n):
        return 2 * n

    @dlt.table
    @dlt.expect_or_drop("small", "n < 5")
    def raw():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.schemaHints", "n INT")
        return reader.load(spark.conf.get("landing")).select("n")

    dlt.create_streaming_table("history")
    dlt.apply_changes(target="history", source="raw", keys=["n"], sequence_by="n", stored_as_scd_type=2)

    @dlt.table
    def twice():
        return spark.read.table("history").select(doubled("n").alias("n"))
"""


@pytest.mark.parametrize("in_folders", [True, False], ids=["folder", "s3"])
def test_a_cluster_of_processes_of_this_machine_gives_the_same_tables(lake: Lake, in_folders: bool) -> None:
    lake.in_folders, lake.options = in_folders, ["--master", "local-cluster[2,1,1024]"]
    lake.write(LOCAL_CLUSTER)
    for start in (0, 3):
        for n in range(start, start + 3):
            lake.deliver(f"{n}.json", f'{{"n": {n}}}\n')
        lake.run("pipeline.py", "--param", f"landing={lake.landing}")
    assert sorted(row["n"] for row in lake.rows("twice")) == [0, 2, 4, 6, 8]
