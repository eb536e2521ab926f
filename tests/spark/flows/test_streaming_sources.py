"""Which tables a stream can read, what happens when one of them is updated, and what a join sees of a table that is not a stream."""

from __future__ import annotations

import pytest

FILES = """
    import dlt
    from pyspark.sql import functions as F

    def landed(folder):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        return reader.option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing") + "/" + folder)
"""
CUSTOMERS = (
    FILES
    + """
    @dlt.view
    def feed():
        return landed("customers")

    for name, type in (("current", 1), ("history", 2)):
        dlt.create_streaming_table(name)
        dlt.apply_changes(target=name, source="feed", keys=["id"], sequence_by="seq", stored_as_scd_type=type,
                          except_column_list=["seq", "_rescued_data"])
"""
)


def test_a_stream_that_skips_the_changes_of_a_change_table_is_refused_at_the_line_of_the_read(project):
    p = project(
        CUSTOMERS
        + """
    @dlt.table
    def of_changes_skipping():
        return spark.readStream.option("skipChangeCommits", "true").table("current")

    @dlt.table
    def allowed():
        return spark.readStream.option("readChangeFeed", "true").table("current").select("id", "_change_type")
"""
    )
    p.arrive("a.json", {"id": 1, "seq": 1}, folder="customers")
    (error,) = p.refused()
    assert (error.code, str(error.dataset)) == ("STREAM_SOURCE_UPDATED", "main.default.of_changes_skipping")
    assert "current" in p.files[0].read_text().splitlines()[error.where.line - 1]
    assert "readChangeFeed" in str(error.todo)
    assert "as a batch" in str(error.todo)
    assert "main.default.current" in error.what
    assert "skipChangeCommits" in str(error.why)


@pytest.mark.slow
def test_a_stream_over_a_table_that_is_replaced_gets_its_first_rows_and_fails_once_they_are(project):
    p = project(
        FILES
        + """
    @dlt.table
    def totals():
        return landed("orders").groupBy("id").count()

    @dlt.table
    def of_totals():
        return spark.sql("SELECT * FROM STREAM(totals)")
"""
    )
    p.arrive("a.json", {"id": 1}, {"id": 1}, {"id": 2}, folder="orders")
    (notice,) = [notice.text for notice in p.pipeline.check().notices]
    assert "fails once they are replaced" in notice
    assert "watermark" in notice
    p.run()
    assert p.rows("of_totals") == [(1, 2), (2, 1)]
    p.run()
    assert p.statuses() == {"totals": "IDLE", "of_totals": "IDLE"}
    p.arrive("b.json", {"id": 2}, folder="orders")
    p.run(expect="FAILED")
    assert (p.errors(), p.rows("totals")) == ({"of_totals": "STREAM_SOURCE_CHANGED"}, [(1, 2), (2, 2)])
    assert p.rows("of_totals") == [(1, 2), (2, 1)]


@pytest.mark.long
def test_a_stream_over_a_change_table_goes_on_until_a_commit_updates_or_deletes_a_row(project):
    p = project(
        CUSTOMERS
        + """
    @dlt.table
    def of_changes():
        return spark.readStream.table("current")

    @dlt.view
    def versions():
        return spark.readStream.table("history").selectExpr("id", "__START_AT AS start")

    dlt.create_streaming_table("chained")
    dlt.apply_changes(target="chained", source="versions", keys=["id"], sequence_by="start", column_list=["id"])
"""
    )
    for n, events in enumerate([[(1, 5), (2, 5)], [(3, 5)], [(4, 1), (1, 4), (1, 5)]]):  # the last one comes late, or once more
        p.arrive(f"{n}.json", *({"id": id, "seq": seq} for id, seq in events), folder="customers")
        if n == 0:
            notices = [notice.text for notice in p.pipeline.check().notices]
            assert sum("the stream fails at the first commit that updates or deletes rows" in text for text in notices) == 2
        if n < 2:
            p.run()
            assert p.rows("of_changes") == p.rows("chained") == [1, 2, 3][: n + 2]
    p.run(expect="FAILED")
    assert p.errors() == {"chained": "STREAM_SOURCE_CHANGED"}  # the late event is a version of its own there
    assert p.rows("of_changes") == [1, 2, 3, 4]
    p.arrive("3.json", {"id": 1, "seq": 6}, {"id": 5, "seq": 1}, folder="customers")
    p.run(expect="FAILED")
    assert p.errors() == {"chained": "STREAM_SOURCE_CHANGED", "of_changes": "STREAM_SOURCE_CHANGED"}
    (error,) = (e for e in p.result.errors if "of_changes" in str(e.dataset))
    assert "main.default.current" in error.what
    for remedy in ("readChangeFeed", "as a batch, in a materialized view", "lakelet run --full-refresh main.default.of_changes"):
        assert remedy in str(error.todo)
    assert "skipChangeCommits" not in str(error.todo)
    p.run(full_refresh=["of_changes"], select=["of_changes"])
    assert p.rows("of_changes") == [1, 2, 3, 4, 5]


