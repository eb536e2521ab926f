"""Texts as structs, without Spark: `autoloader.json_columns` (docs/semantics/json-columns.md)."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, DateType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from lakelet.autoloader.evolving_from_json import JsonCall, JsonColumn, JsonTexts, UnknownJsonFields, changes_since
from lakelet.autoloader.formats.json.inferred_types import merge
from lakelet.base.errors import LakeletError, Location

WHERE = Location("p.py", 1)
SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("name", StringType()),
        StructField("at", StructType([StructField("x", DoubleType()), StructField("day", DateType())])),
        StructField("value", ArrayType(LongType())),
        StructField("t", TimestampType()),
        StructField("_rescued_data", StringType()),
    ]
)
TEXTS = (
    *(None, "", " ", "{}", "[]", "null", "12", '"text"', "{broken", '{"id": 1} {"id": 2}', "[1, 2]", '[{"id": 1}]', '{"value": [3]}'),
    *('{"id": 1, "name": "a"}', '{"id": "x", "name": {"k":  1}}', '{"id": 1,\n "name": "b"}', '{"id":\r1}', '{"id": 1, "id": 2}'),
    *('{"at": {"x": 1, "day": "2024-05-01"}}', '{"at": {"x": "no"}}', '{"at": 5}', '{"t": "2024-05-01T10:00:00Z"}'),
    *('{"t": "never"}', '{"ID": 7}'),
)  # fmt: skip


def call(**options: Any) -> JsonCall:
    return JsonCall.of({"schemaLocationKey": "docs", **options}, {}, WHERE)


def texts(schema: StructType = SCHEMA, **options: Any) -> JsonTexts:
    return JsonTexts(call(**options).reader, "docs", schema)


def structs(reader: JsonTexts, chosen: Sequence[str | None]) -> list[Any]:
    return list(reader.read(pa.array(chosen, pa.string()))[0].to_pylist())


def new_fields(reader: JsonTexts, *chosen: str) -> Any:
    return reader.read(pa.array(chosen))[1]


@functools.cache
def alone(text: str | None) -> Any:
    return structs(texts(), [text])[0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), max_size=8))
def test_JC2_a_text_gives_the_same_struct_alone_and_among_others(chosen: list[str | None]) -> None:
    together = structs(texts(), chosen)
    assert together == [alone(text) for text in chosen]
    assert [struct is None for struct in together] == [text is None or not text.strip() for text in chosen]


def test_JC2_nothing_of_a_text_is_lost() -> None:
    found = dict(zip(TEXTS, structs(texts(), TEXTS), strict=True))
    rescued = {text: struct["_rescued_data"] for text, struct in found.items() if struct is not None and struct["_rescued_data"]}
    assert rescued == {
        "null": '{"_corrupt_record":"null"}',
        "12": '{"_corrupt_record":"12"}',
        '"text"': '{"_corrupt_record":"\\"text\\""}',
        "{broken": '{"_corrupt_record":"{broken"}',
        '{"id": 1} {"id": 2}': '{"_corrupt_record":"{\\"id\\": 1} {\\"id\\": 2}"}',
        '[{"id": 1}]': '{"value":[{"id":1}]}',
        '{"id": "x", "name": {"k":  1}}': '{"id":"x"}',
        '{"id": 1, "id": 2}': '{"id":1}',
        '{"at": {"x": "no"}}': '{"at":{"x":"no"}}',
        '{"at": 5}': '{"at":5}',
        '{"t": "never"}': '{"t":"never"}',
        '{"ID": 7}': '{"ID":7}',
    }


def test_JC2_the_first_value_of_a_text_is_read_and_the_text_is_kept() -> None:
    found = structs(texts(), ['{"id":1} {"id": 2}', '[1],"id":5', "[1, 2", "[1] [2]", '{"id":3},'])
    assert [(row["id"], row["value"], json.loads(row["_rescued_data"])["_corrupt_record"]) for row in found] == [
        (1, None, '{"id":1} {"id": 2}'),
        (None, [1], '{"value":[1]},"id":5'),
        (None, None, "[1, 2"),
        (None, [1], '{"value":[1]} [2]'),
        (3, None, '{"id":3},'),
    ]


def test_JC3_new_fields_are_kept_for_the_moment_and_their_types_are_those_of_all_texts(tmp_path: Path) -> None:
    kept, types = texts().read(pa.array(['{"id": 1}', '{"id": 2, "new": 1}']))
    assert [(row["id"], row["_rescued_data"]) for row in kept.to_pylist()] == [(1, None), (2, '{"new":1}')]
    assert types is not None
    column = JsonColumn(call(), str(tmp_path))
    assert (column.pending, column.public.simpleString()) == (True, "struct<_rescued_data:string>")
    first = JsonTexts(column.reader_spec(), "docs", column.public, unlimited=True)
    parts = [new_fields(first, '{"id": 1, "_rescued_data": 1}'), new_fields(first, '{"id": "x", "at": {"y": 1}}')]
    change = column.store(merge(*parts))
    assert change is not None
    assert (change.version_before, column.public.simpleString()) == (-1, "struct<at:struct<y:bigint>,id:string,_rescued_data:string>")
    later = JsonColumn(call(), str(tmp_path))
    more = new_fields(JsonTexts(later.reader_spec(), "docs", later.public), '{"at": {"y": "text", "z": [1.5]}}')
    assert later.store(more) is not None
    assert later.store(more) is None
    assert JsonColumn(call(), str(tmp_path)).data.simpleString() == "struct<at:struct<y:bigint,z:array<double>>,id:string>"
    assert [(c.version_after, c.added) for c in changes_since(str(tmp_path), "2020")][1:] == [(1, (("at.z", "array<double>"),))]


def test_JC4_failOnNewColumns_names_the_field() -> None:
    with pytest.raises(UnknownJsonFields, match=r'\[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_RECORD\].*\{"new":1\}, which can be fixed'):
        structs(texts(schemaEvolutionMode="failOnNewColumns"), ['{"id": 2, "new": 1}'])


def test_JC5_hints_count_before_and_after_the_first_texts(tmp_path: Path) -> None:
    hinted = call(schemaHints="id STRING, at.x DECIMAL(10,2)", schemaEvolutionMode="none")
    column = JsonColumn(hinted, str(tmp_path))
    assert column.public.simpleString() == "struct<id:string,at:struct<x:decimal(10,2)>>"
    column.store(new_fields(JsonTexts(column.reader_spec(), "docs", column.public, unlimited=True), '{"id": 1, "at": {"x": 1, "y": 2}}'))
    assert column.public.simpleString() == "struct<at:struct<x:decimal(10,2),y:bigint>,id:string>"
    assert JsonColumn(call(schemaEvolutionMode="none"), str(tmp_path / "other")).public.simpleString() == "struct<_rescued_data:string>"


def test_JC5_failfast_names_the_key_and_the_text() -> None:
    with pytest.raises(LakeletError, match="schemaLocationKey 'docs': a text is not JSON") as caught:
        structs(texts(mode="FAILFAST"), ["{}", "{broken"])
    assert caught.value.why == "MALFORMED_RECORD_IN_PARSING: {broken"


def test_JC8_a_column_that_is_no_text_is_named() -> None:
    with pytest.raises(LakeletError, match="its column is int64, not a text"):
        texts().read(pa.array([1]))
