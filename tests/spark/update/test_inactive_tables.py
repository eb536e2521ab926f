"""Tables whose definition is removed: kept, readable, not updated; they go on when they come back, or are dropped if that is asked for."""

from __future__ import annotations

import pytest

from lakelet.inspection.inspector import list_tables, read_rows, run_sql

BRONZE = """
    import dlt

    def landed():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")).select("id"))

    @dlt.table
    def kept():
        return landed()
"""
GONE = """
    @dlt.table
    def gone():
        return landed()
"""


def notices(p):
    return [e.message for e in p.events if e.event_type == "notice"]


def active(p):
    return {t.name.rsplit(".", 1)[-1]: t.active for t in list_tables(p.storage.root)}


@pytest.mark.long
def test_a_table_without_a_definition_is_kept_and_goes_on_when_it_is_defined_again(project):
    p = project(BRONZE + GONE)
    p.arrive("a.json", {"id": 1})
    p.run()
    p.write(BRONZE + "\n    @dlt.table\n    def copy():\n        return spark.read.table('gone')\n")
    p.arrive("b.json", {"id": 2})
    p.run()
    (told,) = notices(p)
    assert "main.default.gone is no longer defined" in told
    assert active(p) == {"kept": True, "gone": False, "copy": True}
    assert p.rows("kept") == [1, 2]
    assert p.rows("gone") == p.rows("copy") == [1]
    assert list(read_rows(p.storage.root, "gone").rows) == [{"id": 1}]
    assert list(run_sql(p.storage.root, "SELECT count(*) AS n FROM gone", spark=p.spark).rows) == [{"n": 1}]
    p.run()
    assert notices(p) == []

    p.write(BRONZE + GONE)
    p.run()
    assert [m for m in notices(p) if "gone" in m] == ["main.default.gone is defined again and goes on from where it stopped"]
    assert p.rows("gone") == [1, 2]
    assert active(p) == {"kept": True, "gone": True, "copy": False}


def test_a_table_that_becomes_a_view_is_no_longer_active(project):
    p = project(BRONZE + GONE)
    p.arrive("a.json", {"id": 1})
    p.run()
    p.write(BRONZE + GONE.replace("dlt.table", "dlt.view"))
    p.run()
    assert active(p) == {"kept": True, "gone": False}


def test_inactive_tables_are_dropped_if_the_pipeline_says_so_and_start_again_afterwards(project):
    p = project(BRONZE + GONE)
    p.parameters["pipelines.dropInactiveTables"] = "true"
    p.arrive("a.json", {"id": 1})
    p.run()
    folders = [p.path("gone"), *p.storage.flow_folders(_name("gone"))]
    assert all(f.exists() for f in folders)
    p.write(BRONZE + "\n    @dlt.table\n    def copy():\n        return spark.read.table('gone')\n")
    p.run()
    assert p.rows("copy") == [1]
    assert active(p) == {"kept": True, "gone": False, "copy": True}  # a query reads it
    p.write(BRONZE)
    p.run()
    assert sorted(m.split(" ")[0] for m in notices(p)) == ["main.default.copy", "main.default.gone"]
    assert all("was dropped" in m for m in notices(p))
    assert active(p) == {"kept": True}
    assert not any(f.exists() for f in folders)

    p.write(BRONZE + GONE)
    p.run()
    assert p.rows("gone") == [1]


def _name(name):
    from lakelet.base.names import Namespace

    return Namespace("main", "default").resolve(name)
