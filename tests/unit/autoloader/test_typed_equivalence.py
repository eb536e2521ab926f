"""Random Arrow tables under random wanted columns and modes: every value is in its column or in the rescued JSON, unchanged.

`slow_*` is the reference: plain Python over single values, with a table of types of its own. The environment
variable LAKELET_PROPERTY_EXAMPLES asks for more examples than the few of every test run, and for other ones each time.
"""

from __future__ import annotations

import base64
import datetime
import io
import json
import math
import os
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from lakelet.autoloader import SourceSpec
from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.formats import UnknownFields, WiderType
from lakelet.autoloader.formats.typed.parquet import ParquetReader
from lakelet.autoloader.source_options import parse_options
from lakelet.autoloader.source_spec import FilePart

EXAMPLES = os.environ.get("LAKELET_PROPERTY_EXAMPLES")
few = settings(max_examples=int(EXAMPLES or 20), deadline=None, derandomize=not EXAMPLES, suppress_health_check=list(HealthCheck))
FITS = object()  # nothing of a value is rescued

# --- types: Arrow leaf, its Spark type, values ---

LEAVES: dict[str, tuple[Any, t.DataType, st.SearchStrategy[Any]]] = {
    "short": (pa.int16(), t.ShortType(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), t.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), t.LongType(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), t.FloatType(), st.floats(width=32)),
    "double": (pa.float64(), t.DoubleType(), st.floats()),
    "bool": (pa.bool_(), t.BooleanType(), st.booleans()),
    "text": (pa.string(), t.StringType(), st.text(max_size=5)),
    "bytes": (pa.binary(), t.BinaryType(), st.binary(max_size=5)),
    "date": (pa.date32(), t.DateType(), st.dates(datetime.date(1600, 1, 1))),
    "ntz": (pa.timestamp("us"), t.TimestampNTZType(), st.datetimes(datetime.datetime(1600, 1, 1))),
    "dec": (pa.decimal128(5, 2), t.DecimalType(5, 2), st.decimals(-999, 999, places=2)),
    "wide": (pa.decimal128(15, 3), t.DecimalType(15, 3), st.decimals(-(10**9), 10**9, places=3)),
}
NARROWER = {  # file type → wider column types that change no value (FS-29)
    "short": {"int", "long", "double", "wide"},
    "int": {"long", "double", "wide"},
    "float": {"double"},
    "dec": {"wide"},
    "date": {"ntz"},
}
GROWS = {  # column type → file types that make it wider
    "short": {"int", "long", "double", "dec", "wide"},
    "int": {"long", "double", "dec", "wide"},
    "long": {"dec", "wide"},
    "float": {"double"},
    "dec": {"short", "int", "long", "wide"},
    "wide": {"long"},
    "date": {"ntz"},
}
Shape = Any
"""A leaf's name, ("list", shape), ("map", shape), or ("struct", {name: shape})."""

names = st.sampled_from(["a", "b", "A", "c c", "d.e"])
leaf = st.sampled_from(sorted(LEAVES))


def fields_of(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[dict[str, Shape]]:
    return st.dictionaries(names, inner, min_size=1, max_size=3).filter(lambda d: len({n.lower() for n in d}) == len(d))


shapes = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner), st.tuples(st.just("map"), inner), st.tuples(st.just("struct"), fields_of(inner))
    ),
    max_leaves=4,
)


def arrow_of(shape: Shape) -> Any:
    if isinstance(shape, str):
        return LEAVES[shape][0]
    kind, inner = shape
    if kind == "struct":
        return pa.struct([(name, arrow_of(s)) for name, s in inner.items()])
    return pa.list_(arrow_of(inner)) if kind == "list" else pa.map_(pa.string(), arrow_of(inner))


def spark_of(shape: Shape) -> t.DataType:
    if isinstance(shape, str):
        return LEAVES[shape][1]
    kind, inner = shape
    if kind == "struct":
        return t.StructType([t.StructField(name, spark_of(s)) for name, s in inner.items()])
    return t.ArrayType(spark_of(inner)) if kind == "list" else t.MapType(t.StringType(), spark_of(inner))


