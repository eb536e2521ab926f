"""Nested data made flat: structs and arrays as columns and rows, or as several flat tables with keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from .applied import OneToOne, transform
from .columns import column, find, listed, place, require_new, same
from .errors import TransformError, argument_error, streaming_error


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


OneToMany = Callable[[DataFrame], dict[str, DataFrame]]

KEY, PARENT, POSITION = "_key", "_parent_key", "_position"
_ITEM = "__lakelet_item"


@dataclass(frozen=True)
class _Options:
    separator: str
    on_collision: str


@transform
def relationalize(
    name: str = "root", *, keys: str | Sequence[str] | None = None, separator: str = "_", on_collision: str = "error"
) -> OneToMany:
    """Turn nested rows into flat tables, by name: one for the rows, and one for each array or map, at any depth.

    - Structs are flattened as by `flatten`. Each table has `_key` STRING first; a table of an array also `_parent_key`, the `_key` of the
      row it was in, and `_position` INT from 0.
    - An array `items` of table `orders` becomes table `orders_items`, and in `orders` a column `items_size` INT: how many rows there are,
      NULL for a NULL array. An item that is not a struct is in column `value`; an array of arrays makes a table `orders_items_value` too,
      whose parents are the rows of `orders_items`. A map has `key` and `value`, in the order in which it is stored.
    - `_key` depends on the data alone (SHA-256): of `keys` where they are given, which must tell all rows apart, and then of the
      path of positions below. Without `keys` it is that of the whole row; rows that are equal are numbered, which needs all rows at hand.

    Raises:
        TransformError: TRANSFORM_STREAMING for a stream without `keys`; TRANSFORM_COLUMN_EXISTS for names that collide.

    >>> from lakelet.transforms import relationalize
    >>> orders = spark.sql("SELECT 7 AS id, array(named_struct('sku', 'a', 'n', 2), named_struct('sku', 'b', 'n', 1)) AS items")
    >>> tables = relationalize("orders", keys="id")(orders)
    >>> [(table, frame.columns) for table, frame in tables.items()]
    [('orders', ['_key', 'id', 'items_size']), ('orders_items', ['_key', '_parent_key', '_position', 'sku', 'n'])]
    >>> tables["orders_items"].select("_position", "sku", "n").collect()
    [Row(_position=0, sku='a', n=2), Row(_position=1, sku='b', n=1)]
    """
    check_collision("relationalize", on_collision)
    wanted = None if keys is None else listed("relationalize", keys, "keys")
    if not name:
        raise argument_error("relationalize", "the name is empty")

    def run(frame: DataFrame) -> dict[str, DataFrame]:
        if wanted is None and frame.isStreaming:
            raise streaming_error(
                "relationalize without keys", "Equal rows are numbered, which needs all of them", "Name the keys of a row"
            )
        require_new(frame.columns, [KEY], "relationalize")
        keyed = _with_key(frame, wanted)
        result: dict[str, DataFrame] = {}
        for table, made in _tables(name, keyed, [KEY], frame.columns, _Options(separator, on_collision)):
            if table.lower() in {one.lower() for one in result}:
                what = f"relationalize: two arrays would become table {table!r}"
                raise TransformError("TRANSFORM_COLUMN_EXISTS", what, todo="Rename one of them, or choose another separator")
            result[table] = made
        return result

    return run


def _with_key(frame: DataFrame, keys: Sequence[str] | None) -> DataFrame:
    """The frame with its key in front."""
    if keys is not None:
        found = [find(frame.columns, key, "relationalize") for key in keys]
        return frame.select(_hash(_text(found)).alias(KEY), *map(column, frame.columns))
    same = Window.partitionBy(_text(frame.columns)).orderBy(F.lit(1))
    return frame.select(_hash(_text(frame.columns), F.row_number().over(same)).alias(KEY), *map(column, frame.columns))


def _text(names: Sequence[str]) -> Column:
    """Columns as one text that is equal for equal values only, in every session."""
    stamp = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    options = {"ignoreNullFields": "false", "timeZone": "UTC", "timestampFormat": stamp + "XXX", "timestampNTZFormat": stamp}
    return F.to_json(F.struct(*map(column, names)), options)


def _hash(*values: Column) -> Column:
    return F.sha2(F.concat_ws("|", *(value.cast("string") for value in values)), 256)


def _tables(
    name: str, frame: DataFrame, internal: Sequence[str], columns: Sequence[str], options: _Options
) -> Iterator[tuple[str, DataFrame]]:
    """The table of `frame`, whose keys are in `internal`, and those of the arrays in `columns`."""
    schema = StructType([field for field in frame.schema.fields if field.name in columns])
    found = list(leaves(schema))
    plain = [(*leaf.path[:-1], f"{leaf.path[-1]}{options.separator}size") if _nested(leaf) else leaf.path for leaf in found]
    names = named(plain, options.separator, options.on_collision, "relationalize", taken=[KEY, PARENT, POSITION])
    values = [F.when(leaf.value.isNotNull(), F.size(leaf.value)) if _nested(leaf) else leaf.value for leaf in found]
    yield name, frame.select(*internal, *(value.alias(one) for value, one in zip(values, names, strict=True)))
    for leaf in filter(_nested, found):
        table = options.separator.join((name, *leaf.path))
        yield from _tables(table, *_items(frame, leaf), options)


def _items(frame: DataFrame, leaf: Leaf) -> tuple[DataFrame, list[str], list[str]]:
    """One row per item of an array or map: the frame, the names of its keys, and those of its values."""
    array = F.map_entries(leaf.value) if isinstance(leaf.data_type, MapType) else leaf.value
    rows = frame.select(F.col(KEY).alias(PARENT), F.posexplode(array).alias(POSITION, _ITEM))
    path = F.lit("/".join(leaf.path))
    keyed = rows.select(_hash(F.col(PARENT), path, F.col(POSITION)).alias(KEY), PARENT, POSITION, _ITEM)
    item = keyed.schema[_ITEM].dataType
    internal = [KEY, PARENT, POSITION]
    if isinstance(item, StructType) and item.fields:
        fields = item.fieldNames()
        clear = [one for one in fields if one in internal]
        if clear:
            what = f"relationalize: field {clear[0]!r} of {'.'.join(leaf.path)!r} has the name of a column that is added"
            raise TransformError("TRANSFORM_COLUMN_EXISTS", what, todo="Rename it first")
        return keyed.select(*internal, *(F.col(_ITEM).getField(one).alias(one) for one in fields)), internal, fields
    return keyed.select(*internal, F.col(_ITEM).alias("value")), internal, ["value"]


def _nested(leaf: Leaf) -> bool:
    return isinstance(leaf.data_type, ArrayType | MapType)
