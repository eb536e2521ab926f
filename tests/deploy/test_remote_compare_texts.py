"""Types and values of both sides as the same texts, and the keys whose rows differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.deploy.differences import BothSides, RowsByKey, comparable, differences, local_text, selected, type_text, workspace_text

Row = tuple[str | None, ...]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("BIGINT", "bigint"),
        ("LONG", "bigint"),
        ("integer", "int"),
        ("DECIMAL(10, 2)", "decimal(10,2)"),
        ("STRUCT<City: STRING, long: INT NOT NULL>", "struct<City:string,long:int>"),
        ("ARRAY<STRUCT<a: LONG>>", "array<struct<a:bigint>>"),
        ("MAP<STRING, ARRAY<BYTE>>", "map<string,array<tinyint>>"),
        ("STRING COLLATE UTF8_BINARY", "string"),
        ("TIMESTAMP_NTZ", "timestamp_ntz"),
    ],
)
def test_types_have_the_names_of_spark(said: str, text: str) -> None:
    assert type_text(said) == text
    assert type_text(text) == text


@pytest.mark.parametrize(
    ("kind", "local", "hosted", "text"),
    [
        ("bigint", 9223372036854775807, "9223372036854775807", "9223372036854775807"),
        ("decimal(38,18)", "1.500000000000000001", "1.500000000000000001", "1.500000000000000001"),
        ("timestamp", "2026-08-01T12:00:00.005000Z", "1785585600005000", "2026-08-01T12:00:00.005000Z"),
        ("timestamp", "1969-12-31T23:59:59.999999Z", "-1", "1969-12-31T23:59:59.999999Z"),
        ("timestamp_ntz", "2026-08-01T12:00:00.500000", "2026-08-01 12:00:00.5", "2026-08-01T12:00:00.500000"),
        ("timestamp_ntz", "2026-08-01T12:00:00", "2026-08-01 12:00:00", "2026-08-01T12:00:00.000000"),
        ("date", "2026-08-01", "2026-08-01", "2026-08-01"),
        ("double", 1e-07, "1.0E-7", "1e-07"),
        ("double", "NaN", "NaN", "nan"),
        ("float", 0.10000000149011612, "0.1", "0.10000000149011612"),
        ("boolean", True, "true", "true"),
        ("binary", "AP8=", "00FF", "00ff"),
        ("string", "é 'x'", "é 'x'", "é 'x'"),
        ("array<int>", [1, None], "[1,null]", "[1,null]"),
        ("struct<b:int,a:string>", {"b": None, "a": "x"}, '{"a": "x"}', '{"a":"x"}'),
        ("map<string,int>", {"k": 1}, '{"k":1}', '{"k":1}'),
    ],
)
def test_a_value_has_one_text_on_both_sides(kind: str, local: Any, hosted: str, text: str) -> None:
    assert comparable(kind)
    assert local_text(kind)(local) == text
    assert workspace_text(kind)(hosted) == text


def test_the_workspace_is_asked_for_exact_texts_whatever_its_time_zone() -> None:
    assert selected("a`b", "timestamp") == "unix_micros(`a``b`)"
    assert selected("a", "binary") == "hex(`a`)"
    assert selected("a", "bigint") == "`a`"
    assert not comparable("variant")
    assert not comparable("interval day to second")


def test_differing_keys_say_which_values_differ() -> None:
    local = RowsByKey([0]).add([("1", "a", "x"), ("2", "b", "x"), ("3", "c", "x"), ("10", None, "x")])
    hosted = RowsByKey([0]).add([("1", "a", "x"), ("2", "B", "x"), ("4", "d", "x"), ("10", "n", "x")])
    found = differences(local, hosted, ("id", "name", "more"), ("id",), complete=True)
    assert [(one.key["id"], one.local_rows, one.hosted_rows) for one in found] == [("2", 1, 1), ("3", 1, 0), ("4", 0, 1), ("10", 1, 1)]
    assert dict(found[0].columns) == {"name": BothSides("b", "B")}
    assert dict(found[3].columns) == {"name": BothSides(None, "n")}


def test_a_sample_may_lack_rows_of_its_keys() -> None:
    local = RowsByKey([0]).add([("1", "a"), ("2", "b"), ("2", "b2")])
    sample = RowsByKey([0]).add([("1", "a"), ("2", "b")])
    assert differences(local, sample, ("id", "v"), ("id",), complete=False) == []
    assert len(differences(RowsByKey([0]), sample, ("id", "v"), ("id",), complete=False)) == 2


rows = st.lists(st.tuples(st.one_of(st.none(), st.sampled_from("abc")), st.one_of(st.none(), st.sampled_from("xy"))), max_size=8)


@given(rows, rows)
def test_no_difference_means_the_same_rows_as_often(local: list[Row], hosted: list[Row]) -> None:
    found = differences(RowsByKey([0]).add(local), RowsByKey([0]).add(hosted), ("k", "v"), ("k",), complete=True)

    def order(row: Row) -> list[str]:
        return [str(value) for value in row]

    assert (not found) == (sorted(local, key=order) == sorted(hosted, key=order))