EVENTS = (
    FILES
    + """
    @dlt.table
    def events():
        return landed("events").select("id", "kind")
"""
)


def update(p, name, condition):
    """Somebody else changes rows of a table of the pipeline."""
    p.spark.sql(f"UPDATE delta.`{p.path(name)}` SET kind = 'changed' WHERE {condition}")


@pytest.mark.long
def test_an_update_of_a_streamed_table_fails_its_readers_unless_they_skip_it_or_read_the_changes(project):
    source = (
        EVENTS
        + """
    @dlt.table
    def plain():
        return dlt.read_stream("events")

    @dlt.table
    def skipping():
        return spark.readStream.option("skipChangeCommits", "true").table("events")

    @dlt.table
    def changes():
        return spark.readStream.option("readChangeFeed", "true").table("events").select("kind", "_change_type")
"""
    )
    p = project(source)
    p.write(
        "CREATE OR REFRESH STREAMING TABLE skipping_sql AS SELECT * FROM STREAM events WITH (skipChangeCommits=true)",
        "skipping.sql",
    )
    p.arrive("a.json", {"id": 1, "kind": "x"}, {"id": 2, "kind": "y"}, folder="events")
    p.run()
    update(p, "events", "id = 1")
    p.arrive("b.json", {"id": 3, "kind": "z"}, folder="events")
    p.run(expect="FAILED")
    assert p.errors() == {"plain": "STREAM_SOURCE_CHANGED"}
    (error,) = p.result.errors
    assert "main.default.events" in error.what
    for remedy in ("skipChangeCommits", "readChangeFeed", "as a batch", "lakelet run --full-refresh main.default.plain"):
        assert remedy in str(error.todo)
    assert p.rows("plain") == [(1, "x"), (2, "y")]
    assert p.rows("skipping") == p.rows("skipping_sql") == [(1, "x"), (2, "y"), (3, "z")]
    assert p.rows("changes") == [
        ("changed", "update_postimage"), ("x", "insert"), ("x", "update_preimage"), ("y", "insert"), ("z", "insert"),
    ]  # fmt: skip

    p.run(full_refresh=("plain",))
    assert p.rows("plain") == [(1, "changed"), (2, "y"), (3, "z")]


@pytest.mark.slow
def test_a_materialized_view_can_be_streamed_until_a_row_of_it_changes(project):
    p = project(
        EVENTS
        + """
    @dlt.table
    def kinds():
        return dlt.read("events").groupBy("kind").agg(F.count("*").alias("n"))

    @dlt.table
    def seen():
        return dlt.read_stream("kinds")

    @dlt.table
    def skipping():
        return spark.readStream.option("skipChangeCommits", "true").table("kinds")
"""
    )
    p.arrive("a.json", {"id": 1, "kind": "x"}, folder="events")
    p.run()
    assert p.rows("seen") == [("x", 1)]
    told = [e.message for e in p.events if e.event_type == "notice"]
    assert len([m for m in told if "materialized view" in m and "once one changes or goes" in m]) == 1
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    p.arrive("b.json", {"id": 2, "kind": "x"}, folder="events")
    p.run(expect="FAILED")
    assert p.errors() == {"seen": "STREAM_SOURCE_CHANGED"}
    assert p.rows("kinds") == [("x", 2)]
    assert p.rows("skipping") == [("x", 1)]


