"""Flatten, explode and relationalize on generated nested rows: nothing is lost, every row can be put together again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StringType, StructField, StructType

from lakelet.transforms import TransformError, explode, flatten, relationalize

FEW = settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

WIDE = settings(FEW, max_examples=1)
"""One frame has COLUMNS columns of different drawn types: one job for many. (The plainest example comes first, where it is possible.)"""
COLUMNS = 16

ODD = ("a", "b.c", "d`e", "f g", "ü")
NAMES = st.lists(st.sampled_from(ODD), min_size=1, max_size=3, unique=True)
SCALAR = st.sampled_from([IntegerType(), StringType()])
PLAIN = st.one_of(SCALAR, SCALAR.map(ArrayType), SCALAR.map(lambda values: MapType(StringType(), values)))


def structs(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[StructType]:
    return NAMES.flatmap(
        lambda names: st.tuples(*(inner for _ in names)).map(
            lambda types: StructType([StructField(n, t) for n, t in zip(names, types, strict=True)])
        )
    )


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[DataType]:
    """Structs, arrays and maps."""
    return st.one_of(structs(inner), inner.map(ArrayType), inner.map(lambda values: MapType(StringType(), values)))


def values(data_type: Any) -> st.SearchStrategy[Any]:
    if isinstance(data_type, StructType):
        found: st.SearchStrategy[Any] = st.tuples(*(values(f.dataType) for f in data_type.fields))
    elif isinstance(data_type, ArrayType):
        found = st.lists(values(data_type.elementType), max_size=3)
    elif isinstance(data_type, MapType):
        found = st.dictionaries(st.sampled_from("pqr"), values(data_type.valueType), max_size=2)
    else:
        found = st.integers(-5, 5) if isinstance(data_type, IntegerType) else st.sampled_from(["", "x", "é"])
    return st.one_of(st.none(), found)


def frames(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[tuple[StructType, list[Any]]]:
    """A schema whose columns have drawn types, and rows of it with a number in front."""

    def schema(found: list[DataType]) -> StructType:
        columns = [StructField(f"{n} {ODD[n % len(ODD)]}", one) for n, one in enumerate(found)]
        return StructType([StructField("Id", IntegerType()), *columns])

    def rows(schema: StructType) -> st.SearchStrategy[tuple[StructType, list[Any]]]:
        row = st.tuples(*(values(field.dataType) for field in schema.fields[1:]))
        return st.lists(row, min_size=6, max_size=12).map(lambda found: (schema, [(n, *one) for n, one in enumerate(found)]))

    return st.lists(types, min_size=COLUMNS, max_size=COLUMNS, unique_by=lambda one: one.json()).map(schema).flatmap(rows)


def flat(path: str, data_type: Any, value: Any) -> dict[str, Any]:
    """The columns that a value becomes."""
    if not isinstance(data_type, StructType):
        return {path: value}
    result: dict[str, Any] = {}
    for i, field in enumerate(data_type.fields):
        result |= flat(f"{path}/{field.name}", field.dataType, None if value is None else value[i])
    return result


@WIDE
@given(drawn=frames(st.recursive(PLAIN, structs, max_leaves=6)))
def test_flatten_gives_every_value_at_the_end_of_a_path(spark: Any, drawn: tuple[StructType, list[Any]]) -> None:
    schema, rows = drawn
    frame = spark.createDataFrame(rows, schema).transform(flatten(separator="/"))
    expected = []
    for row in rows:
        one: dict[str, Any] = {}
        for i, field in enumerate(schema.fields):
            one |= flat(field.name, field.dataType, row[i])
        expected.append(one)
    assert frame.columns == list(expected[0])
    assert [row.asDict() for row in frame.collect()] == expected


def test_names_that_would_be_equal_are_an_error_or_numbered(spark: Any) -> None:
    frame = spark.sql("SELECT named_struct('b', 1, 'B_2', 2) AS a, 3 AS A_b, named_struct('b', named_struct('c', 4)) AS x, 5 AS x_b_c")
    with pytest.raises(TransformError, match="TRANSFORM_COLUMN_EXISTS"):
        frame.transform(flatten())
    numbered = frame.transform(flatten(on_collision="number"))
    assert numbered.columns == ["a_b_3", "a_B_2", "A_b", "x_b_c_2", "x_b_c"]
    assert tuple(numbered.first()) == (1, 2, 3, 4, 5)


def test_flatten_some_levels_and_a_struct_without_fields(spark: Any) -> None:
    schema = StructType().add("s", StructType().add("t", StructType().add("u", "integer")).add("e", StructType()))
    frame = spark.createDataFrame([(((1,), ()),), (None,)], schema)
    assert frame.transform(flatten(levels=1)).columns == ["s_t", "s_e"]
    assert [tuple(row) for row in frame.transform(flatten()).select("s_t_u").collect()] == [(1,), (None,)]
    assert frame.transform(flatten()).columns == ["s_t_u", "s_e"]


ITEMS = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3)), max_size=3))
MAPS = st.one_of(st.none(), st.dictionaries(st.sampled_from("pqr"), st.one_of(st.none(), st.integers(0, 9)), max_size=3))


@FEW
@given(rows=st.lists(st.tuples(ITEMS, MAPS), max_size=20))
def test_exploded_rows_are_the_elements_with_their_positions(spark: Any, rows: list[Any]) -> None:
    """Arrays of arrays one level, maps by entry; with `outer` an empty or missing array leaves one row."""
    numbered = [(n, *row) for n, row in enumerate(rows)]
    frame = spark.createDataFrame(numbered, "id INT, `l.x` ARRAY<ARRAY<INT>>, m MAP<STRING, INT>")
    lists = frame.drop("m")
    outer = lists.transform(explode("L.X", position="at"))
    assert outer.columns == ["id", "at", "l.x"]
    expected = [(n, at, item) for n, items, _ in numbered for at, item in (list(enumerate(items)) if items else [(None, None)])]
    assert [tuple(row) for row in outer.collect()] == expected
    inner = lists.transform(explode("l.x", into="item", outer=False))
    assert [tuple(row) for row in inner.collect()] == [(n, item) for n, items, _ in numbered for item in items or ()]
    entries = frame.select("id", "m").transform(explode("m", outer=False))
    assert entries.columns == ["id", "m_key", "m_value"]
    assert {tuple(row) for row in entries.collect()} == {(n, k, v) for n, _, found in numbered for k, v in (found or {}).items()}


def test_explode_refuses_what_is_no_array_and_names_that_are_taken(spark: Any) -> None:
    frame = spark.sql("SELECT 1 AS id, array(1) AS l")
    for step, code in (
        (explode("id"), "TRANSFORM_TYPE"),
        (explode("l", into="ID"), "TRANSFORM_COLUMN_EXISTS"),
        (explode("l", position="l"), "TRANSFORM_COLUMN_EXISTS"),
        (explode("ll"), "TRANSFORM_UNKNOWN_COLUMN"),
    ):
        with pytest.raises(TransformError, match=code):
            frame.transform(step)


def without_null_structs(data_type: Any, value: Any) -> Any:
    """The value as flat tables can tell it: a NULL struct and a struct of NULLs are the same."""
    if isinstance(data_type, StructType):
        of = value or [None] * len(data_type.fields)
        return tuple(without_null_structs(f.dataType, one) for f, one in zip(data_type.fields, of, strict=True))
    if value is None or not isinstance(data_type, ArrayType | MapType):
        return value
    if isinstance(data_type, MapType):
        return {key: without_null_structs(data_type.valueType, one) for key, one in sorted(value.items())}
    return [without_null_structs(data_type.elementType, one) for one in value]


class FlatTables:
    """The nested rows again, from the tables of `relationalize` alone."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self.children: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for name, table in tables.items():
            rows = [row.asDict() for row in table.collect()]
            assert len({row["_key"] for row in rows}) == len(rows), f"keys of {name} are not unique"
            for row in sorted(rows, key=lambda row: row.get("_position", 0)):
                self.children[name, row.get("_parent_key", "")].append(row)

    def rows(self, schema: StructType) -> list[Any]:
        found = [tuple(self.value("o", row, f.name, f.dataType) for f in schema.fields) for row in self.children.pop(("o", ""), [])]
        assert not self.children, f"rows that are in no row of the table above: {self.children}"
        return found

    def value(self, table: str, row: dict[str, Any], name: str, data_type: Any) -> Any:
        """The value at a column, or at the columns and tables that have its name in front."""
        if isinstance(data_type, StructType):
            return tuple(self.value(table, row, f"{name}/{f.name}", f.dataType) for f in data_type.fields)
        if not isinstance(data_type, ArrayType | MapType):
            return row[name]
        below = f"{table}/{name}"
        items = self.children.pop((below, row["_key"]), [])
        assert [item["_position"] for item in items] == list(range(row[f"{name}/size"] or 0))
        if row[f"{name}/size"] is None:
            return None
        if isinstance(data_type, MapType):
            return {item["key"]: self.value(below, item, "value", data_type.valueType) for item in sorted(items, key=lambda i: i["key"])}
        if not isinstance(data_type.elementType, StructType):
            return [self.value(below, item, "value", data_type.elementType) for item in items]
        fields = data_type.elementType.fields
        return [tuple(self.value(below, item, f.name, f.dataType) for f in fields) for item in items]


