"""Options of JSON say what is a record, what is JSON, and which type a value has (FF-6 to FF-10; cases R07, R08, R09, R11, R14)."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from autoloading import INFER, Program, rescued
from lakelet.autoloader.formats.json.records import records_in
from lakelet.autoloader.formats.json.syntax_tree import Syntax
from lakelet.autoloader.schema_hints import parse_hints
from lakelet.autoloader.source_spec import PASSED_OVER, UNRESCUED
from lakelet.autoloader.text_values import timestamp_micros
from lakelet.base.errors import LakeletError

Make = Callable[..., Program]
HINTS = "cloudFiles.schemaHints"
WIDEN = {**INFER, "cloudFiles.schemaEvolutionMode": "addNewColumnsWithTypeWidening"}
RESCUE = {"cloudFiles.schemaEvolutionMode": "rescue"}


@pytest.fixture
def source(tmp_path: Path) -> Make:
    made: list[int] = []

    def make(options: dict[str, str], schema: Any = None) -> Program:
        made.append(1)
        root = tmp_path / str(len(made))
        return Program(root / "in", root, options, schema)

    return make


def texts(document: str, size: int = 7, **syntax: bool) -> list[tuple[str, bool]] | None:
    """(text, whether more text follows the document) of the records of a document that arrives in small pieces; None for a broken one."""
    pieces: Iterator[str] = (document[at : at + size] for at in range(0, len(document), size))
    found = records_in(pieces, Syntax(**syntax))
    return None if found is None else [(record.text.decode(), record.more) for record in found]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_document_is_cut_into_records_wherever_its_pieces_end(size: int) -> None:
    assert texts(' {"a":\n1} ', size) == [('{"a":\n1}', False)]
    assert texts('[{"a":[1,2]} , {"b":"]}"} ]', size) == [('{"a":[1,2]}', False), ('{"b":"]}"}', False)]
    assert texts('{"a":1}\n{"a":2}[{"a":3}]', size) == [('{"a":1}', True)]
    assert texts('[{"a":1}, {"a":2}] x', size) == [('{"a":1}', False), ('{"a":2}', True)]
    assert texts("[]", size) == texts(" \n", size) == texts("", size) == []
    assert texts("[{'a':1},{'a':2}]", size) == [("{'a':1}", False), ("{'a':2}", False)]
    assert texts('/* [ */ [{"a":1} // ]\n ] // x', size, comments=True) == [('{"a":1}', False)]
    for broken in ('[{"a":1},{"b":', '[{"a":1} {"b":2}]', '[{"a":1}, 12]', "12", '"x"', '{"a":', 'x {"a":1}', "[,]", '[{"a":1},]'):
        assert texts(broken, size) is None, broken


def test_multi_line_reads_a_document_per_file_and_an_array_as_records(source: Make) -> None:
    one = source({**INFER, "multiLine": "true"})
    one.put("a.json", '{\n "id": 1,\n "o": {"k": 1}\n}\n').put("b.json", '[{"id":2},\n {"id":3,\n"o":null}]').put("c.json", " \n")
    assert one.run().rows("id", "o", "_rescued_data") == [(1, {"k": 1}, None), (2, None, None), (3, None, None)]


def test_R09_a_broken_document_is_one_row_of_nulls(source: Make) -> None:
    one = source({"multiLine": "true", HINTS: "id STRING, v STRING"}).put("a.json", '{"id":1,\n"v":')
    assert one.run().last() == {"id": None, "v": None, "_rescued_data": None}
    corrupt = source({"multiLine": "true", HINTS: "id STRING, _corrupt_record STRING"}).put("a.json", '{"id":1,\n"v":')
    assert corrupt.run().last() == {"id": None, "_corrupt_record": '{"id":1,\n"v":', "_rescued_data": None}


@pytest.mark.parametrize("text", ['[{"id":1},\n{"id":2},\n{"id":', '[{"id":1},\n2]', '[{"id":1} {"id":2}]', "5", 'junk {"id":1}'])
def test_a_document_that_is_not_valid_to_its_end_is_one_row_of_nulls(source: Make, text: str) -> None:
    one = source({"multiLine": "true", HINTS: "id STRING, _corrupt_record STRING"}).put("a.json", text)
    assert one.run().last() == {"id": None, "_corrupt_record": text, "_rescued_data": None}
    assert source({"multiLine": "true", "mode": "DROPMALFORMED", HINTS: "id INT"}).put("a.json", text).run().batches[-1] == []
    source({"multiLine": "true", "mode": "FAILFAST", HINTS: "id INT"}).put("a.json", text).fails("MALFORMED_RECORD_IN_PARSING")


BEHIND = [
    '{"id":1},',
    '{"id":1};',
    '{"id":1} xyz',
    '{"id":1}{"id":2}',
    '{"id":1}}',
    '{"id":1} {',
    "{'id':1} x",
    '{"id":1}\0',
    '[{"id":1}] x',
]


@pytest.mark.parametrize("options", [{}, INFER, {"multiLine": "true"}, {"lineSep": "\n"}, {"lineSep": "|"}, {"encoding": "ISO-8859-1"}])
@pytest.mark.parametrize("text", BEHIND)
def test_FF30_the_first_value_of_a_line_or_document_is_read_and_what_follows_is_counted(
    source: Make, text: str, options: dict[str, str]
) -> None:
    inferred = source(options).put("a.json", text).run()
    given = source(options, "id BIGINT, _corrupt_record STRING").put("a.json", text).run()
    for one in (inferred, given):
        assert [int(row["id"]) for row in one.batches[-1]] == [1]
        assert one.marks == [1 + PASSED_OVER + UNRESCUED]
    assert given.rows("_corrupt_record") == [None]


def test_FF30_values_of_many_lines_with_text_behind_them(source: Make) -> None:
    lines = [
        '{"id":1,"v":{"a": 1} },',
        '{"id":"x"};',
        '{"id":3}',
        '[{"id":4},{"id":5}],[{"id":6}]',
        "[] x",
        'x {"id":7}',
        '{"id":8}\r{"id":9} .',
    ]
    text = "\n".join(lines).encode() + b'\n{"id":10} \xff\n{"id":11}\xff'
    one = source({**INFER, HINTS: "id BIGINT"}).put("a.json", text).run()
    assert one.rows("id") == [1, 10, 11, 3, 4, 5, 8, 9, None, None, None]
    assert [rescued(row["_rescued_data"]) for row in one.batches[-1] if row["id"] is None] == [
        {"id": "x"},
        {"_corrupt_record": "[] x"},
        {"_corrupt_record": 'x {"id":7}'},
    ]
    flags = sorted((abs(mark) % PASSED_OVER, mark > 0 and bool(mark & PASSED_OVER)) for mark in one.marks)
    assert flags == [(1, True), (2, True), (4, True), (5, False), (6, False), (7, True), (8, True), (9, True)]
    assert source({}).put("a.json", text).run().rows("v")[0] == '{"a": 1}'


def test_a_long_array_streams_and_takes_the_vectorised_path(source: Make) -> None:
    many = ",".join(f'{{"id":{n},"name":"n{n}"}}' for n in range(20_000))
    one = source({**INFER, "multiLine": "true"}).put("a.json", f"[{many}]").run()
    assert sum(row["id"] for row in one.batches[-1]) == 20_000 * 19_999 // 2


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("allowBackslashEscapingAnyCharacter", '{"v":"\\$1"}', "$1"),
        ("allowComments", '{"v":/* one */"x"} // two', "x"),
        ("allowNumericLeadingZeros", '{"v":007}', "007"),
        ("allowUnquotedControlChars", '{"v":"a\tb"}', "a\tb"),
        ("allowUnquotedFieldNames", '{v:"x"}', "x"),
    ],
)
def test_syntax_beyond_json_is_broken_unless_it_is_allowed(source: Make, option: str, text: str, value: str) -> None:
    for options in ({}, INFER):
        schema = {HINTS: "v STRING", **options}
        assert source({option: "true", **schema}).put("a.json", text + "\n").run().rows("v") == [value]
        refused = source(schema).put("a.json", text + "\n").run().last()
        assert (refused["v"], rescued(refused["_rescued_data"])) == (None, {"_corrupt_record": text})


@pytest.mark.parametrize(("option", "text"), [("allowSingleQuotes", "{'v':1}"), ("allowNonNumericNumbers", '{"v":NaN}')])
def test_syntax_that_is_taken_by_default_can_be_refused(source: Make, option: str, text: str) -> None:
    schema = t.StructType([t.StructField("v", t.DoubleType())])
    assert source({}, schema).put("a.json", text).run().rows("v") != [None]
    options = {option: "false", "rescuedDataColumn": "_r"}
    assert rescued(source(options, schema).put("a.json", text).run().last()["_r"]) == {"_corrupt_record": text}


def test_leading_zeros_are_numbers_where_they_are_allowed_and_valid_json_when_rescued(source: Make) -> None:
    one = source({**INFER, "allowNumericLeadingZeros": "true"}).put("a.json", '{"v":007}\n{"v":1}').run()
    assert (one.types()["v"], one.rows("v")) == ("bigint", [1, 7])
    one.put("b.json", '{"v":08.5}').run()
    assert rescued(one.last()["_rescued_data"]) == {"v": 8.5}


@pytest.mark.parametrize("codec", ["UTF-16LE", "utf-16", "UTF-16BE", "UTF-32", "ISO-8859-1", "windows-1252"])
@pytest.mark.parametrize("multi_line", ["false", "true"])
def test_other_charsets(source: Make, codec: str, multi_line: str) -> None:
    text = '{"v":"é","n":1}\n{"v":"ü","n":2}\n' if multi_line == "false" else '[{"v":"é","n":1},\n{"v":"ü","n":2}]'
    one = source({**INFER, "encoding": codec, "multiLine": multi_line}).put("a.json", text.encode(codec)).run()
    assert one.rows("n", "v") == [(1, "é"), (2, "ü")]


def test_utf_16_without_a_byte_order_mark_is_big_endian_as_in_java(source: Make) -> None:
    assert source({"charset": "UTF-16"}).put("a.json", '{"v":"é"}'.encode("utf-16-be")).run().rows("v") == ["é"]


def test_bytes_that_a_charset_does_not_have_break_their_record_only(source: Make) -> None:
    one = (
        source({"encoding": "UTF-16LE", **RESCUE}).put("a.json", '{"v":"x"}\n{"v":"'.encode("utf-16-le") + b"\0\xdc" + b'"\0}\0\n\0').run()
    )
    assert one.rows("v") == ["x", None]
    assert "_corrupt_record_base64" in rescued(next(row for row in one.batches[-1] if row["v"] is None)["_rescued_data"])


@pytest.mark.parametrize("separator", ["|", "\r\n", "\r", "##", "\u2028"])
def test_any_line_separator(source: Make, separator: str) -> None:
    records = ['{"v":1}', '{"v":\n2}', "", '{"v":3', '{"v":4}']
    one = source({**INFER, "lineSep": separator}).put("a.json", separator.join(records)).run()
    assert [row["v"] for row in one.batches[-1] if row["v"]] in ([1, 2, 4], [1, 4, 2])
    assert [rescued(row["_rescued_data"]) for row in one.batches[-1] if row["_rescued_data"]] == [{"_corrupt_record": '{"v":3'}]


def test_date_and_timestamp_patterns(source: Make) -> None:
    fields = [("d", t.DateType()), ("at", t.TimestampType()), ("ntz", t.TimestampNTZType())]
    options = {
        "dateFormat": "dd.MM.yyyy",
        "timestampFormat": "yyyy/MM/dd HH:mm",
        "timestampNTZFormat": "yyyyMMdd HHmm",
        "timeZone": "America/New_York",
        "rescuedDataColumn": "_r",
    }
    one = source(options, t.StructType([t.StructField(name, kind) for name, kind in fields]))
    one.put("a.json", '{"d":"01.03.2026","at":"2026/07/01 08:00","ntz":"20260701 0800"}\n{"d":"2026-03-01","at":"2026-07-01"}\n').run()
    rows = sorted(one.batches[-1], key=lambda row: row["d"] is None)
    assert (rows[0]["d"], rows[0]["at"], rows[0]["ntz"]) == (date(2026, 3, 1), datetime(2026, 7, 1, 12), datetime(2026, 7, 1, 8))
    assert rescued(rows[1]["_r"]) == {"d": "2026-03-01", "at": "2026-07-01"}


@pytest.mark.parametrize(
    ("options", "text", "types"),
    [
        ({"inferTimestamp": "true"}, '{"v":"2024-01-02T03:04:05Z"}', "timestamp"),
        ({"inferTimestamp": "true"}, '{"v":"2024-01-02"}', "timestamp"),
        ({"inferTimestamp": "true"}, '{"v":"2024-01-02"}\n{"v":"x"}', "string"),
        ({"inferTimestamp": "true"}, '{"v":"2024-01-02"}\n{"v":""}', "timestamp"),
        ({"inferTimestamp": "true", "timestampFormat": "dd.MM.yyyy"}, '{"v":"02.01.2024"}', "timestamp"),
        ({"prefersDecimal": "true"}, '{"v":1.5}', "decimal(2,1)"),
        ({"prefersDecimal": "true"}, '{"v":1.5}\n{"v":100}', "decimal(21,1)"),
        ({"prefersDecimal": "true"}, '{"v":0.001}', "decimal(3,3)"),
        ({"prefersDecimal": "true"}, '{"v":1e3}', "decimal(4,0)"),
        ({"prefersDecimal": "true"}, '{"v":1e50}', "double"),
        ({"prefersDecimal": "true"}, '{"v":NaN}', "double"),
        ({"prefersDecimal": "true"}, '{"v":"12.50"}', "decimal(4,2)"),
        ({"primitivesAsString": "true"}, '{"v":1}', "string"),
        ({"primitivesAsString": "true"}, '{"v":{"a":1,"b":[true]}}', "struct<a:string,b:array<string>>"),
        ({"dropFieldIfAllNull": "true"}, '{"v":1,"n":null,"e":[],"o":{"x":null}}', "bigint"),
        ({"allowNumericLeadingZeros": "true"}, '{"v":007}', "bigint"),
    ],
)
def test_options_of_inference(source: Make, options: dict[str, str], text: str, types: str) -> None:
    for filler in ("", '\n{"v":null}' * 50):
        one = source({**INFER, **options}).put("a.json", text + filler)
        assert one.types() == {"v": types, "_rescued_data": "string"}


def test_a_field_that_is_null_is_no_new_column_where_such_fields_are_dropped(source: Make) -> None:
    one = source({**INFER, "dropFieldIfAllNull": "true"}).put("a.json", '{"v":1}').run().put("b.json", '{"v":2,"n":null}').run()
    assert rescued(one.last()["_rescued_data"]) == {"n": None}


def test_wider_numbers_widen_their_columns_once_per_batch(source: Make) -> None:
    one = source(WIDEN).put("a.json", '{"id":1,"o":{"k":1},"l":[1],"s":"x"}').run()
    one.put("b.json", '{"id":1.5,"o":{"k":2.25},"l":[1,3.5]}\n{"id":"x","s":5}\n{"id":12345678901234567890123}\n{"id":2}')
    message = one.stops("NEW_FIELDS_AND_WIDENED_TYPES_IN_RECORD_WITH_FILE_PATH", '{"id":1.5,"o":{"k":2.25},"l":[3.5]}')
    assert "type changes" in message
    one.run()
    types = {"id": "decimal(24,1)", "o": "struct<k:decimal(22,2)>", "l": "array<decimal(21,1)>", "s": "string", "_rescued_data": "string"}
    assert one.types() == types
    assert one.log() == 1
    by_id = {row["id"]: row for row in one.batches[-1]}
    assert (by_id[Decimal("1.5")]["o"], by_id[Decimal("1.5")]["l"]) == ({"k": Decimal("2.25")}, [Decimal("1.0"), Decimal("3.5")])
    assert rescued(by_id[None]["_rescued_data"]) == {"id": "x"}
    assert Decimal(12345678901234567890123) in by_id


def test_numbers_that_no_allowed_type_takes_and_hinted_columns_are_rescued(source: Make) -> None:
    one = source({**WIDEN, HINTS: "h INT"}).put("a.json", '{"id":1,"h":1}').run()
    one.put("b.json", '{"id":1e60,"h":1.5}').run()
    assert rescued(one.last()["_rescued_data"]) == {"id": 1e60, "h": 1.5}
    assert one.log() == 0


def test_fractions_are_decimals_from_the_start_where_types_widen_and_texts_stay_texts(source: Make) -> None:
    one = source(WIDEN).put("a.json", '{"v":1.5,"zip":"01234"}\n')
    assert one.types() == {"v": "decimal(2,1)", "zip": "string", "_rescued_data": "string"}
    one.run().put("b.json", '{"v":10.25}').stops("NEW_FIELDS_AND_WIDENED_TYPES")
    assert one.run().rows("v") == [Decimal("1.5"), Decimal("10.25")]


def test_new_fields_under_another_spelling_are_found_when_case_does_not_count(source: Make) -> None:
    one = source({**INFER, "readerCaseSensitive": "false"}).put("a.json", '{"o":{"k":1}}').run()
    one.put("b.json", '{"O":{"m":2}}').stops(blob='{"o":{"m":2}}')
    assert one.run().last()["o"] == {"k": None, "m": 2}


def test_one_variant_column_holds_whole_records_as_text(source: Make) -> None:
    one = source({"singleVariantColumn": "v"})
    one.put("a.json", '{"b":1, "a":"x"}\n[{"c":1},{"c": 2}]\n[1,2]\n{"a":NaN}\n{\'a\':1}\nbroken\n7\n').run()
    assert one.types() == {"v": "variant"}
    found = one.rows("v")
    assert sorted(found) == sorted(['{"b":1, "a":"x"}', '[{"c":1},{"c": 2}]', "[1,2]", '{"a":"NaN"}', '{"a":1}', "broken", "7"])
    named = source({"singleVariantColumn": "v", "rescuedDataColumn": "_r"}).put("a.json", '{"a":1}\nbroken').run()
    assert sorted((row["v"], rescued(row["_r"]))[0] or "" for row in named.batches[-1]) == ["", '{"a":1}']
    assert rescued(next(row for row in named.batches[-1] if row["v"] is None)["_r"]) == {"_corrupt_record": "broken"}
    corrupt = source({"singleVariantColumn": "v", HINTS: "_corrupt_record STRING"}).put("a.json", '{"a":1}\nbroken').run()
    assert corrupt.rows("_corrupt_record", "v") == [("broken", None), (None, '{"a":1}')]


@pytest.mark.parametrize(("mode", "rows"), [("DROPMALFORMED", 1), ("PERMISSIVE", 2)])
def test_broken_records_of_a_variant_column_follow_the_mode(source: Make, mode: str, rows: int) -> None:
    one = source({"singleVariantColumn": "v", "mode": mode}).put("a.json", '{"a":1} [{"a":\n[{"a":').run()
    assert len(one.batches[-1]) == rows
    assert one.marks[0] == 1 + PASSED_OVER + UNRESCUED


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"])
def test_FF31_wide_encodings_are_recognised_by_the_first_bytes(source: Make, codec: str) -> None:
    lines, array = '{"n":1,"v":"\u010a é"}\r\n{"n":2,"v":"x"} ,\n', '[{"n":1,"v":"\u010a é"},\n{"n":2,"v":"x"}]'
    for text, options in ((lines, {}), (array, {"multiLine": "true"})):
        one = source({**INFER, **options}).put("a.json", text.encode(codec)).run()
        assert one.rows("n", "v") == [(1, "\u010a é"), (2, "x")]
        given = source(options, "n BIGINT, v STRING").put("a.json", text.encode(codec)).run()
        assert given.rows("n", "v") == [(1, "\u010a é"), (2, "x")]
    assert len(source({"singleVariantColumn": "v"}).put("a.json", lines.encode(codec)).run().rows("v")) == 2


@pytest.mark.parametrize("layout", [{}, {"multiLine": "true"}])
@pytest.mark.parametrize(("text", "value"), [('{"a":1} x', '{"a":1}'), ("[1, 2],3", "[1, 2]"), ('"s" x', '"s"'), ("1 x", "1")])
def test_FF30_a_variant_is_the_first_value(source: Make, text: str, value: str, layout: dict[str, str]) -> None:
    assert source({"singleVariantColumn": "v", **layout}).put("a.json", text).run().rows("v") == [value]


@pytest.mark.parametrize("record", ['{"a":1,"a":2}', '{"b":[{"a":1,"a":NaN}]}', "{'a':1,'a':2}"])
def test_a_record_with_a_key_twice_is_broken_where_it_is_one_variant(source: Make, record: str) -> None:
    one = source({"singleVariantColumn": "v", "rescuedDataColumn": "_r"}).put("a.json", f'{{"a":1}}\n{record}\n').run()
    assert sorted((row["v"], rescued(row["_r"])) for row in one.batches[-1] if row["v"]) == [('{"a":1}', None)]
    assert [rescued(row["_r"]) for row in one.batches[-1] if not row["v"]] == [{"_corrupt_record": record}]
    assert source({"singleVariantColumn": "v"}).put("a.json", record).run().rows("v") == [record]
    assert source({"singleVariantColumn": "v", "mode": "DROPMALFORMED"}).put("a.json", record).run().rows("v") == []


def test_a_value_with_a_key_twice_does_not_fit_a_variant_column(source: Make) -> None:
    one = source({**INFER, HINTS: "p VARIANT"}).put("a.json", '{"id":1,"p":{"a":1,"a":2}}\n{"id":2,"p":{"a":1}}\n').run()
    assert one.rows("id", "p") == [(1, None), (2, '{"a":1}')]
    assert [rescued(row["_rescued_data"]) for row in one.batches[-1] if row["id"] == 1] == [{"p": {"a": 2}}]


def test_a_variant_column_among_others(source: Make) -> None:
    one = source({**INFER, HINTS: "p VARIANT"}).put("a.json", '{"id":1,"p":{"a": [1,"x"]}}\n{"id":2,"p":"text"}\n{"id":3}\n').run()
    assert one.types()["p"] == "variant"
    assert one.rows("id", "p", "_rescued_data") == [(1, '{"a":[1,"x"]}', None), (2, '"text"', None), (3, None, None)]
    with pytest.raises(LakeletError, match="o"):
        source({**INFER, HINTS: "o STRUCT<v: VARIANT>"}).put("a.json", "{}").open()


BROKEN = '{"id":1,"v":"a"}\n{"id":2,"v":\n'


def test_R07_the_text_of_a_broken_line_goes_into_the_corrupt_column(source: Make) -> None:
    options = {HINTS: "_corrupt_record STRING", "columnNameOfCorruptRecord": "_corrupt_record"}
    one = source(options).put("a.json", BROKEN).run()
    assert one.rows("id", "v", "_corrupt_record", "_rescued_data") == [("1", "a", None, None), (None, None, '{"id":2,"v":', None)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_text_of_a_broken_line_has_no_line_end(source: Make, end: str) -> None:
    one = source({}, "id BIGINT, _corrupt_record STRING").put("a.json", end.join(['{"id":1}', '{"id":', '{"id":"x"}', ' {"id":2']) + end)
    assert set(one.run().rows("id", "_corrupt_record")) == {(1, None), (None, '{"id":'), (None, '{"id":"x"}'), (None, ' {"id":2')}


def test_R08_broken_lines_are_dropped_or_end_the_query_but_misfits_are_not(source: Make) -> None:
    schema = t.StructType([t.StructField("id", t.LongType()), t.StructField("v", t.StringType())])
    text = BROKEN + '{"id":"x","v":"c"}\n'
    kept = source({"mode": "DROPMALFORMED", "rescuedDataColumn": "_r"}, schema).put("a.json", text).run()
    assert kept.rows("id", "v") == [(1, "a"), (None, "c")]
    source({"mode": "FAILFAST", "rescuedDataColumn": "_r"}, schema).put("a.json", text).fails("line 2", "MALFORMED_RECORD_IN_PARSING")
    fine = source({"mode": "FAILFAST", "rescuedDataColumn": "_r"}, schema).put("a.json", text.replace(BROKEN, "")).run()
    assert rescued(fine.last()["_r"]) == {"id": "x"}


MISFITS = '{"id":1,"v":5,"m":{"k":1}}\n{"id":2,"v":"x"}\n{"id":3,"m":{"k":"y"}}\n{"id":4,"v":1,"v":2}\n{"id":5,"new":"z"}\n'


def test_FS35_without_a_rescued_column_a_value_that_does_not_fit_breaks_its_record(source: Make) -> None:
    number = t.IntegerType()
    fields = [("id", number), ("v", number), ("m", t.MapType(t.StringType(), number))]
    schema = t.StructType([t.StructField(name, kind) for name, kind in fields])
    kept = source({}, schema).put("a.json", MISFITS).run()
    rows = [(row["id"], row["v"], row["m"] and dict(row["m"])) for row in kept.batches[-1]]
    assert sorted(rows, key=repr) == [(1, 5, {"k": 1}), (2, None, None), (3, None, None), (4, 2, None), (5, None, None)]
    assert source({"mode": "DROPMALFORMED"}, schema).put("a.json", MISFITS).run().rows("id") == [1, 4, 5]
    source({"mode": "FAILFAST"}, schema).put("a.json", MISFITS).fails("line 2", "MALFORMED_RECORD_IN_PARSING", '{"id":2,"v":"x"}')
    corrupt = source({}, t.StructType([*schema.fields, t.StructField("_corrupt_record", t.StringType())])).put("a.json", MISFITS).run()
    assert [(row["id"], row["_corrupt_record"]) for row in corrupt.batches[-1] if row["_corrupt_record"]] == [
        (2, '{"id":2,"v":"x"}'),
        (3, '{"id":3,"m":{"k":"y"}}'),
    ]


def test_the_open_points_of_broken_lines_and_nested_texts_have_switches(source: Make) -> None:
    text = '{"o":{ "k" : [1, 2] }}\n{"o":'
    one = source({}).put("a.json", text).run()
    assert one.rows("o") == ['{ "k" : [1, 2] }', None]
    other = source({"nestedText": "compact", "rescueBrokenLines": "false"}).put("a.json", text).run()
    assert other.rows("o", "_rescued_data") == [('{"k":[1,2]}', None), (None, None)]


def test_R11_only_the_misfit_leaf_of_a_struct_is_rescued(source: Make) -> None:
    one = source(INFER).put("a.json", '{"o":{"x":1,"y":2}}').run().put("b.json", '{"o":{"x":"q","y":3}}').run()
    assert one.last()["o"] == {"x": None, "y": 3}
    assert rescued(one.last()["_rescued_data"], "b.json") == {"o": {"x": "q"}}


def test_R14_the_rescued_column_can_have_another_name(source: Make) -> None:
    one = source({**INFER, "rescuedDataColumn": "_bad"}).put("a.json", '{"id":1,"v":1}').run().put("b.json", '{"id":"x","v":2}').run()
    row = one.last()
    assert (row["id"], row["v"], rescued(row["_bad"])) == (None, 2, {"id": "x"})
    assert "_rescued_data" not in row


def test_every_value_is_found_again_whatever_the_layout(source: Make) -> None:
    records = [{"id": n, "o": {"k": "x" * (n % 5)}, "l": [n, n + 0.5]} for n in range(200)]
    lines = "\n".join(json.dumps(record) for record in records)
    layouts = [({}, lines), ({"multiLine": "true"}, json.dumps(records, indent=1)), ({"lineSep": ";"}, lines.replace("\n", ";"))]
    found = []
    for options, text in layouts:
        one = source({**INFER, **options}).put("a.json", text).run()
        found.append((one.types(), one.rows("id", "o", "l", "_rescued_data")))
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) == 200


BROKEN_FILES = {
    "junk": (b"[\nnope\n", {}, "line 1: '['"),
    "scalar": (b"5\n", {}, "neither an object nor an array of objects"),
    "latin": (
        b'{"id":1,"name":"Fran\xe7ois"}\n',
        {},
        'line 1, column name: the byte 0xE7 is not UTF-8. It looks like ISO-8859-1: .option("encoding"',
    ),
    "quotes": (b'{"id":1,"name":"\x93x\x94"}\n', {}, "It looks like windows-1252"),
    "wide": ('{"id":1}\n'.encode("utf-16"), {"encoding": "UTF-8"}, "it is not UTF-8. It looks like UTF-16LE"),
    "cut": (b'[{"id":1},\n{"id":', {"multiLine": "true"}, "record 1: "),
}


@pytest.mark.parametrize("name", sorted(BROKEN_FILES))
def test_FF33_where_every_record_is_broken_the_error_shows_the_first_and_why(source: Make, name: str) -> None:
    content, options, told = BROKEN_FILES[name]
    with pytest.raises(LakeletError, match="every record of the files of") as failure:
        source(options).put("a.json", content).open().schema()
    assert failure.value.code == "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE"
    assert "/a.json" in (failure.value.why or "")
    assert told in (failure.value.why or "")


@pytest.mark.parametrize(("options", "place"), [({}, "line 4"), ({"multiLine": "true"}, "record 2")])
def test_places_of_records_are_lines_or_say_that_they_are_records(source: Make, options: dict[str, str], place: str) -> None:
    text = '{"id":1}\n\n\n{"id":2 "x"}\n' if not options else '[{"id":1},\n\n\n{"id":2,"n":"x"}]'
    schema = t.StructType([t.StructField("id", t.IntegerType())])
    evolving = {**options, "cloudFiles.schemaEvolutionMode": "failOnNewColumns"}
    wrong = text.replace('2 "x"', '2,"n":"x"')
    source(evolving, schema).put("a.json", wrong).fails(f"a.json, {place}", "UNKNOWN_FIELD_EXCEPTION")
    if not options:
        source({"mode": "FAILFAST"}, schema).put("a.json", text).fails(f"a.json, {place}: a record is broken")


@pytest.mark.parametrize("number", ["1e400", "-1E+400", "1" + "0" * 310, "1e39"])
@pytest.mark.parametrize("options", [INFER, {"multiLine": "true", **INFER}])
def test_FF34_a_number_beyond_its_type_is_infinite(source: Make, number: str, options: dict[str, str]) -> None:
    text = f'{{"x":{number}}}'
    for kind, value in ((t.DoubleType(), float(number)), (t.FloatType(), math.copysign(math.inf, float(number)))):
        given = source(options, t.StructType([t.StructField("x", kind)])).put("a.json", text).run()
        assert given.rows("x") == [value]
    assert source(options).put("a.json", text).types()["x"] == "double"
    assert source(options).put("a.json", text).run().rows("x", "_rescued_data") == [(float(number), None)]
    assert source({}).put("a.json", text).run().rows("x") == [number]
    assert source({**options, HINTS: "x DECIMAL(38,0)"}).put("a.json", text).run().rows("x") == [None]


CORRUPT = "_corrupt_record STRING"


def kept(program: Program, *names: str) -> list[tuple[Any, ...]]:
    """These columns of the rows in the order of `id`, and whether the row is in the column for broken records."""
    rows = [row for batch in program.run().batches for row in batch]
    return [(*(row[name] for name in names), row["_corrupt_record"] is not None) for row in sorted(rows, key=lambda row: str(row["id"]))]


@pytest.mark.parametrize("number", ["INF", "Inf", "-Inf", "+Inf", "-NaN", "+NaN"])
def test_FF38_other_words_than_those_of_spark_are_no_numbers(source: Make, number: str) -> None:
    records = ('{"id":1,"d":2.5}', f'{{"id":2,"d":{number}}}', '{"id":3,"s":"a, Inf, b"}')
    lines = source({}, "id INT,d DOUBLE,s STRING," + CORRUPT).put("a.json", "\n".join(records))
    assert kept(lines, "id", "d", "s") == [(1, 2.5, None, False), (3, None, "a, Inf, b", False), (None, None, None, True)]
    document = source({"multiLine": "true"}, "id INT,d DOUBLE").put("a.json", f"[{','.join(records)}]").run()
    assert document.rows("id") == [None]
    assert source(INFER).put("a.json", f'{{"id":1}}\n{{"d":{number}}}\n').types() == {"id": "bigint", "_rescued_data": "string"}
    assert kept(source({}, "id INT,d DOUBLE," + CORRUPT).put("a.json", f'{{"id":1,"d":"{number}"}}'), "id", "d") == [(1, None, True)]


def test_FF38_the_words_of_spark_are_numbers_bare_and_quoted(source: Make) -> None:
    words = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf, "+INF": math.inf, "-INF": -math.inf}
    for word, number in words.items():
        text = f'{{"id":1,"d":{word}}}\n{{"id":2,"d":"{word}"}}\n'
        found = source({}, "id INT,d DOUBLE").put("a.json", text).run().rows("d")
        assert list(map(repr, found)) == [repr(number)] * 2, word
        assert source({}, "id INT,d STRING").put("a.json", text).run().rows("d") == [word] * 2
        assert source(INFER).put("a.json", f'{{"d":[{word}]}}').types()["d"] == "array<double>"


MISFITS_INSIDE = {  # type of the column → (JSON, value without a rescued column, value with one)
    "array<bigint>": ('[1,"x",3]', None, [1, None, 3]),
    "array<date>": ('["2024-13-01"]', None, [None]),
    "array<array<int>>": ('[[1,"x"],[3]]', None, [[1, None], [3]]),
    "array<struct<k:int,j:int>>": ('[{"k":"x","j":1},{"k":2}]', [{"k": None, "j": 1}, {"k": 2, "j": None}], ...),
    "array<struct<k:int>>": ('[1,{"k":2}]', None, [None, {"k": 2}]),
    "struct<a:array<int>,j:int>": ('{"a":[1,"x"],"j":1}', {"a": None, "j": 1}, {"a": [1, None], "j": 1}),
    "map<string,bigint>": ('{"p":"q","r":2}', None, {"p": None, "r": 2}),
    "map<string,int>": ('{"p":"q","p":2}', None, {"p": 2}),
    "map<string,array<int>>": ('{"p":[1,"x"],"q":[3]}', None, {"p": [1, None], "q": [3]}),
    "map<string,struct<k:int,j:int>>": ('{"p":{"k":"x","j":1}}', {"p": {"k": None, "j": 1}}, ...),
    "array<map<string,int>>": ('[{"p":1},{"p":"x"}]', None, [{"p": 1}, {"p": None}]),
}


@pytest.mark.parametrize("kind", MISFITS_INSIDE)
def test_FF39_an_array_or_map_with_an_element_that_does_not_fit(source: Make, kind: str) -> None:
    text, alone, beside_rescued = MISFITS_INSIDE[kind]
    fields = [t.StructField("id", t.IntegerType()), t.StructField("v", parse_hints(f"v {kind}")["v"]), t.StructField("z", t.IntegerType())]
    line = f'{{"id":1,"v":{text},"z":5}}\n'
    with_corrupt = t.StructType([*fields, t.StructField("_corrupt_record", t.StringType())])
    assert kept(source({}, with_corrupt).put("a.json", line), "v", "z") == [(alone, 5, True)]
    one = source({"rescuedDataColumn": "_r"}, t.StructType(fields)).put("a.json", line).run()
    (row,) = one.batches[-1]
    assert (row["v"], row["z"]) == (alone if beside_rescued is ... else beside_rescued, 5)
    assert "v" in rescued(row["_r"])


BASE64 = {"YQ==": b"a", "ab\\/d": b"i\xbf\xdd", "": b"", "YQ==YWI=": b"aab", " YWJj \\n YWJj ": b"abcabc", "YR==": b"a"}
NO_BASE64 = ["a", "ab", "YQ", "YQ=", "YW Jj", "YQ= =", "a-_b", "YWJj*", "=", "h\u00e9"]


def test_FF47_a_binary_column_takes_base64_and_any_other_text_does_not_fit(source: Make) -> None:
    text = "".join(f'{{"id":1,"b":"{value}","z":5}}\n' for value in [*BASE64, *NO_BASE64])
    fields = [t.StructField("id", t.IntegerType()), t.StructField("b", t.BinaryType()), t.StructField("z", t.IntegerType())]
    with_corrupt = t.StructType([*fields, t.StructField("_corrupt_record", t.StringType())])
    whole, broken = [(value, 5, False) for value in BASE64.values()], [(None, 5, True)] * len(NO_BASE64)
    assert sorted(kept(source({}, with_corrupt).put("a.json", text), "b", "z"), key=repr) == sorted(whole + broken, key=repr)
    one = source({"rescuedDataColumn": "_r"}, t.StructType(fields)).put("b.json", text).run()
    assert [rescued(row["_r"])["b"] for row in one.batches[-1] if row["b"] is None] == NO_BASE64


def test_FF48_prefersDecimal_counts_the_digits_of_a_number_without_its_exponent(source: Make) -> None:
    numbers = {"1e2": "decimal(3,0)", "1.5E1": "decimal(2,0)", "15e-1": "decimal(2,1)", "-2.5e3": "decimal(4,0)", "1e40": "double"}
    numbers |= {"1e-400": "double", "NaN": "double", "-Infinity": "double"}
    numbers |= {'"12.50"': "decimal(4,2)", '"1,5"': "decimal(2,0)", '"1e2"': "string", '"0.05"': "string", '"1e40"': "string"}
    line = "{" + ",".join(f'"{chr(97 + at)}":{number}' for at, number in enumerate(numbers)) + "}\n"
    found = source({**INFER, "prefersDecimal": "true"}).put("a.json", line).open().schema()
    assert [field.dataType.simpleString() for field in found.fields[: len(numbers)]] == list(numbers.values())


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("Asia/Kolkata", -5.5), ("America/New_York", 4), ("+05:30", -5.5)])
def test_FF49_years_that_datetime_does_not_have_are_read_in_any_time_zone(zone: str, hours: float) -> None:
    for year in (2025, 12025, 292_025):  # the same calendar and the same rules of the zone
        days = (year - 2025) // 400 * 146_097 + (date(2025, 7, 1) - date(1970, 1, 1)).days
        assert timestamp_micros(f"{year}-07-01", zone) == days * 86_400_000_000 + int(hours * 3_600_000_000)
    assert timestamp_micros("-0044-03-15", zone) is not None


@pytest.mark.parametrize("options", [{}, {"timestampFormat": "y-MM-dd", "timestampNTZFormat": "y-MM-dd", "dateFormat": "y-MM-dd"}])
@pytest.mark.parametrize("kind", [t.TimestampType(), t.TimestampNTZType(), t.DateType()])
def test_FF49_a_moment_or_day_beyond_its_type_does_not_fit(source: Make, options: dict[str, str], kind: t.DataType) -> None:
    late = "999999-01-01" if kind != t.DateType() else "9999999999-01-01"
    schema = t.StructType([t.StructField("v", kind)])
    one = source({"rescuedDataColumn": "_r", **options}, schema).put("a.json", f'{{"v":"2024-07-01"}}\n{{"v":"{late}"}}\n').run()
    assert [rescued(row["_r"]) for row in one.batches[-1] if row["v"] is None] == [{"v": late}]
    assert len(one.batches[-1]) == 2


@pytest.mark.parametrize("options", [{}, {"lineSep": "\n"}, {"lineSep": "|"}, {"encoding": "ISO-8859-1"}, {"encoding": "UTF-16LE"}])
def test_FF50_the_text_of_a_broken_record_keeps_its_blanks(source: Make, options: dict[str, str]) -> None:
    codec = options.get("encoding", "utf-8").lower()
    content = options.get("lineSep", "\n").join(['  {"id":1} ', ' {"id": ', "\t] "])
    one = source(options, "id INT," + CORRUPT).put("a.json", content.encode(codec)).run()
    assert one.rows("id", "_corrupt_record") == [(1, None), (None, ' {"id": '), (None, "\t] ")]


def test_a_document_with_NaN_where_it_is_not_allowed_is_broken_as_a_whole(source: Make) -> None:
    for text in ('{"id":1,"d":NaN}\n{"id":2}', '[{"id":1},{"id":2,"d":-Infinity}]'):
        one = source({"multiLine": "true", "allowNonNumericNumbers": "false"}, "id INT," + CORRUPT).put("a.json", text).run()
        assert one.rows("id", "_corrupt_record")[-1] == (None, text)


def test_PA3_a_byte_that_is_not_of_the_charset_is_one_replacement_character(source: Make) -> None:
    cases = [({}, b"\xe9"), ({"lineSep": "\r"}, b"\xe9"), ({"encoding": "US-ASCII"}, b"\xe9"), ({"encoding": "windows-1252"}, b"\x81")]
    for at, (options, byte) in enumerate(cases):
        end = options.get("lineSep", "\n").encode()
        line = b'{"id":2,"s":"a' + byte + b'"}'
        one = source({**options}, "id INT,s STRING," + CORRUPT).put(f"{at}.json", b'{"id":1}' + end + line + end).run()
        assert '{"id":2,"s":"a\ufffd"}' in one.rows("_corrupt_record"), options
        two = source({**options, "rescuedDataColumn": "_r"}, "id INT,s STRING").put(f"{at}.json", line).run()
        assert base64.b64decode(rescued(two.batches[-1][0]["_r"])["_corrupt_record_base64"]) == line, options


def test_FF40_half_of_a_surrogate_pair_is_a_question_mark_and_no_name(source: Make) -> None:
    lines = [r'"\ud800"', r'"a\udc00b"', r'"\udc00\ud800"', r'"\ud800\ud83d\ude00"', r'"\uD83D\u0041"', r'["\ud800"]', r'"\\ud800"']
    text = "".join(f'{{"id":{at},"s":{value}}}\n' for at, value in enumerate(lines))
    broken = r'{"id":8,"\ud800":1}' + "\n" + r'{"id":9,"s":{"k\udc00":1}}' + "\n"
    whole = [(value, False) for value in ("?", "a?b", "??", "?\U0001f600", "?A", r'["\ud800"]', r"\ud800")]
    assert kept(source({}, "id INT,s STRING," + CORRUPT).put("a.json", text + broken), "s") == [*whole, (None, True), (None, True)]
    document = f"[{','.join(text.splitlines())}]"
    assert kept(source({"multiLine": "true"}, "id INT,s STRING," + CORRUPT).put("a.json", document), "s") == whole
    inferred = source(INFER).put("a.json", r'{"s":["\ud800"],"n":1}' + "\n" + r'{"n":"\ud800"}').run()
    assert sorted(inferred.rows("s", "n"), key=repr) == [(None, "?"), (["?"], "1")]
    misfit = source({"rescuedDataColumn": "_r"}, "n INT").put("a.json", r'{"n":"\ud800"}').run()
    assert [(row["n"], rescued(row["_r"])) for row in misfit.batches[-1]] == [(None, {"n": "?"})]


def test_FF41_a_text_with_a_broken_escape_breaks_its_record(source: Make) -> None:
    text = r'{"id":1,"s":"\u12","z":4}' + "\n" + r'{"id":2,"s":"a\db"}' + "\n"
    assert kept(source({}, "id INT,s STRING,z INT," + CORRUPT).put("a.json", text), "id", "s", "z") == [(None, None, None, True)] * 2


@pytest.mark.parametrize("multi_line", ["false", "true"])
def test_FF42_columns_are_found_in_arrays_that_are_no_records(source: Make, multi_line: str) -> None:
    def types(*lines: str) -> dict[str, str]:
        one = source({**INFER, "multiLine": multi_line})
        for at, line in enumerate(lines):
            one.put(f"{at}.json", line)
        return {name: kind for name, kind in one.types().items() if name != "_rescued_data"}

    assert types('[null,{"id":1,"s":"x"}]') == {"id": "bigint", "s": "string"}
    assert types('[{"id":1},null]', "[]", "null") == {"id": "bigint"}
    assert types('[[{"id":1}],null,[],[{"s":"x"}]]') == {"id": "bigint", "s": "string"}
    assert types('[[[{"id":1}]]]', "[[null]]") == {"id": "bigint"}
    for mixed in ('[[{"a":1}],{"b":1}]', '[1,{"a":1}]', '["x",{"a":1}]', '[[{"a":1}],[[{"b":1}]]]', "[[1]]", "5"):
        assert types('{"q":1}', mixed) == {"q": "bigint"}, mixed
    one = source({**INFER, "multiLine": multi_line}).put("a.json", '[null,{"id":1}]').run()
    assert one.rows("id") == [None]


def test_FF35_a_repeated_key_has_the_type_of_all_its_values_and_the_last_one(source: Make) -> None:
    one = source(INFER).put("a.json", '{"a":1,"a":2.5,"o":{"k":1,"k":"x"},"b":1,"B":2}\n').run()
    assert {name: one.types()[name] for name in ("a", "o", "b")} == {"a": "double", "o": "struct<k:string>", "b": "bigint"}
    (row,) = one.batches[-1]
    assert (row["a"], row["o"], row["b"]) == (2.5, {"k": "x"}, 1)
    assert rescued(row["_rescued_data"]) == {"a": 1, "o": {"k": 1}, "B": 2}
    given = source({"rescuedDataColumn": "_r"}, "a BIGINT").put("a.json", '{"a":1,"a":2}\n').run()
    assert [(row["a"], rescued(row["_r"])) for row in given.batches[-1]] == [(2, {"a": 1})]


DATETIMES = {  # text → what Spark 4.2 makes of it as TIMESTAMP in UTC; None: nothing
    "2024": (2024, 1, 1),
    "2024-1": (2024, 1, 1),
    "2024-01": (2024, 1, 1),
    "2024-1-2": (2024, 1, 2),
    "2024-01-02 ": (2024, 1, 2),
    "2024-1-2 3:4:5": (2024, 1, 2, 3, 4, 5),
    "2024-01-02T12": (2024, 1, 2, 12),
    "2024-01-02T12:3": (2024, 1, 2, 12, 3),
    "2024-01-02T12:30:15+2": (2024, 1, 2, 10, 30, 15),
    "2024-01-02T12:30:15GMT+2": (2024, 1, 2, 10, 30, 15),
    "+2024-01-02": (2024, 1, 2),
    **dict.fromkeys(["2024-01-02T", "20240102", "2024-02-30", "2024-13-01", "2024-01-02T12:30:15,5", "2024-01-02 24:00:00", "now", "970"]),
    **dict.fromkeys(["12:30Z", "24:00", "12:60", "12", "12:30:61", "2024/01/02", "2024-01-02 12:30 UTC"]),
}
TIMES_OF_DAY = ["12:30", "12:30:15", "12:30:15.5", "1:2", "T12:30", "T12", " 12:30"]


def test_FF37_a_time_of_day_is_no_timestamp_and_other_short_texts_are_as_in_spark(source: Make) -> None:
    schema = t.StructType([t.StructField("at", t.TimestampType())])
    lines = "".join(json.dumps({"at": text}) + "\n" for text in [*DATETIMES, *TIMES_OF_DAY])
    one = source({"rescuedDataColumn": "_r"}, schema).put("a.json", lines).run()
    found = {rescued(row["_r"])["at"]: row["at"] for row in one.batches[-1] if row["_r"]}
    assert found == dict.fromkeys([*TIMES_OF_DAY, *(text for text, value in DATETIMES.items() if value is None)])
    assert sorted(row["at"] for row in one.batches[-1] if row["at"]) == sorted(datetime(*value) for value in DATETIMES.values() if value)
    for text in TIMES_OF_DAY:
        inferred = source({**INFER, "inferTimestamp": "true"}).put("a.json", json.dumps({"at": text}))
        assert inferred.types()["at"] == "string"
