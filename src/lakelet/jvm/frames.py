"""Between the frames of pyspark and Spark's plans. `Plan` is a logical plan of Spark in Java, `JavaReader` its reader."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lakelet.jvm.errors import MISSING
from lakelet.jvm.scala import java_class, static

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameWriter

Plan = Any
JavaReader = Any
_DATASET = "org.apache.spark.sql.classic.Dataset"
_ANALYZED = "lakelet_analyzed"


def analyzed(frame: DataFrame) -> Plan:
    """The analysed plan of a frame, which is fetched from Java once."""
    known = vars(frame)
    if _ANALYZED not in known:
        known[_ANALYZED] = frame._jdf.queryExecution().analyzed()
    return known[_ANALYZED]


def optimized(frame: DataFrame) -> Plan:
    """The optimised plan of a frame. Raises what Spark raises about it."""
    return frame._jdf.queryExecution().optimizedPlan()


def plan_json(frame: DataFrame) -> str:
    """The analysed plan of a frame as JSON: a list of its nodes in pre-order, with their expressions."""
    jvm, plan = frame.sparkSession._jvm, analyzed(frame)
    try:
        held = static(jvm, "java.util.Optional", "of")(plan).map(_to_json(jvm))
        return _printed(jvm, held).removeprefix("Optional[").removesuffix("]")
    except MISSING:
        return str(plan.toJSON())


def plan_string(frame: DataFrame) -> str:
    """The analysed plan of a frame as Spark prints it."""
    return _printed(frame.sparkSession._jvm, analyzed(frame))


_PART = 7_500
"""py4j sends an answer of more than 8,192 characters in two, and TCP waits 40 ms between these."""


def _printed(jvm: Any, printed: Any) -> str:
    """What an object of Java prints, fetched in parts."""
    text = java_class(jvm, "java.lang.StringBuilder")().append(printed)
    size = int(text.length())
    return "".join(str(text.substring(at, min(at + _PART, size))) for at in range(0, size, _PART))


@functools.lru_cache(maxsize=4)
def _to_json(jvm: Any) -> Any:
    """A function of Java from a plan to its JSON, whose result stays in Java."""
    java, invoke = java_class(jvm, "java.lang.Class"), "java.lang.invoke"
    loader = java_class(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    node = java.forName("org.apache.spark.sql.catalyst.trees.TreeNode", True, loader)
    kind = static(jvm, f"{invoke}.MethodType", "methodType")(java.forName("java.lang.String"))
    method = static(jvm, f"{invoke}.MethodHandles", "publicLookup")().findVirtual(node, "toJSON", kind)
    return static(jvm, f"{invoke}.MethodHandleProxies", "asInterfaceInstance")(java.forName("java.util.function.Function"), method)


def of_plan(spark: SparkSession, plan: Plan) -> DataFrame:
    """A frame of a plan, in the session of this thread."""
    return of_java(spark, static(spark._jvm, _DATASET, "ofRows")(spark._jsparkSession, plan))


def replanned(frame: DataFrame, plan: Plan) -> DataFrame:
    """A frame of a plan, in the session of another frame."""
    spark = frame.sparkSession
    return of_java(spark, static(spark._jvm, _DATASET, "ofRows")(frame._jdf.sparkSession(), plan))


def of_java(spark: SparkSession, jframe: Any) -> DataFrame:
    """The frame of pyspark for one of Java."""
    from pyspark.sql import DataFrame

    return DataFrame(jframe, spark)


def java_reader(reader: Any) -> JavaReader:
    """The reader in Java, with its options, of a reader of pyspark, batch or stream."""
    return reader._jreader


def loaded(spark: SparkSession, reader: JavaReader, format: str, path: str | None = None) -> DataFrame:
    """What a reader in Java reads."""
    chosen = reader.format(format)
    return of_java(spark, chosen.load() if path is None else chosen.load(path))


def without_rows(frame: DataFrame) -> DataFrame:
    """A frame of the same columns that has no rows and reads nothing, made in one call to Java."""
    spark = frame.sparkSession
    try:
        nothing = java_class(spark._jvm, "java.util.ArrayList")()
        return of_java(spark, spark._jsparkSession.createDataFrame(nothing, frame._jdf.schema()))
    except MISSING:
        return spark.createDataFrame([], frame.schema)


def create_view(frame: DataFrame, name: str) -> None:
    """Make a temporary view of a frame in the session that the frame was made in."""
    frame._jdf.createOrReplaceTempView(name)


def save(writer: DataFrameWriter, path: str) -> None:
    """Save what a writer of pyspark writes at a path of this machine. Lakelet's own `save` would map the path again."""
    writer._jwrite.save(path)
