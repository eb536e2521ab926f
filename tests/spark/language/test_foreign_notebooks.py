"""What other people's pipelines use (V09–V15 of tests/conformance), in small pipelines of our own: these run everywhere."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

UTC = timezone.utc


@pytest.mark.slow
def test_schemas_may_begin_with_a_digit_and_windows_of_several_streams_are_joined(project):
    p = project(
        """
    import dlt
    from pyspark.sql.functions import col, max, sum, window

    IN = spark.conf.get("landing")

    def raw(name):
        @dlt.table(name=f"00_in.{name}")
        def loaded():
            return spark.readStream.format("delta").load(f"{IN}/{name}")

    for name in ("heat", "noise"):
        raw(name)

    @dlt.table(name="1st.places")
    def places():
        return spark.createDataFrame([{"place": 1, "title": "Café"}])

    @dlt.table(name="1st.named")
    @dlt.expect_or_drop("timed", "at IS NOT NULL")
    def named():
        return dlt.read_stream("00_in.heat").join(dlt.read("1st.places"), on="place", how="left")

    @dlt.table(name="2nd.hours")
    def hours():
        heat = dlt.read_stream("1st.named").withWatermark("at", "5 minutes")
        noise = dlt.read_stream("00_in.noise").withWatermark("at", "5 minutes")
        per = window("at", "1 hour")
        start = col("window.start").alias("start")
        hot = heat.groupBy(per, "place", "title").agg(sum("value").alias("heat")).select("place", "title", start, "heat")
        loud = noise.groupBy(per, "place").agg(max("value").alias("noise")).select("place", start, "noise")
        return hot.alias("h").join(loud.alias("l"), on=["place", "start"], how="inner").select("start", "title", "heat", "noise")
"""
    )

    def arrive(name: str, *rows: tuple[int, int | None, int]) -> None:
        times = [None if hour is None else datetime(2025, 1, 1, hour, tzinfo=UTC) for _, hour, _ in rows]
        table = pa.table({"place": [r[0] for r in rows], "at": pa.array(times, pa.timestamp("us", "UTC")), "value": [r[2] for r in rows]})
        write_deltalake(str(p.landing / name), table, mode="append")

    arrive("heat", (1, 1, 10), (1, 1, 5), (1, 3, 1), (2, 1, 7), (1, None, 100))
    arrive("noise", (1, 1, 20), (1, 3, 2), (2, 1, 8))
    p.run()
    arrive("heat", (1, 6, 1))
    arrive("noise", (1, 6, 1))
    p.run()
    assert p.rows("1st.places") == [(1, "Café")]
    assert len(p.rows("`1st`.named")) == 5
    found = [(start.hour, title, heat, noise) for start, title, heat, noise in p.rows("2nd.hours")]
    assert [row for row in found if row[0] == 1] == [(1, "Café", 15, 20), (1, None, 7, 8)]
    assert [row for row in found if row[0] >= 6] == [], "the window of the newest rows is open"


@pytest.mark.slow
def test_a_log_of_changes_may_get_its_operation_column_later(project):
    p = project(
        """
    from pyspark.sql.functions import *
    from pyspark.sql.types import *
    import dlt

    def declare(table, key):
        @dlt.table(name=f"{table}_log", temporary=True, table_properties={"quality": "bronze"})
        def log():
            stream = (
                spark.readStream.format("cloudFiles")
                .option("cloudFiles.format", "csv")
                .option("cloudFiles.inferSchema", "true")
                .option("cloudFiles.inferColumnTypes", "true")
                .load(f"{spark.conf.get('landing')}/{table}")
            )
            if "kind" not in stream.columns:
                stream = stream.withColumn("kind", lit(None).cast(StringType()))
            return stream

        dlt.create_streaming_live_table(name=table, comment="by key")
        dlt.apply_changes(
            target=table,
            source=f"{table}_log",
            keys=[key],
            sequence_by=col("at"),
            apply_as_deletes=expr("kind = 'D'"),
            except_column_list=["kind", "at", "_rescued_data"],
            stored_as_scd_type=2,
        )

    for table, key in {"shops": "shop", "goods": "good"}.items():
        declare(table, key)
