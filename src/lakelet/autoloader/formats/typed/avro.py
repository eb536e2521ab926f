"""Avro schemas as Arrow types, and decoded records as Arrow columns, with the types that Spark gives them (FF-25).

A union with null is a column that may be NULL; int and long become long, float and double become double; any other union becomes a struct
`member0`, `member1`, … of which one field is filled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from lakelet.autoloader.formats.option_tables import Option, flag
from lakelet.autoloader.formats.typed.old_calendar import mode_of, rebase_option
from lakelet.autoloader.formats.typed.reader import UPCAST, OpenFile, TypedFormat, TypedReader
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import FilePart, ReaderSpec


Change = Callable[[Any], Any]
"""A decoded value → what pyarrow takes for the Arrow type; None where both are the same."""

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_WIDTHS = {frozenset(["int", "long"]): pa.int64(), frozenset(["float", "double"]): pa.float64()}
_PYTHON = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "bytes": (bytes,),
    "string": (str,),
    "array": (list,),
    "map": (dict,),
}
_MEMBER = "lakelet-member"
"""Logical type of a branch without a name: fastavro returns a value of it together with the branch, by `_member_of_union`."""
_NAMED = {"record": (dict,), "error": (dict,), "enum": (str,), "fixed": (bytes,)}


@dataclass(frozen=True)
class AvroPlan:
    """How records of one writer's schema become Arrow columns.

    writer, wanted: schemas for fastavro, without logical types; wanted: None, or what avroSchema asks for.
    named: values of named types come as (name, value) from unions that have several of them.
    """

    writer: Any
    wanted: Any | None
    schema: Any
    changes: Sequence[Change | None]
    named: bool

    def batch(self, records: Sequence[Mapping[str, Any]], positions: Sequence[int]) -> Any:
        """The columns at these positions."""
        arrays = []
        for at in positions:
            field, change = self.schema.field(at), self.changes[at]
            values = [record[field.name] for record in records]
            arrays.append(pa.array(values if change is None else [change(value) for value in values], field.type))
        wanted = pa.schema([self.schema.field(at) for at in positions])
        if arrays:
            return pa.RecordBatch.from_arrays(arrays, schema=wanted)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(records), pa.struct([])))


def parsed_schema(schema: Any, *, marked: bool = False) -> Any:
    """The schema without logical types, for fastavro. `marked`: branches of unions are marked.

    Raises ValueError for what is not a schema of a record.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("it is not a record")
    try:
        return fastavro().parse_schema(_without_logical_types(schema, marked))
    except LakeletError:
        raise
    except Exception as problem:  # fastavro has several error classes of its own
        raise ValueError(f"{type(problem).__name__}: {problem}") from None


def plan_of(writer: Any, wanted: Any | None) -> AvroPlan:
    """The plan for files that `writer` describes. Raises ValueError, and NOT_SUPPORTED_YET for schemas that have no columns in Spark."""
    target = writer if wanted is None else fastavro().parse_schema(wanted)  # parsed schemas have full names only
    if not isinstance(target, dict) or target.get("type") != "record":
        raise _refused_schema("its records have no fields")
    types = _Types(marked=wanted is None)
    found = [(field["name"], *types.of(field["type"])) for field in types.fields_of(target)]
    schema = pa.schema([(name, arrow) for name, arrow, _ in found])
    target_schema = None if wanted is None else parsed_schema(wanted)
    return AvroPlan(parsed_schema(writer, marked=wanted is None), target_schema, schema, [change for _, _, change in found], types.named)


def _without_logical_types(schema: Any, marked: bool) -> Any:
    """A copy without logical types and without what fastavro notes in parsed schemas."""
    if isinstance(schema, list):
        branches = [_without_logical_types(branch, marked) for branch in schema]
        values = [branch for branch in branches if _kind_of(branch) != "null"]
        return [_marked(branch, values) if marked and _is_struct(values) else branch for branch in branches]
    if isinstance(schema, dict):
        kept = {
            key: value for key, value in schema.items() if not key.startswith("__") and key not in ("logicalType", "precision", "scale")
        }
        inner = {key: _without_logical_types(kept[key], marked) for key in ("type", "items", "values") if key in kept}
        if "fields" in kept:
            inner["fields"] = [{**field, "type": _without_logical_types(field["type"], marked)} for field in kept["fields"]]
        return {**kept, **inner}
    return schema


def _marked(branch: Any, kept: Sequence[Any]) -> Any:
    if _kind_of(branch) not in _PYTHON:
        return branch
    return {**(branch if isinstance(branch, dict) else {"type": branch}), "logicalType": _MEMBER, "member": kept.index(branch)}


