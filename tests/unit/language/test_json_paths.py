"""The colon of Databricks SQL with blanks before it, as Databricks' own formatter writes paths into JSON."""

from __future__ import annotations

import pytest

from lakelet.language.sql_text.spark_sql import json_paths, parameters


@pytest.mark.parametrize(
    ("query", "rewritten"),
    [
        ("SELECT raw :['a']['b c'][0] FROM t", "SELECT get_json_object(CAST(raw  AS STRING), '$.a[\\'b c\\'][0]') AS `b c` FROM t"),
        ("SELECT double(t.raw :_1) AS x FROM t", "SELECT double(get_json_object(CAST(t.raw  AS STRING), '$._1')) AS x FROM t"),
        ("SELECT upper(raw) :['a'] FROM t", "SELECT get_json_object(CAST(upper(raw)  AS STRING), '$.a') AS `a` FROM t"),
        ("SELECT `limit` :['a'] FROM t", "SELECT get_json_object(CAST(`limit`  AS STRING), '$.a') AS `a` FROM t"),
        ("SELECT raw::string:['a']::int FROM t", "SELECT get_json_object(CAST(raw::string AS STRING), '$.a')::int AS `a` FROM t"),
    ],
)
def test_a_path_may_have_blanks_before_its_colons(query, rewritten):
    assert json_paths(query) == rewritten
    assert parameters(query, lambda key, position: "value") == (query, ())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE a = {} AND b BETWEEN {} AND {} LIMIT {}",
        "SELECT date {}, INTERVAL {} DAY, CASE WHEN {} THEN {} ELSE {} END FROM t",
        "SELECT * FROM read_files({} || '/x', format => {}) TIMESTAMP AS OF {}",
        "SELECT {}, a IN ({}, {}), b LIKE {} ESCAPE {} FROM t ORDER BY {}",
    ],
)
def test_what_cannot_follow_a_value_is_a_parameter(query):
    asked = query.replace("{}", ":key")
    assert parameters(asked, lambda key, position: "v")[0] == query.replace("{}", "'v'")
    assert json_paths(asked) == asked


def test_a_colon_may_stand_before_brackets():
    assert json_paths("SELECT a:b:[0]:c, a:[ * ] FROM t") == json_paths("SELECT a:b[0].c, a:[*] FROM t")


def test_a_path_over_several_lines_keeps_them():
    found = json_paths("SELECT raw:\n['a']\n.`1` FROM t")
    assert found.split("\n") == ["SELECT get_json_object(CAST(raw", "", " AS STRING), '$.a.1') AS `1` FROM t"]


@pytest.mark.parametrize("base", ["json", "object", "a", "t", "k", "`get`", "cast"])
def test_a_column_may_be_called_like_what_a_path_becomes(base):
    blank, tight = (json_paths(f"SELECT {base}{gap}:Owner AS o FROM t") for gap in (" ", ""))
    assert blank.replace(f"CAST({base}  AS", f"CAST({base} AS") == tight
    assert tight.count(f"CAST({base} AS STRING)") == 3
