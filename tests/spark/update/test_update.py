"""Updates: what runs, what is skipped, what a table holds afterwards."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError

BRONZE = """
    import dlt

    @dlt.table
    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))
"""

MEDALLION = (
    BRONZE
    + """
    @dlt.table(partition_cols=["kind"])
    def silver():
        return dlt.read_stream("bronze").where("amount > 0").select("kind", "amount")

    @dlt.table(comment="sums by kind")
    def gold():
        return dlt.read("silver").groupBy("kind").sum("amount").withColumnRenamed("sum(amount)", "total")
"""
)


@pytest.mark.long
def test_three_layers_are_filled_and_a_second_update_touches_nothing(project):
    p = project(MEDALLION)
    p.arrive("a.json", {"kind": "x", "amount": 1}, {"kind": "x", "amount": 2}, {"kind": "y", "amount": -1})
    p.run()
    assert p.rows("silver") == [("x", 1), ("x", 2)]
    assert p.rows("gold") == [("x", 3)]
    before = p.versions()

    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    assert p.versions() == before


@pytest.mark.long
def test_only_what_can_have_new_rows_runs(project):
    p = project(MEDALLION)
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    p.arrive("b.json", {"kind": "y", "amount": -5})
    p.run()
    assert p.statuses() == {"bronze": "COMPLETED", "silver": "COMPLETED", "gold": "IDLE"}
    assert p.rows("bronze", "amount") == [-5, 1]
    p.arrive("c.json", {"kind": "y", "amount": 7})
    p.run()
    assert p.rows("gold") == [("x", 1), ("y", 7)]


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}])
def test_a_flow_is_idle_when_no_new_file_can_match_its_partition_filter(project, properties):
    p = project(
        BRONZE.replace("@dlt.table", f'@dlt.table(partition_cols=["kind"], table_properties={properties})')
        + """
    for kind in ("x", "y", "z"):
        def make(kind=kind):
            @dlt.table(name=f"only_{kind}")
            def only():
                return spark.readStream.table("bronze").where(f"kind = '{kind}'").select("amount")
        make()
"""
    )
    p.arrive("a.json", *({"kind": k, "amount": 1} for k in "xyz"))
    p.run()
    before = p.versions()
    p.arrive("b.json", {"kind": "y", "amount": 2})
    p.run()
    assert p.statuses() == {"bronze": "COMPLETED", "only_x": "IDLE", "only_y": "COMPLETED", "only_z": "IDLE"}
    assert p.rows("only_y") == [1, 2]
    assert {k: v - before[k] for k, v in p.versions().items()} == {"bronze": 1, "only_x": 0, "only_y": 1, "only_z": 0}
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}


@pytest.mark.long
def test_a_view_is_recomputed_when_its_query_rules_or_parameters_change(project):
    source = """
    import dlt

    @dlt.table
    @dlt.expect("positive", "id >= 0")
    def numbers():
        return spark.range(int(spark.conf.get("count"))).withColumnRenamed("id", "id")
"""
    p = project(source)
    p.parameters["count"] = "3"
    p.run()
    assert p.rows("numbers") == [0, 1, 2]
    p.run()
    assert p.statuses() == {"numbers": "IDLE"}
    p.parameters["count"] = "4"
    p.run()
    assert p.rows("numbers") == [0, 1, 2, 3]
    p.write(source.replace("id >= 0", "id > 0"))
    p.run()
    assert p.quality() == {"positive": (3, 1)}
    p.write(source.replace("spark.range(int(spark.conf.get('count')))", "spark.range(2)").replace("id >= 0", "id > 0"))
    p.run()
    assert p.statuses() == {"numbers": "IDLE"}


@pytest.mark.slow
def test_current_time_randomness_and_python_functions_are_never_skipped(project):
    p = project(
        """
    import dlt
    from pyspark.sql import functions as F

    @F.udf("long")
    def twice(x):
        return 2 * x

    @dlt.table
    def clock():
        return spark.range(1).withColumn("at", F.current_timestamp())

    @dlt.table
    def dice():
        return spark.range(1).withColumn("n", F.rand())

    @dlt.table
    def doubled():
        return spark.range(2).select(twice("id").alias("id"))

    @dlt.table
    def steady():
        return spark.range(1)
"""
    )
    p.run()
    p.run()
    assert p.statuses() == {"clock": "COMPLETED", "dice": "COMPLETED", "doubled": "COMPLETED", "steady": "IDLE"}
    assert p.rows("doubled") == [0, 2]


@pytest.mark.long
def test_new_columns_arrive_within_one_update_and_reach_the_tables_below(project):
    p = project(
        BRONZE
        + """
    @dlt.table
    def copy():
        return dlt.read_stream("bronze")
