"""What an update refreshes again, resets and clears, and the settings that say so (docs/semantics/refreshes.md)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from tests.spark.update.pipelines import BRANCHES, BRONZE, states


@pytest.mark.long
def test_refreshing_what_failed_leaves_the_rest_alone(project):
    p = project(BRANCHES.format(number=3))
    p.run(expect="FAILED", select=("good", "bad", "below"))
    assert p.statuses() == {"good": "COMPLETED", "bad": "FAILED", "below": "SKIPPED", "left_out": "EXCLUDED"}
    p.write(BRANCHES.format(number=2))
    p.run(refresh_failed=True)
    assert p.statuses() == {"good": "EXCLUDED", "bad": "COMPLETED", "below": "COMPLETED", "left_out": "EXCLUDED"}
    assert p.rows("below") == [0, 1]
    p.run(refresh_failed=True)
    assert set(p.statuses().values()) == {"EXCLUDED"}


@pytest.mark.long
def test_a_cleared_checkpoint_reads_everything_again_and_keeps_the_rows(project):
    p = project(
        BRONZE
        + """
    @dlt.table
    def silver():
        return spark.readStream.table("bronze").select("id")
"""
    )
    p.arrive("a.json", {"id": 1})
    p.arrive("b.json", {"id": 2, "extra": "x"})
    p.run()
    ids = {e.origin.flow_id for e in p.events if e.origin.flow_name == "main.default.bronze"}
    p.arrive("c.json", {"id": 3})
    p.run(reset_checkpoint=("bronze",))
    assert "RESETTING" in states(p)
    assert p.rows("bronze", "id") == [1, 1, 2, 2, 3]
    assert p.rows("silver") == [1, 1, 2, 2, 3]
    assert len({e.origin.flow_id for e in p.events if e.origin.flow_name == "main.default.bronze"} - ids) == 1
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    p.run(select=("silver",), reset_checkpoint=("silver",))
    assert p.statuses()["bronze"] == "EXCLUDED"
    assert p.rows("silver") == sorted([1, 1, 2, 2, 3] * 2)
    p.run(full_refresh=("bronze", "silver"))
    assert p.rows("bronze", "id") == [1, 2, 3]
    assert p.rows("silver") == [1, 2, 3]


def test_settings_without_effect_are_told_with_their_place_in_python_and_sql(project):
    p = project(
        """
        import dlt

        @dlt.table(table_properties={"pipelines.enableTrackHistory": "true", "quality": "gold"}, spark_conf={"pipelines.tiger": "1"})
        def numbers():
            return spark.range(2)
        """
    )
    p.write(
        """
        CREATE OR REFRESH MATERIALIZED VIEW copied TBLPROPERTIES ("pipelines.reset.alowed" = "false") AS SELECT * FROM numbers;
        """,
        "more.sql",
    )
    p.run()
    notices = [e.message for e in p.events if e.event_type == "notice"]
    assert len(notices) == 3
    assert any("pipeline.py, line 4: pipelines.enableTrackHistory has no effect here" in n for n in notices)
    assert any("pipelines.tiger has no effect here: no such setting is known" in n for n in notices)
    assert any("more.sql, line 2" in n and "did you mean pipelines.reset.allowed?" in n for n in notices)
    assert p.rows("copied") == [0, 1]
    p.write("import dlt\n@dlt.table(table_properties={'pipelines.reset.allowed': 'perhaps'})\ndef numbers(): return spark.range(2)")
    (error,) = p.refused()
    assert error.code == "PROPERTY_INVALID"


@pytest.mark.slow
def test_a_protected_table_is_told_of_resets_that_leave_it_out(project):
    p = project(
        BRONZE
        + """
    @dlt.table(table_properties={"PIPELINES.reset.allowed": "false"})
    def kept():
        return spark.readStream.table("bronze").select("id")
"""
    )
    p.arrive("a.json", {"id": 1})
    p.run()
    with pytest.raises(LakeletError, match=r"kept, whose property pipelines\.reset\.allowed is false"):
        p.run(full_refresh=("kept",))
    p.run(full_refresh_all=True)
    warned = [e.message for e in p.events if e.level == "WARN"]
    assert any("main.default.kept: it was not reset, because pipelines.reset.allowed is false" in w for w in warned)
    assert any("keeps its rows and reads main.default.bronze again from the start: pipelines.reset.allowed is false" in w for w in warned)
    assert p.rows("bronze", "id") == [1]
    assert p.rows("kept") == [1, 1]


@pytest.mark.slow
def test_the_configuration_says_for_all_change_tables_how_long_tombstones_are_kept(project):
    source = """
    import dlt

    dlt.create_streaming_table("{name}", table_properties={properties})
    dlt.apply_changes("{name}", "bronze", ["id"], "at", apply_as_deletes="gone")
    """
    p = project(
        BRONZE,
        a=source.format(name="a", properties={}),
        b=source.format(name="b", properties={"pipelines.cdc.tombstoneGCThresholdInSeconds": "99"}),
    )
    p.parameters["pipelines.cdc.tombstoneGCThresholdInSeconds"] = "7"
    p.arrive("a.json", {"id": 1, "at": 1, "gone": False})
    p.run()
    kept = [p.spark.sql(f"SHOW TBLPROPERTIES delta.`{p.path(name)}`").collect() for name in ("a", "b")]
    assert [dict(rows)["pipelines.cdc.tombstoneGCThresholdInSeconds"] for rows in kept] == ["7", "99"]


def test_a_checkpoint_that_was_cleared_before_the_process_died_is_cleared_once(project, monkeypatch):
    p = project(BRONZE)
    p.arrive("a.json", {"id": 1})
    p.run()

    def dies(point):
        if point == "reset.recorded":
            raise MemoryError(point)

    with monkeypatch.context() as patched:
        patched.setattr("lakelet.update.initialization.reached", dies)
        with pytest.raises(MemoryError):
            p.run(reset_checkpoint=("bronze",))
    p.run()
    assert p.rows("bronze", "id") == [1, 1]
    p.run()
    assert p.statuses() == {"bronze": "IDLE"}
