"""Cases E01–E19: what the five modes do when columns and types change."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from autoloading import INFER, Program, both, parquet, rescued

from .conftest import Make

MODE = "cloudFiles.schemaEvolutionMode"
WIDEN = {MODE: "addNewColumnsWithTypeWidening"}
CSV = {"cloudFiles.format": "csv"}
PARQUET = {"cloudFiles.format": "parquet"}
A, B = '{"id":1}\n', '{"id":2,"c":{"v":"1"}}\n'


def after_a(program: Program) -> Program:
    """The program after a first run with a.json, and with b.json waiting."""
    return program.put("a.json", A).run().put("b.json", B)


@both
def test_E01_a_new_column_stops_once_and_is_there_on_the_next_start(make: Make) -> None:
    one = after_a(make())
    text = one.stops("NEW_FIELDS_IN_RECORD_WITH_FILE_PATH]", '{"c":{"v":"1"}}')
    assert "/b.json" in text
    assert (len(one.rows()), one.log()) == (1, 1)
    one.run()
    assert one.rows("id", "c", "_rescued_data") == [("1", None, None), ("2", '{"v":"1"}', None)]
    assert one.types() == {"id": "string", "c": "string", "_rescued_data": "string"}
    assert [(change.version_before, change.version_after, change.added) for change in one.changes] == [(0, 1, (("c", "string"),))]
    assert one.changes[0].first_file.endswith("/b.json")


def test_E02_a_new_csv_column_is_named_in_a_list(make: Make) -> None:
    one = make(CSV).put("a.csv", "id\n1\n").run().put("b.csv", "id,d r\n2,x\n")
    one.stops("NEW_FIELDS_IN_FILE]", "[d r]")
    assert one.run().rows("id", "d r") == [("1", None), ("2", "x")]


def test_E03_rescue_mode_keeps_the_schema(make: Make) -> None:
    one = after_a(make({MODE: "rescue"})).run()
    assert (one.last()["id"], rescued(one.last()["_rescued_data"], "b.json")) == ("2", {"c": {"v": "1"}})
    assert (set(one.types()), one.log()) == ({"id", "_rescued_data"}, 0)


def test_E04_fail_mode_fails_until_the_file_is_gone(make: Make) -> None:
    one = after_a(make({MODE: "failOnNewColumns"}))
    for _ in range(2):
        one.stops(retry=False)
        assert (one.log(), len(one.rows()), one.changes) == (0, 1, [])
    one.remove("b.json")
    one.put("c.json", '{"id":3}\n').run()
    assert one.rows("id") == ["1", "3"]


def test_E05_an_explicit_schema_ignores_new_columns(make: Make) -> None:
    one = after_a(make({}, "id INT")).run()
    assert (one.types(), one.rows()) == ({"id": "int"}, [{"id": 1}, {"id": 2}])


def test_E06_an_explicit_schema_with_a_rescued_column(make: Make) -> None:
    one = after_a(make({"rescuedDataColumn": "_resc"}, "id INT")).run()
    assert set(one.types()) == {"id", "_resc"}
    assert (one.last()["id"], rescued(one.last()["_resc"], "b.json")) == (2, {"c": {"v": "1"}})


@pytest.mark.parametrize("format", ["json", "csv"])
def test_FS3_a_declared_rescued_column_is_filled_in_mode_rescue(make: Make, format: str) -> None:
    given = {"a.json": A, "b.json": '{"id":2,"c":"x"}\n'} if format == "json" else {"a.csv": "id\n1\n", "b.csv": "c,id\nx,2\n"}
    one = make({MODE: "rescue", "cloudFiles.format": format, "header": "true"}, "id INT, _rescued_data STRING")
    for name, text in given.items():
        one.put(name, text).run()
    assert set(one.types()) == {"id", "_rescued_data"}
    found = {row["id"]: row["_rescued_data"] for row in one.rows()}
    assert (found[1], rescued(found[2], list(given)[1])) == (None, {"c": "x"})


def test_E07_an_explicit_schema_does_not_grow(make: Make) -> None:
    for mode in ("addNewColumns", "addNewColumnsWithTypeWidening"):
        make({MODE: mode}, "id INT").put("a.json", A).fails("CF_ADD_NEW_NOT_SUPPORTED", "schemaHints")


def test_E08_binary_files_have_no_evolution(make: Make) -> None:
    binary = {"cloudFiles.format": "binaryFile"}
    make({**binary, MODE: "addNewColumns"}).put("a.bin", b"\0\1").fails("CF_UNSUPPORTED_SCHEMA_EVOLUTION_MODE")
    for more in ({}, {MODE: "none"}):
        assert make({**binary, **more}).put("a.bin", b"\0\1").run().rows("length") == [2]


def test_E09_one_stop_for_all_new_columns_of_a_batch(make: Make) -> None:
    one = make().put("a.json", A).run()
    one.put("b.json", '{"id":2,"x":1}\n{"id":3,"y":1}\n').put("c.json", '{"id":4,"z":1}\n').stops()
    one.run()
    assert (one.log(), len(one.rows()), set(one.types())) == (1, 4, {"id", "x", "y", "z", "_rescued_data"})
    assert one.rows("id", "x", "y", "z") == [
        ("1", None, None, None),
        ("2", "1", None, None),
        ("3", None, "1", None),
        ("4", None, None, "1"),
    ]


@both
def test_E10_a_backlog_in_two_batches_stops_twice(make: Make) -> None:
    one = make({"cloudFiles.maxFilesPerTrigger": "1"}).put("a.json", A).run()
    one.put("b.json", '{"id":2,"x":1}\n{"id":3,"y":1}\n').put("c.json", '{"id":4,"z":1}\n').stops()
    assert (one.log(), len(one.rows())) == (1, 1)
    one.stops()
    assert (one.log(), one.rows("id")) == (2, ["1", "2", "3"])
    assert (one.run().rows("id"), one.log()) == (["1", "2", "3", "4"], 2)
    assert [[name for name, _ in change.added] for change in one.changes] == [["x", "y"], ["z"]]


def test_E11_files_that_are_there_first_are_inferred_together(make: Make) -> None:
    one = make().put("a.json", A).put("b.json", '{"id":2,"c":1}\n').run()
    assert one.types() == {"id": "string", "c": "string", "_rescued_data": "string"}
    assert (one.log(), one.rows("id", "c")) == (0, [("1", None), ("2", "1")])


def test_E12_a_removed_column_is_null(make: Make) -> None:
    one = make().put("a.json", '{"id":1,"s":"x"}\n').run().put("b.json", '{"id":2}\n').run()
    assert (one.log(), one.rows("id", "s")) == (0, [("1", "x"), ("2", None)])


def test_E13_a_struct_grows(make: Make) -> None:
    one = make(INFER).put("a.json", '{"o":{"k":1}}\n').run().put("b.json", '{"o":{"k":2,"m":3}}\n')
    one.stops("", '{"o":{"m":3}}')
    assert one.run().types()["o"] == "struct<k:bigint,m:bigint>"
    assert one.last()["o"] == {"k": 2, "m": 3}


def test_E14_a_wider_value_is_rescued_by_default(make: Make) -> None:
    one = make({**CSV, **INFER, MODE: "addNewColumns"}).put("a.csv", "id\n1\n").run().put("b.csv", "id\n2147483648\n").run()
    assert (one.types()["id"], one.log()) == ("int", 0)
    assert (one.last()["id"], rescued(one.last()["_rescued_data"], "b.csv")) == (None, {"id": "2147483648"})


def test_E15_a_wider_value_widens_its_column_where_asked(make: Make) -> None:
    one = make({**CSV, **INFER, **WIDEN}).put("a.csv", "id\n1\n").run().put("b.csv", "id\n2147483648\n")
    one.stops("NEW_FIELDS_AND_WIDENED_TYPES_IN_")
    assert (one.log(), one.types()["id"], one.rows("id")) == (1, "bigint", [1])
    assert one.run().rows("id", "_rescued_data") == [(1, None), (2147483648, None)]
    assert one.changes[0].widened == (("id", "int", "bigint"),)


def test_E16_an_integer_and_a_decimal_meet_in_a_wider_decimal(make: Make) -> None:
    one = make({**PARQUET, **WIDEN}).put("p1.parquet", parquet(a=pa.array([1], pa.int32()))).run()
    one.put("p2.parquet", parquet(a=pa.array([Decimal("1.25")], pa.decimal128(5, 2)))).stops()
    assert one.run().types()["a"] == "decimal(12,2)"
    assert one.rows("a", "_rescued_data") == [(1, None), (Decimal("1.25"), None)]


def test_E17_no_widening_from_integers_to_fractions_of_64_bits(make: Make) -> None:
    one = make({**PARQUET, **WIDEN}).put("p1.parquet", parquet(a=pa.array([1], pa.int64()))).run()
    one.put("p2.parquet", parquet(a=pa.array([1.5], pa.float64()))).run()
    assert (one.types()["a"], one.log()) == ("bigint", 0)
    assert (one.last()["a"], rescued(one.last()["_rescued_data"], "p2.parquet")) == (None, {"a": 1.5})


@pytest.mark.long
def test_E18_an_update_of_a_pipeline_heals_itself_and_says_so(project: Callable[..., Any]) -> None:
    one = project(
        """
        from pyspark import pipelines as dp

        @dp.table
        def t():
            return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))
        """
    )
    one.arrive("a.json", {"id": 1})
    one.run()
    one.arrive("b.json", {"id": 2, "c": {"v": "1"}})
    one.run()
    assert [(key, None if c is None else c.replace(" ", "")) for key, c in one.rows("t", "id", "c")] == [("1", None), ("2", '{"v":"1"}')]
    (event,) = one.logged(event_type="schema_change")
    change = event["details"]["schema_change"]
    assert (event["level"], change["schema_version_before"], change["schema_version_after"]) == ("WARN", 0, 1)
    assert change["added"] == [{"name": "c", "type": "string"}]
    assert change["first_file"].endswith("/b.json")


def test_E19_an_unknown_mode_is_refused_with_the_five_known_ones(make: Make) -> None:
    text = make({MODE: "foo"}).put("a.json", A).fails("CF_INVALID_SCHEMA_EVOLUTION_MODE")
    for mode in ("addNewColumns", "addNewColumnsWithTypeWidening", "rescue", "failOnNewColumns", "none"):
        assert mode in text


@pytest.mark.slow
def test_a_pipeline_widens_the_stored_column_of_its_table(project: Callable[..., Any]) -> None:
    """E15 with its sink: the table takes the wider type (FS-30)."""
    one = project(
        """
        from pyspark import pipelines as dp

        @dp.table(table_properties={"delta.enableTypeWidening": "true"})
        def t():
            return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")
                    .option("cloudFiles.inferColumnTypes", "true")
                    .option("cloudFiles.schemaEvolutionMode", "addNewColumnsWithTypeWidening").load(spark.conf.get("landing")))
        """
    )
    one.arrive("a.csv", "id", "1")
    one.run()
    one.arrive("b.csv", "id", "2147483648")
    one.run()
    table = one.spark.read.format("delta").load(str(one.path("t")))
    assert dict(table.dtypes)["id"] == "bigint"
    assert sorted(row["id"] for row in table.collect()) == [1, 2147483648]
