"""Spark, Delta, Java and Python workers say the sentences that Lakelet recognises, in the installed versions."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lakelet.base import sentences
from lakelet.base.sentences import SENTENCES, Sentence
from lakelet.spark.errors.conditions import conditions, parameter
from tests.disks import Disk, small_disk

__all__ = ["small_disk"]

Failing = Callable[[Any, Path], object]
"""What fails on a session; the folder is the test's own."""

CASES: dict[str, tuple[Sentence, tuple[str | None, ...]]] = {}
FAILING: dict[str, Failing] = {}


def says(sentence: Sentence, *groups: str | None) -> Callable[[Failing], Failing]:
    """Register what makes somebody say a sentence, with the values in it."""

    def register(failing: Failing) -> Failing:
        name = f"{sentence.name}: {failing.__name__}"
        CASES[name], FAILING[name] = (sentence, groups), failing
        return failing

    return register


# -------------------------------------------------------------------------------------------------------------- analysis


@says(sentences.PROPOSAL, "`alpha`, `beta`")
@says(sentences.CODE, "UNRESOLVED_COLUMN")
@says(sentences.SQLSTATE)
@says(sentences.POSITION, "2", "1")
def misspelt_column(spark: Any, _: Path) -> object:
    return spark.sql("SELECT 1,\n alhpa FROM VALUES (1, 2) AS t (alpha, beta)")


@says(sentences.NOT_VARIANT)
def path_into_text(spark: Any, _: Path) -> object:
    return spark.sql("SELECT raw:a FROM VALUES ('{}') AS t (raw)")


@says(sentences.PATH_OF_ALL)
def path_of_all_elements(spark: Any, _: Path) -> object:
    return spark.sql("SELECT raw:a[*] FROM VALUES ('{}') AS t (raw)")


@says(sentences.FORMAT_MISSING, "no.such-format")
@says(sentences.CODED_LINE, None)
@says(sentences.JAVA_SAYS)
def unknown_format(spark: Any, _: Path) -> object:
    return spark.read.format("no.such-format").load()


@says(sentences.FORMAT_MISSING, "kafka")
def known_format(spark: Any, _: Path) -> object:
    return spark.read.format("kafka").load()


@says(sentences.FORMAT_MISSING, "no_such_format")
def unknown_sink(spark: Any, folder: Path) -> object:
    writer = spark.readStream.format("rate").load().writeStream.format("no_such_format")
    return writer.option("checkpointLocation", str(folder)).start()


@says(sentences.NO_DRIVER, "No suitable driver")
def unknown_database(spark: Any, _: Path) -> object:
    return spark.read.format("jdbc").option("url", "jdbc:nosuch://host/db").option("dbtable", "t").load()


@says(sentences.DRIVER_CLASS_MISSING, "org.postgresql.Driver")
def absent_driver(spark: Any, _: Path) -> object:
    options = {"url": "jdbc:postgresql://host/db", "dbtable": "t", "driver": "org.postgresql.Driver"}
    return spark.read.format("jdbc").options(**options).load()


@says(sentences.JAVA_CLASS_MISSING)
def absent_class(spark: Any, _: Path) -> object:
    return spark._jvm.com.example.Thing("x")


@says(sentences.FRAME_CONTEXT, "cast", __file__, None)
def text_as_number_in_python(spark: Any, _: Path) -> object:
    return spark.createDataFrame([("x",)], "a string").select(F.col("a").cast("int")).collect()


@says(sentences.SQL_CONTEXT, "SELECT CAST(a AS INT)", " " * 7, "^" * 14)
def text_as_number_in_sql(spark: Any, _: Path) -> object:
    return spark.sql("SELECT CAST(a AS INT)\nFROM VALUES ('x') AS t (a)").collect()


@says(sentences.VALUE_MISSING, "id")
def row_without_a_value(spark: Any, folder: Path) -> object:
    table = f"delta.`{folder / 'required'}`"
    spark.sql(f"CREATE TABLE {table} (id INT NOT NULL) USING delta")
    return spark.sql(f"INSERT INTO {table} VALUES (CAST(NULL AS INT))")


