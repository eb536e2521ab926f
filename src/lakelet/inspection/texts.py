"""Texts that are not UTF-8.

Spark keeps whatever bytes a STRING is made of (`CAST(binary AS STRING)`, a text file in another encoding), and stores them. Python and
delta-rs read UTF-8 only. What is shown of such a text has a replacement character (�) for each byte that does not belong there.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakelet.autoloader.formats.typed import arrow_arrays


def readable(table: pa.Table) -> pa.Table:
    """The table with texts that Python can read; other columns as they are."""
    for at, name in enumerate(table.schema.names):
        column = table.column(at)
        if not _is_whole(column):
            chunks = [_readable(chunk) for chunk in column.chunks]
            table = table.set_column(at, table.schema.field(name), pa.chunked_array(chunks, column.type))
    return table


def _is_whole(column: Any) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _readable(array: Any) -> Any:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = (value if value is None else value.decode("utf-8", "replace") for value in array.cast(pa.large_binary()).to_pylist())
        return pa.array(texts, kind)
    if pa.types.is_struct(kind):
        return arrow_arrays.struct_of(array, [_readable(child) for child in array.flatten()], kind)
    if pa.types.is_map(kind):
        offsets, keys, values = arrow_arrays.entries_of(array)
        return arrow_arrays.map_of(array, offsets, _readable(keys), _readable(values), kind)
    if pa.types.is_list(kind):
        offsets, items = arrow_arrays.items_of(array)
        return arrow_arrays.list_of(array, offsets, _readable(items), kind)
    return array
