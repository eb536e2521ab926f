"""How long a change table remembers what was deleted: pipelines.cdc.tombstoneGCThresholdInSeconds (CD-15)."""

from __future__ import annotations

import time

import pytest

from lakelet.base.errors import DefinitionErrors

PIPELINE = """
import dlt

@dlt.view
def events():
    return spark.readStream.schema("id INT, seq INT, name STRING, gone BOOLEAN").json(spark.conf.get("landing"))

for table, properties in {tables!r}.items():
    dlt.create_streaming_table(table, table_properties=properties)
    dlt.apply_changes(
        target=table, source="events", keys=["id"], sequence_by="seq", apply_as_deletes="gone", except_column_list=["seq", "gone"],
        stored_as_scd_type={scd},
    )
"""
PROPERTY = "pipelines.cdc.tombstoneGCThresholdInSeconds"
FEED = {"delta.enableChangeDataFeed": "true"}  # such a table is merged, the others are written in one pass


def pipeline(scd: int = 1, **tables: dict[str, str]) -> str:
    return PIPELINE.format(tables=tables, scd=scd)


def event(id: int, seq: int, name: str | None = None, gone: bool = False) -> dict[str, object]:
    return {"id": id, "seq": seq, "name": name, "gone": gone}


@pytest.mark.long
def test_a_late_upsert_loses_against_a_delete_that_is_remembered_and_wins_when_it_is_not(project):
    short, long = {PROPERTY: "1"}, {PROPERTY: "3600"}
    p = project(pipeline(short=short, short_merged={**short, **FEED}, long=long, long_merged={**long, **FEED}, ever={}))
    p.arrive("a.json", event(1, 9, gone=True), event(2, 1, "bob"))
    p.run()
    p.arrive("b.json", event(2, 9, gone=True), event(3, 9, "cy"))
    p.run()
    assert p.rows("ever", "id") == [3]
    time.sleep(1.1)
    p.arrive("c.json", event(1, 5, "late"), event(2, 5, "late"), event(4, 7, gone=True))
    p.run()
    remembered, forgotten = [(3, "cy")], [(1, "late"), (2, "late"), (3, "cy")]
    expected = {"short": forgotten, "short_merged": forgotten, "long": remembered, "long_merged": remembered, "ever": remembered}
    assert {table: p.rows(table, "id", "name") for table in expected} == expected
    assert p.table("short").column_names == ["id", "name"]


def test_the_period_is_a_number_of_seconds_and_means_nothing_where_all_events_are_kept(project):
    with pytest.raises(DefinitionErrors) as caught:
        project(pipeline(people={PROPERTY: "two days"})).run()
    assert [(e.code, PROPERTY in e.what) for e in caught.value.errors] == [("PROPERTY_INVALID", True)]
    p = project(pipeline(scd=2, people={PROPERTY: "60"}))
    p.arrive("a.json", event(1, 1, "ann"))
    p.run()
    told = [row["details"]["notice"]["text"] for row in p.logged(event_type="notice")]
    assert [text for text in told if text.startswith(PROPERTY)]