# --------------------------------------------------------------------------------------------------------------- workers


@says(sentences.WORKER_GONE)
def leaving_worker(spark: Any, _: Path) -> object:
    return spark.range(1).select(F.udf(lambda _: os._exit(3), "int")("id")).collect()


@says(sentences.WORKER_NOT_STARTED, "  no room for a worker")
def worker_that_does_not_start(spark: Any, folder: Path) -> object:
    python = folder / "python"
    python.write_text("#!/bin/sh\necho no room for a worker >&2\nexit 3\n")
    python.chmod(0o755)
    context, usual = spark.sparkContext, spark.sparkContext.pythonExec
    context.pythonExec = str(python)
    try:
        return spark.range(1).select(F.udf(lambda n: n, "long")("id")).collect()
    finally:
        context.pythonExec = usual


@says(sentences.WORKER_CRASH, "Segmentation fault")
def crashing_worker(spark: Any, _: Path) -> object:
    spark.conf.set("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
    try:
        return spark.range(1).select(F.udf(lambda _: __import__("ctypes").string_at(0), "int")("id")).collect()
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.udf.faulthandler.enabled")


@says(sentences.TRACEBACK)
@says(sentences.RAISED, "ValueError", "no number")
@says(sentences.PYTHON_ERROR, "ValueError", "no number")
@says(sentences.WORKER_LINE, __file__, None)
def raising_worker(spark: Any, _: Path) -> object:
    def bad(_):  # type: ignore[no-untyped-def] # pyspark would look at the types
        raise ValueError("no number")

    return spark.range(1).select(F.udf(bad, "int")("id")).collect()


# --------------------------------------------------------------------------------------------------------------- streams


def query(spark: Any, rows: Any, folder: Path, mode: str = "append") -> None:
    writer = rows.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def stream(spark: Any, folder: Path) -> Any:
    return spark.readStream.format("delta").load(str(folder / "source"))


def table(spark: Any, folder: Path) -> Any:
    spark.range(2).write.format("delta").mode("append").save(str(folder / "source"))
    return stream(spark, folder)


@says(sentences.STREAM_ENDED)
@says(sentences.CHANGED_VERSION, "1")
@says(sentences.CHANGED_PATH, None)
def updated_source(spark: Any, folder: Path) -> None:
    query(spark, table(spark, folder), folder)
    spark.sql(f"UPDATE delta.`{folder}/source` SET id = 9 WHERE id = 1")
    query(spark, stream(spark, folder), folder)


@says(sentences.SOURCES_COUNTED, "1", "2")
def one_more_source(spark: Any, folder: Path) -> None:
    query(spark, table(spark, folder), folder)
    rows = table(spark, folder)
    query(spark, rows.union(stream(spark, folder)), folder)


@says(sentences.OFFSET_OF_DELTA)
def source_of_another_kind(spark: Any, folder: Path) -> None:
    query(spark, table(spark, folder), folder)
    query(spark, spark.readStream.format("rate").load(), folder)


@says(sentences.OFFSET_BEFORE_FILES)
def files_instead_of_a_table(spark: Any, folder: Path) -> None:
    query(spark, table(spark, folder), folder)
    spark.range(1).write.json(str(folder / "files"))
    query(spark, spark.readStream.schema("id LONG").json(str(folder / "files")), folder)


@says(sentences.OPERATORS_NOW)
@says(sentences.OPERATOR, "dedupe")
def other_operators(spark: Any, folder: Path) -> None:
    query(spark, table(spark, folder).dropDuplicates(["id"]), folder)
    query(spark, table(spark, folder).groupBy("id").count(), folder, "complete")


# ----------------------------------------------------------------------------------------------------------------- tests


def message(spark: Any, folder: Path, failing: Failing) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the text is what the test looks at
        failing(spark, folder)
    return str(caught.value)


@pytest.fixture(scope="module")
def said(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Failing], str]:
    """The message of what fails; each fails once."""
    return functools.cache(lambda failing: message(spark, tmp_path_factory.mktemp("failing"), failing))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_sentence_is_said(case: str, spark: Any, said: Any) -> None:
    sentence, groups = CASES[case]
    found = sentence.find(said(FAILING[case]))
    assert found is not None
    assert [(is_, wanted) for is_, wanted in zip(found.groups(), groups, strict=True) if wanted not in (None, is_)] == []


