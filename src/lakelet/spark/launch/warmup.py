"""Makes this machine ready: Delta's jars in the cache, and the class-data archive that lets later sessions start faster.

`python -m lakelet.spark.launch.warmup` does both, once; a repeated call finds them and returns. With `--background` it makes the archive
beside other work, after a command (`first_preparation.start_archive`). With `--record` it is the warm-up process itself (started by
`archives`): a session that touches what updates touch, so that their classes are in the archive.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.jvm.processes import gateway_of
from lakelet.spark.launch.archives import archive_path, make_archive
from lakelet.spark.launch.environment import ensure_jars, require_java
from lakelet.spark.launch.first_preparation import make_archive_in_background

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def prepare() -> Path:
    """Fetch the jars and make the archive where they are missing; return the archive's path."""
    java, delta = require_java(), ensure_jars()
    archive = archive_path(java, delta)
    return archive if archive.is_file() else make_archive()


def record() -> None:
    """Run the warm-up and end the Java process in order, for it writes the archive while it ends."""
    from lakelet.spark.launch.session import start_session

    spark = start_session(app_name="lakelet warm-up")
    with tempfile.TemporaryDirectory(prefix="lakelet-warmup-") as folder:
        exercise(spark, Path(folder))
    process = gateway_of(spark).proc
    spark.stop()
    process.stdin.close()
    code = process.wait()
    if code:  # killed while it wrote, perhaps
        raise LakeletError("ARCHIVE_FAILED", f"Java ended with code {code} while it wrote the class-data archive")


def exercise(spark: SparkSession, folder: Path) -> None:
    """Touch, on a few rows below `folder`, what updates touch: Delta in batch and stream, JSON, SQL, Python workers."""
    path = str(folder / "events")
    rows = _sample_rows(spark)
    rows.write.format("delta").partitionBy("kind").save(path)
    rows.withColumn("more", rows.id).write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    _run_stream(spark, path, folder)
    _run_queries(spark, path)
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    spark.read.format("delta").load(path).write.mode("overwrite").json(str(folder / "json"))
    spark.read.json(str(folder / "json")).collect()


def _sample_rows(spark: SparkSession) -> DataFrame:
    return spark.range(200).selectExpr(
        "id",
        "concat('k', id % 2) AS kind",
        "cast(id AS decimal(20, 2)) AS amount",
        "timestamp'2026-01-01' + make_interval(0, 0, 0, 0, 0, cast(id AS int)) AS at",
        "named_struct('a', id, 'b', array(id), 'c', map('k', id)) AS nested",
    )


def _run_stream(spark: SparkSession, path: str, folder: Path) -> None:
    from pyspark.sql import functions as F

    def write(batch: DataFrame, number: int) -> None:
        measured = batch.observe("rules", F.count(F.lit(1)).alias("rows"), F.sum(F.col("valid.positive").cast("int")).alias("passed"))
        kept = measured.where("valid.positive").drop("valid")
        options: dict[str, Any] = {"txnAppId": "warm-up", "txnVersion": number, "mergeSchema": "true"}
        kept.write.format("delta").mode("append").options(**options).save(str(folder / "copied"))

    source = spark.readStream.format("delta").option("skipChangeCommits", "true").load(path)
    judged = (
        source.withWatermark("at", "1 hour")
        .dropDuplicatesWithinWatermark(["id"])
        .withColumn("valid", F.struct((F.col("id") > 3).alias("positive")))
    )
    for _ in range(2):
        query = (
            judged.writeStream.foreachBatch(write)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def _run_queries(spark: SparkSession, path: str) -> None:
    from pyspark.sql import functions as F

    frame = spark.read.format("delta").load(path)
    frame.createOrReplaceTempView("warm_up")
    spark.sql(
        "SELECT kind, date_trunc('HOUR', at) AS hour, count(*) AS n, count(DISTINCT id) AS ids, sum(amount) AS amount, "
        "percentile_approx(id, 0.5) AS middle, max_by(nested.a, at) AS newest FROM warm_up GROUP BY ALL ORDER BY n"
    ).collect()
    spark.sql(
        "SELECT *, row_number() OVER (PARTITION BY kind ORDER BY a.at DESC) AS place FROM warm_up a JOIN warm_up b USING (id, kind) "
        "WHERE get_json_object(to_json(a.nested), '$.a') IS NOT NULL QUALIFY place < 3"
    ).toPandas()
    import pyspark.ml.functions  # noqa: F401, registers its functions in Java (`first_session.session_of`)

    plus_one = F.udf(lambda number: number + 1, "bigint")
    spark.createDataFrame([(1, "a"), (2, "b")], "id bigint, kind string").select(plus_one("id")).collect()
    frame.mapInArrow(lambda batches: batches, frame.schema).toArrow()


def main(arguments: list[str]) -> str | None:
    """Run as a program; return what went wrong, None when nothing did."""
    try:
        if arguments == ["--record"]:
            record()
        elif arguments == ["--background"]:
            make_archive_in_background()
        else:
            prepare()
    except LakeletError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
