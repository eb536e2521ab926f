"""The change feed of a table, read inside the pipeline (CD-16)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors
from lakelet.files.delta_log import TableLog

PEOPLE = """
import dlt

@dlt.view
def events():
    reader = spark.readStream.schema("id INT, seq INT, name STRING, gone BOOLEAN")
    return reader.json(spark.conf.get("landing"))

dlt.create_streaming_table("people")
dlt.apply_changes(
    target="people", source="events", keys=["id"], sequence_by="seq", apply_as_deletes="gone", except_column_list=["seq", "gone"]
)
"""
FEED = """
@dlt.table
def told():
    changes = spark.readStream.option("readChangeFeed", "true").table("people")
    return changes.select("id", "name", "_change_type", "_commit_version")
"""


def event(id: int, seq: int, name: str | None = None, gone: bool = False) -> dict[str, object]:
    return {"id": id, "seq": seq, "name": name, "gone": gone}


@pytest.mark.long
@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_stream_reads_inserts_updates_and_deletes_of_a_change_table(project, from_the_start):
    p = project(PEOPLE + (FEED if from_the_start else ""))
    p.arrive("a.json", event(1, 1, "ann"), event(2, 1, "bob"))
    p.run()
    p.write(PEOPLE + FEED).run()  # a table that was there before its first reader begins to keep a feed now
    assert p.rows("told", "id", "name", "_change_type") == [(1, "ann", "insert"), (2, "bob", "insert")]

    p.arrive("b.json", event(1, 5, "anna"), event(2, 5, gone=True), event(3, 5, "cy"), event(2, 3, "late"))
    p.run()
    assert p.rows("people", "id", "name") == [(1, "anna"), (3, "cy")]
    told = sorted(p.rows("told", "id", "name", "_change_type"))
    assert told == [
        (1, "ann", "insert"),
        (1, "ann", "update_preimage"),
        (1, "anna", "update_postimage"),
        (2, "bob", "delete"),
        (2, "bob", "insert"),
        (3, "cy", "insert"),
    ]
    versions = p.versions()
    p.run()
    assert p.versions() == versions
    assert p.statuses()["told"] == "IDLE"


def test_a_view_and_a_table_that_keeps_none_have_no_change_feed(project):
    refused = PEOPLE.replace('"people")', '"people", table_properties={"delta.enableChangeDataFeed": "false"})', 1) + FEED
    p = project(refused)
    p.arrive("a.json", event(1, 1, "ann"))
    for source, why in ((refused, "is false"), (PEOPLE + FEED.replace('table("people")', 'table("events")'), "is a view")):
        with pytest.raises(DefinitionErrors) as caught:
            p.write(source).run()
        assert [(e.code, why in e.what) for e in caught.value.errors] == [("QUERY_KIND", True)]


@pytest.mark.long
def test_the_commit_of_a_merge_tells_what_it_did_for_an_update_that_died_before_it_could(project):
    p = project(PEOPLE + FEED)
    p.arrive("a.json", event(1, 1, "ann"), event(2, 1, "bob"), event(3, 1, gone=True))
    p.run()
    p.arrive("b.json", event(1, 5, "anna"), event(2, 5, gone=True), event(3, 5, "cy"), event(3, 3, "late"), event(4, 1, "di"))
    p.run()
    told = [e.body["metrics"] for e in p.events if e.event_type == "flow_progress" and "num_upserted_rows" in e.body.get("metrics", {})]
    facts = TableLog(p.path("people")).commit(p.version("people")).user_metadata["lakelet"]
    assert (facts["upserted"], facts["deleted"]) == (3, 1) == (told[0]["num_upserted_rows"], told[0]["num_deleted_rows"])
    written = [action["add"]["size"] for action in TableLog(p.path("people")).actions(p.version("people")) if "add" in action]
    assert facts["bytes"] == told[0]["num_output_bytes"] >= sum(written) > 0
