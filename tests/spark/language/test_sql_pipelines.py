"""Pipelines written in SQL files: tables of the language as people use it, run for real (docs/semantics/sql-statements.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

SHOP = """\
-- A shop: orders arrive as files, customers as changes.
SET shop.floor = 10;

CREATE OR REFRESH STREAMING TABLE raw_orders
COMMENT 'as they came'
AS SELECT *, _metadata.file_name AS file FROM STREAM read_files('${landing}/orders', format => 'json');

CREATE STREAMING TABLE orders (
  CONSTRAINT `has id` EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT large EXPECT (o.amount >= ${shop.floor}),
  CONSTRAINT known EXPECT (c.name != "nobody"))
TBLPROPERTIES (quality = 'silver')
AS SELECT o.id, o.amount AS paid, c.name, o.info:city.name AS city, o.info:zip::int
   FROM STREAM(LIVE.raw_orders) o LEFT JOIN LIVE.customers c ON o.customer = c.id;

CREATE OR REFRESH STREAMING TABLE customers;
CREATE TEMPORARY VIEW customer_events AS SELECT * FROM STREAM read_files(:landing || '/customers', format => 'json');
CREATE FLOW customers_flow AS AUTO CDC INTO customers FROM STREAM(customer_events)
  KEYS (id) APPLY AS DELETE WHEN op = "D" SEQUENCE BY n COLUMNS * EXCEPT (op, n, _rescued_data) STORED AS SCD TYPE 1;

CREATE STREAMING TABLE customers_history;
APPLY CHANGES INTO LIVE.customers_history FROM STREAM(LIVE.customer_events)
  KEYS (id) APPLY AS DELETE WHEN op = "D" SEQUENCE BY n COLUMNS * EXCEPT (op, n, _rescued_data) STORED AS SCD TYPE 2;

CREATE STREAMING TABLE everything (id BIGINT, kind STRING COMMENT 'of what');
CREATE FLOW of_orders AS INSERT INTO everything BY NAME SELECT id, 'order' AS kind FROM STREAM raw_orders WHERE id IS NOT NULL;
CREATE FLOW of_customers AS INSERT INTO everything BY NAME SELECT 'customer' AS kind, id FROM STREAM customer_events;

CREATE OR REFRESH LIVE VIEW paid_orders (CONSTRAINT paid EXPECT (paid > 0) ON VIOLATION DROP ROW) AS SELECT * FROM LIVE.orders;
CREATE MATERIALIZED VIEW by_city (city COMMENT 'where', total) CLUSTER BY (city)
AS SELECT city, sum(paid) FROM paid_orders GROUP BY ALL;

USE CATALOG other; USE SCHEMA reports;
CREATE MATERIALIZED VIEW top AS SELECT max(total) AS total FROM main.default.by_city;
CREATE MATERIALIZED VIEW again AS SELECT total, (SELECT count(*) FROM paid_orders) AS orders FROM top
"""


def order(id: Any, amount: float, customer: int, city: str, zip: str) -> dict[str, Any]:
    return {"id": id, "amount": amount, "customer": customer, "info": f'{{"city":{{"name":"{city}"}},"zip":"{zip}"}}'}


@pytest.mark.long
def test_a_shop_in_one_sql_file(project):
    p = project().write(SHOP, "shop.sql")
    p.arrive("a.json", {"id": 1, "name": "Ada", "op": "I", "n": 1}, {"id": 2, "name": "nobody", "op": "I", "n": 1}, folder="customers")
    p.arrive(
        "a.json",
        order(1, 20.0, 1, "Rome", "100"),
        order(2, 5.0, 2, "Rome", "100"),
        order(None, 7.0, 1, "Oslo", "1"),
        order(3, -1.0, 1, "Oslo", "1"),
        folder="orders",
    )
    p.run()
    assert p.rows("orders", "id", "paid", "name", "city", "zip") == [
        (1, 20.0, "Ada", "Rome", 100),
        (2, 5.0, "nobody", "Rome", 100),
        (3, -1.0, "Ada", "Oslo", 1),
    ]
    assert p.quality("orders") == {"has id": (3, 1), "large": (1, 3), "known": (3, 1)}
    assert p.rows("raw_orders", "id", "file") == [(1, "a.json"), (2, "a.json"), (3, "a.json"), (None, "a.json")]
    assert p.rows("customers") == [(1, "Ada"), (2, "nobody")]
    assert p.rows("everything") == [(1, "customer"), (1, "order"), (2, "customer"), (2, "order"), (3, "order")]
    assert p.rows("by_city") == [("Rome", 25.0)]
    assert p.rows("other.reports.again") == [(25.0, 2)]

    p.arrive("b.json", {"id": 1, "name": "Ada", "op": "D", "n": 3}, {"id": 2, "name": "Bob", "op": "U", "n": 2}, folder="customers")
    p.run()
    assert p.rows("customers") == [(2, "Bob")]
    assert p.rows("customers_history") == [(1, "Ada", 1, 3), (2, "Bob", 2, None), (2, "nobody", 1, 2)]
    assert (len(p.rows("everything")), len(p.rows("orders"))) == (7, 3)
    details = [row["details"]["flow_definition"] for row in p.logged(event_type="flow_definition")]
    assert {d["language"] for d in details} == {"SQL"}


COLUMNS = """\
CREATE OR REFRESH STREAMING TABLE IDENTIFIER(:target || '.numbers') (
  id BIGINT NOT NULL COMMENT 'the key', twice BIGINT GENERATED ALWAYS AS (id * 2), kind STRING DEFAULT 'plain', missing DATE,
  CONSTRAINT pk PRIMARY KEY (id), CONSTRAINT even EXPECT (twice % 2 = 0) ON VIOLATION FAIL UPDATE)
