"""Lets `createDataFrame` convert values as Spark Connect does: an `int` for a DOUBLE column, a number for a STRING column.

Spark's own pipeline tool and serverless compute of Databricks run on Spark Connect, which converts values with Arrow; a session in this
process checks their classes first. Values that it refuses are converted as Connect does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql.types import StructType, _parse_datatype_string

from lakelet.spark.patches.doors import Call, Rest, around

_REFUSED = ("FIELD_DATA_TYPE_UNACCEPTABLE", "FIELD_DATA_TYPE_UNACCEPTABLE_WITH_NAME")


@around("Spark Connect converts values that a session refuses")
def converted(call: Call, rest: Rest) -> Any:
    """Create the data frame; values that are refused are converted."""
    try:
        return rest(call)
    except PySparkTypeError as refused:
        schema = call.get("schema")
        table = _converted(call.get("data"), schema) if refused.getCondition() in _REFUSED else None
        if table is None:
            raise
        return rest(replace(call, arguments={"data": table, "schema": schema}))


def _converted(rows: Any, schema: Any) -> Any:
    """Return the rows as an Arrow table of the schema, as Spark Connect converts them; None where it refuses them too."""
    import pyarrow as pa
    from pyspark.sql.conversion import LocalDataToArrowConversion

    if not isinstance(rows, Sequence) or not isinstance(schema, StructType | str):
        return None
    try:
        wanted = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        return LocalDataToArrowConversion.convert(rows, wanted, False) if isinstance(wanted, StructType) else None
    except (PySparkException, pa.ArrowException, ValueError, TypeError):
        return None


__all__ = ["converted"]