"""
    )
    p.arrive("a.json", {"id": 1, "o": {"k": 1}})
    p.run()
    p.arrive("b.json", {"id": 2, "o": {"k": 2, "m": "new"}, "c": 1.5})
    p.run()
    assert p.rows("bronze", "id", "o", "c") == [(1, {"k": 1, "m": None}, None), (2, {"k": 2, "m": "new"}, 1.5)]
    assert p.rows("copy", "id", "o", "c") == p.rows("bronze", "id", "o", "c")
    change = p.logged(event_type="schema_change")[0]["details"]["schema_change"]
    assert change["first_file"].endswith("/b.json")
    assert {a["name"]: a["type"] for a in change["added"]} == {"c": "double", "o.m": "string"}
    assert (change["schema_version_before"], change["schema_version_after"]) == (0, 1)


@pytest.mark.long
def test_full_refresh_rebuilds_the_table_and_restarts_its_checkpoint(project):
    p = project(MEDALLION)
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    (p.landing / "a.json").unlink()
    p.arrive("b.json", {"kind": "y", "amount": 2})
    p.run(full_refresh=("bronze",))
    assert p.rows("bronze", "amount") == [2]
    # a table below keeps its rows and reads the new upstream from its start
    assert p.rows("silver", "amount") == [1, 2]
    assert any("--full-refresh main.default.silver" in e.message for e in p.events)
    p.run(full_refresh_all=True)
    assert p.rows("silver", "amount") == [2]
    assert p.rows("gold") == [("y", 2)]
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}


@pytest.mark.slow
def test_selection_leaves_the_others_as_they_are(project):
    p = project(MEDALLION)
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    p.arrive("b.json", {"kind": "x", "amount": 2})
    p.run(select=("bronze",))
    assert p.statuses() == {"bronze": "COMPLETED", "silver": "EXCLUDED", "gold": "EXCLUDED"}
    assert p.rows("silver", "amount") == [1]
    p.run(select=("gold",))
    assert p.rows("gold") == [("x", 1)]
    p.run()
    assert p.rows("gold") == [("x", 3)]


@pytest.mark.slow
def test_several_append_flows_fill_one_table(project):
    p = project(
        """
    import dlt

    dlt.create_streaming_table("all_events", expect_all_or_drop={"id_ok": "id > 0"})

    for region in ("east", "west"):
        def make(region=region):
            @dlt.append_flow(target="all_events", name=f"from_{region}")
            def flow():
                return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                        .option("cloudFiles.inferColumnTypes", "true").load(f"{spark.conf.get('landing')}/{region}"))
        make()
"""
    )
    p.arrive("a.json", {"id": 1, "e": "x"}, {"id": 0, "e": "x"}, folder="east")
    p.arrive("b.json", {"id": 2, "w": "y"}, folder="west")
    p.run()
    assert p.rows("all_events", "id", "e", "w") == [(1, "x", None), (2, None, "y")]
    assert p.quality() == {"id_ok": (2, 1)}
    p.arrive("c.json", {"id": 3, "w": "z"}, folder="west")
    p.run()
    assert p.statuses() == {"from_east": "IDLE", "from_west": "COMPLETED"}
    assert p.rows("all_events", "id") == [1, 2, 3]


@pytest.mark.long
def test_plan_and_validate_write_nothing_and_say_why(project):
    p = project(MEDALLION)
    p.arrive("a.json", {"kind": "x", "amount": 1})
    graph = p.pipeline.validate()
    assert [str(n.name) for n in graph.nodes] == ["main.default.bronze", "main.default.silver", "main.default.gold"]
    plan = p.pipeline.plan()
    assert [(s.strategy.value, s.reason) for s in plan.steps] == [
        ("stream", "it has not run yet"),
        ("stream", "it has not run yet"),
        ("full", "it has not been computed yet"),
    ]
    assert not p.storage.root.exists()
    p.run()
    assert {s.strategy.value for s in p.pipeline.plan().steps} == {"skip"}
    p.arrive("b.json", {"kind": "x", "amount": 1})
    before = p.snapshot()
    plan = p.pipeline.plan()
    assert [s.strategy.value for s in plan.steps] == ["stream", "stream", "full"]
    assert "1 new file" in plan.steps[0].reason
    assert plan.steps[1].reason == "main.default.bronze will be updated first"
    assert p.snapshot() == before


@pytest.mark.slow
def test_sql_text_reads_datasets_under_every_spelling(project):
    p = project(
        """
    import dlt

    @dlt.table
    def numbers():
        return spark.range(5)

    @dlt.view
    def even():
        return spark.sql("SELECT * FROM LIVE.numbers WHERE id % 2 = 0")

    @dlt.table
    def joined():
        return spark.sql('''
            WITH big AS (SELECT id FROM main.default.numbers WHERE id > 1)
            SELECT even.id, n.id AS other FROM even JOIN big n ON n.id = even.id
            WHERE even.id IN (SELECT id FROM default.numbers)''')

    @dlt.table
    def tables():
        return spark.table("joined").union(spark.read.table("main.default.joined"))
