"""Columns by name: quoted for Spark, found without regard to case as Spark finds them, with the nearest name where there is none.

Types of columns are read and rewritten here, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from .errors import TransformError, argument_error


def quoted(name: str) -> str:
    """A name as Spark's parser takes it literally, with its dots and backticks."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The column of exactly this name; a dot in it is part of the name."""
    return F.col(quoted(name))


def listed(transform: str, names: str | Sequence[str], what: str = "columns") -> tuple[str, ...]:
    """One name or several as a tuple; not none."""
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found or not all(isinstance(name, str) and name for name in found):
        raise argument_error(transform, f"{what} must be one name or several, not {names!r}")
    return found


def same(first: str, second: str) -> bool:
    """Whether Spark takes two names for one."""
    return first.lower() == second.lower()


def find(names: Sequence[str], name: str, transform: str) -> str:
    """The name as the frame spells it.

    Raises:
        TransformError: TRANSFORM_UNKNOWN_COLUMN with the nearest name; TRANSFORM_AMBIGUOUS_COLUMN where several columns have it.
    """
    found = [one for one in names if same(one, name)]
    if len(found) > 1 and found.count(name) != 1:
        raise TransformError(
            "TRANSFORM_AMBIGUOUS_COLUMN",
            f"{transform}: {len(found)} columns are called {name!r}",
            todo="Rename them where the frame is made",
        )
    if found:
        return name if name in found else found[0]
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in names], n=1)
    nearest = next((one for one in names if near and one.lower() == near[0]), None)
    raise TransformError(
        "TRANSFORM_UNKNOWN_COLUMN",
        f"{transform}: there is no column {name!r}",
        why=f"The columns are {', '.join(names) or 'none'}",
        todo=f"Did you mean {nearest!r}?" if nearest else "",
    )


def require_new(names: Iterable[str], new: Iterable[str], transform: str) -> None:
    """Raise TRANSFORM_COLUMN_EXISTS if a new name is taken, by a column of the frame or by another new one."""
    taken = {one.lower(): one for one in names}
    for name in new:
        if name.lower() in taken:
            raise TransformError(
                "TRANSFORM_COLUMN_EXISTS",
                f"{transform}: a column {taken[name.lower()]!r} exists already, {name!r} would be the same to Spark",
                todo="Choose another name, or drop or rename the existing column first",
            )
        taken[name.lower()] = name


@dataclass(frozen=True)
class Place:
    """Where a value is: a column, and the fields below it if it lies in structs; and its type."""

    root: str
    fields: tuple[str, ...]
    data_type: DataType

    @property
    def value(self) -> Column:
        found = column(self.root)
        for name in self.fields:
            found = found.getField(name)
        return found


def place(schema: StructType, name: str, transform: str) -> Place:
    """The column `name`, or, if there is none and the name has dots, the field of a struct at that path."""
    names = schema.fieldNames()
    if "." not in name or any(same(one, name) for one in names):
        root = find(names, name, transform)
        return Place(root, (), _field(schema, root).dataType)
    first, *rest = name.split(".")
    root = find(names, first, transform)
    data_type, fields = _field(schema, root).dataType, []
    for part in rest:
        if not isinstance(data_type, StructType):
            raise TransformError("TRANSFORM_UNKNOWN_COLUMN", f"{transform}: {name!r} leads through {first!r}, which is not a struct")
        fields.append(find(data_type.fieldNames(), part, transform))
        data_type, first = _field(data_type, fields[-1]).dataType, part
    return Place(root, tuple(fields), data_type)


def _field(schema: StructType, name: str) -> StructField:
    return next(field for field in schema.fields if field.name == name)


def change_columns(frame: DataFrame, names: Sequence[str], transform: str, change: Callable[[Column, DataType], Column]) -> DataFrame:
    """The frame with the values at `names` (columns, or fields of structs by their path) changed; all else, and the order, as it was."""
    changed: dict[str, Column] = {}
    for name in names:
        at = place(frame.schema, name, transform)
        value = change(at.value, at.data_type)
        if at.fields:
            whole = changed.get(at.root, column(at.root))
            value = whole.withField(".".join(quoted(field) for field in at.fields), value)
        elif at.root in changed:
            raise argument_error(transform, f"column {name!r} is named twice")
        changed[at.root] = value
    return frame.select(*(changed[one].alias(one) if one in changed else column(one) for one in frame.columns))


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
