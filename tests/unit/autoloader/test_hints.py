"""Schema hints on columns, on fields inside them, and against each other (FS-12 to FS-17; cases H01 to H05)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from autoloading import INFER, Program, rescued
from lakelet.autoloader.schema_hints import apply_hints, parse_hints
from lakelet.base.errors import LakeletError

HINTS = "cloudFiles.schemaHints"
Make = Callable[..., Program]


@pytest.fixture
def source(tmp_path: Path) -> Make:
    def make(options: dict[str, str], schema: Any = None) -> Program:
        return Program(tmp_path / "in", tmp_path, options, schema)

    return make


def hinted(schema: str, hints: str) -> str:
    return str(
        apply_hints(apply_hints(t.StructType([]), parse_hints(schema)), parse_hints(hints)).simpleString().removeprefix("struct<")[:-1]
    )


@pytest.mark.parametrize(
    ("schema", "hints", "result"),
    [
        ("u STRUCT<dob: STRING, id: STRING>", "u.dob DATE", "u:struct<dob:date,id:string>"),
        ("u STRUCT<dob: STRING, id: STRING>", "U.DOB DATE", "U:struct<DOB:date,id:string>"),
        ("id STRING", "id BIGINT NOT NULL, tags array<string> not null", "id:bigint,tags:array<string>"),
        ("u STRUCT<id: STRING>", "u.dob DATE", "u:struct<id:string,dob:date>"),
        ("l ARRAY<STRUCT<id: STRING>>", "l.element.id INT", "l:array<struct<id:int>>"),
        ("l ARRAY<STRING>", "l.element INT", "l:array<int>"),
        ("l ARRAY<ARRAY<STRING>>", "l.element.element INT", "l:array<array<int>>"),
        ("m STRUCT<a: BIGINT, b: BIGINT>", "m.value DOUBLE", "m:map<string,double>"),
        ("m STRUCT<a: BIGINT, b: BIGINT>", "m.key INT", "m:map<int,bigint>"),
        ("m STRUCT<a: BIGINT, b: STRING>", "m.key INT", "m:map<int,string>"),
        ("m STRUCT<key: BIGINT, value: STRING>", "m.key INT", "m:struct<key:int,value:string>"),
        ("m STRUCT<a: STRUCT<c: STRING>>", "m.value.c INT", "m:map<string,struct<c:int>>"),
        ("m MAP<STRING, STRING>", "m.value INT", "m:map<string,int>"),
        ("m STRING", "m.key INT, m.value DATE", "m:map<int,date>"),
        ("s STRING", "s.a INT, s.b.c DATE", "s:struct<a:int,b:struct<c:date>>"),
        ("x STRING", "prices.value INT", "x:string,prices:map<string,int>"),
        ("x STRING", "d.value.content STRING", "x:string,d:map<string,struct<content:string>>"),
        ("`a.b` STRING", "`a.b` INT", "a.b:int"),
        ("x STRING", "`a.b`.c INT", "x:string,a.b:struct<c:int>"),
        ("u STRUCT<a: INT>", "u STRING", "u:string"),
        ("u STRUCT<a: STRING>", "u MAP<STRING,STRING>", "u:map<string,string>"),
    ],
)
def test_a_hint_changes_the_type_it_names_and_nothing_else(schema: str, hints: str, result: str) -> None:
    assert hinted(schema, hints) == result


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a INT, A STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a.b INT, a.B STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a STRUCT<b: INT>, a.b STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a.b STRING, a STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a ARRAY<INT>, a.element STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a.element INT, a.b STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a.b INT, a.element STRING", "CF_INVALID_SCHEMA_HINT_COLUMN"),
        ("a. INT", "CF_INVALID_SCHEMA_HINTS_OPTION"),
        (".a INT", "CF_INVALID_SCHEMA_HINTS_OPTION"),
        ("a INT b", "CF_INVALID_SCHEMA_HINTS_OPTION"),
        ("a, b INT", "CF_INVALID_SCHEMA_HINTS_OPTION"),
    ],
)
def test_hints_that_do_not_parse_or_contradict_each_other_are_refused(text: str, code: str) -> None:
    with pytest.raises(LakeletError) as caught:
        parse_hints(text)
    assert caught.value.code == code


def test_H01_hints_for_columns_fields_and_a_map(source: Make) -> None:
    one = source({**INFER, HINTS: "date DATE, u.dob DATE, po MAP<STRING,STRING>, time TIMESTAMP"})
    one.put("a.json", '{"date":"2024-01-02","u":{"id":"1","dob":"2000-02-03"},"po":{"k":"v"}}\n').run()
    assert one.types() == {
        "date": "date", "u": "struct<dob:date,id:string>", "po": "map<string,string>", "time": "timestamp", "_rescued_data": "string",
    }  # fmt: skip
    row = one.last()
    assert (row["date"], row["u"], row["po"], row["time"]) == (date(2024, 1, 2), {"dob": date(2000, 2, 3), "id": "1"}, {"k": "v"}, None)


def test_H02_hints_for_the_elements_of_arrays(source: Make) -> None:
    one = source({**INFER, HINTS: "p ARRAY<INT>, us.element.id INT"}).put("a.json", '{"p":["1"],"us":[{"id":"1","n":"x"}]}\n').run()
    assert one.types() == {"p": "array<int>", "us": "array<struct<id:int,n:string>>", "_rescued_data": "string"}


def test_H03_a_hinted_column_that_arrives_later_does_not_stop_the_stream(source: Make) -> None:
    one = source({HINTS: "later STRING"}).put("a.json", '{"id":1}').run().put("b.json", '{"id":2,"later":"y"}').run()
    assert one.rows("id", "later") == [("1", None), ("2", "y")]
    assert one.log() == 0


def test_H04_H05_misfits_of_a_hinted_type_are_rescued_and_a_schema_makes_hints_void(source: Make, tmp_path: Path) -> None:
    one = source({HINTS: "id BIGINT"}).put("a.json", '{"id":"abc","v":"1"}\n').run()
    assert (one.last()["id"], one.last()["v"], rescued(one.last()["_rescued_data"])) == (None, "1", {"id": "abc"})
    other = Program(tmp_path / "other", tmp_path / "o", {HINTS: "id STRING"}, "id INT").put("a.json", '{"id":1}\n').run()
    assert other.last() == {"id": 1}


def test_a_hint_below_a_column_of_json_text_makes_it_a_struct_and_rescues_the_rest(source: Make) -> None:
    one = source({HINTS: "u.dob DATE"}).put("a.json", '{"id":1,"u":{"dob":"2000-02-03","name":"x","o":{"k":1}}}\n').run()
    assert one.types() == {"id": "string", "u": "struct<dob:date>", "_rescued_data": "string"}
    assert one.last()["u"] == {"dob": date(2000, 2, 3)}
    assert rescued(one.last()["_rescued_data"]) == {"u": {"name": "x", "o": {"k": 1}}}


def test_source_text_is_kept_below_hinted_structs_without_types(source: Make) -> None:
    one = source({HINTS: "u STRUCT<o: STRING>"}).put("a.json", '{"u":{"o":{ "k" : [1] }}}\n').run()
    assert one.last()["u"] == {"o": '{ "k" : [1] }'}


def test_keys_of_a_hinted_map_have_their_type(source: Make) -> None:
    one = source({**INFER, HINTS: "m.key INT, d MAP<DATE,BIGINT>"})
    one.put("a.json", '{"m":{"1":2,"x":3,"1":4},"d":{"2024-01-02":1}}\n').run()
    assert one.last()["m"] == {1: 4}
    assert one.last()["d"] == {date(2024, 1, 2): 1}
    assert rescued(one.last()["_rescued_data"]) == {"m": {"1": 2, "x": 3}}
    with pytest.raises(LakeletError, match="map<struct"):
        source({HINTS: "m.key.id INT"}).open()


def test_new_fields_beside_a_hinted_one_still_grow_an_inferred_struct(source: Make) -> None:
    one = source({**INFER, HINTS: "u.dob DATE"}).put("a.json", '{"u":{"dob":"2000-02-03"}}').run()
    one.put("b.json", '{"u":{"dob":"2000-02-03","n":1}}').stops(blob='{"u":{"n":1}}')
    assert one.run().types()["u"] == "struct<dob:date,n:bigint>"


def test_changed_hints_are_applied_to_the_stored_schema_as_a_new_version(source: Make) -> None:
    one = source({**INFER, HINTS: "id INT"}).put("a.json", '{"id":1,"o":{"k":1}}').run()
    one.options[HINTS] = "id BIGINT, o.k INT"
    assert one.run().types() == {"id": "bigint", "o": "struct<k:int>", "_rescued_data": "string"}
    assert one.log() == 1


def test_two_spellings_in_a_sample_are_one_column_and_the_hinted_one_wins(source: Make) -> None:
    one = source({**INFER, HINTS: "PORT STRING"}).put("a.json", '{"port":1}\n{"Port":"x"}\n{"PORT":"y"}\n').run()
    assert one.types() == {"PORT": "string", "_rescued_data": "string"}
    assert one.rows("PORT") == ["y", None, None]
    assert [rescued(row["_rescued_data"]) for row in one.batches[-1] if row["PORT"] is None] == [{"port": 1}, {"Port": "x"}]
    folded = t.StructType([t.StructField("PORT", t.StringType())])
    assert apply_hints(folded, {}).simpleString() == "struct<PORT:string>"


def test_hints_within_three_quotation_marks_of_sql_are_refused_with_the_setting_that_takes_them() -> None:
    with pytest.raises(LakeletError, match="CF_INVALID_SCHEMA_HINTS_OPTION") as refused:
        parse_hints('"id STRING, amount DOUBLE"')
    assert "spark.sql.legacy.consecutiveStringLiterals.enabled" in (refused.value.todo or "")
    with pytest.raises(LakeletError, match="is not understood"):
        parse_hints("'my column' STRING")
