"""Computed columns of tables that changes are applied to (CD-22)."""

from __future__ import annotations

import pytest

FEED = """
    import dlt
    dlt.view(lambda: spark.readStream.schema("id INT, price INT, at INT, gone BOOLEAN").json(spark.conf.get("landing")), name="feed")
"""
COLUMNS = (
    "id INT, price INT, at INT, twice INT GENERATED ALWAYS AS (price * 2), "
    "size STRING NOT NULL GENERATED ALWAYS AS (iff(twice > 9, 'L', 'S'))"
)
HISTORY = "__START_AT INT, __END_AT INT, is_current BOOLEAN GENERATED ALWAYS AS (__END_AT IS NULL)"


def declared(kind: int, properties: str = "{}") -> str:
    columns = COLUMNS + (f", {HISTORY}" if kind == 2 else "")
    return f"""{FEED}
    dlt.create_streaming_table("prices", schema="{columns}", table_properties={properties})
    dlt.create_auto_cdc_flow(
        target="prices", source="feed", keys=["id"], sequence_by="at", apply_as_deletes="gone", except_column_list=["gone"],
        stored_as_scd_type={kind},
    )

    @dlt.table
    def large():
        return spark.read.table("prices").where("size = 'L'").select("id", "twice")
    """


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("properties", ["{}", '{"delta.enableChangeDataFeed": "true"}'], ids=["written again", "merged"])
def test_rows_of_type_1_have_their_computed_columns_after_each_batch(project, properties):
    p = project(declared(1, properties))
    p.arrive("1.json", {"id": 1, "price": 1, "at": 1}, {"id": 2, "price": 2, "at": 1}, {"id": 3, "price": 3, "at": 1})
    p.run()
    assert p.rows("prices") == [(1, 1, 1, 2, "S"), (2, 2, 1, 4, "S"), (3, 3, 1, 6, "S")]

    p.arrive("2.json", {"id": 1, "price": 5, "at": 2}, {"id": 2, "at": 2, "gone": True}, {"id": 3, "price": 9, "at": 0}, {"id": 4, "at": 1})
    p.run()

    assert p.rows("prices") == [(1, 5, 2, 10, "L"), (3, 3, 1, 6, "S"), (4, None, 1, None, "S")]
    assert p.rows("large") == [(1, 10)]


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("properties", ["{}", '{"delta.enableChangeDataFeed": "true"}'], ids=["written again", "merged"])
def test_rows_of_type_2_have_columns_that_are_computed_from_their_times(project, properties):
    p = project(declared(2, properties))
    p.arrive("1.json", {"id": 1, "price": 1, "at": 1}, {"id": 2, "price": 2, "at": 1})
    p.run()
    p.arrive("2.json", {"id": 1, "price": 5, "at": 4}, {"id": 2, "at": 3, "gone": True})
    p.run()
    assert p.rows("prices", "id", "twice", "size", "__START_AT", "__END_AT", "is_current") == [
        (1, 10, "L", 4, None, True), (1, 2, "S", 1, 4, False), (2, 4, "S", 1, 3, False)
    ]  # fmt: skip

    p.arrive("3.json", {"id": 1, "price": 6, "at": 2})  # late
    p.run()

    assert p.rows("prices", "id", "twice", "__START_AT", "__END_AT", "is_current") == [
        (1, 10, 4, None, True), (1, 12, 2, 4, False), (1, 2, 1, 2, False), (2, 4, 1, 3, False)
    ]  # fmt: skip


@pytest.mark.slow
def test_a_batch_that_changes_nothing_counts_no_row_of_a_table_with_computed_columns(project):
    p = project(declared(2))
    p.arrive("1.json", {"id": 1, "price": 1, "at": 1})
    p.run()
    assert upserted(p) == 1

    p.arrive("2.json", {"id": 1, "price": 1, "at": 1})
    p.run()

    assert upserted(p) == 0


def upserted(p) -> int:
    """Rows of change tables that the last update inserted or updated."""
    return sum((e.body.get("metrics") or {}).get("num_upserted_rows") or 0 for e in p.events if e.event_type == "flow_progress")


@pytest.mark.slow
def test_rows_that_others_change_get_their_computed_columns_again(project):
    p = project(declared(2))
    p.arrive("1.json", {"id": 1, "price": 1, "at": 1}, {"id": 2, "price": 2, "at": 1})
    p.run()

    p.spark.sql(f"UPDATE delta.`{p.path('prices')}` SET price = 7 WHERE id = 1")
    p.arrive("2.json", {"id": 2, "price": 3, "at": 2})
    p.run()

    assert p.rows("prices", "id", "price", "twice", "size", "is_current") == [
        (1, 7, 14, "L", True), (2, 2, 4, "S", False), (2, 3, 6, "S", True)
    ]  # fmt: skip


def test_a_snapshot_is_compared_without_the_computed_columns(project):
    p = project("""
        import dlt
        dlt.create_streaming_table("items", schema="id INT, price INT, twice INT GENERATED ALWAYS AS (price * 2)")
        dlt.view(lambda: spark.read.schema("id INT, price INT").json(spark.conf.get("landing")), name="all_items")
        dlt.apply_changes_from_snapshot(
            target="items", source=lambda last: (spark.table("all_items"), 1 + (last or 0)) if (last or 0) < 2 else None, keys=["id"],
            stored_as_scd_type=1,
        )
    """)
    p.arrive("1.json", {"id": 1, "price": 1}, {"id": 2, "price": 2})

    p.run()

    assert p.rows("items") == [(1, 1, 2), (2, 2, 4)]
    assert upserted(p) == 2  # the second snapshot, which is the same, changes no row


def test_a_table_of_changes_in_sql_has_computed_columns(project):
    p = project(FEED)
    p.write(
        f"""
        CREATE OR REFRESH STREAMING TABLE prices ({COLUMNS}, {HISTORY});
        CREATE FLOW changes AS AUTO CDC INTO prices FROM STREAM(feed) KEYS (id) APPLY AS DELETE WHEN gone SEQUENCE BY at
        COLUMNS * EXCEPT (gone) STORED AS SCD TYPE 2
        """,
        "prices.sql",
    )
    p.arrive("1.json", {"id": 1, "price": 1, "at": 1}, {"id": 1, "price": 2, "at": 2})

    p.run()

    assert p.rows("prices", "twice", "is_current") == [(2, False), (4, True)]


@pytest.mark.parametrize(
    ("column", "code", "said"),
    [
        ("price INT GENERATED ALWAYS AS (at * 2)", "SCHEMA_MISMATCH", "'price' is generated"),
        ("price INT, twice INT GENERATED ALWAYS AS (prise * 2)", "QUERY_FAILED_ANALYSIS", "'twice' does not analyse"),
        ("price INT, seen TIMESTAMP GENERATED ALWAYS AS (current_timestamp())", "QUERY_FAILED_ANALYSIS", "'seen' has another value"),
        ("price INT, kind STRING DEFAULT 'x'", "NOT_SUPPORTED_YET", "the DEFAULT of the column 'kind'"),
    ],
)
def test_a_computed_column_that_cannot_be_is_refused_at_its_declaration(project, column, code, said):
    p = project(FEED)
    p.write(
        f"""
        CREATE STREAMING TABLE prices (
          id INT, at INT, {column}
        );
        APPLY CHANGES INTO prices FROM STREAM(feed) KEYS (id) SEQUENCE BY at COLUMNS * EXCEPT (gone)
        """,
        "prices.sql",
    )

    (error,) = p.refused()

    assert (error.code, said in error.what, error.where.file.endswith("prices.sql")) == (code, True, True)
