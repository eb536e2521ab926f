"""Java processes: connecting to one, whether it answers, and a context of pyspark in one that another process has started.

Does not import pyspark before a function needs it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakelet.base.patching import clear
from lakelet.jvm.scala import static

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Gateway = Any


def gateway(port: int, secret: str) -> JavaGateway:
    """pyspark's gateway to a Java process that listens at a port of this machine."""
    from pyspark.java_gateway import launch_gateway

    with _environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
        found: JavaGateway = launch_gateway()  # type: ignore[no-untyped-call]
    return found


def gateway_of(spark: SparkSession) -> Gateway:
    """The gateway of a session: `proc` is the Java process, `gateway_parameters` say where it listens."""
    context: Any = spark.sparkContext
    return context._gateway


def answers(context: SparkContext) -> bool:
    """Whether the Java process of a context answers."""
    from py4j.protocol import Py4JError

    try:
        static(context._jvm, "java.lang.System", "nanoTime")()
    except (Py4JError, OSError):
        return False
    return True


def attached(port: int, secret: str, settings: Mapping[str, str]) -> SparkContext:
    """A context in a Java process whose Spark runs already, without its tables, views, functions and caches."""
    from pyspark import SparkConf, SparkContext

    found: Any = gateway(port, secret)
    spark = found.jvm.org.apache.spark
    running = spark.api.java.JavaSparkContext.fromSparkContext(spark.SparkContext.getOrCreate())
    context = SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())), gateway=found, jsc=running)
    # Without a default session pyspark makes one that shares nothing with those that are there.
    static(found.jvm, "org.apache.spark.sql.classic.SparkSession", "clearDefaultSession")()
    static(found.jvm, "org.apache.spark.sql.delta.DeltaLog", "clearCache")()
    return context


def leave_process() -> None:
    """Let pyspark start another Java process with its next session, although it has a connection to one."""
    from pyspark import SparkContext

    clear(SparkContext, "_active_spark_context", "_gateway", "_jvm")


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
