"""Queries that DuckDB answers over tables of a storage, in a process without Java. That Spark gives the same is in test_two_engines.py."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base.errors import LakeletError
from lakelet.inspection.duckdb import answers
from lakelet.inspection.duckdb.values import NotSame
from lakelet.inspection.inspector import RowSelection, duck_table, read_rows, run_sql
from lakelet.inspection.statements import run_statement
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset


@pytest.fixture
def storage(tmp_path):
    """Two tables, one of them in two files that differ in their columns, one dataset that was never written, and an event."""
    rows = {
        "main.shop.orders": [pa.table({"id": [1, 2], "note": ["a", None]}), pa.table({"id": [3], "note": ["b"], "price": [1.5]})],
        "main.gold.odd[1]": [pa.table({"n": [7]})],
        "main.shop.later": [],
    }
    datasets = {}
    for number, (name, tables) in enumerate(rows.items()):
        datasets[name] = StoredDataset(name, "streaming_table", f"tables/{number}")
        for table in tables:
            (tmp_path / f"tables/{number}").mkdir(parents=True, exist_ok=True)
            write_deltalake(str(tmp_path / f"tables/{number}"), table, mode="append", schema_mode="merge")
    Storage(tmp_path).save(StorageRegistry(datasets=datasets))
    append(Storage(tmp_path).events, [Event("create_update", "made", Origin("p", "shop", "u-1"), {"create_update": {}})])
    return tmp_path


def answered(storage, query):
    return [tuple(row.values()) for row in duck_table(storage, query).to_pylist()]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) FROM shop.orders", [(3,)]),
        ("SELECT id, note, price FROM shop.orders ORDER BY id DESC", [(3, "b", 1.5), (2, None, None), (1, "a", None)]),
        ("SELECT note FROM main.shop.orders ORDER BY note", [(None,), ("a",), ("b",)]),
        ("SELECT n FROM gold.`odd[1]`", [(7,)]),
        ("SELECT origin.update_id, message FROM event_log", [("u-1", "made")]),
        ("SELECT update_id, cause, rows_written, ended_at FROM updates WHERE failed_flows = 0", [("u-1", None, 0, None)]),
        ("SELECT count(*) FROM event_log.dataset_health h JOIN latest_update l ON l.id = h.last_update_id", [(0,)]),
        ("SELECT sum(id) AS s, 7 DIV 2 AS d FROM shop.orders WHERE note IS NOT NULL", [(4, 3)]),
    ],
)
def test_plain_queries_are_answered(storage, query, rows):
    assert answered(storage, query) == rows


@pytest.fixture
def million(tmp_path):
    """A storage with one table of a million rows."""
    (tmp_path / "tables/big").mkdir(parents=True)
    ids = pa.array(range(1_000_000), pa.int64())
    write_deltalake(str(tmp_path / "tables/big"), pa.table({"id": ids, "text": pa.array(["x" * 100]).take(pa.array([0] * len(ids)))}))
    Storage(tmp_path).save(
        StorageRegistry(datasets={"main.default.big": StoredDataset("main.default.big", "streaming_table", "tables/big")})
    )
    return tmp_path


@pytest.mark.parametrize("order", ["", " ORDER BY id DESC"])
def test_only_the_rows_that_are_shown_are_kept_of_a_big_result_and_the_others_counted(million, order):
    before = pa.total_allocated_bytes()
    found = run_sql(million, f"SELECT * FROM big{order}", limit=20)
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert (found.total, found.more) == (1_000_000, False)
    ids = [row["id"] for row in found.rows]
    assert len(ids) == 20
    assert ids == (list(range(999_999, 999_979, -1)) if order else ids)


def test_rows_that_take_long_to_count_are_not_counted(million, monkeypatch):
    monkeypatch.setattr(answers, "COUNTING_SECONDS", 0.05)
    query = "SELECT a.id FROM big AS a CROSS JOIN big AS b WHERE a.id + b.id >= 0"
    found = run_sql(million, query, limit=20)
    assert (len(list(found.rows)), found.total, found.more) == (20, None, True)


def test_a_result_without_a_limit_is_whole_and_one_within_it_is_counted(million):
    whole = run_sql(million, "SELECT id FROM big")
    assert (whole.batches.read_all().num_rows, whole.total) == (1_000_000, 1_000_000)
    few = run_sql(million, "SELECT id FROM big WHERE id < 20", limit=20)
    assert (len(list(few.rows)), few.total, few.more) == (20, 20, False)


@pytest.mark.parametrize("newest_first", [True, False])
def test_fields_that_only_later_files_have_are_read(tmp_path, newest_first):
    tables = [pa.table({"id": [1], "st": [{"x": 1}]}), pa.table({"id": [2], "st": [{"x": 2, "y": 3}]})]
    (tmp_path / "tables/grown").mkdir(parents=True)
    for table in reversed(tables) if newest_first else tables:
        write_deltalake(str(tmp_path / "tables/grown"), table, mode="append", schema_mode="merge")
    dataset = StoredDataset("main.default.grown", "streaming_table", "tables/grown")
    Storage(tmp_path).save(StorageRegistry(datasets={dataset.name: dataset}))
    assert answered(tmp_path, "SELECT id, st.x AS x, st.y AS y FROM grown ORDER BY id") == [(1, 1, None), (2, 2, 3)]


def test_no_java_and_no_pyspark_is_loaded(storage):
    code = (
        "import sys\nfrom lakelet.cli.main import main\n"
        f"code = main(['sql', 'SELECT count(*) AS n FROM shop.orders', '--json', '--storage', {str(storage)!r}])\n"
        "sys.exit(code or ('pyspark' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '[{"n": 3}]\n', "")


def test_the_command_line_starts_without_duckdb():
    code = "import sys, lakelet.cli.main; sys.exit(bool({'duckdb', 'sqlglot', 'pyarrow', 'deltalake'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT sum(price) FROM shop.orders", "sum of a double"),
        ("SELECT explode(note) FROM shop.orders", "the function explode"),
        ("SELECT id FROM shop.orders WHERE note RLIKE 'a'", "in an expression"),
        ("SELECT id + 1 AS a, a FROM shop.orders", "a is not a column of the query's tables"),
        ("SELECT details:create_update FROM event_log", "not a plain identifier"),
        ("SELECT 1 / 0 AS x", "it fails in DuckDB"),
        ("SELECT 'it''s' AS x", "concat in an expression"),
        ("SELECT id FROM shop.orders; SELECT 1", "the text is not one query"),
        ("DROP TABLE shop.orders", "the text is not one query"),
    ],
)
def test_other_queries_are_left_to_spark_with_the_reason(storage, query, reason):
    with pytest.raises(NotSame, match=reason):
        duck_table(storage, query)


@pytest.mark.parametrize("text", ["", " -- nothing", "/* nothing */\n"])
def test_a_text_without_a_query_is_an_error_at_once(storage, text):
    with pytest.raises(LakeletError, match="the text holds no query") as caught:
        run_sql(storage, text)
    assert caught.value.code == "SQL_FAILED"


def test_unknown_and_unwritten_tables_are_errors_at_once(storage):
    with pytest.raises(LakeletError, match=r"holds no table shop\.ordrs") as unknown:
        run_sql(storage, "SELECT * FROM shop.ordrs")
    assert unknown.value.nearest == ("main.shop.orders",)
    with pytest.raises(LakeletError, match="was not written yet"):
        run_sql(storage, "SELECT * FROM shop.later")


def test_rows_are_chosen_by_condition_order_and_columns(storage):
    assert read_rows(storage, "shop.orders", limit=2, selection=RowSelection("id > 0")).total == 3
    chosen = read_rows(storage, "shop.orders", limit=2, selection=RowSelection("id > 0", "id DESC", "id, note"))
    assert list(chosen.rows) == [{"id": 3, "note": "b"}, {"id": 2, "note": None}]
    assert chosen.types == ("bigint", "string")
    assert read_rows(storage, "shop.orders", limit=1).total == 3


def test_show_tables_and_describe(storage):
    shown = run_statement(storage, "show tables in shop;")
    assert [tuple(row.values()) for row in shown.rows] == [
        ("main.shop.later", "streaming_table", None, None),
        ("main.shop.orders", "streaming_table", 3, 1),
    ]
    described = run_statement(storage, "DESCRIBE shop.orders")
    assert [tuple(row.values()) for row in described.rows] == [("id", "bigint", None), ("note", "string", None), ("price", "double", None)]
    assert "origin" in [row["col_name"] for row in run_statement(storage, "desc event_log").rows]
    with pytest.raises(LakeletError, match="holds no table nope"):
        run_statement(storage, "DESCRIBE TABLE nope")
