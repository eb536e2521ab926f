"""A first update that fails after some commits: what was committed is shown (docs/semantics/storage.md, ST-15)."""

from __future__ import annotations

from lakelet.inspection.inspector import list_tables, read_rows

SNAPSHOTS = """
    import dlt

    def following(latest):
        if latest is None:
            return spark.createDataFrame([(1, "a")], "id INT, value STRING"), 1
        raise ValueError("the second snapshot is not there")

    dlt.create_streaming_table("people")
    dlt.apply_changes_from_snapshot(target="people", snapshot_and_version=following, keys=["id"], stored_as_scd_type=1)

    @dlt.table
    @dlt.expect_or_fail("small", "id < 2")
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")).select("id"))
"""


def test_tables_whose_first_update_failed_after_a_commit_are_listed_and_shown(project):
    p = project(SNAPSHOTS)
    p.arrive("a.json", {"id": 1})
    p.arrive("b.json", {"id": 2})
    p.run(expect="FAILED")
    assert {t.name.rsplit(".", 1)[-1]: t.rows for t in list_tables(p.storage.root)} == {"people": 1, "raw": 1}
    assert list(read_rows(p.storage.root, "people").rows) == [{"id": 1, "value": "a"}]
