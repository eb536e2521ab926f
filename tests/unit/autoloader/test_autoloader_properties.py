"""Random records under random schemas and modes: nothing is lost, and the reader agrees with a slow one written from the rules.

`slow_*` below is that reference: plain Python over parsed records, with no thought of speed and nothing of Lakelet in it. The environment
variable LAKELET_PROPERTY_EXAMPLES asks for more examples than the few of every test run, and for other ones each time.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from autoloading import Program, parquet
from lakelet.autoloader.schema_growth import UnknownFieldException

EXAMPLES = int(os.environ.get("LAKELET_PROPERTY_EXAMPLES", "15"))
many = settings(
    max_examples=EXAMPLES, deadline=None, derandomize="LAKELET_PROPERTY_EXAMPLES" not in os.environ, suppress_health_check=list(HealthCheck)
)
MODE = "cloudFiles.schemaEvolutionMode"
RESCUED = "_rescued_data"
CORRUPT = "_corrupt_record"
FITS = object()  # nothing of a value has to be rescued

# --- the slow reader: one JSON value, one CSV field, one Parquet value into one type (FF-8, FF-15, FF-20) ---

INTEGERS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


def slow_json(value: Any, kind: t.DataType, text: Callable[[Any], str], *, fold: bool = False) -> tuple[Any, Any]:
    """(typed value, what is rescued of it): every kind of JSON value against every type."""
    if value is None:
        return None, FITS
    name = kind.simpleString()
    if isinstance(kind, t.StringType):
        return (value if isinstance(value, str) else text(value)), FITS
    if isinstance(kind, t.StructType) and isinstance(value, dict):
        return slow_object(value, kind, text, fold=fold)
    if isinstance(kind, t.ArrayType) and isinstance(value, list):
        pairs = [slow_json(item, kind.elementType, text, fold=fold) for item in value]
        return [typed for typed, _ in pairs], FITS if all(rest is FITS for _, rest in pairs) else value
    if name in INTEGERS and type(value) is int and -(2 ** INTEGERS[name]) <= value < 2 ** INTEGERS[name]:
        return value, FITS
    if name == "double" and type(value) in (int, float):
        return float(value), FITS
    if name == "boolean" and type(value) is bool:
        return value, FITS
    if name == "date" and isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return date.fromisoformat(value), FITS
    return None, value


def slow_object(record: Mapping[str, Any], schema: t.StructType, text: Callable[[Any], str], *, fold: bool = False) -> tuple[Any, Any]:
    """(typed values, rescued members) of an object."""
    kinds = {f.name.lower() if fold else f.name: f for f in schema.fields}
    typed: dict[str, Any] = {f.name: None for f in schema.fields}
    rest: dict[str, Any] = {}
    for key, value in record.items():
        field = kinds.get(key.lower() if fold else key)
        kept: Any = value
        if field is not None:
            typed[field.name], kept = slow_json(value, field.dataType, text, fold=fold)
        if kept is not FITS:
            rest[key] = kept
    return typed, rest or FITS


def slow_unknown(record: Mapping[str, Any], schema: t.StructType) -> dict[str, Any]:
    """The part of a record that counts as new columns: other spellings do not (FS-33)."""
    kinds = {f.name: f.dataType for f in schema.fields}
    lower = {name.lower() for name in kinds}
    found: dict[str, Any] = {}
    for key, value in record.items():
        if key.lower() not in lower:
            found[key] = value
        elif isinstance(kinds.get(key), t.StructType) and isinstance(value, dict):
            below = slow_unknown(value, kinds[key])
            if below:
                found[key] = below
    return found


def slow_field(text: str, kind: t.DataType) -> tuple[Any, Any]:
    """The same for one field of a CSV file."""
    name = kind.simpleString()
    if text == "":
        return None, FITS
    if name == "string":
        return text, FITS
    if name in INTEGERS and re.fullmatch(r"[+-]?\d+", text) and -(2 ** INTEGERS[name]) <= int(text) < 2 ** INTEGERS[name]:
        return int(text), FITS
    if name == "double" and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return float(text), FITS
    if name == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true", FITS
    return None, text


# --- what is generated ---

NAMES = ["a", "b", "c", "d", "e"]
SCALARS: list[t.DataType] = [t.LongType(), t.IntegerType(), t.DoubleType(), t.BooleanType(), t.StringType()]
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Nd", "Nl", "No"]), max_size=8) | st.sampled_from(
    ["x,y", "$100.00", "[1]"]
)
days = st.dates(date(1900, 1, 1), date(2100, 1, 1)).map(str)
integers = st.integers(-5, 5) | st.integers(-(10**25), 10**25)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | integers | floats | texts | days
nested = scalars | st.dictionaries(st.sampled_from(NAMES), scalars, min_size=1, max_size=3) | st.lists(scalars, max_size=3)
types: st.SearchStrategy[t.DataType] = st.sampled_from([*SCALARS, t.DateType()])
structs = st.dictionaries(st.sampled_from(NAMES), types, min_size=1, max_size=3).map(
    lambda found: t.StructType([t.StructField(name, kind) for name, kind in found.items()])
)
all_types = types | structs | st.sampled_from([t.ArrayType(t.LongType()), t.ArrayType(t.StringType())])
schemas = st.dictionaries(st.sampled_from(NAMES), all_types, min_size=1, max_size=4).map(
    lambda found: t.StructType([t.StructField(name, kind) for name, kind in found.items()])
)
keys = st.sampled_from([*NAMES, *NAMES, "A", "B", "new", "ümläut", "with space", "x.y"])


def fitting(kind: t.DataType) -> st.SearchStrategy[Any]:
    """Values that fit a type."""
    if isinstance(kind, t.StructType):
        return st.fixed_dictionaries({}, optional={f.name: fitting(f.dataType) for f in kind.fields})
    if isinstance(kind, t.ArrayType):
        return st.lists(fitting(kind.elementType), max_size=3)
    plain: Mapping[str, st.SearchStrategy[Any]] = {
        "bigint": st.integers(-(2**63), 2**63 - 1), "int": st.integers(-(2**31), 2**31 - 1), "double": floats, "boolean": st.booleans(),
        "string": texts, "date": days,
    }  # fmt: skip
    return st.none() | plain[kind.simpleString()]


@st.composite
def records(draw: st.DrawFn, schema: t.StructType) -> dict[str, Any]:
    """A record: mostly fitting values, some that do not fit, and members that the schema does not know."""
    found = {f.name: draw(fitting(f.dataType) if draw(st.integers(0, 3)) else nested) for f in schema.fields if draw(st.integers(0, 3))}
    return {**found, **draw(st.dictionaries(keys, nested, max_size=2))} if not draw(st.integers(0, 3)) else found


@contextmanager
def program(options: Mapping[str, str], schema: t.StructType | None = None) -> Iterator[Program]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").mkdir()
        yield Program(Path(folder) / "in", Path(folder), options, schema)


def rest_of(row: Mapping[str, Any]) -> Any:
    """The rescued column as an object without the path; FITS where it is NULL."""
    text = row.get(RESCUED)
    if text is None:
        return FITS
    found = json.loads(text)
    assert found.pop("_file_path").startswith("file:/")
    return found


def same(left: Any, right: Any) -> bool:
    """Equality that tells true from 1 and takes 1 for 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left is right or (isinstance(left, bool) == isinstance(right, bool) and left == right)


