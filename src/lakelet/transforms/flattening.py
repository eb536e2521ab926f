"""Structs and arrays made flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from .applied import transform
from .columns import column, find, place, require_new, same
from .errors import TransformError, argument_error

OneToOne = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Leaf:
    """A value that is not a struct: the names that lead to it, its type, and how it is got."""

    path: tuple[str, ...]
    data_type: DataType
    value: Column


def leaves(schema: StructType, levels: int | None = None) -> Iterator[Leaf]:
    """The values of a row with its structs opened, `levels` deep or all. A struct without fields stays."""
    for field in schema.fields:
        yield from _opened(Leaf((field.name,), field.dataType, column(field.name)), levels)


def _opened(leaf: Leaf, levels: int | None) -> Iterator[Leaf]:
    if not isinstance(leaf.data_type, StructType) or levels == 0 or not leaf.data_type.fields:
        yield leaf
        return
    for field in leaf.data_type.fields:
        inner = Leaf((*leaf.path, field.name), field.dataType, leaf.value.getField(field.name))
        yield from _opened(inner, None if levels is None else levels - 1)


def named(paths: Sequence[tuple[str, ...]], separator: str, on_collision: str, transform: str, taken: Sequence[str] = ()) -> list[str]:
    """A name for each path, none twice.

    Of those that would be called the same (to Spark, without regard to case) the shortest path keeps the name; with
    `on_collision="number"` the others get `_2`, `_3` … in their order, passing over names in use.
    """
    plain = [separator.join(path) for path in paths]
    if on_collision == "error":
        require_new(taken, plain, transform)
        return plain
    used = {name.lower() for name in taken}
    result = dict.fromkeys(range(len(paths)), "")
    waiting = []
    for index in sorted(range(len(paths)), key=lambda i: (len(paths[i]), i)):
        if plain[index].lower() in used:
            waiting.append(index)
        else:
            result[index] = plain[index]
            used.add(plain[index].lower())
    for index in sorted(waiting):
        number = 2
        while f"{plain[index]}_{number}".lower() in used:
            number += 1
        result[index] = f"{plain[index]}_{number}"
        used.add(result[index].lower())
    return [result[index] for index in range(len(paths))]


def check_collision(transform: str, on_collision: str) -> None:
    if on_collision not in ("error", "number"):
        raise argument_error(transform, f"on_collision={on_collision!r} is neither 'error' nor 'number'")


@transform
def flatten(*, separator: str = "_", levels: int | None = None, on_collision: str = "error") -> OneToOne:
    """Replace each struct by its fields, at all depths or `levels` deep: `user.name.first` becomes `user_name_first`, at its place.

    Arrays and maps stay as they are (`explode`, `relationalize`), a struct without fields too. The fields of a NULL struct are NULL,
    as those of a struct of NULLs. Two values that would get one name, without regard to case, are an error; with
    `on_collision="number"` the one that lay less deep, then the first, keeps the name, the others get `_2`, `_3` ….

    Raises:
        TransformError: TRANSFORM_COLUMN_EXISTS.

    >>> from lakelet.transforms import flatten
    >>> spark.sql("SELECT 1 AS id, named_struct('a', 2, 'b', named_struct('c', 3)) AS s").transform(flatten()).first()
    Row(id=1, s_a=2, s_b_c=3)
    """
    check_collision("flatten", on_collision)
    if levels is not None and levels < 1:
        raise argument_error("flatten", f"levels={levels!r} is less than 1")

    def run(frame: DataFrame) -> DataFrame:
        found = list(leaves(frame.schema, levels))
        names = named([leaf.path for leaf in found], separator, on_collision, "flatten")
        return frame.select(*(leaf.value.alias(name) for leaf, name in zip(found, names, strict=True)))

    return run


@transform
def explode(array: str, *, into: str | None = None, position: str | None = None, outer: bool = True) -> OneToOne:
    """One row per element of an array, or per entry of a map; one level: the elements of an array of arrays are arrays.

    Args:
        array: The column.
        into: Name of the column for the element, at the place of the array (default: the array's name). For a map the columns are
            `<into>_key` and `<into>_value`.
        position: Name of a column for the position, INT from 0, in front of the element; None: no such column.
        outer: Keep a row whose array is empty or NULL, with NULL as element and position; else it is left out.

    >>> from lakelet.transforms import explode
    >>> rows = spark.sql("SELECT 1 AS id, array('a', 'b') AS tags UNION ALL SELECT 2, array()")
    >>> rows.transform(explode("tags", into="tag", position="n")).collect()
    [Row(id=1, n=0, tag='a'), Row(id=1, n=1, tag='b'), Row(id=2, n=None, tag=None)]
    """

    def run(frame: DataFrame) -> DataFrame:
        name = find(frame.columns, array, "explode")
        data_type = place(frame.schema, name, "explode").data_type
        if not isinstance(data_type, ArrayType | MapType):
            raise TransformError("TRANSFORM_TYPE", f"explode: {name!r} is {data_type.simpleString()}, neither array nor map")
        target = into or name
        values = [f"{target}_key", f"{target}_value"] if isinstance(data_type, MapType) else [target]
        added = [position, *values] if position else values
        require_new([one for one in frame.columns if not same(one, name)], added, "explode")
        made = (F.posexplode_outer if outer else F.posexplode)(column(name))
        inner = ["__lakelet_position", *(f"__lakelet_value_{n}" for n in range(len(values)))]
        exploded = frame.select("*", made.alias(*inner))
        new = dict(zip([position or "", *values], inner, strict=True))
        columns: list[Column] = []
        for one in frame.columns:
            columns += [F.col(new[name_]).alias(name_) for name_ in added] if one == name else [column(one)]
        return exploded.select(*columns)

    return run
