"""Positions of table names in SQL text, as Spark's parser sees them."""

from __future__ import annotations

import pytest

from lakelet.jvm.expressions import parsed
from lakelet.language.sql_text import table_names

pytestmark = pytest.mark.spark

# (text with every table name that must be found in «», names expected in order)
CASES = {
    "plain": ("SELECT * FROM «x»", [("x",)]),
    "three parts": ("SELECT * FROM «main.shop.orders» o", [("main", "shop", "orders")]),
    "back quotes": ("SELECT * FROM «`my db`.`x.y`» t", [("my db", "x.y")]),
    "live": ("SELECT * FROM «LIVE.x»", [("LIVE", "x")]),
    "joins": ("SELECT * FROM «a» LEFT JOIN «b.c» USING (id), «d» AS e", [("a",), ("b", "c"), ("d",)]),
    "stream function": ("SELECT * FROM STREAM(«x»)", [("x",)]),
    "stream word": ("SELECT * FROM STREAM «a.x» s", [("a", "x")]),
    "stream spaced": ("SELECT * FROM stream /* ( */ ( «LIVE . `x y`» ) s", [("LIVE", "x y")]),
    "stream options": ("SELECT * FROM STREAM «x» WITH (skipChangeCommits=true)", [("x",)]),
    "stream watermark": ("SELECT * FROM STREAM(«x») WATERMARK ts DELAY OF INTERVAL 1 HOUR", [("x",)]),
    "subqueries": ("SELECT (SELECT max(v) FROM «y») FROM «x» WHERE EXISTS (SELECT 1 FROM «e.f.g») AND i IN (TABLE «h»)",
                   [("y",), ("x",), ("e", "f", "g"), ("h",)]),
    "lateral": ("SELECT * FROM «x», LATERAL (SELECT * FROM «z» WHERE z.i = x.i)", [("x",), ("z",)]),
    "cte": ("WITH c AS (SELECT * FROM «a»), d AS (SELECT * FROM C) SELECT * FROM d JOIN c USING (id)", [("a",)]),
    "cte reads the table it hides": ("WITH a AS (SELECT * FROM «a») SELECT * FROM a", [("a",)]),
    "cte in a subquery": ("SELECT * FROM «c» WHERE i IN (WITH c AS (SELECT * FROM «a») SELECT i FROM c)", [("c",), ("a",)]),
    "cte seen in a subquery": ("WITH c AS (SELECT * FROM «a») SELECT * FROM «b» WHERE i IN (SELECT i FROM c)", [("a",), ("b",)]),
    "cte name with a schema is a table": ("WITH c AS (SELECT 1) SELECT * FROM «s.c»", [("s", "c")]),
    "recursive": ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", []),
    "time travel": ("SELECT * FROM «x» VERSION AS OF 1", [("x",)]),
    "sample": ("SELECT * FROM «x» TABLESAMPLE (10 PERCENT) z", [("x",)]),
    "union": ("SELECT 1 FROM «x» UNION ALL (SELECT 2 FROM «x»)", [("x",), ("x",)]),
    "identifier": ("SELECT * FROM «IDENTIFIER('a.b')»", [("a", "b")]),
    "identifier with an expression": ("SELECT * FROM «IDENTIFIER('a' || '.b')» t", [("a", "b")]),
    "wide characters": ("SELECT '😀', * FROM «a.x»", [("a", "x")]),
    "functions are not tables": ("SELECT * FROM range(3)", []),
    "table argument": ("SELECT * FROM f(TABLE(«x»))", [("x",)]),
    "insert target": ("INSERT INTO x SELECT * FROM «y»", [("y",)]),
    "in a string": ("SELECT 'FROM z' FROM «x» -- FROM q", [("x",)]),
    "pipes": ("FROM «x» |> WHERE v > 1 |> JOIN «y» USING (id)", [("x",), ("y",)]),
}  # fmt: skip


@pytest.mark.parametrize(("marked", "parts"), CASES.values(), ids=CASES.keys())
def test_every_table_is_found_at_its_place(spark, marked, parts):
    sql = marked.replace("«", "").replace("»", "")
    found = table_names.references(spark, sql)
    rebuilt = sql
    for ref in reversed(found):
        rebuilt = f"{rebuilt[: ref.start]}«{rebuilt[ref.start : ref.stop]}»{rebuilt[ref.stop :]}"
    assert rebuilt == marked
    assert [ref.parts for ref in found] == parts


