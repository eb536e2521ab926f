"""Transforms on streams: the same rows as in batch, or an error with a code; and in a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.analysis.plan_facts import Placeholders, unversioned
from lakelet.transforms import (
    TransformError,
    add_current_timestamp,
    add_partition_columns,
    add_source_file,
    add_watermark,
    alter_types,
    deduplicate,
    deduplicate_micro_batch,
    drop,
    drop_duplicates,
    explode,
    filter_rows,
    flatten,
    join,
    keyed_hash,
    mask,
    mask_card,
    mask_email,
    mask_iban,
    mask_phone,
    null_out,
    parse_json,
    relationalize,
    rename,
    replace_in_names,
    replace_in_values,
    select,
    tokenize,
    union,
    with_columns,
)
from tests.spark.conftest import Project

KEY = "a key of 22 characters"
SCHEMA = "id INT, at TIMESTAMP, amount STRING, who STRUCT<mail: STRING, phone: STRING>, tags ARRAY<STRING>, body STRING"
RECORDS = [
    {
        "id": n,
        "at": f"2026-03-01T10:{n:02}:00Z",
        "amount": "12.5" if n % 3 else "much",
        "who": {"mail": f"m{n}@example.com", "phone": "+49 30 9018200"} if n % 5 else None,
        "tags": ["x", "y"][: n % 3],
        "body": '{"a b": 1}' if n % 2 else "{",
    }
    for n in (*range(20), *range(10))  # what comes twice is the same: which of two a batch keeps is not defined
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    for part in (0, 1):
        (folder / f"{part}.json").write_text("".join(json.dumps(r) + "\n" for r in RECORDS[part * 15 : part * 15 + 15]))
    return folder


def everything(frame: DataFrame, small: DataFrame) -> DataFrame:
    """All transforms that a stream can take, one after the other."""
    for step in (
        add_source_file(path=None),
        add_watermark("AT", "1 hour"),
        drop_duplicates("id", "at", within_watermark=True),
        filter_rows("id <> 3"),
        alter_types({"amount": "DECIMAL(10, 2)"}),
        parse_json("body", "`a b` INT"),
        flatten(),
        replace_in_names(),
        explode("tags", position="tag_at"),
        with_columns({"twice": "id * 2", "iban": F.lit("DE89370400440532013000"), "card": F.lit("4111111111111111")}),
        replace_in_values("body", {"{": "["}),
        keyed_hash("who_mail", key=KEY),
        mask_phone("who_phone"),
        mask_iban("iban"),
        mask_card("card"),
        add_partition_columns("at", ["date", "hour"]),
        join(small, "id", how="inner"),
        tokenize("name", key=KEY, length=8),
        null_out("label"),
        rename({"card": "paid.with"}),
        drop("twice"),
    ):
        frame = frame.transform(step)
    return frame


def together(frame: DataFrame) -> dict[str, DataFrame]:
    """What several frames are made of, or several frames of one."""
    united = frame.transform(union(frame.transform(select("id", "body")))).transform(add_current_timestamp())
    found: dict[str, DataFrame] = relationalize("r", keys=["id", "at"])(united.transform(mask_email("body")).transform(mask("body")))
    return found


def written(stream: DataFrame, folder: Path) -> DataFrame:
    """The rows that a stream writes until its input is exhausted."""
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "rows")).awaitTermination()
    return stream.sparkSession.read.schema(stream.schema).parquet(str(folder / "rows"))


@pytest.mark.long
def test_a_stream_gives_the_rows_that_a_batch_gives(spark: Any, files: Path, tmp_path: Path) -> None:
    small = spark.createDataFrame([(n, f"n{n}", "l") for n in range(20)], "id INT, name STRING, label STRING")
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(files))
    batch = everything(spark.read.schema(SCHEMA).json(str(files)), small)
    streamed = everything(stream, small)
    assert streamed.schema.simpleString() == batch.schema.simpleString()
    order = ["id", "tag_at"]
    got = written(streamed, tmp_path).drop("_file_name").orderBy(order).collect()
    expected = batch.drop("_file_name").orderBy(order).collect()
    assert got == expected
    assert len({row.id for row in got}) == 19


@pytest.mark.slow
def test_streams_that_are_united_and_taken_apart_give_the_rows_that_batches_give(spark: Any, files: Path, tmp_path: Path) -> None:
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(files))
    batches = together(spark.read.schema(SCHEMA).json(str(files)))
    streams = together(stream)
    assert [(name, table.isStreaming) for name, table in streams.items()] == [("r", True), ("r_tags", True)]
    for name, table in streams.items():
        assert table.schema.simpleString() == batches[name].schema.simpleString()
        got, expected = written(table, tmp_path / name), batches[name]
        assert got.where("_processed_at IS NULL").isEmpty() if "_processed_at" in got.columns else name == "r_tags"
        rows = [sorted((tuple(row) for row in one.drop("_processed_at").collect()), key=repr) for one in (got, expected)]
        assert rows[0] == rows[1]
        assert len(rows[0]) == {"r": 60, "r_tags": 28}[name]


def test_what_a_stream_cannot_do_is_refused_with_what_to_do(spark: Any, files: Path) -> None:
    stream = spark.readStream.schema(SCHEMA).json(str(files))
    batch = spark.read.schema(SCHEMA).json(str(files))
    refused = [
        (deduplicate("id", "at"), stream, "foreachBatch"),
        (deduplicate_micro_batch("id", "at"), stream, "foreach_batch_sink"),
        (union(batch), stream, "streams and batches"),
        (union(stream), batch, "streams and batches"),
        (relationalize(), stream, "keys"),
        *((join(batch, "id", how=how), stream, "never known") for how in ("right", "full")),
        *((join(stream, "id", how=how), batch, "never known") for how in ("left", "full", "left_semi", "left_anti")),
    ]
    for step, frame, text in refused:
        with pytest.raises(TransformError, match=text) as caught:
            step(frame)
        assert caught.value.code == "TRANSFORM_STREAMING"
    assert stream.transform(join(batch, "id")).isStreaming
    assert batch.transform(join(stream, "id", how="right")).isStreaming


def test_duplicates_within_each_micro_batch_go_and_those_across_stay(spark: Any, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    for part, records in enumerate(([(1, 10), (1, 20), (2, 5)], [(1, 15), (2, 7), (2, 6), (2, 7)])):
        (landing / f"{part}.json").write_text("".join(json.dumps({"id": id, "seq": seq}) + "\n" for id, seq in records))
    kept: list[list[tuple[int, int]]] = []

    def write(batch: DataFrame, batch_id: int) -> None:
        kept.append(sorted(tuple(row) for row in batch.transform(deduplicate_micro_batch("id", F.desc("seq"))).collect()))

    stream = spark.readStream.schema("id INT, seq INT").option("maxFilesPerTrigger", 1).json(str(landing))
    stream.writeStream.foreachBatch(write).trigger(availableNow=True).option(
        "checkpointLocation", str(tmp_path / "c")
    ).start().awaitTermination()
    assert sorted(kept) == [[(1, 15), (2, 7)], [(1, 20), (2, 5)]]


PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    from lakelet.transforms import *

    LANDING = spark.conf.get("landing")


    @dlt.table
    def raw():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        return reader.schema("id INT, n STRING, who STRUCT<mail STRING>").load(LANDING).transform(add_source_file(path=None))


    @dlt.table
    def typed():
        return (
            dlt.read_stream("raw")
            .transform(flatten())
            .transform(alter_types({"n": "INT"}))
            .transform(tokenize("who_mail", key="a key of 22 characters"))
        )


    @dlt.table
    def latest():
        return dlt.read("typed").transform(deduplicate("id", F.desc("n"))).transform(select("id", "n", "who_mail", "_file_name"))
"""


