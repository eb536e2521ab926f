"""JSON texts as columns, broken ones kept."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType

from .applied import OneToOne, transform
from .columns import column, find, place, require_new, require_string
from .errors import argument_error

_RESULT, _END, _BROKEN, _LIST = "__lakelet_json", "end", "broken", "list"


@transform
def parse_json(
    source: str,
    schema: str | DataType | None = None,
    *,
    samples: str | Sequence[str] | None = None,
    into: str | None = None,
    corrupt: str = "_corrupt",
) -> OneToOne:
    """Parse a column of JSON texts into a struct, array or map.

    Args:
        source: The column; it stays, so that fields that the schema does not have are not lost.
        schema: What the texts are, as DDL (`"id BIGINT, tags ARRAY<STRING>"`) or type. Missing fields are NULL.
        samples: Instead of `schema`: one text or several, whose common schema Spark finds. No job runs, so streams can use it.
        into: Name of the new column; `<source>_parsed` if None.
        corrupt: Name of a column that gets the whole text where it is not JSON, goes on after its end, or a value in it does not have
            the type of the schema; what could be read is in `into` nevertheless. NULL where all is well, as for NULL and for `null`.

    Raises:
        TransformError: TRANSFORM_TYPE if the column is not a string, TRANSFORM_COLUMN_EXISTS.

    >>> from lakelet.transforms import parse_json
    >>> texts = spark.createDataFrame([('{"a": 1}',), ('{"a": 1} x',), ('{"a": "one"}',), (None,)], "t STRING")
    >>> for row in texts.transform(parse_json("t", "a INT")).collect():
    ...     print(row)
    Row(t='{"a": 1}', t_parsed=Row(a=1), _corrupt=None)
    Row(t='{"a": 1} x', t_parsed=None, _corrupt='{"a": 1} x')
    Row(t='{"a": "one"}', t_parsed=Row(a=None), _corrupt='{"a": "one"}')
    Row(t=None, t_parsed=None, _corrupt=None)
    >>> texts.transform(parse_json("t", samples=['{"a": 1}', '{"b": 0.5}'])).schema["t_parsed"].dataType.simpleString()
    'struct<a:bigint,b:double>'
    """
    if (schema is None) == (samples is None):
        raise argument_error("parse_json", "give either schema or samples")
    texts = [samples] if isinstance(samples, str) else list(samples or ())
    if schema is None and not texts:
        raise argument_error("parse_json", "samples is empty")

    def run(frame: DataFrame) -> DataFrame:
        name = find(frame.columns, source, "parse_json")
        require_string(place(frame.schema, name, "parse_json").data_type, "parse_json")
        target = into or f"{name}_parsed"
        require_new(frame.columns, [target, corrupt], "parse_json")
        found = schema if isinstance(schema, DataType) else _schema(frame, schema, texts)
        text, result = column(name), F.col(_RESULT)
        parsed = frame.select("*", _wrapped(name, found).alias(_RESULT))
        items = result.getField(_LIST)
        whole = result.getField(_BROKEN).isNull() & (result.getField(_END) == 1) & (F.size(items) == 1)
        value = F.when(F.size(items) == 1, items.getItem(0))
        fits = text.isNull() | F.coalesce(whole, F.lit(False))
        return parsed.select(*map(column, frame.columns), value.alias(target), F.when(~fits, text).alias(corrupt))

    return run


def _schema(frame: DataFrame, ddl: str | None, samples: Sequence[str]) -> DataType:
    """The type that Spark makes of a DDL text, or finds in samples."""
    nothing = frame.sparkSession.range(0)
    if ddl is not None:
        return nothing.select(F.from_json(F.lit("{}"), ddl)).schema.fields[0].dataType
    for text in samples:
        if not isinstance(text, str):
            raise argument_error("parse_json", f"a sample is {text!r}, not a text")
    found = nothing.select(F.from_json(F.lit("[]"), F.schema_of_json(F.lit("[" + ",".join(samples) + "]")))).schema.fields[0].dataType
    return found.elementType if isinstance(found, ArrayType) else found


def _wrapped(name: str, schema: DataType) -> Column:
    """The text parsed as the only item of a list in an object with a last field, so that nothing can follow it unseen."""
    whole = StructType(
        [StructField(_LIST, ArrayType(schema)), StructField(_END, IntegerType()), StructField(_BROKEN, StringType())],
    )
    text = F.concat(F.lit(f'{{"{_LIST}":['), column(name), F.lit(f'],"{_END}":1}}'))
    return F.from_json(text, whole, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN})