@pytest.mark.long
@WIDE
@given(drawn=frames(st.recursive(PLAIN, nested, max_leaves=2)))
def test_the_tables_of_relationalize_hold_every_nested_row(spark: Any, drawn: tuple[StructType, list[Any]]) -> None:
    schema, rows = drawn
    found = FlatTables(relationalize("o", keys="ID", separator="/")(spark.createDataFrame(rows, schema))).rows(schema)
    assert sorted(found, key=repr) == sorted((without_null_structs(schema, row) for row in rows), key=repr)


ORDER = "id INT, s STRUCT<t: STRING, zs: ARRAY<STRING>>, lines ARRAY<STRUCT<x: INT, ys: ARRAY<ARRAY<INT>>>>, m MAP<STRING, INT>"


def test_rows_that_are_equal_are_told_apart_by_a_number(spark: Any) -> None:
    order = (1, ("t", ["u", "v"]), [(1, [[2, None], None, []]), (1, None)], {"p": 1})
    rows = [order, order, order, (1, None, [], None), (1, None, [], None)]
    frame = spark.createDataFrame(rows, ORDER)
    made = relationalize("o", separator="/")(frame)
    assert sorted(FlatTables(made).rows(frame.schema), key=repr) == sorted(
        (without_null_structs(frame.schema, row) for row in rows), key=repr
    )