def recovered(value: Any, typed: Any, rest: Any) -> bool:
    """Whether a value of a record is in its column or in the rescued column, piece by piece."""
    if value is None or same(value, rest):
        return True
    if isinstance(value, dict) and isinstance(typed, dict):
        members = rest if isinstance(rest, dict) else {}
        return all(recovered(item, typed.get(key), members.get(key, FITS)) for key, item in value.items())
    if isinstance(value, list) and isinstance(typed, list):
        return len(value) == len(typed) and all(recovered(item, found, FITS) for item, found in zip(value, typed, strict=True))
    if isinstance(typed, str):
        return same(value, typed) or (not isinstance(value, str) and same(value, json.loads(typed)))
    if isinstance(typed, float) and type(value) in (int, float):
        return float(value) == typed
    return same(value, typed) or (typed is not None and not isinstance(typed, bool) and str(value) == str(typed))


def run_until_success(one: Program) -> int:
    """Start the program until it ends well; how often it had to stop for new columns or wider types first."""
    stops = 0
    while True:
        try:
            one.run()
        except UnknownFieldException as failure:
            stops += "automatic retry: true" in str(failure)
            if stops > 9:
                raise
        else:
            return stops


# --- JSON ---


@many
@given(st.data(), st.sampled_from([True, False]), st.sampled_from([True, False]))
def test_json_records_are_read_as_the_slow_reader_reads_them(data: st.DataObject, rescue: bool, dense: bool) -> None:
    schema = data.draw(schemas)
    given_records = data.draw(st.lists(records(schema), min_size=1, max_size=6))
    separators = (",", ":") if dense else (", ", ": ")

    def text(value: Any) -> str:
        return json.dumps(value, separators=separators, ensure_ascii=False)

    lines = "".join(text(record) + "\n" for record in given_records)
    with program({"rescuedDataColumn": RESCUED} if rescue else {}, schema) as one:
        rows = one.put("a.json", lines).run().batches[0]
    assert len(rows) == len(given_records)
    expected = [slow_object(record, schema, text) for record in given_records]
    found = [({key: value for key, value in row.items() if key != RESCUED}, rest_of(row)) for row in rows]
    unmatched = list(found)
    for values, rest in expected:
        match = next((at for at, (v, r) in enumerate(unmatched) if same(v, values) and (not rescue or same(r, rest))), None)
        assert match is not None, (values, rest, unmatched, lines)
        unmatched.pop(match)