USING DELTA PARTITIONED BY (kind) COMMENT "it's typed" TBLPROPERTIES ('quality' = 'bronze')
FLOW INSERT BY NAME SELECT id FROM STREAM read_files('${landing}', format => 'json', schemaEvolutionMode => 'none');

CREATE STREAMING TABLE latest FLOW AUTO CDC FROM numbers KEYS (id) IGNORE NULL UPDATES SEQUENCE BY id COLUMNS (id, twice);
CREATE FLOW before AS AUTO CDC ONCE INTO latest FROM (SELECT 7L AS id, 0L AS twice UNION ALL SELECT 1L, 0L) KEYS (id)
  IGNORE NULL UPDATES SEQUENCE BY id - 1 COLUMNS id, twice;
CREATE MATERIALIZED VIEW paths AS
SELECT v:a.b, v:a.b[0]::int AS first, t:`x y`::string AS xy, upper(t:k) AS k
FROM (SELECT parse_json('{"a": {"b": [4]}}')::string AS v, '{"x y": 1, "k": "up"}' AS t);
CREATE MATERIALIZED VIEW variants AS SELECT v:a::int, v:list FROM (SELECT parse_json('{"a": 3, "list": [1]}') AS v);
CREATE OR REPLACE MATERIALIZED VIEW joined AS
SELECT * EXCEPT (b.kind, a.missing, b.missing, b.twice, a.id), 1 AS one FROM numbers a JOIN LIVE.numbers b ON a.id = b.id;
CREATE STREAMING TABLE folder AS SELECT d.x FROM STREAM delta.`${landing}_delta` d;
CREATE TEMPORARY VIEW few (n COMMENT 'how many', n2) AS SELECT count(*), count(*) FROM read_files('${landing}', format => 'json');
SET spark.sql.session.timeZone = Asia/Tokyo;
CREATE PRIVATE MATERIALIZED VIEW zone AS SELECT current_timezone() AS zone, n FROM few;
USE other;
CREATE MATERIALIZED VIEW numbers AS SELECT 'another table of that name' AS id;
CREATE MATERIALIZED VIEW through AS SELECT max(v.id) AS n, max(n.id) AS other FROM of_python v, numbers n
"""


@pytest.mark.long
def test_column_lists_computed_columns_flow_clauses_and_json_paths(project):
    view = """
    import dlt

    @dlt.view
    def of_python():
        return spark.read.table("numbers")
    """
    p = project(view).write(COLUMNS, "columns.sql")
    p.parameters["target"] = "main.default"
    write_deltalake(f"{p.landing}_delta", pa.table({"x": [1, 2]}))
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.run()
    assert p.rows("numbers") == [(1, 2, "plain", None), (2, 4, "plain", None)]
    assert p.rows("latest") == [(1, 2), (2, 4), (7, 0)]
    assert p.rows("paths", "b", "first", "xy", "k") == [("[4]", 4, "1", "UP")]
    assert p.rows("variants", "a") == [3]
    assert p.table("joined").column_names == ["twice", "kind", "id", "one"]
    assert p.rows("zone") == [("Asia/Tokyo", 2)]
    write_deltalake(f"{p.landing}_delta", pa.table({"x": [3]}), mode="append")
    assert p.rows("main.other.through") == [(2, "another table of that name")]
    p.arrive("b.json", {"id": 3})
    p.run()
    assert p.rows("latest") == [(1, 2), (2, 4), (3, 6), (7, 0)]
    assert p.rows("folder") == [1, 2, 3]
    notes = {notice.text.split(" has no effect")[0] for notice in p.pipeline.check().notices}
    assert notes == {"PRIMARY KEY", "OR REPLACE"}


@pytest.mark.slow
def test_options_behind_with_reach_the_table_that_is_read(project):
    p = project().write(
        """\
        CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('${landing}', format => 'json');
        CREATE STREAMING TABLE kept AS SELECT x.id FROM STREAM t WITH (SKIPCHANGECOMMITS) x;
        CREATE STREAMING TABLE changes AS SELECT id, _change_type FROM STREAM(t) WITH (readChangeFeed = true);
        CREATE STREAMING TABLE minutes AS SELECT window(at, '1 minute').start AS start, count(*) AS n
        FROM STREAM timed WATERMARK at DELAY OF INTERVAL 1 MINUTE GROUP BY window(at, '1 minute');
        CREATE TEMPORARY VIEW timed AS SELECT timestamp_seconds(id) AS at FROM STREAM t WITH (skipChangeCommits = true)
        """,
        "with.sql",
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.run()
    DeltaTable(str(p.path("t"))).delete("id = 1")
    p.arrive("b.json", {"id": 300})
    p.run()
    assert (p.rows("t", "id"), p.rows("kept")) == ([2, 300], [1, 2, 300])
    assert p.rows("changes") == [(1, "delete"), (1, "insert"), (2, "insert"), (300, "insert")]
    assert p.rows("minutes", "n") == [2]


@pytest.fixture
def table_of_spark(spark: Any) -> Iterator[None]:
    """A table in Spark's own schema `default`."""
    spark.range(1).write.format("parquet").mode("overwrite").saveAsTable("a_table_of_spark")
    yield
    spark.sql("DROP TABLE a_table_of_spark")


