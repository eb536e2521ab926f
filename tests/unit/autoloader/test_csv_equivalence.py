"""CSV: the vectorised path gives the same rows as the record-wise one, and that one splits lines as Spark's parser does (FF-4, FF-14)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from format_folder import Folder
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from lakelet.autoloader.formats import UnknownFields
from lakelet.autoloader.formats.csv.format import CsvReader
from lakelet.autoloader.formats.csv.records import BrokenRecord, RecordScanner
from lakelet.autoloader.formats.csv.rules import AT_DELIMITER, NONE, Dialect
from lakelet.autoloader.source_spec import FilePart
from tests.paths import ROOT

DATA = ROOT / "tests" / "unit" / "data" / "csv-splits.json"
SCHEMA = t.StructType(
    [
        t.StructField("id", t.IntegerType()),
        t.StructField("name", t.StringType()),
        t.StructField("n", t.DoubleType()),
        t.StructField("big", t.LongType()),
        t.StructField("day", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("p", t.DecimalType(6, 2)),
        t.StructField("ok", t.BooleanType()),
        t.StructField("f", t.FloatType()),
        t.StructField("local", t.TimestampNTZType()),
    ]
)
NAMES = SCHEMA.fieldNames()
CLEAN = {
    "id": ["1", "-7", "0", "2147483647"],
    "name": ["x", "Ä ö", "a-b", "long text", "1.5"],
    "n": ["1.5", "-3", "1e3", "0.1", "12345678901234567890"],
    "big": ["9223372036854775807", "5"],
    "day": ["2026-03-01", "1969-12-31"],
    "at": ["2026-03-01T08:00:00Z", "2026-03-01 08:00:00", "2026-03-01", "2026-03-01T08:00:00.123+02:00"],
    "p": ["1.25", "7", "-9999.99"],
    "ok": ["true", "false", "TRUE"],
    "f": ["1.5", "0.1"],
    "local": ["2026-03-01 08:00:00", "2026-03-01T08:00:00.5"],
}
ODD = ["", " ", "x", "+5", "007", "1.0", "0x1F", " 1", "1 ", "2147483648", "92233720368547758089", "1e999", "nan", "NaN", "Inf", "-Inf"]
ODD += [
    "2026-3-1",
    "2026-02-30",
    "2026-03-01T25:00:00",
    "1.255",
    "1,000",
    '"1,000"',
    "1",
    "tRuE",
    "1d",
    "NA",
    '"NA"',
    '""',
    '"a,b"',
    '"x""y"',
]
ODD += [
    '"a\\"b"',
    '"a\\\\"',
    '"a\\n"',
    '"open',
    'in"side',
    '"a"b',
    '"a" ',
    ' "a"',
    "\\",
    '\\"',
    "ä",
    "\x00",
    "a\tb",
    '"2026-03-01"',
    "'q'",
    "#c",
]
LINES = ["", "  ", "\t", "#comment", ",", '"', "x", ",,,,,,,,,,,", '"a\nb"', '"a\r\nb",2']


def cell(name: str) -> st.SearchStrategy[str]:
    return st.one_of(*[st.sampled_from(CLEAN[name])] * 6, st.sampled_from(ODD))


def line(names: list[str]) -> st.SearchStrategy[str]:
    row = st.tuples(*[cell(name) for name in names]).map(list)
    cut = st.tuples(row, st.integers(0, len(names) + 2)).map(lambda pair: (pair[0] + ["more", "most"])[: pair[1]])
    return st.one_of(*[row.map(",".join)] * 6, cut.map(",".join), st.sampled_from(LINES))


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "escape": st.just('"'),
        "nullValue": st.just("NA"),
        "emptyValue": st.just("-"),
        "comment": st.just("#"),
        "ignoreLeadingWhiteSpace": st.just("true"),
        "ignoreTrailingWhiteSpace": st.just("true"),
        "multiLine": st.just("true"),
        "quote": st.sampled_from(["'", ""]),
        "unescapedQuoteHandling": st.sampled_from(["STOP_AT_CLOSING_QUOTE", "SKIP_VALUE", "RAISE_ERROR"]),
        "charToEscapeQuoteEscaping": st.just("^"),
        "readerCaseSensitive": st.just("false"),
        "rescuedDataColumn": st.just("_r"),
        "cloudFiles.schemaEvolutionMode": st.sampled_from(["none", "rescue"]),
        "lineSep": st.just("\n"),
    },
)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[str], bytes]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    header = list(names)
    if draw(st.booleans()):
        header[draw(st.integers(0, len(header) - 1))] = draw(st.sampled_from(["extra", "ID", "new one", "Name"]))
    lines = draw(st.lists(line(names), min_size=1, max_size=12))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    data = end.join([",".join(header), *lines]).encode() + draw(st.sampled_from([b"", end.encode()]))
    return names, data if draw(st.integers(0, 9)) else data.replace(b"x", b"\xff", 1)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(file=files(), options=OPTIONS)
@example(file=(["id", "n"], b"id,n\n1,\x00\n2,2.5"), options={"ignoreLeadingWhiteSpace": "true", "quote": ""})
def test_both_paths_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, file: tuple[list[str], bytes], options: dict[str, str]
) -> None:
    names, data = file
    folder = Folder(tmp_path_factory.mktemp("csv"), "csv").put("a.csv", data)
    schema = t.StructType([field for field in SCHEMA.fields if field.name in names])
    source = folder.open({"header": "true", "enforceSchema": "false", **options}, schema)
    fast, reference = (rows_of(folder, source, schema, vectorised=way) for way in (True, False))
    assert fast == reference


def rows_of(folder: Folder, source: Any, schema: t.StructType, *, vectorised: bool) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    fields = [(f.name, f.dataType, a.type) for f, a in zip(schema.fields, arrow, strict=True)]
    spec = source.reader_spec()
    from lakelet.autoloader.discovery.files import files_for

    path = folder.root / "a.csv"
    reader = CsvReader(spec, fields, files_for(str(folder.root))[0], frozenset(), vectorised=vectorised)
    found: Counter[str] = Counter()
    try:
        for chunk in reader.chunks(FilePart(str(path), path.stat().st_size, 0)):
            count = len(chunk.columns[0])
            columns = [column.to_pylist() for column in chunk.columns]
            for at in range(count):
                extra = [None if part is None else part[at] for part in (chunk.rescued, chunk.marks)]
                found[repr(([column[at] for column in columns], extra, chunk.raw.get(at)))] += 1
    except UnknownFields as error:
        return error.blob
    return found


def test_lines_are_split_as_sparks_parser_splits_them() -> None:
    """`data/csv-splits.json`: odd lines and what univocity-parsers, with the settings of Spark, made of them."""
    cases = json.loads(DATA.read_text())
    assert len(cases) > 400
    for case in cases:
        given = case["dialect"]
        quote, escape = given.get("quote", '"'), given.get("escape", "\\")
        second = given.get("ee") or (NONE if quote == escape else escape)
        dialect = Dialect(quote=quote, escape=escape, escape_of_escape=second, handling=given.get("handling", AT_DELIMITER))
        try:
            values: Any = RecordScanner(case["line"], dialect).record()
        except BrokenRecord:
            values = None
        assert values == case["values"], case
