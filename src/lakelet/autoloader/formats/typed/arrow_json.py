"""Values of Arrow arrays as JSON text: how parquet, avro and orc values look in the rescued column (FF-22).

Numbers stay numbers (a decimal is written out: `1.25`), dates and timestamps are ISO 8601 texts, binary values are base64, NaN and the
infinities are texts. A map with text keys is an object; other keys become texts.
"""

from __future__ import annotations

import base64
import json
import math
import uuid
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.typed.nested import entries_of, items_of, plain

Texts: TypeAlias = "list[str | None]"
_NOT_FINITE = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}


def json_texts(array: Any) -> Texts:
    """The JSON text of each value; None where the value is NULL."""
    if isinstance(array.type, pa.UuidType):
        return [None if value is None else f'"{uuid.UUID(bytes=value)}"' for value in array.storage.to_pylist()]
    array = plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        return _objects(array)
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind):
        offsets, items = items_of(array)
        return _lists(array, offsets, [text or "null" for text in json_texts(items)])
    return _scalars(array)


def quoted(text: str) -> str:
    """A JSON string."""
    return json.dumps(text, ensure_ascii=False)


def _scalars(array: Any) -> Texts:
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return list(array.cast(pa.string()).to_pylist())
    if pa.types.is_float32(kind):
        return [None if text is None else _number(float(text), text) for text in array.cast(pa.string()).to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else _number(value, repr(value)) for value in array.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in array.to_pylist()]
    if pa.types.is_string(kind):  # files may hold texts that are not UTF-8; JSON cannot
        return [None if value is None else quoted(value.decode("utf-8", "replace")) for value in array.view(pa.binary()).to_pylist()]
    if pa.types.is_binary(kind):
        return [None if value is None else f'"{base64.b64encode(value).decode()}"' for value in array.to_pylist()]
    if pa.types.is_timestamp(kind):
        return [None if text is None else f'"{text}"' for text in _moments(array).to_pylist()]
    if pa.types.is_duration(kind):
        return list(array.cast(pa.int64()).cast(pa.string()).to_pylist())
    return [None if text is None else quoted(text) for text in array.cast(pa.string()).to_pylist()]  # dates and times of day


def _number(value: float, text: str) -> str:
    return '"NaN"' if math.isnan(value) else _NOT_FINITE.get(value, text)


def _moments(array: Any) -> Any:
    """ISO texts; `Z` marks values with a time zone, digits of the fraction are as many as needed."""
    zone = array.type.tz
    if zone not in (None, "UTC"):
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    text = pc.replace_substring(array.cast(pa.string()), " ", "T")
    text = pc.replace_substring_regex(text, r"(\.\d*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(text, r"\.(Z?)$", r"\1")


def _objects(array: Any) -> Texts:
    members = [
        [None if text is None else f"{quoted(field.name)}:{text}" for text in json_texts(column)]
        for field, column in zip(array.type, array.flatten(), strict=True)
    ]
    rows = zip(*members, strict=True) if members else ((),) * len(array)
    valid = array.is_valid().to_pylist()
    return [
        "{" + ",".join(text for text in row if text is not None) + "}" if there else None for row, there in zip(rows, valid, strict=True)
    ]


def _lists(array: Any, offsets: list[int], texts: list[str]) -> Texts:
    valid = array.is_valid().to_pylist()
    return ["[" + ",".join(texts[offsets[at] : offsets[at + 1]]) + "]" if there else None for at, there in enumerate(valid)]


def _maps(array: Any) -> Texts:
    offsets, keys, values = entries_of(array)
    names = [text if text is not None and text.startswith('"') else quoted(text or "null") for text in json_texts(keys)]
    texts = [text or "null" for text in json_texts(values)]
    found = []
    for at, there in enumerate(array.is_valid().to_pylist()):
        entries = range(offsets[at], offsets[at + 1])
        found.append("{" + ",".join(f"{names[entry]}:{texts[entry]}" for entry in entries) + "}" if there else None)
    return found
