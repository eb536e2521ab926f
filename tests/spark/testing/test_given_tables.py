"""Tables that a test gives: their checksum files, as Delta itself judges them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.config.update_config import load_config
from lakelet.testing.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def snapshot(spark: SparkSession, table: Path) -> Any:
    """Delta's newest snapshot of a table, read anew."""
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    return jvm(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table)).unsafeVolatileSnapshot()


def given(spark: SparkSession, folder: Path) -> Project:
    """A project that only takes tables."""
    return Project(folder, lambda maps, tables: load_config([], cwd=folder), spark)


def test_the_checksum_of_each_insert_is_what_delta_finds_in_the_log(spark: SparkSession, tmp_path: Path) -> None:
    project, table = given(spark, tmp_path), tmp_path / "sources" / "0"
    nothing = jvm(spark).PythonUtils.toScalaMap({})
    rows: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "day": "2026-03-01"}, {"id": 3}]
    for version, row in enumerate(rows):
        project.insert("bronze.orders", row, schema={"day": "date"} if "day" in row else None)
        found = snapshot(spark, table)
        assert found.version() == version
        assert found.checksumOpt().isDefined()
        assert found.validateChecksum(nothing)
    assert [str(row) for row in spark.read.format("delta").load(str(table)).orderBy("id").collect()] == [
        "Row(id=1, day=None)",
        "Row(id=2, day=datetime.date(2026, 3, 1))",
        "Row(id=3, day=None)",
    ]


def test_a_given_table_that_others_changed_gets_no_checksum(spark: SparkSession, tmp_path: Path) -> None:
    project, table = given(spark, tmp_path), tmp_path / "sources" / "0"
    project.insert("bronze.orders", {"id": 1})
    spark.sql(f"DELETE FROM delta.`{table}`")
    project.insert("bronze.orders", {"id": 2})
    assert not snapshot(spark, table).checksumOpt().isDefined()
    assert [row.id for row in spark.read.format("delta").load(str(table)).collect()] == [2]


def test_the_schema_of_a_given_table_costs_spark_no_job(spark: SparkSession, tmp_path: Path) -> None:
    given(spark, tmp_path).insert("bronze.orders", {"id": 1, "name": "a"})
    context: Any = spark.sparkContext
    context.setJobGroup("schema", "schema of a given table")
    try:
        found = snapshot(spark, tmp_path / "sources" / "0")
        assert [field.name() for field in found.schema().fields()] == ["id", "name"]
        assert list(context.statusTracker().getJobIdsForGroup("schema")) == []
        found.computedState()
        assert list(context.statusTracker().getJobIdsForGroup("schema")) != []  # such a job would have been seen
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
