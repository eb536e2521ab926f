"""Projects, storages and landing folders that are renamed, copied or moved (docs/semantics/sources.md, SO-9 to SO-11)."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import lakelet
from lakelet.inspection.schema_history import read_history
from tests.moving import copied, renamed
from tests.spark.conftest import Project

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    LANDING = spark.conf.get("landing")

    @dlt.table
    def loaded():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "1")
                .option("cloudFiles.schemaLocation", LANDING + "/../schemas").option("cloudFiles.schemaHints", "id BIGINT")
                .load(LANDING + "/*/orders").select("id"))

    @dlt.table
    def plain():
        return spark.readStream.format("json").schema("id BIGINT").load(f"{LANDING}/a b/letters")

    @dlt.table
    def of_sql():
        return spark.sql(f"SELECT id FROM STREAM read_files('{LANDING}/a b/orders', format => 'json', schema => 'id BIGINT')")

    dlt.create_streaming_table("kept")
    dlt.apply_changes("kept", source="loaded", keys=["id"], sequence_by="id")

    @dlt.table
    def total():
        return dlt.read("loaded").agg(F.count("*").alias("n"), F.sum("id").alias("id"))
"""


def landed(project: Project, *numbers: int) -> Project:
    for number in numbers:
        project.arrive(f"é {number}.json", {"id": number}, folder="a b/orders")
        project.arrive(f"é {number}.json", {"id": number}, folder="a b/letters")
    return project


def has(project: Project, *numbers: int) -> None:
    tables = ("loaded", "plain", "of_sql", "kept")
    assert {name: project.rows(name, "id") for name in tables} == {name: list(numbers) for name in tables}
    assert project.rows("total") == [(len(numbers), sum(numbers))]


@pytest.mark.long
def test_a_project_that_is_renamed_reads_no_file_again_and_new_ones_once(project: Callable[..., Project], tmp_path: Path) -> None:
    made = landed(project(PIPELINE), 1, 2).run()
    history = read_history(made.storage.root, "loaded")
    assert len(history) == 1
    moved = renamed(made, tmp_path / "another" / "name")
    assert [(log.source, log.versions) for log in read_history(moved.storage.root, "loaded")] == [
        (log.source, log.versions) for log in history
    ]
    moved.run()
    has(moved, 1, 2)
    assert not [step.reason for step in moved.result.steps if "new file" in step.reason and "no new file" not in step.reason]
    landed(moved, 3).run()
    has(moved, 1, 2, 3)
    inside = renamed(moved, tmp_path / "aside")  # then into a folder of its former name: the old path is the beginning of the new one
    inside = landed(renamed(inside, moved.folder / "name"), 4).run()
    has(inside, 1, 2, 3, 4)
    back = landed(renamed(inside, tmp_path / "another name"), 5).run()
    has(back, 1, 2, 3, 4, 5)
    assert {row["details"]["flow_progress"]["status"] for row in back.logged(event_type="flow_progress", level="ERROR")} == set()


@pytest.mark.slow
def test_a_copy_knows_the_files_and_goes_on_apart_from_the_original(project: Callable[..., Project], tmp_path: Path) -> None:
    made = landed(project(PIPELINE), 1, 2).run()
    copy = landed(copied(made, tmp_path / "copy"), 3).run()
    landed(made, 4).run()
    has(made, 1, 2, 4)
    has(copy, 1, 2, 3)
    ended = [{row["origin"]["update_id"] for row in one.logged(event_type="create_update")} for one in (made, copy)]
    assert [len(ids) for ids in ended] == [2, 2]
    assert len(ended[0] & ended[1]) == 1
    with copy.storage.lease("held-by-the-copy"):
        landed(made, 5).run()
    with made.storage.lease("held-while-copied"):
        again = copied(made, tmp_path / "again")
        landed(again, 6).run()
    has(again, 1, 2, 4, 5, 6)


SOURCE = """
    import dlt

    @dlt.table
    def loaded():
        return (spark.readStream.format({0!r}).option("cloudFiles.format", "json").schema("id BIGINT")
                .load(spark.conf.get("landing")))
"""


def elsewhere(project: Project, folder: Path) -> None:
    """Let the landing folder be another one, by a changed parameter."""
    project.landing, project.parameters["landing"] = folder, str(folder)


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("format", ["cloudFiles", "json"])
def test_a_landing_folder_that_moved_is_asked_about_and_the_answers_count(
    project: Callable[..., Project], tmp_path: Path, format: str
) -> None:
    made = project(SOURCE.format(format))
    made.arrive("1.json", {"id": 1})
    made.arrive("2.json", {"id": 2}, folder="day=1" if format == "cloudFiles" else "")
    made.run()
    old, new = made.landing, tmp_path / "store"
    shutil.copytree(old, new)
    elsewhere(made, new)
    made.arrive("3.json", {"id": 3})
    plan = str(made.pipeline.plan().steps)
    assert format == "json" or f"it has read {old} so far and is to read {new}" in plan
    made.run(expect="FAILED")
    (error,) = made.result.errors
    assert (error.code, made.rows("loaded", "id")) == ("SOURCE_MOVED", [1, 2])
    assert f"it has read {old} so far and is to read {new}, where 2 of the 2 files" in error.what
    assert f"lakelet run --moved {old}={new}\n" in str(error.todo)
    assert "lakelet run --reset-checkpoint main.default.loaded\n" in str(error.todo)
    assert "lakelet run --full-refresh main.default.loaded" in str(error.todo)

    kept = copied(made, tmp_path / "kept")
    elsewhere(kept, new)
    kept.run(reset_checkpoint=("main.default.loaded",))
    assert kept.rows("loaded", "id") == [1, 1, 2, 2, 3]
    made.moved = [(str(old), str(new))]
    made.run()
    assert made.rows("loaded", "id") == [1, 2, 3]
    made.moved = []
    made.arrive("4.json", {"id": 4})
    made.run()
    assert made.rows("loaded", "id") == [1, 2, 3, 4]