"""
    )
    p.arrive("1.csv", "shop,city,at", "1,Rome,2024-01-01", folder="shops")
    p.arrive("1.csv", "kind,good,price,at", "I,7,5,2024-01-01", "D,7,5,2024-01-02", folder="goods")
    p.run()
    assert p.rows("shops", "shop", "__END_AT") == [(1, None)]
    p.arrive("2.csv", "kind,shop,city,at", "U,1,Oslo,2024-01-02", "D,1,Oslo,2024-01-03", folder="shops")
    p.run()
    assert p.rows("shops", "city") == ["Oslo", "Rome"]
    assert None not in p.rows("shops", "__END_AT") + p.rows("goods", "__END_AT")
    assert p.table("shops").column_names == ["shop", "city", "__START_AT", "__END_AT"]


@pytest.mark.slow
def test_sql_of_the_first_generation_in_lower_case_writes_into_catalogs_of_parameters(project):
    p = project()
    p.parameters |= {"lake": "other_lake", "layer": "cdc"}
    p.write(
        """
        create or refresh streaming live table ${lake}.${layer}.events
        using delta
        comment 'all events'
        tblproperties ('quality' = 'bronze', 'delta.enableChangeDataFeed' = 'true')
        as select id, place, cast(number as bigint) as number, upper(trim(kind)) as kind,
          _metadata.file_path as _file, _metadata.file_modification_time as _at, current_timestamp() as _now, _rescued_data
        from stream read_files(
          "${landing}/places", format => "csv", header => true, inferschema => true, rescueddatacolumn => "_rescued_data"
        )
        where id is not null;
        """,
        "bronze.sql",
    )
    p.write(
        """
        create or refresh streaming live table ${lake}.${layer}.staged tblproperties ('quality' = 'staging') as
        select * from stream(${lake}.${layer}.events);

        create or refresh streaming live table ${lake}.${layer}.latest comment 'one row each';
        apply changes into ${lake}.${layer}.latest from stream(${lake}.${layer}.staged)
          keys (id) apply as delete when kind = 'GONE' sequence by number
          columns * except (kind, number, _file, _at, _now, _rescued_data) stored as scd type 1;

        create or refresh streaming live table ${lake}.${layer}.history;
        apply changes into ${lake}.${layer}.history from stream(${lake}.${layer}.staged)
          keys (id) apply as delete when kind = 'gone' sequence by number
          columns * except (kind, number, _file, _at, _now, _rescued_data) stored as scd type 2;
        """,
        "silver.sql",
    )
    p.arrive("1.csv", "id,place,number,kind", "a,x,1,new", "a,y,2, gone ", "b,z,3,new", ",q,4,new", folder="places")
    p.run()
    assert p.rows("other_lake.cdc.events", "kind") == ["GONE", "NEW", "NEW"]
    assert p.rows("other_lake.cdc.latest") == [("b", "z")]
    assert p.rows("other_lake.cdc.history") == [("a", "x", 1, 2), ("a", "y", 2, None), ("b", "z", 3, None)], "'gone' is not 'GONE'"


@pytest.mark.long
def test_csv_files_with_a_byte_order_mark_and_helpers_of_the_folder_above(project):
    p = project()
    p.write(
        """
    from pyspark import pipelines as dp
    from utilities import words

    landing = spark.conf.get("landing")

    @dp.view(name="people_feed")
    def people_feed():
        return (
            spark.readStream.format("cloudFiles")
            .option("cloudFiles.format", "csv")
            .option("cloudFiles.inferColumnTypes", "true")
            .option("cloudFiles.rescuedDataColumn", "_odd")
            .load(f"{landing}/people/")
        )

    dp.create_streaming_table(name="people", expect_all_or_drop=words.rules())
    dp.create_auto_cdc_flow(
        name="people_changes",
        target="people",
        source="people_feed",
        keys=["id"],
        sequence_by="moved",
        apply_as_deletes="kind='DELETE'",
        except_column_list=["kind"],
        stored_as_scd_type="2",
        track_history_except_column_list=None,
    )

    @dp.materialized_view(name="cities")
    def cities():
        return spark.read.table("people").where("__END_AT IS NULL").groupBy("city").count()
""",
        "transformations/bronze/people.py",
    )
    p.write("# from pyspark import pipelines as dp\n# nothing is left of this file\n", "transformations/gold/later.py")
    (p.folder / "utilities").mkdir()
    p.helper("def rules():\n    return {'has_city': 'city IS NOT NULL'}\n", "utilities/words.py")
    p.arrive(
        "1.csv",
        "\ufeffid,city,moved,kind",
        "1,Rome,2024-01-01,INSERT",
        "1,Oslo,2024-02-01,UPDATE",
        "2,Bonn,2024-01-01,INSERT",
        folder="people",
    )
    p.run()
    assert p.table("people").column_names == ["id", "city", "moved", "_odd", "__START_AT", "__END_AT"]
    assert p.rows("people", "id", "city") == [(1, "Oslo"), (1, "Rome"), (2, "Bonn")]
    assert p.rows("cities") == [("Bonn", 1), ("Oslo", 1)]


@pytest.mark.slow
def test_snapshots_of_folders_that_are_named_by_the_hour(project):
    p = project(
        """
    # Databricks notebook source
    import dlt
    from datetime import datetime, timedelta

    root, pattern = spark.conf.get("landing"), "%Y-%m-%d %H"

    def exists(path):
        try:
            return dbutils.fs.ls(path) is not None
        except:
            return False

    first = min(datetime.strptime(entry.name.strip("/"), pattern) for entry in dbutils.fs.ls(root)).strftime(pattern)

    def following(latest):
        version = first if latest is None else (datetime.strptime(latest, pattern) + timedelta(hours=1)).strftime(pattern)
        path = f"{root}/{version}"
        return (spark.read.format("parquet").load(path), version) if exists(path) else None

    dlt.create_streaming_table(name="orders", table_properties={"quality": "gold"})
    dlt.apply_changes_from_snapshot(
        target="orders", snapshot_and_version=following, keys=["id"], stored_as_scd_type=2, track_history_column_list=["state"]
    )
