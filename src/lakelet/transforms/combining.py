"""Several frames into one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType, DecimalType, IntegralType

from .applied import OneToOne, transform
from .columns import column, find, listed, require_new, same
from .errors import TransformError, argument_error, streaming_error

_KINDS = ("inner", "left", "right", "full", "left_semi", "left_anti")
_STATIC_MUST_NOT_KEEP = {(True, False): ("right", "full"), (False, True): ("left", "full", "left_semi", "left_anti")}
"""By whether left and right are streams: the joins that would have to know that no further row of the stream matches."""


@transform
def union(*others: DataFrame, fill_missing: bool = True) -> OneToOne:
    """The rows of all frames, by column name, duplicates included; a column that a frame has not is NULL there.

    Without `fill_missing` all frames must have the same columns. A column must have one type everywhere; whole numbers and decimals
    of different width are widened. Streams go with streams only.

    Raises:
        TransformError: TRANSFORM_TYPE, TRANSFORM_STREAMING, TRANSFORM_UNKNOWN_COLUMN, TRANSFORM_AMBIGUOUS_COLUMN.

    >>> from lakelet.transforms import union
    >>> spark.sql("SELECT 1 AS a, 2 AS b").transform(union(spark.sql("SELECT 'x' AS c, 3 AS A"))).collect()
    [Row(a=1, b=2, c=None), Row(a=3, b=None, c='x')]
    """
    if not others:
        raise argument_error("union", "no other frame was given")

    def run(frame: DataFrame) -> DataFrame:
        for other in others:
            if frame.isStreaming != other.isStreaming:
                raise streaming_error(
                    "union with a frame that is not one", "Spark cannot unite streams and batches", "Read both as streams"
                )
            _check_columns(frame, other, fill_missing)
            frame = frame.unionByName(other, allowMissingColumns=fill_missing)
        return frame

    return run


def _check_columns(frame: DataFrame, other: DataFrame, fill_missing: bool) -> None:
    for one in (frame, other):
        for name in one.columns:
            find(one.columns, name, "union")
    types = {field.name.lower(): field.dataType for field in frame.schema.fields}
    for field in other.schema.fields:
        mine = types.get(field.name.lower())
        if mine is None and not fill_missing:
            find(frame.columns, field.name, "union")
        if mine is not None and not _unites(mine, field.dataType):
            raise TransformError(
                "TRANSFORM_TYPE",
                f"union: column {field.name!r} is {mine.simpleString()} in one frame and {field.dataType.simpleString()} in the other",
                why="Spark would convert one of them without a word",
                todo="Give them one type first, with alter_types",
            )
    if not fill_missing:
        for name in frame.columns:
            find(other.columns, name, "union")


def _unites(first: DataType, second: DataType) -> bool:
    if not isinstance(first, AtomicType) or not isinstance(second, AtomicType):
        return type(first) is type(second)
    exact = (IntegralType, DecimalType)
    return first == second or (isinstance(first, exact) and isinstance(second, exact))


@transform
def join(other: DataFrame, on: str | Sequence[str], *, how: str = "left", suffix: str = "_right", broadcast: bool = False) -> OneToOne:
    """Join on columns of the same name: inner, left, right, full, left_semi or left_anti.

    The columns of `on` appear once; a column of `other` that has a name of the left side gets the `suffix`. `broadcast` asks Spark to
    send `other` whole to every task. A NULL key matches nothing. Streams can be on either side; what a join of a stream and a batch
    cannot be is refused, joins of two streams follow Spark's rules about watermarks.

    Raises:
        TransformError: TRANSFORM_STREAMING, TRANSFORM_UNKNOWN_COLUMN, TRANSFORM_COLUMN_EXISTS.

    >>> from lakelet.transforms import join
    >>> orders = spark.createDataFrame([(1, "open"), (2, "paid")], "id INT, state STRING")
    >>> people = spark.createDataFrame([(1, "DE")], "ID INT, state STRING")
    >>> orders.transform(join(people, on="id")).orderBy("id").collect()
    [Row(id=1, state='open', state_right='DE'), Row(id=2, state='paid', state_right=None)]
    """
    keys = listed("join", on, "on")
    if how not in _KINDS:
        raise argument_error("join", f"how={how!r} is none of {', '.join(_KINDS)}")

    def run(frame: DataFrame) -> DataFrame:
        if how in _STATIC_MUST_NOT_KEEP.get((frame.isStreaming, other.isStreaming), ()):
            raise streaming_error(
                f"join(how={how!r})",
                "Which rows of the table have no match in a stream is never known",
                "Use an inner join, keep the rows of the stream, or join in a materialized view",
            )
        left = [find(frame.columns, key, "join") for key in keys]
        right = [find(other.columns, key, "join") for key in keys]
        rest = [name for name in other.columns if name not in right]
        named = {name: name + suffix if any(same(name, one) for one in frame.columns) else name for name in rest}
        if how not in ("left_semi", "left_anti"):
            require_new(frame.columns, named.values(), "join")
        chosen = [column(theirs).alias(mine) for mine, theirs in zip(left, right, strict=True)]
        side = other.select(*chosen, *(column(old).alias(new) for old, new in named.items()))
        joined = frame.join(F.broadcast(side) if broadcast else side, on=left, how=how)
        order = frame.columns if how in ("left_semi", "left_anti") else [*frame.columns, *named.values()]
        return joined.select(*map(column, order))

    return run