def _member_of_union(value: Any, writer: Any = None, reader: Any = None) -> tuple[int, Any]:
    return writer["member"], value


def _is_struct(branches: Sequence[Any]) -> bool:
    """Whether a union with these branches, null apart, is a struct: not where it has one, or takes numbers of two widths."""
    return len(branches) > 1 and (not all(isinstance(one, str) for one in branches) or frozenset(branches) not in _WIDTHS)


class _Types:
    """Translates one schema; knows the named types that it has passed."""

    def __init__(self, *, marked: bool) -> None:
        self._marked = marked
        self._known: dict[str, Any] = {}
        self._open: list[str] = []
        self.named = False

    def fields_of(self, record: Any) -> list[Any]:
        self._known[record["name"]] = record
        self._open.append(record["name"])
        return list(record["fields"])

    def of(self, schema: Any) -> tuple[Any, Change | None]:
        """Arrow type and change of a schema."""
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._named(schema) if schema not in _PLAIN else (_PLAIN[schema], None)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.of(kind)
        if kind in ("record", "error"):
            return self._record(schema)
        if kind == "array":
            arrow, change = self.of(schema["items"])
            return pa.list_(arrow), None if change is None else _change_items(change)
        if kind == "map":
            arrow, change = self.of(schema["values"])
            return pa.map_(pa.string(), arrow), _change_entries(change)
        if kind in ("enum", "fixed"):
            self._known[schema["name"]] = schema
        return self._scalar(kind, schema)

    def _scalar(self, kind: str, schema: Any) -> tuple[Any, Change | None]:
        if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
            precision, scale = int(schema["precision"]), int(schema.get("scale", 0))
            return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale), _change_to_decimal(scale)
        if kind in ("enum", "fixed"):
            return (pa.string() if kind == "enum" else pa.binary()), None
        if kind not in _PLAIN:
            return self._named(kind)
        return _LOGICAL.get((kind, schema.get("logicalType")), _PLAIN[kind]), None

    def _named(self, name: str) -> tuple[Any, Change | None]:
        if name not in self._known:
            raise _refused_schema(f"the type {name} is not defined")
        return self.of(self._known[name])

    def _record(self, schema: Any) -> tuple[Any, Change | None]:
        name = schema["name"]
        self._known[name] = schema
        if name in self._open:
            raise _refused_schema(f"the type {name} contains itself")
        self._open.append(name)
        found = [(field["name"], *self.of(field["type"])) for field in schema["fields"]]
        self._open.pop()
        changes = {name: change for name, _, change in found if change is not None}
        return pa.struct([pa.field(name, arrow) for name, arrow, _ in found]), _change_members(changes) if changes else None

    def _union(self, branches: Sequence[Any]) -> tuple[Any, Change | None]:
        kept = [branch for branch in branches if _kind_of(branch) != "null"]
        if not kept:
            return pa.null(), None
        if len(kept) == 1:
            return self.of(kept[0])
        return self._members_of(kept) if _is_struct(kept) else (_WIDTHS[frozenset(kept)], None)

    def _members_of(self, branches: Sequence[Any]) -> tuple[Any, Change | None]:
        """A struct with one field per branch; which one a value belongs to must follow from its mark, its name or its Python type."""
        found = [self.of(branch) for branch in branches]
        names = [self._name(branch) for branch in branches]
        several = sum(name is not None for name in names) > 1
        tests = [
            (name, ()) if several and name is not None else (at, ()) if self._marked and name is None else (None, self._types(branch))
            for at, (branch, name) in enumerate(zip(branches, names, strict=True))
        ]
        if len(set(tests)) < len(tests):
            raise _refused_schema(
                "a union has branches that cannot be distinguished: " + ", ".join(_kind_of(branch) for branch in branches)
            )
        self.named = self.named or several
        arrow = pa.struct([pa.field(f"member{at}", kind) for at, (kind, _) in enumerate(found)])
        changes = [change for _, change in found]

        def pick(value: Any) -> Any:
            if value is None:
                return None
            name, inner = value if isinstance(value, tuple) else (None, value)
            for at, (wanted, types) in enumerate(tests):
                if name == wanted if name is not None else wanted is None and type(inner) in types:
                    change = changes[at]
                    return {f"member{at}": inner if change is None else change(inner)}
            raise ValueError("a value fits no branch of its union")

        return arrow, pick

    def _name(self, branch: Any) -> str | None:
        """The full name of a named type; None for other branches."""
        if isinstance(branch, dict):
            return branch["name"] if branch["type"] in _NAMED else None
        return branch if branch in self._known else None

    def _types(self, branch: Any) -> tuple[type, ...]:
        schema = self._known.get(branch, branch) if isinstance(branch, str) else branch
        kind = _kind_of(schema)
        return _NAMED[kind] if kind in _NAMED else _PYTHON[kind]


