"""Import paths of the classes and modules whose attributes Lakelet replaces."""

from __future__ import annotations

SESSION = "pyspark.sql.session.SparkSession"
CONTEXT = "pyspark.core.context.SparkContext"
CONF = "pyspark.sql.conf.RuntimeConfig"
CATALOG = "pyspark.sql.catalog.Catalog"
FRAME = "pyspark.sql.classic.dataframe.DataFrame"
"""The class of the data frames of a session in this process; `pyspark.sql.DataFrame` itself is abstract."""
GROUPED = "pyspark.sql.group.GroupedData"
BATCH_READER = "pyspark.sql.readwriter.DataFrameReader"
STREAM_READER = "pyspark.sql.streaming.readwriter.DataStreamReader"
BATCH_WRITER = "pyspark.sql.readwriter.DataFrameWriter"
TABLE_WRITER = "pyspark.sql.readwriter.DataFrameWriterV2"
STREAM_WRITER = "pyspark.sql.streaming.readwriter.DataStreamWriter"
FUNCTIONS = "pyspark.sql.functions"
BUILTIN = "pyspark.sql.functions.builtin"
DELTA_TABLE = "delta.tables.DeltaTable"