@pytest.mark.slow
def test_a_stream_gets_what_is_added_to_a_materialized_view_and_nothing_of_an_unchanged_one(project):
    p = project(
        EVENTS
        + """
    @dlt.table(partition_cols=["kind"], table_properties={"delta.enableChangeDataFeed": "true"})
    def shouted():
        return dlt.read("events").select(F.upper("kind").alias("kind"), "id", F.array("id").alias("list of ids"))

    @dlt.table
    def made():
        return spark.createDataFrame([(1, "a"), (1, "a"), (2, None)], "id int, kind string")

    @dlt.table
    def of_shouted():
        return dlt.read_stream("shouted").select("id", "kind")

    @dlt.table
    def of_made():
        return spark.readStream.table("made").select("id", "kind")

    dlt.create_streaming_table("latest")
    dlt.apply_changes(target="latest", source="shouted", keys=["kind"], sequence_by="id", column_list=["kind", "id"])
"""
    )
    p.arrive("a.json", {"id": 1, "kind": "x"}, {"id": 1, "kind": "x"}, {"id": 2, "kind": "y"}, folder="events")
    p.run()
    p.arrive("b.json", {"id": 1, "kind": "x"}, {"id": 3, "kind": "y"}, folder="events")
    p.run()  # one row is there three times now
    assert p.rows("of_shouted") == [(1, "X"), (1, "X"), (1, "X"), (2, "Y"), (3, "Y")]
    assert [row[:2] for row in p.rows("shouted")] == [("X", 1), ("X", 1), ("X", 1), ("Y", 2), ("Y", 3)]
    assert p.rows("latest") == [("X", 1), ("Y", 3)]
    assert p.rows("made") == p.rows("of_made") == [(1, "a"), (1, "a"), (2, None)]
    before = p.versions()
    files = {name: sorted(p.path(name).rglob("*.parquet")) for name in ("made", "shouted")}
    p.run()
    assert p.versions() == before
    assert {name: sorted(p.path(name).rglob("*.parquet")) for name in ("made", "shouted")} == files
    assert p.statuses()["of_made"] == "IDLE"


@pytest.mark.slow
def test_a_streamed_view_is_replaced_where_rows_go_or_cannot_be_compared_or_its_columns_change(project):
    code = (
        EVENTS
        + """
    @dlt.table
    def view():
        return dlt.read("events").where("id > {least}").select({columns})

    @dlt.table
    def mapped():
        return dlt.read("events").select(F.create_map("kind", "id").alias("ids"))

    @dlt.table
    def of_view():
        return spark.readStream.option("skipChangeCommits", "true").table("view").select("id")

    @dlt.table
    def of_mapped():
        return spark.readStream.option("skipChangeCommits", "true").table("mapped")
"""
    )
    p = project(code.replace("{least}", "0").replace("{columns}", '"id"'))
    p.arrive("a.json", {"id": 1, "kind": "x"}, {"id": 2, "kind": "y"}, folder="events")
    p.run()
    p.arrive("b.json", {"id": 3, "kind": "z"}, folder="events")
    p.run()
    assert (p.rows("view"), p.rows("of_view")) == ([1, 2, 3], [1, 2, 3])
    assert (len(p.rows("mapped")), len(p.rows("of_mapped"))) == (3, 2)
    p.write(code.replace("{least}", "1").replace("{columns}", '"id"')).run()
    assert (p.rows("view"), p.rows("of_view")) == ([2, 3], [1, 2, 3])
    p.write(code.replace("{least}", "0").replace("{columns}", '"id", "kind"')).run()
    assert (p.rows("view"), p.rows("of_view")) == ([(1, "x"), (2, "y"), (3, "z")], [1, 2, 3])