def values_of(shape: Shape) -> st.SearchStrategy[Any]:
    if isinstance(shape, str):
        return st.none() | LEAVES[shape][2]
    kind, inner = shape
    if kind == "struct":
        return st.none() | st.fixed_dictionaries({name: values_of(s) for name, s in inner.items()})
    if kind == "list":
        return st.none() | st.lists(values_of(inner), max_size=3)
    return st.none() | st.dictionaries(st.text(max_size=2), values_of(inner), max_size=2).map(lambda d: list(d.items()))


@st.composite
def changed(draw: Any, shape: Shape) -> Shape:
    """A wanted type: mostly the file's, with other leaves, missing and additional fields."""
    if draw(st.integers(0, 9)) == 0:
        return draw(shapes)
    if isinstance(shape, str):
        return draw(leaf) if draw(st.integers(0, 2)) == 0 else shape
    kind, inner = shape
    if kind != "struct":
        return kind, draw(changed(inner))
    kept = {name: draw(changed(s)) for name, s in inner.items() if draw(st.integers(0, 4))}
    return "struct", kept or {"zz": "int"}


@st.composite
def cases(draw: Any) -> tuple[dict[str, Shape], dict[str, Shape], list[dict[str, Any]]]:
    """(the file's columns, the wanted columns, rows)."""
    file = draw(fields_of(shapes))
    wanted = {name: draw(changed(shape)) for name, shape in file.items() if draw(st.integers(0, 5))}
    rows = draw(st.lists(st.fixed_dictionaries({name: values_of(shape) for name, shape in file.items()}), min_size=1, max_size=3))
    return file, wanted | {"more": "text"}, rows


# --- the reference ---


