"""Table properties `delta.*` as declared: refused before anything runs, or accepted and carried out (TP-10 to TP-13)."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

TABLES = """
import dlt

HOSTED = {{
    "delta.targetFileSize": "10mb", "delta.autoOptimize.autoCompact": "auto", "delta.isolationLevel": "WriteSerializable",
    "delta.logRetentionDuration": "1 day", "delta.feature.nobodyHasIt": "supported", "delta.feature.timestampNtz": "supported",
    "delta.minWriterVersion": "7", "delta.tuneFileSizesForRewrites": "true", "quality": "bronze", "DELTA.enablechangedatafeed": "true",
}}

def landed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing"))

@dlt.table(table_properties=HOSTED)
def plain():
    return landed()

@dlt.table(table_properties=HOSTED, cluster_by=["id"])
def clustered():
    return landed()

@dlt.table(table_properties=HOSTED)
def view():
    return dlt.read("plain").groupBy().count()

dlt.create_streaming_table("changed", table_properties=HOSTED)
dlt.apply_changes("changed", "plain", ["id"], "id")
"""


@pytest.mark.slow
def test_properties_of_the_hosted_service_stop_no_pipeline(project):
    p = project(TABLES.format())
    p.arrive("1.json", {"id": 1})
    p.run()
    p.arrive("2.json", {"id": 2})
    p.run()
    for name in ("plain", "clustered", "changed"):
        assert p.rows(name, "id") == [1, 2]
        detail = p.spark.sql(f"DESCRIBE DETAIL delta.`{p.path(name)}`").first()
        assert detail.properties["delta.enableChangeDataFeed"] == "true"
        assert detail.properties["delta.targetFileSize"] == "10mb"
        assert detail.properties["delta.logRetentionDuration"] == "1 day"
        assert detail.properties["quality"] == "bronze"
        assert "delta.isolationLevel" not in detail.properties
        assert "timestampNtz" in detail.tableFeatures
    assert p.rows("view") == [2]
    assert p.run().versions() == p.run().versions()
    assert set(p.statuses().values()) == {"IDLE"}


@pytest.mark.long
def test_validate_tells_all_wrong_properties_of_python_and_sql_with_file_and_line(tmp_path):
    (tmp_path / "one.py").write_text(
        textwrap.dedent("""
        import dlt

        @dlt.table(table_properties={"delta.appendOnly": "yes"})
        def one():
            return spark.range(1)
        """)
    )
    text = "CREATE MATERIALIZED VIEW two\n"
    text += "TBLPROPERTIES ('delta.enableDeletionVector' = 'true', 'delta.checkpointInterval' = 'often')\nAS SELECT 1 x"
    (tmp_path / "two.sql").write_text(text)
    command = [sys.executable, "-m", "lakelet", "validate", "one.py", "two.sql"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    told = done.stdout + done.stderr
    assert done.returncode == 2, told
    for part in (
        "one.py, line 4",
        "two.sql, line 1",
        "PROPERTY_UNKNOWN",
        "delta.enableDeletionVectors",
        "delta.checkpointInterval is 'often'",
    ):
        assert part in told
    assert told.count("PROPERTY_INVALID") >= 2
