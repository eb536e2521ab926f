"""Cases R01–R14: values that do not fit, names that differ by case, records that are broken."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from autoloading import INFER, Program, both, parquet, rescued

from .conftest import Make

PRICES = "item,price\nA,1795\nB,$100.00\n"
PRICED = ({"cloudFiles.format": "csv", "header": "true", "rescuedDataColumn": "_rescued_data"}, "item STRING,price DOUBLE")
BROKEN = '{"id":1,"v":"a"}\n{"id":2,"v":\n'
PARQUET = {"cloudFiles.format": "parquet"}


def prices(program: Program) -> list[tuple[object, ...]]:
    """The rows of the price list, with the rescued column as an object."""
    rows = program.put("a.csv", PRICES).run().rows("item", "price", "_rescued_data")
    return [(item, price, rescued(kept, "a.csv")) for item, price, kept in rows]


@both
def test_R01_a_value_that_does_not_parse_is_rescued_as_its_text(make: Make) -> None:
    assert prices(make(*PRICED)) == [("A", 1795.0, None), ("B", None, {"price": "$100.00"})]


def test_R02_a_rescued_value_is_not_a_broken_record(make: Make) -> None:
    for mode in ("DROPMALFORMED", "FAILFAST"):
        one = make({**PRICED[0], "mode": mode}, PRICED[1])
        assert prices(one) == [("A", 1795.0, None), ("B", None, {"price": "$100.00"})]


def test_R03_the_path_can_be_left_out_of_the_rescued_column(make: Make) -> None:
    one = make(*PRICED, confs={"spark.databricks.sql.rescuedDataColumn.filePath.enabled": "false"}).put("a.csv", PRICES).run()
    assert one.rows("item", "_rescued_data") == [("A", None), ("B", '{"price":"$100.00"}')]


def spelled_twice(program: Program) -> Program:
    """Run with `name`, then with `Name`."""
    return program.put("a.json", '{"name":"x"}\n').run().put("b.json", '{"Name":"y"}\n').run()


def test_R04_another_spelling_is_no_new_column_but_rescued(make: Make) -> None:
    one = spelled_twice(make())
    assert (one.last()["name"], rescued(one.last()["_rescued_data"], "b.json")) == (None, {"Name": "y"})
    assert (set(one.types()), one.log()) == ({"name", "_rescued_data"}, 0)


def test_R05_spellings_match_where_asked(make: Make) -> None:
    one = spelled_twice(make({"readerCaseSensitive": "false"}))
    assert (one.last()["name"], one.last()["_rescued_data"], one.log()) == ("y", None, 0)


def test_R06_the_option_has_no_prefix(make: Make) -> None:
    one = make({"cloudFiles.readerCaseSensitive": "false"}).put("a.json", '{"name":"x"}\n')
    one.fails("CF_UNKNOWN_OPTION_KEYS_ERROR", "cloudfiles.readercasesensitive")


def test_R07_the_text_of_a_broken_line_is_kept_in_its_column(make: Make) -> None:
    options = {"cloudFiles.schemaHints": "_corrupt_record STRING", "columnNameOfCorruptRecord": "_corrupt_record"}
    one = make(options).put("a.json", BROKEN).run()
    assert one.rows("id", "v", "_corrupt_record") == [("1", "a", None), (None, None, '{"id":2,"v":')]


def test_R08_a_broken_line_is_dropped_or_fails_by_mode(make: Make) -> None:
    options = {"rescuedDataColumn": "_rescued_data"}
    dropped = make({**options, "mode": "DROPMALFORMED"}, "id STRING,v STRING").put("a.json", BROKEN).run()
    assert dropped.rows() == [{"id": "1", "v": "a", "_rescued_data": None}]
    failing = make({**options, "mode": "FAILFAST"}, "id STRING,v STRING").put("a.json", BROKEN)
    failing.fails("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "/a.json")
    assert failing.rows() == []


def test_R09_a_broken_document_is_one_empty_row(make: Make) -> None:
    one = make({"multiLine": "true", "cloudFiles.schemaHints": "id STRING, v STRING"}).put("a.json", '{"id":1,\n"v":').run()
    assert one.rows() == [{"id": None, "v": None, "_rescued_data": None}]


def test_R10_csv_rows_with_too_few_and_too_many_fields(make: Make) -> None:
    one = make({**INFER, "cloudFiles.format": "csv"}).put("z.csv", "a,b\n9,9\n").run().put("a.csv", "a,b\n1,2\n3\n4,5,6\n").run()
    found = [(row["a"], row["b"], rescued(row["_rescued_data"], "a.csv")) for row in one.batches[-1]]
    assert sorted(found, key=repr) == [(1, 2, None), (3, None, None), (4, 5, {"_c2": "6"})]


def test_R11_a_field_of_a_struct_is_rescued_with_its_nesting(make: Make) -> None:
    one = make(INFER).put("a.json", '{"o":{"x":1}}\n').run().put("b.json", '{"o":{"x":"q"}}\n').run()
    assert (one.last()["o"], rescued(one.last()["_rescued_data"], "b.json")) == ({"x": None}, {"o": {"x": "q"}})


def test_R12_another_spelling_in_parquet(make: Make) -> None:
    def fees(program: Program) -> Program:
        program.put("p1.parquet", parquet(airport_fee=pa.array([1.5]))).run()
        return program.put("p2.parquet", parquet(Airport_fee=pa.array([2.5]))).run()

    one = fees(make(PARQUET))
    assert (one.last()["airport_fee"], rescued(one.last()["_rescued_data"], "p2.parquet")) == (None, {"Airport_fee": 2.5})
    two = fees(make({**PARQUET, "readerCaseSensitive": "false"}))
    assert (two.last()["airport_fee"], two.last()["_rescued_data"], two.log()) == (2.5, None, 0)


def test_R13_a_decimal_is_never_read_as_the_integer_behind_it(make: Make) -> None:
    one = make({**PARQUET, "cloudFiles.schemaHints": "a INT"})
    one.put("p.parquet", parquet(a=pa.array([Decimal("1.25")], pa.decimal128(5, 2)))).run()
    assert (one.last()["a"], rescued(one.last()["_rescued_data"], "p.parquet")) == (None, {"a": 1.25})


def test_R14_the_rescued_column_under_another_name(make: Make) -> None:
    one = make({**INFER, "rescuedDataColumn": "_bad"}).put("a.json", '{"id":1,"v":1}\n').run().put("b.json", '{"id":"x","v":2}\n').run()
    assert set(one.types()) == {"id", "v", "_bad"}
    assert (one.last()["id"], one.last()["v"], rescued(one.last()["_bad"], "b.json")) == (None, 2, {"id": "x"})
