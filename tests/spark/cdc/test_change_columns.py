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