"""
    )
    p.write("CREATE OR REFRESH LIVE TABLE states AS SELECT state, count(id) AS n FROM LIVE.orders GROUP BY state", "states.sql")

    def arrive(hour: str, **states: str) -> None:
        folder = p.landing / f"2024-05-01 {hour}"
        folder.mkdir()
        pq.write_table(pa.table({"id": list(states), "state": list(states.values()), "hour": [hour] * len(states)}), folder / "x.parquet")

    arrive("09", a="new", b="new")
    arrive("10", a="sent", b="new")
    p.run()
    nine, ten, eleven = (f"2024-05-01 {hour}" for hour in ("09", "10", "11"))
    history: list[tuple[Any, ...]] = [("a", "new", "09", nine, ten), ("a", "sent", "10", ten, None), ("b", "new", "10", nine, None)]
    assert p.rows("orders") == history
    arrive("11", b="new")
    p.run()
    assert p.rows("orders") == [history[0], ("a", "sent", "10", ten, eleven), ("b", "new", "11", nine, None)]
    assert p.rows("states") == [("new", 2), ("sent", 1)]
    before = p.versions()
    p.run()
    assert p.versions() == before, "without a new folder nothing is processed"


@pytest.mark.slow
def test_cells_of_sql_without_semicolons_read_csv_without_options_and_join_by_live_names(project):
    p = project()
    p.write(
        """-- Databricks notebook source
CREATE
OR REFRESH STREAMING TABLE people AS
SELECT
  *
FROM
  cloud_files(
    "${landing}/people",
    "csv",
    map("cloudFiles.inferColumnTypes", "true")
  )

-- COMMAND ----------

CREATE
OR REFRESH STREAMING TABLE adults (
  CONSTRAINT known EXPECT (person IS NOT NULL) ON VIOLATION DROP ROW
) -- COMMENT ""
AS
SELECT
  p.id as person,
  CASE
    WHEN p.sex = 'F' THEN 'Female'
    WHEN p.sex = 'M' THEN 'Male'
  END AS sex,
  CAST(p.smoker as BOOLEAN) AS smokes
FROM
  STREAM(live.people) p;

-- COMMAND ----------

CREATE OR REFRESH STREAMING TABLE visits AS
SELECT * FROM cloud_files("${landing}/visits", "json", map("cloudFiles.inferColumnTypes", "true"))

-- COMMAND ----------

CREATE
OR REFRESH LIVE TABLE totals AS
SELECT
  a.person, a.sex, a.smokes, SUM(v.cost) AS cost
FROM
  live.adults a
  LEFT OUTER JOIN LIVE.visits v on v.person = a.person
GROUP BY
  ALL;
""",
        "cookbook.sql",
    )
    p.arrive("1.csv", "id,sex,smoker", "1,F,Y", "2,M,N", ",M,N", folder="people")
    p.arrive("1.json", {"person": 1, "cost": 2.5}, {"person": 1, "cost": 1.5}, folder="visits")
    p.run()
    assert p.rows("totals") == [(1, "Female", True, 4.0), (2, "Male", False, None)]
    p.arrive("2.json", json.dumps({"person": 2, "cost": 1.0}), folder="visits")
    p.run()
    assert p.rows("totals") == [(1, "Female", True, 4.0), (2, "Male", False, 1.0)]


def test_the_names_that_notebooks_have_for_the_session(project):
    p = project(
        """
        # Databricks notebook source
        import dlt

        assert sql("SELECT 1 AS one").first().one == sqlContext.sql("SELECT 1 AS one").first().one

        @udf("string")
        def upper(text):
            return text.upper()

        @dlt.table
        def words():
            return sql("SELECT 'a' AS word").select(upper("word").alias("word"))

        @dlt.table
        def copies():
            return table("words")
        """
    )
    p.run()
    assert (p.rows("words"), p.rows("copies")) == (["A"], ["A"])
