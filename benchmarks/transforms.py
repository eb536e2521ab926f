"""What `lakelet.transforms` costs: `web_events` of examples/web against the same columns written by hand in plain PySpark.

    .venv/bin/python benchmarks/transforms.py --rows 300000 --rounds 9

The generator of the example makes the rows, which lie as Parquet, all columns texts. The library's side is the function of the example
itself; the other one is a `dropDuplicates` and a `select`, with the key as a literal. Both are built and written to a new Delta table in
one session, in turns, and change places after each round. Their results are compared first. Prints machine and load, quartiles of each
side's seconds on the clock and of processor time, and of the ratio of each round.
"""

from __future__ import annotations

import argparse
import os
import platform
import runpy
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from figures import quartiles
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "web"
SECRET = "LAKELET_SECRET_WEB_PII_KEY"
KEY = b"only for the benchmark: 32 bytes"
FILES = 6
PROPERTIES = "query STRING, items ARRAY<STRUCT<sku: STRING, count: INT, tags: ARRAY<STRING>>>"
EMAIL = r"^[^@\s\"]+@[^@\s\"]+$"
PHONE = r"^\+?[ ().\-/]*(?:\d[ ().\-/]*){7,15}$"
CARD = r"^(?:\d[ \-]?){11,18}\d$"
AMOUNT = r"^-?\d{1,8}(\.\d{1,2})?$"


def by_hand(files: DataFrame) -> DataFrame:
    """The columns of `web_events` as somebody writes them who has no library."""
    event_time, duration, amount = (
        F.col("Event Time").try_cast("timestamp"),
        F.col("duration_ms").try_cast("int"),
        F.when(F.col("amount").rlike(AMOUNT), F.col("amount").cast("decimal(10, 2)")),
    )
    misfits = F.filter(
        F.array(
            misfit("event_time", "Event Time", event_time),
            misfit("duration_ms", "duration_ms", duration),
            misfit("amount", "amount", amount),
        ),
        lambda pair: pair.isNotNull(),
    )
    parsed = F.from_json("properties", f"{PROPERTIES}, broken STRING", {"columnNameOfCorruptRecord": "broken"})
    whole = parsed["broken"].isNull() & F.col("properties").isNotNull()
    return files.dropDuplicates(["event_id", "Event Time", "user"]).select(
        "event_id",
        event_time.alias("event_time"),
        "type",
        token("user", "user", "tok_", 22).alias("user"),
        F.when(
            F.col("email").rlike(EMAIL),
            F.concat(
                F.when(F.instr("email", "@") > 2, F.substring("email", 1, 1)).otherwise(""),
                F.lit("***@"),
                F.substring_index("email", "@", -1),
            ),
        )
        .otherwise(stars("email"))
        .alias("email"),
        digits("phone", PHONE, 2).alias("phone"),
        token("ip", "ip", "ip_", 12).alias("ip"),
        F.col("Page URL").alias("page"),
        duration.alias("duration_ms"),
        amount.alias("amount"),
        digits("card", CARD, 4).alias("card"),
        "properties",
        hmac(F.col("email").cast("binary")).alias("person"),
        F.when(F.size(misfits) > 0, F.map_from_entries(misfits)).alias("_misfits"),
        F.when(whole, F.struct(parsed["query"].alias("query"), parsed["items"].alias("items"))).alias("details"),
        F.when(~whole, F.col("properties")).alias("_corrupt"),
        F.to_date(event_time).alias("event_date"),
    )


def misfit(name: str, column: str, value: Column) -> Column:
    """Name and text of a value that has not its type."""
    text = F.col(column)
    return F.when(text.isNotNull() & value.isNull(), F.struct(F.lit(name).alias("key"), text.alias("value")))


def hmac(message: Column) -> Column:
    """HMAC-SHA-256 in hexadecimal digits; the key is a literal of the query."""
    inner, outer = (F.lit(bytearray(byte ^ pad for byte in KEY.ljust(64, b"\0"))) for pad in (0x36, 0x5C))
    return F.sha2(F.concat(outer, F.unhex(F.sha2(F.concat(inner, message), 256))), 256)


