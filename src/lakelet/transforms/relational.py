"""Nested data as several flat tables with keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from .applied import transform
from .columns import column, find, listed, require_new
from .errors import TransformError, argument_error, streaming_error
from .flattening import Leaf, check_collision, leaves, named

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
