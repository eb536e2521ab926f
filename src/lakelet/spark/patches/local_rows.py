"""Rows that code makes itself, in the types that Spark Connect takes: an `int` for a DOUBLE column, a number for a STRING column.

Pipelines of Spark's own tool and of serverless compute at Databricks run on Spark Connect, which converts values by Arrow; a session in
this process compares their classes first. What it refuses is tried as Connect converts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql.types import StructType, _parse_datatype_string

from lakelet.base.patching import Patch, without_context
from lakelet.spark.patches import owners

_REFUSED = ("FIELD_DATA_TYPE_UNACCEPTABLE", "FIELD_DATA_TYPE_UNACCEPTABLE_WITH_NAME")


def _creating(original: Any) -> Any:
    def create(self: Any, data: Any, schema: Any = None, samplingRatio: Any = None, verifySchema: bool = True) -> Any:
        try:
            return original(self, data, schema, samplingRatio, verifySchema)
        except PySparkTypeError as refused:
            table = _converted(data, schema) if refused.getCondition() in _REFUSED else None
            if table is None:
                raise
            return original(self, table, schema)

    return create


def _converted(rows: Any, schema: Any) -> Any:
    """The rows as an Arrow table of the schema, as Spark Connect makes it; None for what it does not take either."""
    import pyarrow as pa
    from pyspark.sql.conversion import LocalDataToArrowConversion

    if not isinstance(rows, Sequence) or not isinstance(schema, StructType | str):
        return None
    try:
        wanted = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        return LocalDataToArrowConversion.convert(rows, wanted, False) if isinstance(wanted, StructType) else None
    except (PySparkException, pa.ArrowException, ValueError, TypeError):
        return None


LOCAL_ROWS: tuple[Patch, ...] = (
    Patch(owners.SESSION, "createDataFrame", without_context(_creating), "Spark Connect takes values that a session here refuses", "2.0.0"),
)
"""What makes `spark.createDataFrame` of user code take the values that Spark Connect takes."""

__all__ = ["LOCAL_ROWS"]
