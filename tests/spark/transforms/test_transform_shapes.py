"""Flatten, explode and relationalize on generated nested rows: nothing is lost, every row can be put together again."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from lakelet.transforms import TransformError, explode, flatten, relationalize

FEW = settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = st.lists(st.sampled_from(["a", "b.c", "d`e", "f g", "ü"]), min_size=1, max_size=3, unique=True)
PLAIN = st.sampled_from([IntegerType(), StringType(), ArrayType(IntegerType())])


def structs(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[StructType]:
    return NAMES.flatmap(
        lambda names: st.tuples(*(inner for _ in names)).map(
            lambda types: StructType([StructField(n, t) for n, t in zip(names, types, strict=True)])
        )
    )


SCHEMAS = structs(st.recursive(PLAIN, structs, max_leaves=6))


def values(data_type: Any) -> st.SearchStrategy[Any]:
    if isinstance(data_type, StructType):
        found: st.SearchStrategy[Any] = st.tuples(*(values(f.dataType) for f in data_type.fields))
    elif isinstance(data_type, ArrayType):
        found = st.lists(values(data_type.elementType), max_size=3)
    else:
        found = st.integers(-5, 5) if isinstance(data_type, IntegerType) else st.sampled_from(["", "x", "é"])
    return st.one_of(st.none(), found)


def flat(path: str, data_type: Any, value: Any) -> dict[str, Any]:
    """The columns that a value becomes."""
    if not isinstance(data_type, StructType):
        return {path: value}
    result: dict[str, Any] = {}
    for i, field in enumerate(data_type.fields):
        result |= flat(f"{path}/{field.name}", field.dataType, None if value is None else value[i])
    return result


@FEW
@given(data=st.data())
def test_flatten_gives_every_value_at_the_end_of_a_path(spark: Any, data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    rows = data.draw(st.lists(st.tuples(*(values(f.dataType) for f in schema.fields)), max_size=12))
    frame = spark.createDataFrame(rows, schema).transform(flatten(separator="/"))
    expected = []
    for row in rows:
        one: dict[str, Any] = {}
        for i, field in enumerate(schema.fields):
            one |= flat(field.name, field.dataType, row[i])
        expected.append(one)
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


ORDER = "id INT, s STRUCT<t: STRING, zs: ARRAY<STRING>>, lines ARRAY<STRUCT<x: INT, ys: ARRAY<ARRAY<INT>>>>, m MAP<STRING, INT>"
NUMBER = st.one_of(st.none(), st.integers(0, 3))
LINES = st.lists(st.tuples(NUMBER, ITEMS), max_size=2)
ORDERS = st.tuples(
    st.one_of(st.none(), st.tuples(st.sampled_from(["", "t"]), st.one_of(st.none(), st.lists(st.sampled_from("uv"), max_size=2)))),
    st.one_of(st.none(), LINES),
    MAPS,
)


def children(rows: list[Any]) -> dict[str, list[Any]]:
    """Rows of a table by parent, in the order of their positions."""
    found: dict[str, list[Any]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row._position):
        found[row._parent_key].append(row)
    return found


def put_together(tables: dict[str, list[Any]]) -> list[Any]:
    """The nested rows again, from the flat tables alone. A NULL struct and a struct of NULLs are the same."""
    by_parent = {name: children(rows) for name, rows in tables.items() if name != "o"}

    def array(table: str, key: str, size: int | None, item: Any) -> Any:
        found = by_parent[table][key]
        assert len(found) == (size or 0)
        return None if size is None else [item(row) for row in found]

    def line(row: Any) -> Any:
        def inner(one: Any) -> Any:
            return array("o_lines_ys_value", one._key, one.value_size, lambda r: r.value)

        return (row.x, array("o_lines_ys", row._key, row.ys_size, inner))

    return [
        (
            row.id,
            (row.s_t, array("o_s_zs", row._key, row.s_zs_size, lambda r: r.value)),
            array("o_lines", row._key, row.lines_size, line),
            None if row.m_size is None else dict(sorted((r.key, r.value) for r in by_parent["o_m"][row._key])),
        )
        for row in tables["o"]
    ]


@FEW
@given(orders=st.lists(ORDERS, min_size=1, max_size=15), doubled=st.booleans())
def test_the_tables_of_relationalize_hold_every_nested_row(spark: Any, orders: list[Any], doubled: bool) -> None:
    """With business keys, and without them where equal rows are told apart by a number."""
    rows = [(1 if doubled else n, *order) for n, order in enumerate(orders)]
    rows = rows + rows if doubled else rows
    frame = spark.createDataFrame(rows, ORDER)
    made = relationalize("o", keys=None if doubled else "ID")(frame)
    assert list(made) == ["o", "o_s_zs", "o_lines", "o_lines_ys", "o_lines_ys_value", "o_m"]
    tables = {name: table.collect() for name, table in made.items()}
    for name, found in tables.items():
        assert len({row._key for row in found}) == len(found), f"keys of {name} are not unique"
    expected = [(n, s or (None, None), lines, m and dict(sorted(m.items()))) for n, s, lines, m in rows]
    assert sorted(map(repr, put_together(tables))) == sorted(map(repr, ((n, tuple(s), ls, m) for n, s, ls, m in expected)))


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


def test_an_empty_frame_has_all_tables(spark: Any) -> None:
    made = relationalize("o")(spark.createDataFrame([], ORDER))
    assert [(name, table.count()) for name, table in made.items()][:2] == [("o", 0), ("o_s_zs", 0)]