@pytest.mark.slow
def test_a_join_of_a_stream_sees_each_table_as_it_is_in_that_update(project):
    p = project(
        CUSTOMERS
        + """
    @dlt.table
    def orders():
        return landed("orders")

    @dlt.table
    def levels():
        return dlt.read("history").groupBy("id").agg(F.count("*").alias("versions"))

    @dlt.table
    def joined():
        current = dlt.read("current").select("id", F.col("name").alias("current"))
        open = spark.read.table("history").where("__END_AT IS NULL").select("id", F.col("name").alias("open"))
        orders = dlt.read_stream("orders").select("id", "order")
        return orders.join(current, "id", "left").join(open, "id", "left").join(dlt.read("levels"), "id", "left")
"""
    )
    p.arrive("a.json", {"id": 1, "seq": 1, "name": "ann"}, folder="customers")
    p.arrive("a.json", {"id": 1, "order": 10}, {"id": 2, "order": 20}, folder="orders")
    p.run()
    assert p.rows("joined") == [(1, 10, "ann", "ann", 1), (2, 20, None, None, None)]
    p.arrive("b.json", {"id": 1, "seq": 2, "name": "anna"}, {"id": 2, "seq": 2, "name": "bob"}, folder="customers")
    p.arrive("b.json", {"id": 1, "order": 11}, {"id": 2, "order": 21}, folder="orders")
    p.run()
    assert p.rows("joined") == [
        (1, 10, "ann", "ann", 1),
        (1, 11, "anna", "anna", 2),
        (2, 20, None, None, None),
        (2, 21, "bob", "bob", 1),
    ]


@pytest.mark.long
def test_stateful_streams_go_on_over_updates_and_are_idle_without_news(project):
    p = project(
        FILES
        + """
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    @dlt.table
    def events():
        return landed("events").select("id", "kind", F.to_timestamp("at").alias("at"))

    def timed():
        return dlt.read_stream("events").withWatermark("at", "10 minutes")

    @dlt.table
    def hours():
        return timed().groupBy(F.window("at", "1 hour")).count().select(F.hour("window.start").alias("hour"), "count")

    @dlt.table
    def once_each():
        return timed().dropDuplicatesWithinWatermark(["id"]).select("id")

    @dlt.table
    def ever():
        return dlt.read_stream("events").dropDuplicates(["kind"]).select("kind")

    @dlt.table
    def pairs():
        left, right = timed().where("kind = 'x'").alias("l"), timed().where("kind = 'y'").alias("r")
        near = F.expr("l.id = r.id AND r.at BETWEEN l.at AND l.at + INTERVAL 1 HOUR")
        return left.join(right, near).select("l.id")

    @dlt.table
    def counted():
        def count(key, frames, state):
            n = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
            state.update((n,))
            yield pd.DataFrame({"kind": [key[0]], "n": [n]})
        rows = dlt.read_stream("events").groupBy("kind")
        return rows.applyInPandasWithState(count, "kind STRING, n LONG", "n LONG", "append", "NoTimeout")

    class Running(StatefulProcessor):
        def init(self, handle):
            self.n = handle.getValueState("n", "n LONG")

        def handleInputRows(self, key, rows, timers):
            n = (self.n.get()[0] if self.n.exists() else 0) + sum(len(frame) for frame in rows)
            self.n.update((n,))
            yield pd.DataFrame({"kind": [key[0]], "n": [n]})

        def close(self):
            pass

    @dlt.table
    def running():
        rows = dlt.read_stream("events").groupBy("kind")
        return rows.transformWithStateInPandas(Running(), "kind STRING, n LONG", "Append", "None")
"""
    )
    p.arrive("a.json", *({"id": i, "kind": "xy"[i % 2], "at": f"2026-03-01T10:0{i}:00Z"} for i in (1, 2, 2)), folder="events")
    p.run()
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    p.arrive(
        "b.json",
        {"id": 2, "kind": "y", "at": "2026-03-01T10:10:00Z"},
        {"id": 3, "kind": "x", "at": "2026-03-01T13:00:00Z"},
        folder="events",
    )
    p.run()
    p.arrive("c.json", {"id": 4, "kind": "x", "at": "2026-03-01T13:05:00Z"}, folder="events")
    p.run()
    assert p.rows("hours") == [(10, 4)]
    assert p.rows("once_each") == [1, 2, 3, 4]
    assert p.rows("ever") == ["x", "y"]
    assert p.rows("pairs") == [2, 2]
    assert p.rows("counted") == p.rows("running") == [("x", 2), ("x", 3), ("x", 4), ("y", 1), ("y", 2)]
