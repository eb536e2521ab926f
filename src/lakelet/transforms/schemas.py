"""Types of columns looked at and rewritten."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from .columns import require_new
from .errors import TransformError


def require_string(data_type: object, transform: str) -> None:
    """Raise TRANSFORM_TYPE for anything but a string."""
    if not isinstance(data_type, StringType):
        shown = data_type.simpleString() if isinstance(data_type, DataType) else str(data_type)
        raise TransformError("TRANSFORM_TYPE", f"{transform} needs a column of strings, this one is {shown}", todo="Cast it first")


def renamed_fields(data_type: StructType, name: Callable[[str], str], transform: str) -> StructType:
    """The struct with every name changed by `name`, at any depth.

    Raises:
        TransformError: TRANSFORM_COLUMN_EXISTS where two fields of one struct would have one name.
    """
    fields = [StructField(name(f.name), _renamed(f.dataType, name, transform), f.nullable, f.metadata) for f in data_type.fields]
    require_new([], [field.name for field in fields], transform)
    return StructType(fields)


def _renamed(data_type: DataType, name: Callable[[str], str], transform: str) -> DataType:
    if isinstance(data_type, StructType):
        return renamed_fields(data_type, name, transform)
    if isinstance(data_type, ArrayType):
        return ArrayType(_renamed(data_type.elementType, name, transform), data_type.containsNull)
    if isinstance(data_type, MapType):
        key, value = (_renamed(one, name, transform) for one in (data_type.keyType, data_type.valueType))
        return MapType(key, value, data_type.valueContainsNull)
    return data_type