def java_writes(spark: Any, folder: Path) -> None:
    spark._jvm.java.io.FileOutputStream(str(folder / "file")).write(65)


def test_java_names_a_disk_that_is_full_and_one_that_is_read_only(small_disk: Disk, spark: Any) -> None:
    small_disk.seal()
    assert sentences.READ_ONLY.is_in(message(spark, small_disk.folder, java_writes))
    small_disk.repair()
    small_disk.fill()
    assert sentences.DISK_FULL.is_in(message(spark, small_disk.folder, java_writes))


@pytest.mark.long
def test_lines_of_a_streams_description_are_not_telling(spark: Any, said: Any) -> None:
    text = said(updated_source)
    left_out = "\n".join(line for line in map(str.strip, text.splitlines()) if sentences.NOISE.is_in(line))
    for beginning in ("=== Streaming Query ===", "Identifier: ", "Current Available Offsets", "Thread State", "Logical Plan:"):
        assert beginning in left_out


def test_a_plan_stands_behind_the_message_of_analysis(spark: Any, said: Any) -> None:
    lines = said(misspelt_column).splitlines()
    assert [number for number, line in enumerate(lines) if sentences.PLAN.is_in(line)] == [1]


@pytest.mark.slow
def test_a_python_process_that_does_not_connect_is_named(spark: Any) -> None:
    jvm = spark._jvm
    arguments = ("/bin/true", "pyspark.worker", "pyspark.daemon", jvm.PythonUtils.toScalaMap({}), False)
    with pytest.raises(Exception, match=sentences.SLOW_WORKER.pattern.pattern):  # after Spark's ten seconds
        jvm.org.apache.spark.api.python.PythonWorkerFactory(*arguments).create()


def test_every_sentence_has_a_case() -> None:
    disks = {sentences.DISK_FULL, sentences.READ_ONLY}  # below; stores and brokers that are away: tests/cloud
    away = {sentences.STORE_AWAY, sentences.BROKER_AWAY}
    elsewhere = {sentences.NOISE, sentences.PLAN, sentences.SLOW_WORKER, *away, *disks}
    assert {sentence.name for sentence, _ in CASES.values()} == {one.name for one in SENTENCES if one not in elsewhere}
    assert len({sentence.name for sentence in SENTENCES}) == len(SENTENCES)


CONDITIONS: list[tuple[Failing, str, str, str]] = [
    (misspelt_column, "UNRESOLVED_COLUMN", "proposal", "`alpha`, `beta`"),
    (lambda spark, _: spark.sql("SELECT no_such_function(1)"), "UNRESOLVED_ROUTINE", "routineName", "`no_such_function`"),
    (lambda spark, _: spark.conf.get("no.such.key"), "SQL_CONF_NOT_FOUND", "sqlConf", "no.such.key"),
    (lambda spark, _: spark.sql("SELECT '1' + '2'"), "DATATYPE_MISMATCH", "actualDataType", "STRING"),
    (lambda spark, _: spark.sql("SELECT * FROM read_kinesis('x')"), "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "name", "`read_kinesis`"),
]


@pytest.mark.parametrize(("failing", "condition", "name", "value"), CONDITIONS, ids=[case[1] for case in CONDITIONS])
def test_a_condition_carries_the_value(failing: Failing, condition: str, name: str, value: str, spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PySparkException) as caught:
        failing(spark, tmp_path)
    assert condition in conditions(caught.value)
    assert parameter(caught.value, name, condition=condition) == value
    outer = RuntimeError("raised by user code")
    outer.__cause__ = caught.value
    assert parameter(outer, name, condition=condition) == value
    assert parameter(outer, name, condition="OTHER") is None
    assert conditions(outer) == []