@many
@given(st.data())
def test_json_spellings_match_without_case_where_asked(data: st.DataObject) -> None:
    schema = data.draw(schemas)
    record = data.draw(records(schema))
    record = {key.upper() if data.draw(st.booleans()) else key: value for key, value in {k.lower(): v for k, v in record.items()}.items()}
    with program({"rescuedDataColumn": RESCUED, "readerCaseSensitive": "false"}, schema) as one:
        (row,) = one.put("a.json", json.dumps(record) + "\n").run().batches[0]
    values, rest = slow_object(record, schema, json.dumps, fold=True)
    assert same({key: value for key, value in row.items() if key != RESCUED}, values), (record, row)
    assert same(rest_of(row), rest), (record, row)


@many
@given(st.data(), st.sampled_from(["addNewColumns", "addNewColumnsWithTypeWidening", "rescue"]), st.booleans())
def test_json_of_any_shape_is_wholly_recovered_whatever_the_mode(data: st.DataObject, mode: str, infer: bool) -> None:
    schema = data.draw(schemas)
    files = data.draw(st.lists(st.lists(records(schema), min_size=1, max_size=3), min_size=1, max_size=3))
    stops = 0
    with program({MODE: mode, "cloudFiles.inferColumnTypes": str(infer).lower(), "cloudFiles.schemaHints": "key BIGINT"}) as one:
        number = 0
        for at, file in enumerate(files):
            lines = []
            for record in file:
                lines.append(json.dumps({**record, "key": number}) + "\n")
                number += 1
            one.put(f"{at}.json", "".join(lines))
            stops += run_until_success(one)
        assert stops == len(one.changes) <= len(files) * 3
        rows = {row["key"]: row for batch in one.batches for row in batch}
    everything = [record for file in files for record in file]
    assert sorted(rows) == list(range(len(everything)))
    for number, record in enumerate(everything):
        row = rows[number]
        rest = rest_of(row)
        assert recovered(record, row, {} if rest is FITS else rest), (record, row)


@many
@given(st.data(), st.sampled_from(["addNewColumns", "failOnNewColumns"]))
def test_unknown_json_fields_stop_the_stream_and_are_named(data: st.DataObject, mode: str) -> None:
    first = {"a": 1, "b": {"a": "x"}}
    schema = t.StructType([t.StructField("a", t.LongType()), t.StructField("b", t.StructType([t.StructField("a", t.StringType())]))])
    values = integers | st.booleans() | texts | st.dictionaries(st.sampled_from(NAMES), integers, min_size=1, max_size=2)
    given_records = data.draw(st.lists(st.dictionaries(keys, values, max_size=3), min_size=1, max_size=4))
    unknown = [found for record in given_records if (found := slow_unknown(record, schema))]
    with program({MODE: mode, "cloudFiles.inferColumnTypes": "true"}) as one:
        one.put("a.json", json.dumps(first) + "\n").run()
        one.put("b.json", "".join(json.dumps(record) + "\n" for record in given_records))
        if not unknown:
            assert len(one.run().batches[-1]) == len(given_records)
            return
        message = one.stops(retry=mode == "addNewColumns")
    blob = message.split("during parsing: ", 1)[1].split(", which can be fixed", 1)[0]
    assert same(json.loads(blob), unknown[0]), (blob, unknown)
    assert "/b.json" in message


BROKEN = ['{"a":', '{"a" 1}', "{]", '{"a":1', '}{"a":1}', "nonsense", '{"a":tru}', '{"a":1,}', '"', '{"b":"x}']


@many
@given(st.lists(st.sampled_from(BROKEN) | st.integers(0, 9).map(lambda n: f'{{"a":{n}}}'), min_size=1, max_size=8), st.data())
def test_broken_json_lines_go_where_the_mode_says(lines: list[str], data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]))
    column = data.draw(st.booleans())
    schema = t.StructType([t.StructField("a", t.LongType()), *([t.StructField(CORRUPT, t.StringType())] if column else [])])
    whole = sorted(json.loads(line)["a"] for line in lines if line not in BROKEN)
    broken = sorted(line for line in lines if line in BROKEN)
    with program({"rescuedDataColumn": RESCUED, "mode": mode}, schema) as one:
        one.put("a.json", "".join(line + "\n" for line in lines))
        if mode == "FAILFAST" and broken:
            assert "/a.json" in one.fails("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING")
            return
        rows = one.run().rows()
    assert sorted(row["a"] for row in rows if row["a"] is not None) == whole
    kept = [row for row in rows if row["a"] is None]
    found = [row[CORRUPT] if column else rest_of(row)[CORRUPT] for row in kept]
    assert sorted(found) == ([] if mode == "DROPMALFORMED" else broken)


