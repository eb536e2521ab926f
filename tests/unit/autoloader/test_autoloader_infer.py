"""Inference by Spark's rules without Spark (FF-9, FS-6, FS-7). tests/spark/autoloader/test_autoloader.py compares with Spark's own."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.formats.json.inferred_types import DEEPEST
from lakelet.autoloader.schema_growth import UnknownFieldException, UnknownFieldNote, grow, note_of
from lakelet.autoloader.schema_hints import parse_hints


def inferred(tmp_path: Path, *texts: str, **options: str) -> str:
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.json").write_text(text)
    keys = {"cloudFiles." + k: v for k, v in {"format": "json", "inferColumnTypes": "true", **options}.items()}
    return AutoLoaderSource.open(SourceSpec(str(tmp_path), keys), state=None).columns().data.simpleString().removeprefix("struct<")[:-1]


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ('{"v":1}', "v:bigint"),
        ('{"v":3000000000}', "v:bigint"),
        ('{"v":12345678901234567890}', "v:decimal(20,0)"),
        ('{"v":12345678901234567890}\n{"v":1}', "v:decimal(20,0)"),
        ('{"v":12345678901234567890}\n{"v":1.5}', "v:double"),
        ('{"v":' + "9" * 40 + "}", "v:double"),
        ('{"v":1.5}', "v:double"),
        ('{"v":1e3}', "v:double"),
        ('{"v":NaN}', "v:double"),
        ('{"v":true}', "v:boolean"),
        ('{"v":"2024-01-02"}', "v:string"),
        ('{"v":"2024-01-02T03:04:05Z"}\n{"v":""}', "v:string"),
        ('{"v":1}\n{"v":1.5}\n{"w":1}\n{"w":"x"}\n{"y":{"a":1}}\n{"y":3}', "v:double,w:string,y:string"),
        ('{"v":1}\n{"v":true}', "v:string"),
        ('{"v":[1]}\n{"v":5}', "v:string"),
        ('{"v":[1,"x"]}', "v:array<string>"),
        ('{"v":[1,2.5]}', "v:array<double>"),
        ('{"v":[{"a":1},{"b":"x"}]}', "v:array<struct<a:bigint,b:string>>"),
        ('{"a":null,"b":[],"c":{},"d":1}', "a:string,b:array<string>,d:bigint"),
        ('{"v":[{}],"w":{"x":{}},"y":[[]],"z":[null]}', "y:array<array<string>>,z:array<string>"),
        ('{"v":""}\n{"v":5}', "v:bigint"),
        ('{"v":""}', "v:string"),
        ('{"":1,"v":1}', "v:bigint"),
        ('{"v":1}\nbroken\n{"v":2', "v:bigint"),
        ("{'v':1}", "v:bigint"),
        ('[{"v":1},{"w":2}]', "v:bigint,w:bigint"),
        ('{"z":1,"a":{"z":1,"b":2}}', "a:struct<b:bigint,z:bigint>,z:bigint"),
        ('{"v":1,"v":"x"}', "v:string"),
    ],
)
def test_types_follow_sparks_rules(tmp_path: Path, text: str, schema: str) -> None:
    assert inferred(tmp_path, text) == schema
    filler = '{"other":1}\n' * 50
    assert inferred(tmp_path, filler + text + "\n" + filler).replace("other:bigint", "").replace(",,", ",").strip(",") == schema


def test_i01_without_types_every_top_level_column_is_text(tmp_path: Path) -> None:
    text = '{"id":1,"x":1.50,"b":true,"n":null,"o":{"k":1},"l":[1,2],"e":{}}'
    schema = "b:string,e:string,id:string,l:string,n:string,o:string,x:string"
    assert inferred(tmp_path, text, inferColumnTypes="false") == schema


def test_two_spellings_are_one_column_with_the_type_of_both(tmp_path: Path) -> None:
    assert inferred(tmp_path, '{"port":1,"Port":"x","o":{"A":1,"a":2}}') == "o:struct<A:bigint>,port:string"
    assert inferred(tmp_path, '{"port":1}', schemaHints="PORT INT") == "PORT:int"


def test_sampling_takes_the_newest_files(tmp_path: Path) -> None:
    keys = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    for number in range(5):
        path = tmp_path / f"{number}.json"
        path.write_text(f'{{"c{number}":1}}\n')
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    confs = {"spark.databricks.cloudFiles.schemaInference.sampleSize.numFiles": "2"}
    source = AutoLoaderSource.open(SourceSpec(str(tmp_path), keys), state=None, confs=confs)
    assert source.columns().data.fieldNames() == ["c3", "c4"]


def test_order_of_records_does_not_change_the_schema(tmp_path: Path) -> None:
    lines = [
        '{"a":1,"b":"x"}',
        '{"a":1.5}',
        '{"a":"","c":[1]}',
        '{"c":["x"]}',
        '{"d":{"e":1}}',
        '{"d":{"e":true,"f":null}}',
        '{"b":12345678901234567890}',
    ]
    rng = random.Random(2)
    found = set()
    for _ in range(10):
        rng.shuffle(lines)
        found.add(inferred(tmp_path, "\n".join(lines)))
    assert found == {"a:double,b:string,c:array<string>,d:struct<e:string,f:string>"}


def schema(text: str):  # type: ignore[no-untyped-def]
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, kind) for name, kind in parse_hints(text).items()])


def test_growth_appends_and_leaves_types_alone() -> None:
    known = schema("id BIGINT, o STRUCT<k: BIGINT>, l ARRAY<STRUCT<x: INT>>, s STRING")
    seen = schema("ID STRING, a INT, o STRUCT<k: STRING, m: INT, K: INT>, l ARRAY<STRUCT<y: INT>>, s STRUCT<z: INT>")
    grown, added, widened = grow(known, seen)
    assert widened == ()
    assert grown.simpleString() == "struct<id:bigint,o:struct<k:bigint,m:int>,l:array<struct<x:int,y:int>>,s:string,a:int>"
    assert added == (("o.m", "int"), ("l.element.y", "int"), ("a", "int"))
    assert grow(known, known) == (known, (), ())


def test_the_failure_carries_the_vendors_phrase_and_our_note() -> None:
    note = UnknownFieldNote("/s", 3, 4, "file:/in/b.json")
    failure = UnknownFieldException('{"c":1}', retry=True, line=2, note=note)
    assert str(failure).startswith(
        "[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_RECORD_WITH_FILE_PATH] Encountered unknown fields during parsing: "
    )
    assert '{"c":1}, which can be fixed by an automatic retry: true' in str(failure)
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = failure
    assert note_of(wrapped) == note
    assert note_of(UnknownFieldException("{}", retry=False, line=2, note=note)) is None
    assert note_of(ValueError("other")) is None


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("[ ", "]"), ('{"a":', "}"), ('[{"a":1,"b":', "}]")])
def test_nesting_becomes_types_then_text_and_in_the_end_a_broken_record(tmp_path: Path, opening: str, closing: str) -> None:
    lines = [f'{{"{depth}":' + opening * depth + "1" + closing * depth + "}\n" for depth in (10, 200, 20_000)]
    (tmp_path / "a.json").write_text("".join(lines))
    spec = SourceSpec(str(tmp_path), {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"})
    kinds = {f.name: f.dataType.simpleString() for f in AutoLoaderSource.open(spec, state=None).columns().data.fields}
    assert set(kinds) == {"10", "200"}
    assert "string" not in kinds["10"]
    assert "string" in kinds["200"]
    assert kinds["200"].count("<") == DEEPEST - 1
