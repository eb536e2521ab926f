"""Two contents of a table compared: which rows count as added, removed and changed. Values that are hard to compare, one by one."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakelet.inspection.table_comparison import TableComparison, compared


def rows(spark: Any, schema: str, *values: str) -> DataFrame:
    """A frame of rows that are written as SQL: `1, 'a'`."""
    names = [part.split()[0] for part in schema.split("; ")]
    types = [part.split(maxsplit=1)[1] for part in schema.split("; ")]
    if not values:
        return rows(spark, schema, ", ".join(["NULL"] * len(names))).where("false")
    text = ", ".join(f"({value})" for value in values)
    frame = spark.sql(f"SELECT * FROM VALUES {text} AS t({', '.join(names)})")
    return frame.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, kind in zip(names, types, strict=True)))


def counts(found: TableComparison) -> tuple[int, int, int]:
    return found.added, found.removed, found.changed


EQUAL: dict[str, tuple[str, str, str]] = {
    "NaN": ("double", "'NaN'", "'NaN'"),
    "NULL": ("string", "NULL", "NULL"),
    "maps in another order": ("map<string,int>", "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)"),
    "NaN in a struct": ("struct<x:double>", "named_struct('x', 'NaN')", "named_struct('x', 'NaN')"),
    "a map in an array": ("array<map<int,int>>", "array(map(1, 1, 2, 2))", "array(map(2, 2, 1, 1))"),
    "binary": ("binary", "X'00ff'", "X'00FF'"),
    "a variant": ("variant", """parse_json('{"b": 1, "a": 2}')""", """parse_json('{"a": 2, "b": 1}')"""),
    "an instant in two zones": ("timestamp", "'2026-01-01T00:00:00+01:00'", "'2025-12-31T23:00:00Z'"),
}
DIFFERENT: dict[str, tuple[str, str, str, Any, Any]] = {
    "a number": ("int", "1", "2", 1, 2),
    "a zero with a sign": ("double", "0D", "-0D", 0.0, -0.0),
    "NULL and a value": ("int", "NULL", "0", None, 0),
    "NULL and NaN": ("float", "NULL", "'NaN'", None, "NaN"),
    "NULL and an empty text": ("string", "NULL", "''", None, ""),
    "a text with blanks": ("string", "'a'", "'a '", "a", "a "),
    "letters": ("string COLLATE UTF8_LCASE", "'a'", "'A'", "a", "A"),
    "a NULL struct": ("struct<x:int>", "NULL", "named_struct('x', NULL)", None, {"x": None}),
    "a field": ("struct<x:int,y:int>", "named_struct('x', 1, 'y', 2)", "named_struct('x', 1, 'y', 3)", {"x": 1, "y": 2}, {"x": 1, "y": 3}),
    "the order of an array": ("array<int>", "array(1, 2)", "array(2, 1)", [1, 2], [2, 1]),
    "NULL in an array": ("array<double>", "array(NULL)", "array()", [None], []),
    "a zero in an array": ("array<double>", "array(0D)", "array(-0D)", [0.0], [-0.0]),
    "a value of a map": ("map<string,double>", "map('a', 1D)", "map('a', 2D)", {"a": 1.0}, {"a": 2.0}),
    "an empty map": ("map<string,int>", "map()", "NULL", {}, None),
    "an entry of a map": ("map<string,int>", "map('a', NULL)", "map()", {"a": None}, {}),
    "the scale of a number": ("decimal(5,2)", "1.10", "1.11", "1.10", "1.11"),
    "a microsecond": ("timestamp", "'2026-01-01T00:00:00.000001Z'", "'2026-01-01T00:00:00Z'", "2026-01-01T00:00:00.000001Z", None),
    "a day": ("date", "'2026-01-01'", "'2026-01-02'", "2026-01-01", "2026-01-02"),
    "binary": ("binary", "X'00'", "X'01'", "AA==", "AQ=="),
    "a number in a variant": ("variant", "parse_json('1')", "parse_json('\"1\"')", "1", '"1"'),
}


@pytest.mark.parametrize("what", EQUAL)
def test_values_that_are_equal(spark: Any, what: str) -> None:
    kind, before, after = EQUAL[what]
    pair = [rows(spark, f"id int; v {kind}", f"1, {value}") for value in (before, after)]
    assert compared(*pair).equal
    assert compared(*pair, ["id"]).equal


@pytest.mark.parametrize("what", DIFFERENT)
def test_values_that_differ_are_one_changed_row_with_a_sample(spark: Any, what: str) -> None:
    kind, before, after, old, new = DIFFERENT[what]
    pair = [rows(spark, f"id int; v {kind}", f"1, {value}", "2, NULL") for value in (before, after)]
    assert counts(compared(*pair)) == (1, 1, 0)
    found = compared(*pair, ["ID"])
    assert counts(found) == (0, 0, 1)
    (column,) = found.columns
    (sample,) = column.samples
    assert (column.name, column.changed, column.share) == ("v", 1, 0.5)
    assert repr((sample.key, sample.before)) == repr(({"id": 1}, old))  # by their text, in which 0.0 and -0.0 differ
    assert new is None or repr(sample.after) == repr(new)


def test_rows_are_counted_without_a_key(spark: Any) -> None:
    before = rows(spark, "v int", "1", "1", "1", "2", "NULL")
    after = rows(spark, "v int", "1", "2", "2", "NULL", "3")
    found = compared(before, after)
    assert (found.before, found.after, *counts(found)) == (5, 5, 2, 2, 0)
    assert found.added_rows == ({"v": 2}, {"v": 3})
    assert found.removed_rows == ({"v": 1},)


def test_rows_are_added_removed_and_changed_by_key(spark: Any) -> None:
    before = rows(spark, "k string; n int; v int", "'a', 1, 1", "'b', 1, 1", "NULL, 1, 1", "'d', 1, 1")
    after = rows(spark, "k string; n int; v int", "'a', 1, 1", "'b', 2, 2", "NULL, 1, 5", "'e', 1, 1")
    found = compared(before, after, ["k"])
    assert (found.before, found.after, *counts(found)) == (4, 4, 1, 1, 2)
    assert [(c.name, c.changed, round(c.share, 2)) for c in found.columns] == [("v", 2, 0.67), ("n", 1, 0.33)]
    assert [(s.key, s.before, s.after) for s in found.columns[0].samples] == [({"k": None}, 1, 5), ({"k": "b"}, 1, 2)]
    assert (found.added_rows, found.removed_rows) == (({"k": "e", "n": 1, "v": 1},), ({"k": "d", "n": 1, "v": 1},))
    assert found.changed_rows[0] == ({"k": None, "n": 1, "v": 1}, {"k": None, "n": 1, "v": 5})
    assert [after["k"] for _, after in found.changed_rows] == [None, "b"]


def test_rows_of_a_repeated_key_are_paired_by_their_values(spark: Any) -> None:
    before = rows(spark, "k int; v int", "1, 1", "1, 2", "1, 3", "2, 1", "2, 1")
    after = rows(spark, "k int; v int", "1, 1", "1, 4", "2, 1", "2, 1", "2, 1")
    found = compared(before, after, ["k"])
    assert (*counts(found), found.repeated_keys) == (1, 1, 1, 1)


def test_columns_that_one_side_has_are_a_difference_of_the_schema_alone(spark: Any) -> None:
    before = rows(spark, "id int; gone int; grew int; other int", "1, 1, 1, 1")
    after = rows(spark, "id int; GREW bigint; other string; added int", "1, 1, '1', 1")
    found = compared(before, after, ["id"])
    assert [(c.column, c.before, c.after) for c in found.schema] == [
        ("GREW", "int", "bigint"),
        ("other", "int", "string"),
        ("added", None, "int"),
        ("gone", "int", None),
    ]
    assert (counts(found), found.not_compared, found.equal) == ((0, 0, 0), ("other",), False)


def test_an_ignored_column_does_not_count(spark: Any) -> None:
    before, after = rows(spark, "id int; at int", "1, 1"), rows(spark, "id int; at string", "1, 'x'")
    assert compared(before, after, ["id"], ignored=["AT"]).equal


def test_odd_names_and_empty_tables(spark: Any) -> None:
    frame = rows(spark, "id int; v int", "1, 1").toDF("a.b", "c `d`")
    assert compared(frame, frame, ["a.b"]).equal
    assert counts(compared(frame, frame.limit(0), ["a.b"])) == (0, 1, 0)
    assert counts(compared(frame.limit(0), frame)) == (1, 0, 0)


def test_a_key_that_one_side_has_not_is_refused(spark: Any) -> None:
    frame = rows(spark, "id int; v int", "1, 1")
    with pytest.raises(ValueError, match="no is not a column of both tables"):
        compared(frame, frame, ["no"])
