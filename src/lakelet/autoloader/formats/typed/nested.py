"""Taking Arrow's nested arrays apart and putting them together again, whatever slice or encoding they come as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