@pytest.mark.slow
def test_another_folder_is_read_until_files_of_known_names_come(project: Callable[..., Project], tmp_path: Path) -> None:
    made = project(SOURCE.format("cloudFiles"))
    made.arrive("1.json", {"id": 1})
    made.run()
    old = made.landing
    elsewhere(made, tmp_path / "store")
    made.arrive("2.json", {"id": 2})
    made.moved = [("/nowhere", str(made.landing))]
    made.run()
    assert made.rows("loaded", "id") == [1, 2]
    assert [event.message for event in made.events if "--moved" in event.message] == [
        f"--moved /nowhere={made.landing} has no effect: no stream of this update has read /nowhere and reads {made.landing}"
    ]
    shutil.copyfile(old / "1.json", made.landing / "1.json")  # the old files come later
    made.run(expect="FAILED")
    assert made.errors() == {"loaded": "SOURCE_MOVED"}
    made.moved = [(str(old), str(made.landing))]
    made.arrive("3.json", {"id": 3})
    made.run()
    made.moved = [(str(made.landing), str(old))]
    for file in made.landing.iterdir():
        shutil.move(file, old / file.name)
    elsewhere(made, old)
    made.run()
    assert made.rows("loaded", "id") == [1, 2, 3]
    assert not [event.message for event in made.events if "has no effect" in event.message]


OUTSIDE = """
    import dlt

    def loaded(path):
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT").load(path)

    @dlt.table
    def relative():
        return loaded("landing/")

    @dlt.table
    def beside():
        return loaded("../data/beside/*")

    @dlt.table
    def linked():
        return loaded(spark.conf.get("link"))

    @dlt.table
    def mapped():
        return loaded("/Volumes/raw/in")

    @dlt.table
    def plain_mapped():
        return spark.readStream.format("json").schema("id BIGINT").load("dbfs:/Volumes/raw/in/")

    @dlt.table
    def of_table():
        return spark.readStream.table("ref.shop.orders").select("id")
"""


@pytest.mark.slow
def test_what_else_is_moved_stays_known(spark: Any, tmp_path: Path) -> None:
    world = tmp_path / "one"

    def put(number: int) -> None:
        for folder in ("p/landing", "data/beside/x", "real", "data/raw/in"):
            (world / folder).mkdir(parents=True, exist_ok=True)
            (world / folder / f"{number}.json").write_text(json.dumps({"id": number}))
        spark.createDataFrame([(number,)], "id BIGINT").write.format("delta").mode("append").save(str(world / "data/orders"))

    def has(storage: Path, *numbers: int) -> None:
        result = lakelet.load(
            world / "p",
            storage=storage,
            parameters={"link": f"file://{world}/link"},
            maps={"/Volumes/raw": str(world / "data/raw")},
            tables={"ref.shop.orders": str(world / "data/orders")},
            spark=spark,
        ).run()
        assert result.errors == ()
        names = ("relative", "beside", "linked", "mapped", "plain_mapped", "of_table")
        tables = {name: DeltaTable(str(storage / "tables/main/default" / name)).to_pyarrow_table() for name in names}
        assert {name: sorted(table["id"].to_pylist()) for name, table in tables.items()} == {name: list(numbers) for name in names}

    put(1)
    (world / "link").symlink_to("real")
    (world / "p/pyproject.toml").touch()
    (world / "p/pipeline.py").write_text(textwrap.dedent(OUTSIDE))
    has(tmp_path / "storage", 1)
    (tmp_path / "storage").rename(tmp_path / "moved")
    put(2)
    has(tmp_path / "moved", 1, 2)
    world = world.rename(tmp_path / "two")
    put(3)
    has(tmp_path / "moved", 1, 2, 3)


@pytest.mark.slow
def test_spark_cannot_go_on_in_another_folder_and_the_error_has_the_answers(project: Callable[..., Project], tmp_path: Path) -> None:
    made = project(SOURCE.format("json"))
    made.arrive("1.json", {"id": 1})
    made.run()
    old = made.landing
    elsewhere(made, tmp_path / "store")
    made.arrive("2.json", {"id": 2})
    made.run(expect="FAILED")
    (error,) = made.result.errors
    assert (error.code, "0 of the 1 files" in error.what) == ("SOURCE_MOVED", True)
    made.moved = [(str(old), str(made.landing))]
    made.run()
    assert made.rows("loaded") == [1, 2]
