"""Change tables with column mapping by name, declared from the start or later."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.long

PIPELINE = """
import dlt

MAPPED = {{"delta.columnMapping.mode": "name"}}
FEED = {{"delta.enableChangeDataFeed": "true"}}

@dlt.view
def feed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing"))

for name, scd in (("current", 1), ("history", 2)):
    for way, properties in (("", {{}}), ("_merged", FEED)):
        dlt.create_streaming_table(name + way, table_properties={{**properties, **{properties}}}, partition_cols={partitions})
        dlt.apply_changes(
            target=name + way, source="feed", keys=[{key!r}], sequence_by="seq", apply_as_deletes="gone",
            except_column_list=["seq", "gone"], stored_as_scd_type=scd,
        )

@dlt.table
def copied():
    return dlt.read("current").select("name")
"""
ODD = "Sent UpdateServer"


def event(key: str, id: int, seq: int, name: str | None = None, gone: bool = False, **more: Any) -> dict[str, Any]:
    return {key: id, "seq": seq, "name": name, "gone": gone, **more}


def shown(p: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows as Spark reads them."""
    rows = p.spark.read.format("delta").load(str(p.path(name))).collect()
    return sorted((tuple(row[c] for c in columns) for row in rows), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("declared", ["at once", "later"])
def test_change_tables_take_odd_names_with_column_mapping(project, declared):
    key = "user id" if declared == "at once" else "id"
    partitions = "['region']" if declared == "at once" else "None"
    more = {"region": "eu"} if declared == "at once" else {}
    before = "MAPPED" if declared == "at once" else "{}"
    p = project(PIPELINE.format(properties=before, partitions=partitions, key=key))
    p.arrive("1.json", event(key, 1, 1, "ann", **more), event(key, 2, 1, "bob", **more), event(key, 3, 1, "cy", **more))
    p.run()
    p.write(PIPELINE.format(properties="MAPPED", partitions=partitions, key=key))
    p.arrive("2.json", event(key, 1, 3, "anna", **{ODD: "x", **more}), event(key, 2, 3, gone=True, **more))
    p.run()
    p.arrive("3.json", event(key, 1, 2, "late", **more), event(key, 2, 2, "late", **more), event(key, 4, 1, "dee", **{ODD: "y", **more}))
    p.run()

    def check() -> None:
        for way in ("", "_merged"):
            current = [(1, "anna", "x"), (3, "cy", None), (4, "dee", "y")]
            assert shown(p, f"current{way}", key, "name", ODD) == current
            history = [(1, "ann", 1, 2), (1, "anna", 3, None), (1, "late", 2, 3), (2, "bob", 1, 2), (2, "late", 2, 3)]
            history += [(3, "cy", 1, None), (4, "dee", 1, None)]
            assert shown(p, f"history{way}", key, "name", "__START_AT", "__END_AT") == history
        assert shown(p, "copied", "name") == [("anna",), ("cy",), ("dee",)]

    check()
    p.run(full_refresh=["current", "current_merged", "history", "history_merged", "copied"])
    check()


UNDECLARED = """
import dlt

def landed(folder):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.load(spark.conf.get("landing") + "/" + folder)

@dlt.view
def feed():
    return landed("feed")

@dlt.view
def copy():
    return spark.read.json(spark.conf.get("landing") + "/copy")

for name, scd in (("current", 1), ("history", 2)):
    dlt.create_streaming_table(name)
    dlt.apply_changes(
        target=name, source="feed", keys=["id"], sequence_by="seq", apply_as_deletes="gone",
        except_column_list=["seq", "gone"], stored_as_scd_type=scd,
    )
    dlt.create_streaming_table("copied_" + name)
    dlt.apply_changes_from_snapshot(target="copied_" + name, source="copy", keys=["id"], stored_as_scd_type=scd)

@dlt.table
def read_on():
    return dlt.read("current")
"""


def land_copy(p: Any, *rows: dict[str, Any]) -> None:
    for file in (p.landing / "copy").glob("*.json"):
        file.unlink()
    p.arrive(f"{len(list(p.landing.rglob('*')))}.json", *rows, folder="copy")


def warned_of_mapping(p: Any) -> set[str]:
    return {str(e.origin.dataset_name).rsplit(".", 1)[-1] for e in p.events if "column mapping by name is on" in e.message}


def live(p: Any, key: str, *columns: str) -> list[list[tuple[Any, ...]]]:
    """The current rows as each of the tables shows them."""
    found = [shown(p, name, key, *columns) for name in ("current", "copied_current", "read_on")]
    for name in ("history", "copied_history"):
        rows = p.spark.read.format("delta").load(str(p.path(name))).where("__END_AT IS NULL").collect()
        found.append(sorted((tuple(row[c] for c in (key, *columns)) for row in rows), key=repr))
    return found


ALL = {"current", "history", "copied_current", "copied_history", "read_on"}


def test_a_change_table_gets_column_mapping_with_the_first_odd_name_also_by_snapshots(project):
    p = project(UNDECLARED)
    p.arrive("1.json", event("id", 1, 1, "ann"), event("id", 2, 1, "bob"), folder="feed")
    land_copy(p, {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"})
    p.run()
    assert warned_of_mapping(p) == set()

    odd = {ODD: "x", "a.b": "y"}
    p.arrive("2.json", event("id", 1, 2, "anna", **odd), event("id", 2, 2, gone=True), folder="feed")
    land_copy(p, {"id": 1, "name": "anna", **odd})
    p.run()
    assert warned_of_mapping(p) == ALL
    assert [e.level for e in p.events if "column mapping by name is on" in e.message].count("WARN") == 1
    assert live(p, "id", "name", ODD, "a.b") == [[(1, "anna", "x", "y")]] * 5

    p.arrive("3.json", event("id", 1, 3, "annie", **odd), event("id", 2, 1, "late"), event("id", 3, 1, "cy"), folder="feed")
    land_copy(p, {"id": 1, "name": "annie", **odd}, {"id": 3, "name": "cy", ODD: None})
    p.run()
    assert live(p, "id", "name", ODD, "a.b") == [[(1, "annie", "x", "y"), (3, "cy", None, None)]] * 5
    assert warned_of_mapping(p) == set()
    notices = [n.text for n in p.pipeline.check().notices if "Databricks needs" in n.text]
    assert len(notices) == 1
    assert all(name in notices[0] for name in ALL)


@pytest.mark.slow
def test_a_change_table_is_made_with_column_mapping_and_keeps_it_when_a_full_refresh_brings_no_odd_name(project):
    p = project(UNDECLARED)
    p.arrive("1.json", event("id", 1, 1, "ann", **{ODD: "x"}), folder="feed")
    land_copy(p, {"id": 1, "name": "ann", ODD: "x"})
    p.run()
    assert warned_of_mapping(p) == ALL
    assert live(p, "id", "name", ODD) == [[(1, "ann", "x")]] * 5
    p.arrive("1.json", event("id", 1, 1, "ann"), folder="feed")
    land_copy(p, {"id": 1, "name": "ann"})
    p.run(full_refresh_all=True)
    p.arrive("2.json", event("id", 2, 1, "bob"), event("id", 1, 2, gone=True), folder="feed")
    land_copy(p, {"id": 2, "name": "bob"})
    p.run()
    assert live(p, "id", "name") == [[(2, "bob")]] * 5