@pytest.mark.usefixtures("table_of_spark")
def test_mistakes_of_queries_are_shown_at_their_line_and_column(project):
    p = project().write(
        """\
        CREATE MATERIALIZED VIEW good AS SELECT 1 AS id;

        CREATE MATERIALIZED VIEW column AS
        SELECT id,
               nope
        FROM good;
        CREATE MATERIALIZED VIEW syntax AS
        SELECT id
        FRM good x y;
        CREATE MATERIALIZED VIEW name AS SELECT *
        FROM   goood;
        CREATE STREAMING TABLE kind AS SELECT * FROM good;
        CREATE LIVE TABLE rule (CONSTRAINT r EXPECT (id + 1)) AS SELECT * FROM good;
        USE SCHEMA elsewhere;
        CREATE MATERIALIZED VIEW used AS SELECT * FROM a_table_of_spark
        """,
        "bad.sql",
    )
    found = {str(error.dataset).rsplit(".", 1)[-1]: error for error in p.refused()}
    places = {name: (error.code, error.where.line, error.where.column) for name, error in found.items()}
    assert places == {
        "column": ("QUERY_FAILED_ANALYSIS", 5, 8),
        "syntax": ("QUERY_FAILED_ANALYSIS", 9, 5),
        "name": ("UNKNOWN_DATASET", 11, 8),
        "kind": ("QUERY_KIND", 12, 32),
        "rule": ("EXPECTATION_INVALID", 13, 36),
        "used": ("UNKNOWN_DATASET", 15, 48),
    }
    assert all(error.where.file.endswith("bad.sql") for error in found.values())
    assert found["column"].lines()[2:4] == ["  5 |        nope", "             ^"]
    assert found["name"].nearest == ("main.default.good",)
