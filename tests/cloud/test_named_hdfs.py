"""A storage on HDFS under a name that Hadoop's files know: Spark, its workers and Python's part find the same name node."""

from __future__ import annotations

from pathlib import Path

from tests.cloud.conftest import Lake
from tests.cloud.test_stores import FIRST, PIPELINE, SECOND
from tests.hdfs import HdfsServer


def test_updates_on_this_machine_and_on_a_cluster_find_a_storage_by_its_name(hdfs: HdfsServer, tmp_path: Path) -> None:
    hdfs.name_it("prod", tmp_path / "conf")
    lake = Lake(tmp_path, hdfs, environment={"HADOOP_CONF_DIR": str(tmp_path / "conf")})
    lake.write(PIPELINE)
    words = ("run", "pipeline.py", "--param", f"landing=hdfs://prod/{hdfs.bucket}/landing", "--storage", f"hdfs://prod/{hdfs.bucket}/lake")
    lake.deliver("a.json", FIRST)
    lake.lakelet(*words)
    lake.deliver("b.json", SECOND)
    lake.lakelet(*words, "--master", "local-cluster[2,1,1024]")
    assert sorted((r["id"], r["kind"]) for r in lake.rows("raw")) == [(1, "x"), (1, "y"), (2, "x")]
    assert {r["file"] for r in lake.rows("raw")} == {f"hdfs://prod/{hdfs.bucket}/landing/{name}.json" for name in "ab"}