def test_the_key_of_a_stream_is_no_input_that_may_change_and_that_of_a_batch_is(spark: Any) -> None:
    placeholders, token = Placeholders(spark), tokenize("id", key="0123456789abcdef")
    rate = spark.readStream.format("rate").load().selectExpr("value AS id")
    assert unversioned(rate.transform(token), placeholders) is None
    assert unversioned(rate.join(spark.createDataFrame([(1,)], "id LONG"), "id").transform(token), placeholders) is not None
    assert unversioned(spark.range(3).transform(token), placeholders) is not None


@pytest.fixture
def project(tmp_path: Path, spark: Any) -> Project:
    return Project(tmp_path, spark)


@pytest.mark.long
def test_a_pipeline_applies_transforms_to_streams_and_batches(project: Project) -> None:
    project.write(PIPELINE)
    project.arrive("a.json", {"id": 1, "n": "5", "who": {"mail": "a@b.de"}}, {"id": 1, "n": "7", "who": {"mail": "a@b.de"}})
    project.run()
    flow = next(e for e in project.events if e.event_type == "flow_definition" and str(e.origin.flow_name).endswith("typed"))
    assert flow.body["transforms"] == [
        "flatten(separator='_', levels=None, on_collision='error')",
        "alter_types(types={'n': 'INT'}, misfits='_misfits')",
        "tokenize(columns='who_mail', domain='', prefix='tok_', length=22)",
    ]
    assert [step.transforms for step in project.pipeline.plan().steps if step.dataset.endswith("typed")] == [tuple(flow.body["transforms"])]
    project.arrive("b.json", {"id": 2, "n": "five"}, {"id": 1, "n": "6", "who": {"mail": "a@b.de"}})
    project.run()
    found = project.rows("latest")
    assert [(row[0], row[1], row[3]) for row in found] == [(1, 7, "a.json"), (2, None, "b.json")]
    assert found[0][2].startswith("tok_")
    assert len(set(project.rows("typed", "who_mail"))) == 2
    assert [dict(kept) for kept in project.rows("typed", "_misfits") if kept] == [{"n": "five"}]
    project.run()
    assert project.rows("latest") == found


@pytest.mark.long
def test_the_error_of_a_transform_fails_its_dataset_with_its_text(project: Project) -> None:
    project.write("""
        import dlt
        from lakelet.transforms import deduplicate

        @dlt.table
        def rows():
            stream = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT")
            return stream.load(spark.conf.get("landing")).transform(deduplicate("id", "id"))

        @dlt.table
        def others():
            return spark.range(1)
    """)
    project.arrive("a.json", {"id": 1})
    project.run(expect="FAILED")
    assert "[TRANSFORM_STREAMING] deduplicate cannot be applied to a stream" in str(project.result.errors[0])
    assert project.rows("others") == [0]