def _kind_of(branch: Any) -> str:
    kind = branch.get("type") if isinstance(branch, dict) else branch
    return str(kind) if isinstance(kind, str) else _kind_of(kind)


def _change_items(change: Change) -> Change:
    return lambda values: None if values is None else [change(value) for value in values]


def _change_entries(change: Change | None) -> Change:
    def pairs(value: Any) -> Any:
        if value is None or change is None:
            return None if value is None else list(value.items())
        return [(key, change(inner)) for key, inner in value.items()]

    return pairs


def _change_members(changes: Mapping[str, Change]) -> Change:
    def changed(value: Any) -> Any:
        return None if value is None else {**value, **{name: change(value[name]) for name, change in changes.items()}}

    return changed


def _change_to_decimal(scale: int) -> Change:
    def read(value: Any) -> Any:
        return None if value is None else Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{scale}")

    return read


def _refused_schema(what: str) -> LakeletError:
    return LakeletError("NOT_SUPPORTED_YET", f"an Avro schema has no columns in Spark: {what}", todo="Write the files with another schema.")


def fastavro() -> Any:
    """The library. Raises AVRO_MISSING."""
    try:
        import fastavro as library
    except ImportError:
        raise LakeletError(
            "AVRO_MISSING",
            "Avro files are read with the Python package fastavro, which is not installed here",
            todo="Install the extra: pip install 'lakelet[avro]' (on a cluster: in the Python environment of its workers too).",
        ) from None
    for kind in _PYTHON:
        library.read.LOGICAL_READERS[f"{kind}-{_MEMBER}"] = _member_of_union
    return library


_ROWS = 8 << 10
_DATES = "datetimeRebaseMode"


def _schema_text(text: str) -> str:
    try:
        parsed_schema(json.loads(text))
    except (ValueError, TypeError, KeyError) as problem:
        raise ValueError(f"must be an Avro schema in JSON ({problem})") from None
    return text


class AvroReader(TypedReader):
    """Reads records block by block without their logical types, and makes Arrow columns of them, so that no value is changed on the way."""

    def open(self, stream: BinaryIO, part: FilePart) -> OpenFile:
        blocks = fastavro().block_reader(stream)
        plan = _plan_for(self.spec, blocks.writer_schema)
        mode = mode_of(
            {key.encode(): value for key, value in blocks.metadata.items()},
            self.spec.format_options[_DATES.lower()],
            since=(3, 0),
            legacy_key=b"org.apache.spark.legacyDateTime",
        )

        def read(positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
            before = 0
            for records in _batches_of_records(blocks, plan):
                yield before, plan.batch(records, positions)
                before += len(records)

        return OpenFile(plan.schema, read, [mode] * len(plan.schema))


class AvroFormat(TypedFormat):
    """`cloudFiles.format` avro."""

    name = "avro"
    reader_class = AvroReader
    options = (
        Option("avroSchema", _schema_text),
        flag("mergeSchema", False, notice="the schemas of all sampled files are always merged"),
        rebase_option(_DATES),
        UPCAST,
    )

    def schema(self, spec: ReaderSpec, stream: BinaryIO) -> Any:
        return _plan_for(spec, fastavro().block_reader(stream).writer_schema).schema


def _plan_for(spec: ReaderSpec, writer: Any) -> AvroPlan:
    wanted = spec.format_options["avroschema"]
    return plan_of(writer, None if wanted is None else json.loads(wanted))


def _batches_of_records(blocks: Any, plan: AvroPlan) -> Iterator[list[Any]]:
    """Decoded records, also those before a damage. Raises ValueError for whatever a damaged file makes of the library."""
    records, found = _decoded_records(blocks, plan), []
    try:
        for record in records:
            found.append(record)
            if len(found) == _ROWS:
                yield found
                found = []
    except Exception as error:  # fastavro raises whatever a broken block leads to: EOFError, IndexError, struct.error, zlib.error
        if found:
            yield found
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if found:
        yield found


def _decoded_records(blocks: Any, plan: AvroPlan) -> Iterator[Any]:
    decode = fastavro().schemaless_reader
    named = {"return_named_type": plan.named, "return_named_type_override": plan.named}
    for block in blocks:
        content = block.bytes_
        for _ in range(block.num_records):
            yield decode(content, plan.writer, plan.wanted, handle_unicode_errors="replace", **named)