# --- CSV ---

fields = st.text(st.characters(codec="ascii", min_codepoint=33, exclude_characters='"\\#,'), max_size=6) | st.sampled_from(
    ["1", "-7", "3000000000", "12345678901234567890", "1.5", "1e3", "true", "FALSE", "x,y", "$100.00", ""]
)


@many
@given(st.data())
def test_csv_records_are_read_as_the_slow_reader_reads_them(data: st.DataObject) -> None:
    kinds = data.draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(SCALARS), min_size=1, max_size=4))
    schema = t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])
    header = data.draw(st.lists(st.sampled_from([*NAMES, "new", "A", "other name"]), min_size=1, max_size=5, unique_by=str.lower))
    body = data.draw(st.lists(st.lists(fields, min_size=len(header), max_size=len(header) + 2), min_size=1, max_size=5))
    body = [row if any(row) else ["z", *row[1:]] for row in body]  # an empty line is not a record
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows([header, *body])
    options = {"cloudFiles.format": "csv", "header": "true", "rescuedDataColumn": RESCUED}
    with program(options, schema) as one:
        rows = one.put("a.csv", sink.getvalue()).run().batches[0]
    expected = []
    for record in body:
        values: dict[str, Any] = dict.fromkeys(schema.names)
        rest: dict[str, Any] = {}
        for at, text in enumerate(record):
            name = header[at] if at < len(header) else f"_c{at}"
            known = at < len(header) and name in kinds
            typed, kept = slow_field(text, kinds[name]) if known else (None, text or FITS)
            if known:
                values[name] = typed
            if kept is not FITS:
                rest[name] = kept
        expected.append((values, rest))
    assert len(rows) == len(expected)
    for row in rows:
        kept = rest_of(row)
        found = ({key: value for key, value in row.items() if key != RESCUED}, {} if kept is FITS else _told(kept))
        at = next((at for at, wanted in enumerate(expected) if same(list(found), list(wanted))), None)
        assert at is not None, (found, expected, sink.getvalue())
        expected.pop(at)


def _told(rest: dict[str, Any]) -> dict[str, Any]:
    """The rescued members without NULLs and empty texts: an empty field of an unknown column says nothing."""
    return {key: value for key, value in rest.items() if value not in (None, "")}


# --- Parquet ---

ARROW: Mapping[str, tuple[pa.DataType, t.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), t.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), t.LongType(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), t.DoubleType(), floats),
    "string": (pa.string(), t.StringType(), texts),
    "boolean": (pa.bool_(), t.BooleanType(), st.booleans()),
    "array<bigint>": (pa.list_(pa.int64()), t.ArrayType(t.LongType()), st.lists(st.integers(-9, 9), max_size=3)),
}


@many
@given(st.data())
def test_parquet_columns_of_another_type_or_name_are_rescued_whole(data: st.DataObject) -> None:
    wanted = data.draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(ARROW)), min_size=1, max_size=4))
    stored = data.draw(st.dictionaries(st.sampled_from([*NAMES, "new", "A"]), st.sampled_from(sorted(ARROW)), min_size=1, max_size=5))
    count = data.draw(st.integers(1, 4))
    columns = {name: data.draw(st.lists(st.none() | ARROW[kind][2], min_size=count, max_size=count)) for name, kind in stored.items()}
    schema = t.StructType([t.StructField(name, ARROW[kind][1]) for name, kind in wanted.items()])
    content = parquet(**{name: pa.array(values, ARROW[stored[name]][0]) for name, values in columns.items()})
    with program({"cloudFiles.format": "parquet", "rescuedDataColumn": RESCUED}, schema) as one:
        rows = one.put("a.parquet", content).run().batches[0]
    assert len(rows) == count
    for at, row in enumerate(rows):
        rest = rest_of(row)
        for name, kind in wanted.items():
            expected = columns[name][at] if stored.get(name) == kind else None
            assert same(row[name], expected), (name, row, columns)
        misfits = {name: values[at] for name, values in columns.items() if stored[name] != wanted.get(name) and values[at] is not None}
        assert same({} if rest is FITS else {k: v for k, v in rest.items() if v is not None}, misfits), (rest, misfits)
