"""The vectorised path gives the same rows as the row-wise one, whatever the lines are (FF-4)."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from lakelet.autoloader.formats.base import UnknownFields
from lakelet.autoloader.formats.json.blocks import BlockReader
from lakelet.autoloader.formats.json.inferred_types import TypeRules
from lakelet.autoloader.formats.json.rows import RowRules
from lakelet.autoloader.formats.json.syntax_tree import Syntax
from lakelet.autoloader.formats.json.values import DatetimeFormats
from lakelet.autoloader.source_spec import IGNORE, RAISE, RESCUE

INNER = t.StructType([t.StructField("k", t.LongType()), t.StructField("s", t.StringType()), t.StructField("at", t.TimestampType())])
SCHEMA = t.StructType(
    [
        t.StructField("id", t.LongType()),
        t.StructField("small", t.IntegerType()),
        t.StructField("name", t.StringType()),
        t.StructField("ratio", t.DoubleType()),
        t.StructField("ok", t.BooleanType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("day", t.DateType()),
        t.StructField("price", t.DecimalType(10, 2)),
        t.StructField("o", INNER),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("points", t.ArrayType(t.StructType([t.StructField("x", t.LongType()), t.StructField("y", t.DoubleType())]))),
    ]
)
TEXTS = t.StructType([t.StructField(name, t.StringType()) for name in SCHEMA.fieldNames()])
GOOD: dict[str, list[str]] = {
    "id": ["1", "-5", "9223372036854775807", "0", "null", "-0"],
    "small": ["7", "-2147483648", "null"],
    "name": ['"x"', '""', '"ü\\n\\u0041"', '"2024-01-02"', '"{\\"id\\":1}"', "null", '"\\ud83d\\ude00"', '"1.50"'],
    "ratio": ["1.5", "3", "1e3", "-0.0", "12345678901234567890", "null", "0.1", "NaN", "-Infinity"],
    "ok": ["true", "false", "null"],
    "at": [
        '"2026-03-01T08:00:00.123Z"',
        '"2026-03-01 08:00:00"',
        '"2026-03-01T08:00:00+02:00"',
        '"2026-03-01"',
        "null",
        '"2026-03-01T08:00:00.1234567Z"',
    ],
    "day": ['"2026-03-01"', '"2026-3-1"', "null", '"2026-03-01T10:00:00"'],
    "price": ["1.25", "7", '"3.50"', "1e2", "null", "99999999.99"],
    "o": ['{"k":1,"s":"y"}', "{}", "null", '{"k":null,"at":"2026-03-01T08:00:00Z"}', '{ "k" : 2 }'],
    "tags": ['["a","b"]', "[]", "null", "[null]"],
    "points": ['[{"x":1,"y":2.5},{"x":2}]', "[]", "[null,{}]", "null"],
}
ODD: dict[str, list[str]] = {
    "id": ['"5"', "5.0", "92233720368547758089", "true", "{}", '""', "1e2", "[1]", "007", "+1"],
    "small": ["3000000000", '"1"', "1.0"],
    "name": ["1.50", '{ "k": [1, 2] }', "[1, 2]", "true", "-0", "1e5", "{}", '"\\ud800"', "NaN", "12345678901234567890123"],
    "ratio": ['"NaN"', '"x"', "1e999", "true", "{}", "Inf", "-INF", "1e-999", '"Infinity"', ".5"],
    "ok": ['"true"', "1", "[]"],
    "at": [
        '"n/a"',
        "1700000000",
        "2024",
        '"2024"',
        "1.5",
        "true",
        '"2026-13-01T00:00:00Z"',
        '""',
        '"2026-03-01T08Z"',
        "{}",
        '"2026-03-01T24:00:00Z"',
        '"2026-02-30T00:00:00Z"',
    ],
    "day": ['"yesterday"', "12", "2024", '"2024"', '"20240301"', "20240301", '"2026-02-30"', '""'],
    "price": ["1.255", "123456789.00", '"x"', "true", "1e30", "1e-3"],
    "o": [
        "5",
        "[]",
        '{"k":"q","s":5}',
        '{"K":1}',
        '{"k":1,"k":2}',
        '{"m":1}',
        '{"k":{"z":1}}',
        '{"at":"never"}',
        '{"at":2024}',
        '{"s":{"a": 1}}',
    ],
    "tags": ["[1]", "5", '["a",{"b": 1}]', "[[1]]", "[true]", "{}"],
    "points": ['[{"x":"q"}]', "[1]", '[{"x":1,"z":2}]', '[{"X":1}]', "{}"],
}
EXTRA = [
    '"new":1',
    '"new":{"v":"1"}',
    '"new":null',
    '"Name":"z"',
    '"ID":7',
    '"empty":{}',
    '"empties":[{}]',
    '"":1',
    '"_rescued_data":"mine"',
    '"new":"2024-01-01"',
    '"NEW":[]',
    '"o.k":1',
]
LINES = [
    b"",
    b"   ",
    b"\r",
    b"[1]",
    b"5",
    b"null",
    b'"x"',
    b"{",
    b"}",
    b"{}",
    b'{"id":1',
    b'{"id":1}}',
    b'{"id":1}{"id":2}',
    b'{"id":\xff}',
    b'{"name":"\xc3"}',
    b'{"id":1}\x00',
    b'{"name":"a\x00b"}',
    b'{"name":"tab\there"}',
    b"{'id':1}",
    b'[{"id":1},{"id":2}]',
    b"[]",
    b'{"id":1,}',
    b'{"id":1} ',
    b' {"id":1}',
    b'{"id":1}\r',
    b'{"id":1}\r{"id":2}',
    b"{'name':'it\\'s \"x\"'}",
    b'{"id" :1 , "name": "\\/"}',
    b'{"name":"}\\n{"}',
    b'{"id":1}, {"id":2}',
    b'{"id":1},',
    b'{"id":1} {"id":{}',
    b'{"id":1}]}',
    b'[{"id":1},{"id":"x"}] {}',
    b'{"id":1} \xff}',
    b'{"id":\r1}',
    b'{"name":"\\"id\\":\\"x\\""}',
    b'{"id":1}\t{"id":2}',
    b"\xef\xbb\xbf{}",
    b"// comment",
    b'{"a":' * 300 + b"1" + b"}" * 300,
]


def line(rng: random.Random, dirt: float) -> bytes:
    if rng.random() < dirt / 3:
        return rng.choice(LINES)
    members = []
    for name in rng.sample(sorted(GOOD), rng.randrange(1, len(GOOD) + 1)):
        pool = ODD if rng.random() < dirt / 3 else GOOD
        members.append(f'"{name}":{rng.choice(pool[name])}')
    if rng.random() < dirt / 3:
        members.insert(rng.randrange(len(members) + 1), rng.choice(EXTRA))
    if rng.random() < dirt / 20:
        members.append(rng.choice(members))
    text = "{" + ",".join(members) + "}"
    return (text[: rng.randrange(len(text))] if rng.random() < dirt / 20 else text).encode()


def reader(rules: RowRules, *, vectorised: bool, schema: t.StructType = SCHEMA) -> BlockReader:
    arrow = to_arrow_schema(schema, timezone="UTC")
    fields = [(f.name, f.dataType, arrow.field(i).type) for i, f in enumerate(schema.fields)]
    return BlockReader(fields, rules, vectorised=vectorised)


def rows(block_reader: BlockReader, blocks: list[bytes]) -> Counter[str] | str:
    """Every row as text, with what was rescued and the line it came from where the reader says so; or the unknown field it stops at."""
    found: Counter[str] = Counter()
    for block in blocks:
        try:
            result = block_reader.read(block)
        except UnknownFields as error:
            return f"{error.line}: {error.blob}"
        columns = result.columns
        if columns is not None:
            for values in zip(*(column.to_pylist() for column in columns), strict=True):
                found[repr((values, None, False, False))] += 1
        if result.rows:
            arrays = block_reader.arrays([row for _, row in result.rows])
            for values, (number, row) in zip(zip(*(a.to_pylist() for a in arrays), strict=True), result.rows, strict=True):
                marked = row.rescued is not None or row.broken
                found[repr((values, (number, row.rescued) if marked else None, row.broken, row.more))] += 1
    return found


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("unknown", [RESCUE, IGNORE, RAISE])
@pytest.mark.parametrize("case_sensitive", [True, False])
def test_the_vectorised_path_gives_the_rows_of_the_row_wise_path(unknown: str, case_sensitive: bool, zone: str) -> None:
    rules = RowRules(
        unknown=unknown,
        rescue=unknown != IGNORE,
        case_sensitive=case_sensitive,
        datetime_formats=DatetimeFormats(zone),
        reserved=("_rescued_data",),
    )
    rng = random.Random(f"{unknown} {case_sensitive}")
    for round_ in range(60):
        dirt = [0.0, 0.02, 0.1, 0.5, 2.0][round_ % 5]
        blocks = [b"\n".join(line(rng, dirt) for _ in range(rng.choice([1, 5, 60]))) + rng.choice([b"\n", b""]) for _ in range(4)]
        fast, slow = rows(reader(rules, vectorised=True), blocks), rows(reader(rules, vectorised=False), blocks)
        assert fast == slow, (round_, blocks)


OTHER_RULES = {
    "all syntax": RowRules(syntax=Syntax(True, True, True, True, True, True, True)),
    "strict syntax": RowRules(syntax=Syntax(non_numeric=False, single_quotes=False)),
    "patterns": RowRules(datetime_formats=DatetimeFormats("Asia/Tokyo", timestamp="yyyy-MM-dd HH:mm:ss", date="yyyy-M-d")),
    "zoned pattern": RowRules(datetime_formats=DatetimeFormats("UTC", timestamp="yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", date="yyyy-MM-dd")),
    "digits": RowRules(datetime_formats=DatetimeFormats("UTC", timestamp="yyyy", date="yyyyMMdd")),
    "wider types": RowRules(unknown=RAISE, widens=True, hinted=frozenset({"o.k", "small"})),
    "null fields dropped": RowRules(unknown=RAISE, typing=TypeRules(drop_all_null=True)),
    "all text": RowRules(unknown=RAISE, typing=TypeRules(all_text=True)),
    "all text rescued": RowRules(unknown=RESCUE, typing=TypeRules(all_text=True)),
    "only line ends": RowRules(cr_ends_line=False),
}
ALLOWED = [
    b"{id:1}",
    b'{"id":007}',
    b'{"name":"\\$"}',
    b'{"id":1 /* x */} // y',
    b'{"name":"a\tb"}',
    b'{"small":1.5}',
    b'{"id":1.5,"o":{"k":2.5}}',
]


@pytest.mark.parametrize("name", sorted(OTHER_RULES))
def test_options_change_both_paths_alike(name: str) -> None:
    rules = OTHER_RULES[name]
    rng = random.Random(name)
    for round_ in range(40):
        dirt = [0.0, 0.1, 1.0, 2.0][round_ % 4]
        lines = [rng.choice(ALLOWED) if rng.random() < dirt / 10 else line(rng, dirt) for _ in range(rng.choice([1, 5, 40]))]
        blocks = [b"\n".join(lines)]
        for schema in (SCHEMA, TEXTS):
            fast, slow = (rows(reader(rules, vectorised=fast, schema=schema), blocks) for fast in (True, False))
            assert fast == slow, (round_, schema, blocks)


def test_a_clean_block_never_takes_the_row_wise_path() -> None:
    block = b"\n".join(line(random.Random(1), 0.0) for _ in range(500))
    rules = RowRules(unknown=RAISE)
    assert reader(rules, vectorised=True).read(block).rows == []


def test_each_odd_line_alone_and_in_company_is_read_alike() -> None:
    rules = RowRules(unknown=RESCUE, reserved=("_rescued_data",))
    odd = [f'{{"{name}":{value}}}'.encode() for name, values in ODD.items() for value in values]
    odd += [f'{{"id":1,{extra}}}'.encode() for extra in EXTRA] + LINES
    for one in odd:
        for blocks in ([one], [b'{"id":1}\n' + one + b'\n{"id":2}\n'], [one + b"\n" + one]):
            assert rows(reader(rules, vectorised=True), blocks) == rows(reader(rules, vectorised=False), blocks), blocks


def test_every_value_of_every_parsable_record_is_in_a_column_or_rescued() -> None:
    """FS-32: nothing of a record is lost. A value counts as found when its column is not NULL or its key was rescued."""
    rng = random.Random(3)
    block_reader = reader(RowRules(unknown=RESCUE), vectorised=True)
    for _ in range(3000):
        text = line(rng, 1.0)
        try:
            pairs = json.loads(text, object_pairs_hook=list)
        except (ValueError, UnicodeDecodeError, RecursionError):
            continue
        if not pairs or not isinstance(pairs, list) or not all(isinstance(p, tuple) for p in pairs):
            continue
        result = block_reader.read(text)
        rescued = json.loads("{" + (result.rows[0][1].rescued or "") + "}") if result.rows else {}
        arrays: list[Any] = block_reader.arrays([result.rows[0][1]]) if result.rows else list(result.columns or [])
        values = dict(zip(SCHEMA.fieldNames(), (a.to_pylist()[0] for a in arrays), strict=True))
        if "_corrupt_record" in rescued:
            continue
        for key, value in pairs:
            if value is not None:
                assert values.get(key) is not None or key in rescued, (text, key, values, rescued)


def test_arrow_types_are_exactly_the_target_types() -> None:
    arrow = to_arrow_schema(SCHEMA, timezone="UTC")
    rng = random.Random(5)
    result = reader(RowRules(), vectorised=True).read(b"\n".join(line(rng, 0.5) for _ in range(300)))
    assert result.columns is not None
    arrays = reader(RowRules(), vectorised=True).arrays([row for _, row in result.rows])
    for at, field in enumerate(arrow):
        assert result.columns[at].type == arrays[at].type == field.type
    assert pa.schema(arrow).equals(arrow)