def test_streaming_references_are_marked(spark):
    found = table_names.references(spark, "SELECT * FROM STREAM(a) JOIN b USING (id) JOIN STREAM c USING (id)")
    assert [(ref.parts[0], ref.streaming) for ref in found] == [("a", True), ("b", False), ("c", True)]


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        ("SELECT b.v FROM a.b", "SELECT b.v FROM new AS `b`"),
        ("SELECT b.v FROM a.b AS b", "SELECT b.v FROM new AS b"),
        ("SELECT * FROM STREAM(a.b)", "SELECT * FROM STREAM(new) AS `b`"),
        ("SELECT * FROM STREAM a.b s", "SELECT * FROM STREAM new s"),
        ("SELECT * FROM a.b TABLESAMPLE (10 PERCENT)", "SELECT * FROM new TABLESAMPLE (10 PERCENT) AS `b`"),
        ("SELECT * FROM a.b VERSION AS OF 1, c", "SELECT * FROM new AS `b`, new AS `c`"),
        ("SELECT * FROM a.b FOR SYSTEM_TIME AS OF DATE '2024-01-01' - 1 t", "SELECT * FROM new t"),
        ("SELECT * FROM a.b WITH (x=')')", "SELECT * FROM new WITH (x=')') AS `b`"),
        ("TABLE a.b", "TABLE new"),
        ("SELECT * FROM b t(x, y)", "SELECT * FROM new t(x, y)"),
        ("SELECT * FROM (a.b JOIN c USING (i)) z", "SELECT * FROM (new AS `b` JOIN new AS `c` USING (i)) z"),
    ],
)
def test_rewriting_keeps_the_names_that_columns_are_reached_by(spark, sql, rewritten):
    assert table_names.rewrite(spark, sql, lambda ref: "new") == rewritten
    parsed(spark, rewritten)


def test_configuration_values_are_substituted_before_positions_are_taken(spark):
    spark.conf.set("lakelet.test.catalog", "a_long_catalog")
    try:
        sql = "SELECT * FROM ${lakelet.test.catalog}.s.x"
        (ref,) = table_names.references(spark, sql)
        assert table_names.substitute(spark, sql)[ref.start : ref.stop] == "a_long_catalog.s.x"
        assert table_names.rewrite(spark, sql, lambda ref: "y") == "SELECT * FROM y AS `x`"
    finally:
        spark.conf.unset("lakelet.test.catalog")


@pytest.mark.parametrize(
    ("sql", "reads_only"),
    [
        ("SELECT 1", True),
        ("WITH c AS (SELECT 1) SELECT * FROM c", True),
        ("VALUES (1)", True),
        ("TABLE x", True),
        ("INSERT INTO x SELECT 1", False),
        ("FROM x INSERT INTO a SELECT * INSERT INTO b SELECT *", False),
        ("CREATE TABLE q AS SELECT 1", False),
        ("DELETE FROM x", False),
        ("DROP TABLE x", False),
        ("SHOW TABLES", False),
        ("SET a=b", False),
        ("BEGIN SELECT 1; END", False),
    ],
)
def test_only_queries_are_queries(spark, sql, reads_only):
    assert table_names.is_query(spark, sql) is reads_only


def test_names_are_listed_once():
    refs = [table_names.RelationRef(p, 0, 0, False, False) for p in [("a", "b c"), ("x",), ("x",)]]
    assert table_names.names_of(refs) == ["a.`b c`", "x"]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c AS (SELECT * FROM a.b) SELECT (SELECT max(v) FROM d) FROM c JOIN e.f USING (id)",
        "SELECT 'tables', '--', * FROM a.b t JOIN d ON t.id = d.id -- c",
    ],
)
def test_a_text_whose_names_the_plan_locates_is_not_cut_into_tokens(spark, sql, monkeypatch):
    def refused(text: str) -> None:
        raise AssertionError(text)

    monkeypatch.setattr(table_names, "plain_tokens", refused)  # it would load sqlglot
    assert table_names.is_query(spark, sql)
    assert "new" in table_names.rewrite(spark, sql, lambda ref: "new")