def token(column: str, domain: str, prefix: str, length: int) -> Column:
    digest = F.unhex(hmac(F.concat(F.lit(bytearray(domain.encode() + b"\0")), F.col(column).cast("binary"))))
    return F.concat(F.lit(prefix), F.substring(F.translate(F.base64(digest), "+/=", "-_"), 1, length))


def digits(column: str, form: str, shown: int) -> Column:
    hidden = F.regexp_replace(column, rf"\d(?=(?:\D*\d){{{shown}}})", "*")
    return F.when(F.col(column).rlike(form), hidden).otherwise(stars(column))


def stars(column: str) -> Column:
    return F.regexp_replace(column, "(?s).", "*")


def make(spark: Any, folder: Path, rows: int) -> DataFrame:
    """The rows of the example's generator as Parquet; texts only."""
    made = runpy.run_path(str(EXAMPLE / "generate.py"), run_name="generate")
    made["write"](1, folder / "landing", count=max(1, rows // FILES))
    texts = spark.read.option("header", "true").option("escape", '"').csv(str(folder / "landing"))
    texts.write.parquet(str(folder / "rows"))
    rows_there: DataFrame = spark.read.parquet(str(folder / "rows"))
    return rows_there


def differing(one: DataFrame, other: DataFrame) -> int:
    """How many events of one are not in the other. Of those without id, of which two may be one event, any may be kept."""

    def comparable(frame: DataFrame) -> DataFrame:
        named = frame.where("event_id IS NOT NULL").withColumn("_misfits", F.to_json("_misfits"))
        return named.select(*sorted(named.columns))

    return comparable(one).exceptAll(comparable(other)).count() + comparable(other).exceptAll(comparable(one)).count()


def timed(build: Callable[[], DataFrame], folder: Path) -> tuple[float, float]:
    """Seconds to build the query and to write its table, on the clock and of processors."""
    shutil.rmtree(folder, ignore_errors=True)
    began, before = time.perf_counter(), processor_seconds()
    build().write.format("delta").partitionBy("event_date").save(str(folder))
    return time.perf_counter() - began, processor_seconds() - before


def processor_seconds() -> float:
    me = psutil.Process()
    return sum(sum(p.cpu_times()[:2]) for p in [me, *me.children(recursive=True)])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=300_000)
    asked.add_argument("--rounds", type=int, default=9)
    given = asked.parse_args()
    os.environ[SECRET] = KEY.decode()
    from lakelet.spark.launch.session import start_session
    from lakelet.testing import load_file

    folder = Path(tempfile.mkdtemp(prefix="lakelet-transforms-"))
    spark = start_session(app_name="transforms", input_bytes=given.rows * 200)
    try:
        files = make(spark, folder, given.rows)
        count = files.count()
        print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {count:,} rows, {given.rounds} rounds")
        library = load_file(EXAMPLE / "pipelines" / "web_events.py", spark=spark, inputs={"web_event_files": files})["web_events"]
        sides: dict[str, Callable[[], DataFrame]] = {"by hand": lambda: by_hand(files), "lakelet.transforms": library}
        assert (found := differing(library(), by_hand(files))) == 0, f"{found} rows differ"
        clock: dict[str, list[float]] = {side: [] for side in sides}
        processor: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(given.rounds + 2):  # the first two warm up
            for side in [*sides][:: -1 if number % 2 else 1]:
                seconds, used = timed(sides[side], folder / "table")
                if number > 1:
                    clock[side].append(seconds)
                    processor[side].append(used)
        for side in sides:
            print(f"{side:18}  {quartiles(clock[side])} s   processor {quartiles(processor[side])} s")
        ratios = [
            [mine / theirs for mine, theirs in zip(each["lakelet.transforms"], each["by hand"], strict=True)] for each in (clock, processor)
        ]
        print(f"ratio               {quartiles(ratios[0], 3)}   processor {quartiles(ratios[1], 3)}")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
