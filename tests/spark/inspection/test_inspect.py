"""Reading a storage: tables, rows, queries and events, in the JSON forms of the command line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.dashboard.tables import StoredTables
from lakelet.inspection import inspector, statements
from lakelet.spark.session_clones import user_session
from lakelet.storage.eventlog import reading
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

pytestmark = pytest.mark.spark

COLUMNS = """
    i INT, b BIGINT, s STRING, d DECIMAL(12,3), t TIMESTAMP, n TIMESTAMP_NTZ, dd DATE, bin BINARY, f DOUBLE, bo BOOLEAN,
    st STRUCT<a: INT, t: TIMESTAMP, d: DECIMAL(5,2)>, ar ARRAY<STRUCT<x: BINARY>>, m MAP<STRING, DECIMAL(5,2)>
"""
VALUES = """
    (1, 2, 'x', 1.5, TIMESTAMP'2026-03-01 08:00:00.123Z', TIMESTAMP_NTZ'2026-03-01 08:00:00', DATE'2026-01-01', X'0102', double('NaN'),
     true, named_struct('a', 1, 't', TIMESTAMP'2026-03-01 08:00:00Z', 'd', 1.25), array(named_struct('x', X'00')), map('k', 1.5))
"""
AS_JSON = {
    "i": 1,
    "b": 2,
    "s": "x",
    "d": "1.500",
    "t": "2026-03-01T08:00:00.123000Z",
    "n": "2026-03-01T08:00:00",
    "dd": "2026-01-01",
    "bin": "AQI=",
    "f": "NaN",
    "bo": True,
    "st": {"a": 1, "t": "2026-03-01T08:00:00Z", "d": "1.25"},
    "ar": [{"x": "AA=="}],
    "m": {"k": "1.50"},
}


@pytest.fixture(scope="module")
def storage(spark, tmp_path_factory):
    """Tables as Spark writes them, under two schemas, with the features that delta-rs reads in part or not at all."""
    root = tmp_path_factory.mktemp("storage")
    tables = {
        "main.shop.every_type": (COLUMNS, "", VALUES),
        "main.shop.orders": ("id INT, note STRING", "PARTITIONED BY (note)", "(1, 'a'), (2, 'b'), (3, NULL)"),
        "main.gold.daily": ("day DATE, n BIGINT", "", "(DATE'2026-01-01', 3)"),
        "main.shop.deleted": ("id INT", "TBLPROPERTIES (delta.enableDeletionVectors = true)", "(1), (2), (3), (4)"),
        "main.shop.widened": ("id INT", "TBLPROPERTIES (delta.enableTypeWidening = true)", "(1)"),
        "main.shop.variants": ("v VARIANT", "", """(parse_json('{"a": [1, null]}'))"""),
        "main.shop.`odd name`": ("id INT", "", "(1)"),
    }
    datasets = {}
    for name, (columns, clauses, values) in tables.items():
        plain = name.replace("`", "")
        path = "tables/" + plain.replace(".", "/")
        datasets[plain] = StoredDataset(plain, "streaming_table", path, private=plain.endswith("widened"))
        spark.sql(f"CREATE TABLE delta.`{root}/{path}` ({columns}) USING delta {clauses}")
        spark.sql(f"INSERT INTO delta.`{root}/{path}` SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    spark.sql(f"DELETE FROM delta.`{root}/tables/main/shop/deleted` WHERE id < 2")
    spark.sql(f"ALTER TABLE delta.`{root}/tables/main/shop/widened` ALTER COLUMN id TYPE BIGINT")
    datasets["main.shop.nothing"] = StoredDataset("main.shop.nothing", "materialized_view", "tables/main/shop/nothing")
    Storage(root).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets=datasets))
    return root


def test_tables_are_listed_with_rows_version_and_types(storage):
    found = {t.name: t for t in inspector.list_tables(storage, private=True)}
    rows = {name.removeprefix("main."): (t.rows, t.version) for name, t in found.items()}
    assert rows == {
        "gold.daily": (1, 1),
        "shop.deleted": (3, 2),
        "shop.every_type": (1, 1),
        "shop.nothing": (None, None),
        "shop.odd name": (1, 1),
        "shop.orders": (3, 1),
        "shop.variants": (1, 1),
        "shop.widened": (1, 2),
    }
    kinds = {c["name"]: c["type"] for c in found["main.shop.every_type"].columns}
    assert (kinds["st"], kinds["ar"], kinds["m"]) == (
        "struct<a:int,t:timestamp,d:decimal(5,2)>",
        "array<struct<x:binary>>",
        "map<string,decimal(5,2)>",
    )
    assert found["main.shop.orders"].path == (storage / "tables/main/shop/orders").as_uri()
    assert [t.name for t in inspector.list_tables(storage) if "widened" in t.name] == []


def test_rows_in_json_form(storage):
    assert list(inspector.read_rows(storage, "every_type").rows) == [AS_JSON]
    assert list(inspector.read_rows(storage, "deleted").rows) == [{"id": 2}, {"id": 3}, {"id": 4}]
    assert len(list(inspector.read_rows(storage, "orders", limit=2).rows)) == 2
    assert sorted(r["id"] for r in inspector.read_rows(storage, "Orders").rows) == [1, 2, 3]
    assert list(inspector.read_rows(storage, "main.gold.daily").rows) == [{"day": "2026-01-01", "n": 3}]


@pytest.mark.long
def test_tables_that_need_spark_are_read_by_it_with_a_word(storage):
    notes: list[str] = []
    assert list(inspector.read_rows(storage, "widened", note=notes.append).rows) == [{"id": 1}]
    assert list(inspector.read_rows(storage, "variants", note=notes.append).rows) == [{"v": '{"a":[1,null]}'}]
    assert notes == [f"main.shop.{name} uses table features that need Spark; starting it ..." for name in ("widened", "variants")]


def test_unknown_and_unwritten_tables(storage):
    with pytest.raises(LakeletError, match="holds no table ordrs") as unknown:
        inspector.read_rows(storage, "ordrs")
    assert (unknown.value.code, unknown.value.nearest) == ("UNKNOWN_TABLE", ("main.shop.orders",))
    with pytest.raises(LakeletError, match="was not written yet"):
        inspector.read_rows(storage, "nothing")
    with pytest.raises(LakeletError, match="has 4 parts"):
        inspector.read_rows(storage, "a.b.c.d")


def test_arrow_batches_by_the_last_part_of_a_name(storage):
    assert inspector.read_arrow(storage, "daily").read_all().to_pylist()[0]["n"] == 3
    assert inspector.read_arrow(storage, "deleted").read_all().num_rows == 3


def test_types_that_arrow_does_not_know_are_named_as_spark_names_them(spark, storage):
    found = inspector.run_sql(storage, "SELECT v, INTERVAL 1 DAY AS i, 1 AS n FROM variants", spark=spark)
    assert (found.types, next(iter(found.rows))["n"]) == (("variant", "interval day", "int"), 1)
    assert inspector.read_rows(storage, "variants").types == ("variant",)


def rows_of(spark, storage, sql):
    return list(inspector.run_sql(storage, sql, spark=spark).rows)


def test_AL4_read_files_takes_the_time_zone_of_the_session(spark, storage, tmp_path):
    (tmp_path / "a.json").write_text('{"t":"2024-07-01 12:00:00"}')
    query = f"SELECT unix_timestamp(t) AS s FROM read_files('{tmp_path}', format => 'json', schema => 't timestamp')"
    with user_session(spark, {"spark.sql.session.timeZone": "America/New_York"}) as session:
        assert rows_of(session, storage, query) == [{"s": 1_719_849_600}]
    with user_session(spark, {"spark.sql.session.timeZone": "UTC"}) as session:
        assert rows_of(session, storage, query) == [{"s": 1_719_835_200}]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT * FROM every_type", [AS_JSON]),
        ("SELECT orders.id FROM orders WHERE note = 'b'", [{"id": 2}]),
        ("SELECT orders.id FROM shop.orders WHERE note = 'b';", [{"id": 2}]),
        ("SELECT o.id, daily.n FROM main.shop.orders o JOIN gold.daily ON o.id = daily.n", [{"id": 3, "n": 3}]),
        ("SELECT count(*) AS n FROM LIVE.orders", [{"n": 3}]),
        ("WITH orders AS (SELECT 1 AS x) SELECT * FROM orders", [{"x": 1}]),
        ("SELECT count(*) AS n FROM `odd name` WHERE id IN (SELECT id FROM ORDERS)", [{"n": 1}]),
        ("SELECT sum(id) AS n FROM widened", [{"n": 1}]),
        ("SELECT v, INTERVAL 1 DAY AS i, NULL AS z FROM variants", [{"v": '{"a":[1,null]}', "i": "INTERVAL '1' DAY", "z": None}]),
        ("SELECT 1.10 AS d, id AS `a b` FROM orders WHERE note IS NULL", [{"d": "1.10", "a b": 3}]),
        ("VALUES (1)", [{"col1": 1}]),
        ("USE CATALOG main; USE SCHEMA gold; SELECT n FROM daily", [{"n": 3}]),
        ("CREATE VIEW q AS SELECT max(id) AS n FROM orders; USE gold; SELECT n FROM q", [{"n": 3}]),
        ("SELECT schema_of_json_agg('{\"a\": 1}') AS s FROM orders", [{"s": "STRUCT<a: BIGINT>"}]),
        ("CREATE OR REPLACE VIEW gold.q AS SELECT max(id) AS n FROM orders; SELECT n FROM main.gold.q", [{"n": 3}]),
        (
            "USE gold; CREATE VIEW q AS SELECT n FROM daily; CREATE VIEW shop.r AS SELECT n+1 AS n FROM q; SELECT n FROM shop.r",
            [{"n": 4}],
        ),
    ],
)
def test_queries_use_the_names_of_the_pipeline(spark, storage, sql, rows):
    assert rows_of(spark, storage, sql) == rows


@pytest.mark.parametrize(
    ("sql", "code", "part"),
    [
        ("SELECT * FROM ordrs", "UNKNOWN_TABLE", 'Did you mean "main.shop.orders"?'),
        ("SELECT * FROM other.shop.orders", "UNKNOWN_TABLE", "holds no table other.shop.orders"),
        ("SELECT * FROM nothing", "UNKNOWN_TABLE", "was not written yet"),
        ("SELECT nope FROM orders", "UNKNOWN_COLUMN", "nope"),
        ("SELEC 1", "SQL_FAILED", "SELEC"),
        ("-- nothing", "SQL_FAILED", "holds no query"),
        ("CREATE VIEW a.b.c.d AS SELECT 1; SELECT 1", "SQL_FAILED", "has 4 parts"),
        ("USE CATALOG a.b; SELECT 1", "SQL_FAILED", "USE CATALOG a.b"),
        ("USE gold; SELECT note FROM orders", "UNKNOWN_TABLE", 'Did you mean "main.shop.orders"?'),
        ("DROP TABLE orders", "SQL_FAILED", "only queries are allowed here"),
        ("INSERT INTO orders VALUES (1, 'x')", "SQL_FAILED", "only queries are allowed here"),
        ("SELECT raise_error('too bad') FROM orders", "QUERY_FAILED", "too bad"),
    ],
)
def test_queries_that_fail(spark, storage, sql, code, part):
    with pytest.raises(LakeletError) as caught:
        rows_of(spark, storage, sql)
    assert caught.value.code == code
    assert part in str(caught.value)
    assert "JVM" not in str(caught.value)
    assert "lakelet_main" not in str(caught.value)


# --- events -----------------------------------------------------------------------------------------------------------------------------


def written_events(storage, update_id, start, messages):
    origin = Origin("p", "shop", update_id, dataset_name="main.shop.orders")
    events = [
        Event(kind, message, origin, {kind: {"status": "X"}}, timestamp=start + timedelta(milliseconds=-i), sequence=i)
        for i, (kind, message) in enumerate(messages, 1)
    ]
    append(Storage(storage).events, events)
    return events


@pytest.mark.long
def test_events_come_in_order_and_in_the_form_of_the_live_output(spark, tmp_path):
    start = datetime(2026, 3, 1, 8, 0, tzinfo=timezone.utc)
    newer = written_events(tmp_path, "bb-2", start + timedelta(hours=1), [("create_update", "two"), ("flow_progress", "work")])
    older = written_events(tmp_path, "ba-1", start, [("create_update", "one"), ("flow_progress", "done"), ("update_progress", "end")])
    found = reading.read_events(tmp_path)
    assert [e["message"] for e in found] == ["two", "work"]
    assert {k: v for k, v in found[0].items() if k != "origin"} == {
        k: v for k, v in json.loads(json.dumps(newer[0].as_json())).items() if k != "origin"
    }
    assert found[0]["origin"].items() >= newer[0].as_json()["origin"].items()
    assert [e["message"] for e in reading.read_events(tmp_path, update="ba")] == [e.message for e in older]
    assert [e["message"] for e in reading.read_events(tmp_path, every=True)] == ["one", "done", "end", "two", "work"]
    assert [e["message"] for e in reading.read_events(tmp_path, every=True, event_type="create_update")] == ["one", "two"]
    with pytest.raises(LakeletError, match="no update has an id that begins with x") as caught:
        reading.read_events(tmp_path, update="x")
    assert caught.value.todo == "Known, newest first: bb-2, ba-1"
    with pytest.raises(LakeletError, match="several updates"):
        reading.read_events(tmp_path, update="b")
    assert rows_of(spark, tmp_path, "SELECT count(*) AS n FROM event_log WHERE origin.update_id = 'ba-1'") == [{"n": 3}]
    assert reading.read_events(tmp_path / "nowhere") == []


@pytest.mark.parametrize("clauses", ["", "PARTITIONED BY (p)", "TBLPROPERTIES (delta.enableDeletionVectors = true)"])
def test_texts_that_are_not_utf8_are_shown_with_replacement_characters(spark, tmp_path, clauses):
    path = "tables/main/shop/odd"
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/{path}` (v STRING, l ARRAY<STRING>, p STRING) USING delta {clauses}")
    spark.sql(f"INSERT INTO delta.`{tmp_path}/{path}` SELECT CAST(X'636166e9' AS STRING), array('ok', CAST(X'e9' AS STRING)), 'x ä/%:y'")
    datasets = {"main.shop.odd": StoredDataset("main.shop.odd", "streaming_table", path)}
    Storage(tmp_path).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets=datasets))
    wanted = [{"v": "caf\ufffd", "l": ["ok", "\ufffd"], "p": "x ä/%:y"}]

    assert list(inspector.read_rows(tmp_path, "odd", limit=5).rows) == wanted
    assert list(inspector.read_rows(tmp_path, "odd").rows) == wanted
    assert list(inspector.run_sql(tmp_path, "SELECT * FROM odd", spark=spark).rows) == wanted
    sample = StoredTables(tmp_path, sample_rows=3).facts(["main.shop.odd"])["main.shop.odd"].sample
    assert sample.note == "The table has texts that are not UTF-8: lakelet show reads it."


def test_the_name_of_a_table_goes_before_a_struct_that_spells_the_same(spark, tmp_path):
    path = "tables/main/silver/orders"
    row = "SELECT 1 AS id, named_struct('id', 99, 'orders', named_struct('id', 55)) AS silver"
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/{path}` USING delta AS {row}")
    datasets = {"main.silver.orders": StoredDataset("main.silver.orders", "streaming_table", path)}
    Storage(tmp_path).save(StorageRegistry(namespace=Namespace("main", "silver"), datasets=datasets))
    query = "SELECT silver.orders.id AS a, silver.id AS b, orders.silver.orders.id AS c FROM silver.orders"
    wanted = [{"a": 1, "b": 99, "c": 55}]

    assert list(inspector.run_sql(tmp_path, query).rows) == wanted
    assert list(inspector.run_sql(tmp_path, query, spark=spark).rows) == wanted


SAME_NAMES = {
    "SELECT silver.orders.id, gold.orders.total FROM silver.orders JOIN gold.orders ON silver.orders.id = gold.orders.id": [(2, 20)],
    "SELECT gold.orders.* FROM silver.orders JOIN gold.orders ON main.silver.orders.id = main.gold.orders.id": [(2, 20)],
    "SELECT silver.orders.id FROM silver.orders WHERE EXISTS (SELECT 1 FROM gold.orders WHERE gold.orders.id = silver.orders.id)": [(2,)],
    "SELECT orders.id FROM silver.orders UNION ALL SELECT orders.id FROM gold.orders ORDER BY id": [(1,), (2,), (2,), (3,)],
    "SELECT silver.orders.id FROM silver.orders UNION ALL SELECT gold.orders.id FROM gold.orders ORDER BY id": [(1,), (2,), (2,), (3,)],
    "SELECT orders.total FROM silver.orders JOIN gold.orders USING (id)": [(20,)],
    "SELECT silver.orders.id FROM silver.orders UNION ALL SELECT orders.id FROM gold.orders ORDER BY id": [(1,), (2,), (2,), (3,)],
    "WITH x AS (SELECT silver.orders.id FROM silver.orders) SELECT orders.id FROM gold.orders JOIN x ON orders.id = x.id": [(2,)],
    "SELECT other.n FROM silver.orders JOIN gold.orders ON silver.orders.id = gold.orders.id JOIN other ON other.n = gold.orders.id": [
        (2,)
    ],
    "SELECT silver.orders.id FROM silver.orders WHERE id IN (SELECT other.n FROM other) AND EXISTS (SELECT id FROM gold.orders)": [(2,)],
}


def same_names(spark, folder):
    """A storage with the tables silver.orders (1, 2) and gold.orders (2, 3)."""
    paths = {schema: f"tables/main/{schema}/orders" for schema in ("silver", "gold")}
    spark.sql(f"CREATE TABLE delta.`{folder}/tables/main/silver/other` USING delta AS SELECT 2 AS n")
    spark.sql(f"CREATE TABLE delta.`{folder}/{paths['silver']}` USING delta AS SELECT explode(array(1, 2)) AS id")
    spark.sql(f"CREATE TABLE delta.`{folder}/{paths['gold']}` USING delta AS SELECT explode(array(2, 3)) AS id, id * 10 AS total")
    datasets = {f"main.{s}.orders": StoredDataset(f"main.{s}.orders", "streaming_table", path) for s, path in paths.items()}
    datasets["main.silver.other"] = StoredDataset("main.silver.other", "streaming_table", "tables/main/silver/other")
    Storage(folder).save(StorageRegistry(namespace=Namespace("main", "silver"), datasets=datasets))


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("with_spark", [False, True])
def test_full_names_tell_tables_of_one_name_apart(spark, tmp_path, with_spark):
    same_names(spark, tmp_path)

    for query, wanted in SAME_NAMES.items():
        rows = inspector.run_sql(tmp_path, query, spark=spark if with_spark else None).rows
        assert [tuple(row.values()) for row in rows] == wanted, query


def test_a_column_of_the_nearest_table_is_not_taken_for_that_of_another_table_of_its_name(spark, tmp_path):
    same_names(spark, tmp_path)
    query = "SELECT silver.orders.id FROM silver.orders WHERE EXISTS (SELECT 1 FROM gold.orders WHERE orders.id = silver.orders.id)"

    with pytest.raises(LakeletError) as problem:
        list(inspector.run_sql(tmp_path, query, spark=spark).rows)

    assert problem.value.what.startswith("the query reads several tables called orders (main.gold.orders, main.silver.orders)")
    assert "FROM main.gold.orders AS a" in (problem.value.todo or "")


def test_the_history_of_a_table_and_its_changes_are_asked_for_by_its_name(spark, tmp_path):
    path = "tables/main/silver/orders"
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/{path}` USING delta {feed} AS SELECT 1 AS id")
    spark.sql(f"UPDATE delta.`{tmp_path}/{path}` SET id = 2")
    datasets = {"main.silver.orders": StoredDataset("main.silver.orders", "streaming_table", path)}
    Storage(tmp_path).save(StorageRegistry(namespace=Namespace("main", "silver"), datasets=datasets))

    history = statements.run_statement(tmp_path, "DESCRIBE HISTORY silver.orders;", limit=1)
    (detail,) = statements.run_statement(tmp_path, "desc detail orders").rows
    changes = inspector.run_sql(tmp_path, "SELECT id, _change_type AS c FROM table_changes('silver.orders', 1) ORDER BY id", spark=spark)

    assert ([row["operation"] for row in history.rows], history.more) == (["UPDATE"], True)
    assert detail["location"].endswith(path)
    assert list(changes.rows) == [{"id": 1, "c": "update_preimage"}, {"id": 2, "c": "update_postimage"}]
    with pytest.raises(LakeletError, match="holds no table nope"):
        statements.run_statement(tmp_path, "DESCRIBE HISTORY nope")
    with pytest.raises(LakeletError, match="table_changes is a stream here"):
        inspector.run_sql(tmp_path, "SELECT * FROM STREAM table_changes('orders', 0)", spark=spark)


def test_the_table_whose_changes_are_asked_for_is_that_of_the_schema_in_use(spark, tmp_path):
    same_names(spark, tmp_path)
    for schema in ("silver", "gold"):
        path = f"{tmp_path}/tables/main/{schema}/orders"
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    for use, total in (("", None), ("USE gold; ", 20)):
        (row,) = inspector.run_sql(tmp_path, f"{use}SELECT * FROM table_changes('orders', 2)", spark=spark).rows
        assert (row["id"], row.get("total")) == (2, total)