def slow_json(value: Any, shape: Shape) -> Any:
    """A value as the rescued column shows it, parsed."""
    if value is None:
        return None
    if isinstance(shape, tuple):
        kind, inner = shape
        if kind == "struct":
            return {name: slow_json(item, inner[name]) for name, item in value.items() if item is not None}
        return {key: slow_json(item, inner) for key, item in value} if kind == "map" else [slow_json(item, inner) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds").rstrip("0").rstrip(".")
    return value.isoformat() if isinstance(value, datetime.date) else value


def slow_value(value: Any, file: Shape, wanted: Shape, upcast: bool) -> tuple[Any, Any]:
    """(typed value, what is rescued of it)."""
    if value is None:
        return None, FITS
    if isinstance(file, tuple) and isinstance(wanted, tuple) and file[0] == wanted[0]:
        if file[0] == "struct":
            return slow_struct(value, file[1], wanted[1], upcast)
        if file[0] == "list":
            pairs = [slow_value(item, file[1], wanted[1], upcast) for item in value]
            return [typed for typed, _ in pairs], FITS if all(rest is FITS for _, rest in pairs) else slow_json(value, file)
        entries = [(key, *slow_value(item, file[1], wanted[1], upcast)) for key, item in value]
        rest = {key: part for key, _, part in entries if part is not FITS}
        return [(key, typed) for key, typed, _ in entries], rest or FITS
    fits = file == wanted or (upcast and isinstance(file, str) and wanted in NARROWER.get(file, ()))
    if not fits:
        return None, slow_json(value, file)
    if file == "date" and wanted == "ntz":
        return datetime.datetime(value.year, value.month, value.day), FITS
    return value, FITS


def slow_struct(value: dict[str, Any], file: dict[str, Shape], wanted: dict[str, Shape], upcast: bool) -> tuple[dict[str, Any], Any]:
    typed = dict.fromkeys(wanted)
    rest = {}
    for name, item in value.items():
        if name in wanted:
            typed[name], part = slow_value(item, file[name], wanted[name], upcast)
        else:
            part = FITS if item is None else slow_json(item, file[name])
        if part is not FITS:
            rest[name] = part
    return typed, rest or FITS


def paths(file: dict[str, Shape], wanted: dict[str, Shape], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(path, "new" or "wider") of what mode addNewColumnsWithTypeWidening stops at."""
    lower = {name.lower() for name in wanted}
    for name, shape in file.items():
        path = prefix + name
        if name in wanted:
            yield from _inside(shape, wanted[name], path)
        elif name.lower() not in lower:
            yield path, "new"


def _inside(file: Shape, wanted: Shape, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(file, tuple) and isinstance(wanted, tuple) and file[0] == wanted[0] != "map":
        if file[0] == "list":
            yield from _inside(file[1], wanted[1], path + ".element")
        else:
            yield from paths(file[1], wanted[1], path + ".")
    elif isinstance(file, str) and isinstance(wanted, str) and file in GROWS.get(wanted, ()):
        yield path, "wider"


# --- the comparison ---


def read(file: dict[str, Shape], wanted: dict[str, Shape], rows: list[dict[str, Any]], **options: str) -> tuple[list[Any], list[Any]]:
    """Rows of the wanted columns, and what was rescued of each."""
    schema = pa.schema([(name, arrow_of(shape)) for name, shape in file.items()])
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.parquet"
        path.write_bytes(sink.getvalue())
        spec = parse_options(SourceSpec(folder, {"cloudFiles.format": "parquet", **options}), {}).reader
        fields = [(name, spark_of(shape), to_arrow_type(spark_of(shape))) for name, shape in wanted.items()]
        chunks = list(ParquetReader(spec, fields, files_for(folder)[0], frozenset()).chunks(FilePart(str(path), 0, 0)))
    found, rescued = [], []
    for chunk in chunks:
        for array, (_, _, arrow) in zip(chunk.columns, fields, strict=True):
            assert array.type == arrow
            array.validate(full=True)
        columns = [array.to_pylist() for array in chunk.columns]
        found += [dict(zip(wanted, row, strict=True)) for row in zip(*columns, strict=True)]
        texts = chunk.rescued if chunk.rescued is not None else [None] * len(columns[0])
        rescued += [None if text is None else json.loads("{" + text + "}", parse_float=Decimal) for text in texts]
    return found, rescued


def same(one: Any, two: Any) -> bool:
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    if {type(one), type(two)} == {Decimal, float}:  # a FLOAT is written with as many digits as it needs to come back
        return float(one) == float(two) or pa.scalar(float(one), pa.float32()) == pa.scalar(float(two), pa.float32())
    return bool(one == two) or (one != one and two != two)


@few
@given(cases(), st.booleans())
def test_every_value_is_in_its_column_or_rescued_as_the_slow_reader_says(case: Any, lossless: bool) -> None:
    file, wanted, rows = case
    mode = {"cloudFiles.schemaEvolutionMode": "rescue", "typedUpcast": "lossless" if lossless else "strict"}
    found, rescued = read(file, wanted, rows, **mode)
    for row, typed, rest in zip(rows, found, rescued, strict=True):
        expected, expected_rest = slow_struct(row, file, wanted, lossless)
        assert same(typed, expected)
        assert same(rest, None if expected_rest is FITS else expected_rest)


@few
@given(cases(), st.sampled_from(["addNewColumns", "addNewColumnsWithTypeWidening", "failOnNewColumns"]))
def test_a_mode_stops_exactly_at_what_it_is_told_to_stop_at(case: Any, mode: str) -> None:
    file, wanted, rows = case
    widens = mode == "addNewColumnsWithTypeWidening"
    stops = [path for path, kind in paths(file, wanted) if kind == "new" or widens]
    error: UnknownFields | None = None
    found: list[Any] = []
    try:
        found, _ = read(file, wanted, rows, **{"cloudFiles.schemaEvolutionMode": mode})
    except UnknownFields as caught:
        error = caught
    assert sorted(error.blob[1:-1].split(", ") if error else []) == sorted(stops)
    if error:
        assert isinstance(error, WiderType) == (widens and any(kind == "wider" for _, kind in paths(file, wanted)))
    else:
        assert all(same(typed, slow_struct(row, file, wanted, widens)[0]) for row, typed in zip(rows, found, strict=True))