def test_keys_depend_on_the_rows_alone(spark: Any) -> None:
    rows = [(n % 3, ("t", ["u"]), [(n % 2, None)], {"p": 1}) for n in range(12)]
    first = relationalize("o")(spark.createDataFrame(rows, ORDER))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        second = relationalize("o")(spark.createDataFrame(rows[::-1], ORDER).repartition(5))
        for name in ("o", "o_lines"):
            assert sorted(map(tuple, second[name].collect())) == sorted(map(tuple, first[name].collect()))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_relationalize_refuses_names_that_collide(spark: Any) -> None:
    for query in ("1 AS _key, array(1) AS l", "array(1) AS l, 1 AS l_size", "array(named_struct('_position', 1)) AS l"):
        with pytest.raises(TransformError, match="TRANSFORM_COLUMN_EXISTS"):
            relationalize()(spark.sql(f"SELECT {query}"))


def test_an_empty_frame_has_all_tables_with_the_names_of_their_paths(spark: Any) -> None:
    made = relationalize("o")(spark.createDataFrame([], ORDER))
    assert {name: table.columns for name, table in made.items()} == {
        "o": ["_key", "id", "s_t", "s_zs_size", "lines_size", "m_size"],
        "o_s_zs": ["_key", "_parent_key", "_position", "value"],
        "o_lines": ["_key", "_parent_key", "_position", "x", "ys_size"],
        "o_lines_ys": ["_key", "_parent_key", "_position", "value_size"],
        "o_lines_ys_value": ["_key", "_parent_key", "_position", "value"],
        "o_m": ["_key", "_parent_key", "_position", "key", "value"],
    }
    assert [made[name].count() for name in ("o", "o_s_zs")] == [0, 0]