"""
    )
    p.run()
    assert p.rows("joined") == [(2, 2), (4, 4)]
    assert p.rows("tables", "id") == [2, 2, 4, 4]
    graph = {n.name.name: sorted(i.name for i in n.inputs) for n in p.pipeline.validate().nodes}
    assert graph == {"numbers": [], "even": ["numbers"], "joined": ["even", "numbers"], "tables": ["joined"]}


@pytest.mark.slow
def test_comment_properties_partitioning_and_clustering_reach_the_table(project):
    p = project(
        """
    import dlt

    @dlt.table(comment="hello", table_properties={"quality": "gold"}, partition_cols=["k"], schema="k BIGINT, v STRING COMMENT 'a value'")
    def parted():
        return spark.range(2).selectExpr("id AS k", "CAST(id AS STRING) AS v")

    @dlt.table(cluster_by=["id"])
    def clustered():
        return spark.range(2)
"""
    )
    p.run()
    detail = p.spark.sql(f"DESCRIBE DETAIL delta.`{p.path('parted')}`").first()
    assert (detail.description, detail.partitionColumns, detail.properties["quality"]) == ("hello", ["k"], "gold")
    assert p.spark.read.format("delta").load(str(p.path("parted"))).schema["v"].metadata["comment"] == "a value"
    assert p.spark.sql(f"DESCRIBE DETAIL delta.`{p.path('clustered')}`").first().clusteringColumns == ["id"]


@pytest.mark.slow
def test_a_view_below_a_table_that_got_new_columns_is_computed_once(project):
    p = project(
        MEDALLION
        + """
    @dlt.view
    @dlt.expect("known", "kind IS NOT NULL")
    def checked():
        return dlt.read("bronze")

    @dlt.table
    def counted():
        return spark.read.table("checked").groupBy("kind").count()

    @dlt.table
    def everything():
        return spark.read.table("bronze")
"""
    )
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    p.arrive("b.json", {"kind": "x", "amount": 2, "note": "new"})
    p.run()
    assert p.rows("everything", "amount", "note") == [(1, None), (2, "new")]
    before = p.versions()
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    assert p.versions() == before
    p.run(full_refresh=("bronze",))
    assert p.statuses()["everything"] == "COMPLETED"
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}


@pytest.mark.slow
def test_two_flows_may_bring_new_columns_to_one_table_at_the_same_time(project):
    p = project(
        """
    import dlt

    dlt.create_streaming_table("all_events")

    for region in ("east", "west"):
        def make(region=region):
            @dlt.append_flow(target="all_events", name=f"from_{region}")
            def flow():
                return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                        .option("cloudFiles.maxFilesPerTrigger", "1").option("cloudFiles.inferColumnTypes", "true")
                        .load(f"{spark.conf.get('landing')}/{region}"))
        make()
"""
    )
    regions = ("east", "west")
    for region in regions:
        p.arrive(f"{region}0.json", {"id": 0}, folder=region)
    p.run()
    for number in range(1, 3):
        for region in regions:
            p.arrive(f"{region}{number}.json", {"id": number, f"{region}{number}": number}, folder=region)
    p.run()
    assert p.rows("all_events", "id") == [0, 0, 1, 1, 2, 2]
    assert p.rows("all_events", "id", "east2") == [(0, None), (0, None), (1, None), (1, None), (2, 2), (2, None)]


def test_a_table_that_must_not_be_reset_keeps_its_rows_in_every_full_refresh(project):
    p = project(BRONZE.replace("@dlt.table", '@dlt.table(table_properties={"pipelines.reset.allowed": "false"})'))
    p.arrive("a.json", {"id": 1})
    p.run()
    (p.landing / "a.json").unlink()
    p.run(full_refresh_all=True)
    assert p.rows("bronze", "id") == [1]
    with pytest.raises(LakeletError) as caught:
        p.run(full_refresh=("bronze",))
    assert (caught.value.code, "pipelines.reset.allowed" in caught.value.what) == ("USAGE", True)
