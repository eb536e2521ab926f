"""Arrow's arrays taken apart and put together again, whatever slice or encoding they come as, and their values as JSON text.

The JSON texts are how parquet, avro and orc values look in the rescued column (FF-22). Numbers stay numbers (a decimal is written out:
`1.25`), dates and timestamps are ISO 8601 texts, binary values are base64, NaN and the infinities are texts. A map with text keys is an
object; other keys become texts.
"""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc


def plain(array: Any) -> Any:
    """The array without encodings that only concern its storage: chunks, dictionaries, extension types, large or fixed-size variants."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        return plain(array.storage)
    if pa.types.is_dictionary(array.type) or pa.types.is_run_end_encoded(array.type):
        decoded = array.dictionary_decode() if pa.types.is_dictionary(array.type) else pc.run_end_decode(array)
        return plain(decoded)
    wanted = plain_type(array.type)
    return array if wanted == array.type else array.cast(wanted)


def plain_type(kind: Any) -> Any:
    """The type that `plain` gives arrays of this type; types inside nested ones stay."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind) or _is_list_view(kind):
        return pa.list_(kind.value_field)
    return kind


def _is_list_view(kind: Any) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def with_leaves(field: Any, change: Callable[[Any], Any]) -> Any:
    """The type of a field with other types for its leaves: `change` gets the field of each, in the order of the file."""
    kind = field.type
    if not pa.types.is_nested(kind):
        return change(field)
    fields = [kind.field(at).with_type(with_leaves(kind.field(at), change)) for at in range(kind.num_fields)]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(fields[0].type.field(0), fields[0].type.field(1))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    return (pa.large_list if pa.types.is_large_list(kind) else pa.list_)(fields[0])


def leaves_of(field: Any) -> list[Any]:
    """The fields of the leaves of a field, in the order of the file."""
    found: list[Any] = []

    def keep(leaf: Any) -> Any:
        found.append(leaf)
        return leaf.type

    with_leaves(field, keep)
    return found


def items_of(array: Any) -> tuple[list[int], Any]:
    """Offsets that start at 0, one more than rows, and the items between them."""
    offsets = array.offsets.to_pylist()
    first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
    return [offset - first for offset in offsets] or [0], array.values.slice(first, last - first)


def entries_of(array: Any) -> tuple[list[int], Any, Any]:
    """Like `items_of`, for a map: offsets, keys, values."""
    offsets = array.offsets.to_pylist()
    first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
    keys, values = array.keys.slice(first, last - first), array.items.slice(first, last - first)
    return [offset - first for offset in offsets] or [0], keys, values


def list_of(array: Any, offsets: list[int], items: Any, kind: Any) -> Any:
    """A list array of type `kind` with the rows of `array` and other items."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=kind, mask=array.is_null())


def map_of(array: Any, offsets: list[int], keys: Any, values: Any, kind: Any) -> Any:
    """A map array of type `kind` with the rows of `array` and other entries."""
    if not array.null_count:
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values, type=kind)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values, type=kind, mask=array.is_null())


def struct_of(array: Any, columns: list[Any], kind: Any) -> Any:
    """A struct array of type `kind` with the rows of `array` and other columns."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    if not fields:
        return pa.array([{} if there else None for there in array.is_valid().to_pylist()], kind)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=array.is_null())


Texts: TypeAlias = "list[str | None]"
_NOT_FINITE = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}


def json_texts(array: Any) -> Texts:
    """The JSON text of each value; None where the value is NULL."""
    if isinstance(array.type, pa.UuidType):
        return [None if value is None else f'"{uuid.UUID(bytes=value)}"' for value in array.storage.to_pylist()]
    array = plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        return _object_texts(array)
    if pa.types.is_map(kind):
        return _map_texts(array)
    if pa.types.is_list(kind):
        offsets, items = items_of(array)
        return _list_texts(array, offsets, [text or "null" for text in json_texts(items)])
    return _scalar_texts(array)


def quoted(text: str) -> str:
    """A JSON string."""
    return json.dumps(text, ensure_ascii=False)


def _scalar_texts(array: Any) -> Texts:
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return list(array.cast(pa.string()).to_pylist())
    if pa.types.is_float32(kind):
        return [None if text is None else _number_text(float(text), text) for text in array.cast(pa.string()).to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else _number_text(value, repr(value)) for value in array.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in array.to_pylist()]
    if pa.types.is_string(kind):  # files may hold texts that are not UTF-8; JSON cannot
        return [None if value is None else quoted(value.decode("utf-8", "replace")) for value in array.view(pa.binary()).to_pylist()]
    if pa.types.is_binary(kind):
        return [None if value is None else f'"{base64.b64encode(value).decode()}"' for value in array.to_pylist()]
    if pa.types.is_timestamp(kind):
        return [None if text is None else f'"{text}"' for text in _moment_texts(array).to_pylist()]
    if pa.types.is_duration(kind):
        return list(array.cast(pa.int64()).cast(pa.string()).to_pylist())
    return [None if text is None else quoted(text) for text in array.cast(pa.string()).to_pylist()]  # dates and times of day


def _number_text(value: float, text: str) -> str:
    return '"NaN"' if math.isnan(value) else _NOT_FINITE.get(value, text)


def _moment_texts(array: Any) -> Any:
    """ISO texts; `Z` marks values with a time zone, digits of the fraction are as many as needed."""
    zone = array.type.tz
    if zone not in (None, "UTC"):
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    text = pc.replace_substring(array.cast(pa.string()), " ", "T")
    text = pc.replace_substring_regex(text, r"(\.\d*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(text, r"\.(Z?)$", r"\1")


def _object_texts(array: Any) -> Texts:
    members = [
        [None if text is None else f"{quoted(field.name)}:{text}" for text in json_texts(column)]
        for field, column in zip(array.type, array.flatten(), strict=True)
    ]
    rows = zip(*members, strict=True) if members else ((),) * len(array)
    valid = array.is_valid().to_pylist()
    return [
        "{" + ",".join(text for text in row if text is not None) + "}" if there else None for row, there in zip(rows, valid, strict=True)
    ]


def _list_texts(array: Any, offsets: list[int], texts: list[str]) -> Texts:
    valid = array.is_valid().to_pylist()
    return ["[" + ",".join(texts[offsets[at] : offsets[at + 1]]) + "]" if there else None for at, there in enumerate(valid)]


def _map_texts(array: Any) -> Texts:
    offsets, keys, values = entries_of(array)
    names = [text if text is not None and text.startswith('"') else quoted(text or "null") for text in json_texts(keys)]
    texts = [text or "null" for text in json_texts(values)]
    found = []
    for at, there in enumerate(array.is_valid().to_pylist()):
        entries = range(offsets[at], offsets[at + 1])
        found.append("{" + ",".join(f"{names[entry]}:{texts[entry]}" for entry in entries) + "}" if there else None)
    return found
