"""`read_kafka(…)` in SQL text: Spark's own source with the options under the names that Spark has for them (SQ-12).

The connector is a package of Spark's that neither pyspark nor Lakelet brings; where the session has it, the call works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.base import sentences
from lakelet.base.errors import LakeletError, Location
from lakelet.base.text import option_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_KAFKA = "read_kafka"
_SPARKS = {
    name.lower(): name
    for name in (
        *("subscribe", "subscribePattern", "assign", "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "endingOffsets"),
        *("endingTimestamp", "endingOffsetsByTimestamp", "failOnDataLoss", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix"),
        *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "includeHeaders", "fetchOffset.numRetries"),
        *("fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs"),
    )
}


def kafka_options(names: Sequence[str | None], values: Sequence[Any], where: Location | None) -> Mapping[str, str]:
    """The options of Spark's source `kafka` that the arguments of a call mean.

    Raises CF_INCORRECT_SQL_PARAMS for an argument without a name, and where no topic or no server is named.
    """
    if None in names:
        raise _shape("takes arguments by name", where)
    options: dict[str, str] = {}
    for name, value in zip(names, values, strict=True):
        if value is not None and name is not None:
            options[_spark_name(name)] = option_text(value)
    if "kafka.bootstrap.servers" not in options:
        raise _shape("needs bootstrapServers", where)
    if not {"subscribe", "subscribePattern", "assign"} & set(options):
        raise _shape("needs subscribe, subscribePattern or assign", where)
    return options


def _spark_name(name: str) -> str:
    if name.lower() == "bootstrapservers":
        return "kafka.bootstrap.servers"
    return _SPARKS.get(name.lower(), name)


def _shape(what: str, where: Location | None) -> LakeletError:
    todo = "For example: read_kafka(bootstrapServers => 'host:9092', subscribe => 'topic')"
    return LakeletError("CF_INCORRECT_SQL_PARAMS", f"{READ_KAFKA} {what}", where=where, todo=todo)


def open_kafka(spark: SparkSession, options: Mapping[str, str], *, streaming: bool, where: Location | None) -> DataFrame:
    """The topics as a stream or as a batch. Raises SOURCE_FORMAT_MISSING where the session has no connector for Kafka."""
    from pyspark.errors import PySparkException

    reader = spark.readStream if streaming else spark.read
    try:
        return reader.format("kafka").options(**options).load()
    except PySparkException as problem:
        if not sentences.FORMAT_MISSING.is_in(str(problem)):
            raise
        raise _missing(where) from problem


def _missing(where: Location | None) -> LakeletError:
    return LakeletError(
        "SOURCE_FORMAT_MISSING",
        f"{READ_KAFKA} needs Spark's connector for Kafka, which this session does not have",
        where=where,
        why="It is a package of its own: org.apache.spark:spark-sql-kafka-0-10, in the version of Spark, with what it needs.",
        todo="Put its jars into the folder `jars` of pyspark, or give the data as files or a table.",
    )
