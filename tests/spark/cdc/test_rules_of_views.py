"""Rules of views that snapshot flows, and change flows of one batch, read (docs/semantics/expectations.md, EP-7)."""

from __future__ import annotations

import pytest

PERIODIC = """
    import dlt

    @dlt.table
    def arrived():
        return spark.read.schema("id INT, v STRING").json(spark.conf.get("landing"))

    @dlt.view
    @dlt.expect_or_drop("known", "v IS NOT NULL")
    @dlt.expect("small", "id < 3")
    def checked():
        return spark.read.table("arrived")

    dlt.create_streaming_table("target")
    dlt.create_auto_cdc_from_snapshot_flow(target="target", source="checked", keys=["id"], stored_as_scd_type=1)
"""


@pytest.mark.long
def test_rules_of_a_view_are_counted_where_a_snapshot_flow_reads_it(project):
    p = project(PERIODIC)
    p.arrive("1.json", {"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 3, "v": "x"})

    p.run()

    assert p.rows("target") == [(1, "a"), (3, "x")]
    assert p.quality("checked") == {"known": (2, 1), "small": (2, 1)}

    p.arrive("2.json", {"id": 4, "v": "y"})
    p.run()

    assert p.rows("target") == [(1, "a"), (3, "x"), (4, "y")]
    assert p.quality("checked") == {"known": (3, 1), "small": (2, 2)}


@pytest.mark.slow
def test_a_fail_rule_of_a_view_fails_the_snapshot_flow_that_reads_it(project):
    p = project(PERIODIC.replace('expect_or_drop("known"', 'expect_or_fail("known"'))
    p.arrive("1.json", {"id": 1, "v": "a"})
    p.run()
    p.arrive("2.json", {"id": 2, "v": None})

    p.run(expect="FAILED")

    assert p.errors() == {"target": "EXPECTATION_VIOLATION"}
    assert p.rows("target") == [(1, "a")]


@pytest.mark.slow
def test_each_snapshot_of_a_function_has_the_counts_of_the_views_that_it_reads(project):
    p = project("""
        import dlt

        @dlt.view
        @dlt.expect("small", "id < 2")
        def checked():
            return spark.range(3)

        def snapshots(last):
            if last == 2:
                return None
            return spark.read.table("checked").where(f"id >= {last or 0}"), (last or 0) + 1

        dlt.create_streaming_table("target")
        dlt.create_auto_cdc_from_snapshot_flow(target="target", source=snapshots, keys=["id"], stored_as_scd_type=2)
    """)

    p.run()

    assert p.quality("checked") == {"small": (2 * 2, 1 * 2)}


def test_rules_of_a_view_hold_for_changes_that_are_applied_once(project):
    p = project("""
        import dlt

        @dlt.view
        @dlt.expect_or_drop("known", "v IS NOT NULL")
        def checked():
            return spark.createDataFrame([(1, "a", 1), (2, None, 1)], "id INT, v STRING, at INT")

        @dlt.view
        @dlt.expect_or_fail("known", "v IS NOT NULL")
        def failing():
            return spark.createDataFrame([(1, "a", 1), (2, None, 1)], "id INT, v STRING, at INT")

        for target, source in (("target", "checked"), ("failed", "failing")):
            dlt.create_streaming_table(target)
            dlt.create_auto_cdc_flow(target=target, source=source, keys=["id"], sequence_by="at", once=True)
    """)

    p.run(expect="FAILED")

    assert p.rows("target", "id", "v") == [(1, "a")]
    assert p.quality("checked") == {"known": (1, 1)}
    assert p.errors() == {"failed": "EXPECTATION_VIOLATION"}
