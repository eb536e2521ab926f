"""Declared schemas when data brings columns that they do not have: the flow fails before its commit, nothing is left out."""

from __future__ import annotations

import pytest

PIPELINE = """
import dlt

def landed(folder, mode="addNewColumns"):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    return reader.option("cloudFiles.schemaEvolutionMode", mode).load(spark.conf.get("landing") + "/" + folder)

@dlt.table(schema="{declared}")
def declared():
    return landed("a")

dlt.create_streaming_table("fed", schema="{declared}")

@dlt.append_flow(target="fed")
def into_fed():
    return landed("a")

@dlt.table(schema="id BIGINT, payload STRUCT<x: BIGINT>, _rescued_data STRING")
def nested():
    return landed("b")

@dlt.view
def changes():
    return landed("a")

dlt.create_streaming_table("kept", schema="{declared}")
dlt.apply_changes("kept", source="changes", keys=["id"], sequence_by="n")

@dlt.table(schema="id BIGINT, n BIGINT, _rescued_data STRING")
def rescued():
    return landed("a", "rescue")

@dlt.table
def open():
    return landed("a")

@dlt.table(schema="id BIGINT, n BIGINT, _rescued_data STRING")
def below():
    return dlt.read_stream("open")

@dlt.table(schema="id BIGINT, n BIGINT, _rescued_data STRING")
def view_below():
    return dlt.read("open")

@dlt.table(schema="id BIGINT, n BIGINT")
def chosen():
    return dlt.read_stream("open").select("id", "n")
"""
LISTED = """
CREATE OR REFRESH STREAMING TABLE listed (id BIGINT, n BIGINT, _rescued_data STRING) AS
SELECT * FROM STREAM read_files('${landing}/a', format => 'json');
"""
BEFORE, AFTER = "id BIGINT, n BIGINT, _rescued_data STRING", "id BIGINT, n BIGINT, _rescued_data STRING, late STRING"
REFUSED = {"declared", "fed", "nested", "kept", "below", "view_below", "listed"}


@pytest.mark.long
def test_columns_that_a_declared_schema_lacks_fail_their_flow_and_nothing_is_left_out(project):
    p = project(PIPELINE.replace("{declared}", BEFORE)).write(LISTED, "listed.sql")
    p.arrive("1.json", {"id": 1, "n": 1}, folder="a")
    p.arrive("1.json", {"id": 1, "payload": {"x": 1}}, folder="b")
    p.run()
    p.arrive("2.json", {"id": 2, "n": 2, "late": "x"}, folder="a")
    p.arrive("2.json", {"id": 2, "payload": {"x": 1, "y": 2}}, folder="b")
    for _ in range(2):  # the update that meets the columns, and one that knows them from the start
        p.run(expect="FAILED")
        assert p.errors() == dict.fromkeys(REFUSED, "SCHEMA_OUTGROWN")
        whats = {str(e.dataset).rsplit(".", 1)[-1]: e.what for e in p.result.errors}
        assert "payload.y BIGINT" in whats["nested"].replace("bigint", "BIGINT")
        assert all("late string" in whats[name] for name in REFUSED - {"nested"})
        assert p.rows("declared", "id") == p.rows("kept", "id") == p.rows("nested", "id") == p.rows("below", "id") == [1]
        assert p.rows("open", "id", "late") == [(1, None), (2, "x")]
        assert p.rows("chosen", "id") == [1, 2]
        assert [value is None for value in p.rows("rescued", "_rescued_data")] == [False, True]
    p.arrive("3.json", {"id": 3, "n": 3}, folder="a")
    p.run(expect="FAILED")
    assert p.rows("open", "id") == [1, 2, 3]
    assert any("late string" in notice.text for notice in p.pipeline.check().notices)

    p.write(PIPELINE.replace("{declared}", AFTER)).run(expect="FAILED")
    assert p.errors().keys() == {"nested", "below", "view_below", "listed"}
    for name in ("declared", "fed", "kept"):
        assert p.rows(name, "id", "late") == [(1, None), (2, "x"), (3, None)]


def test_a_query_that_never_ran_with_a_column_too_many_refuses_the_update(project):
    p = project(PIPELINE.replace("{declared}", "id BIGINT, _rescued_data STRING"))
    p.arrive("1.json", {"id": 1, "n": 1}, folder="a")
    p.arrive("1.json", {"id": 1, "payload": {"x": 1}}, folder="b")
    assert {error.code for error in p.refused()} >= {"SCHEMA_MISMATCH"}


COMMENTED = "id BIGINT COMMENT 'key', n INT, m STRUCT<u: STRING COMMENT 'who'> COMMENT 'meta', a ARRAY<STRUCT<q: INT COMMENT 'what'>>"


@pytest.mark.slow
def test_comments_of_nested_fields_are_kept_and_no_part_of_the_type(project):
    p = project(f"""
        import dlt
        TYPES = "id BIGINT, n INT, m STRUCT<u: STRING>, a ARRAY<STRUCT<q: INT>>"
        COMMENTED = {COMMENTED!r}

        @dlt.view
        def raw():
            return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema(TYPES).load(spark.conf.get("landing"))

        dlt.table(lambda: dlt.read_stream("raw"), name="appended", schema=COMMENTED)
        dlt.table(lambda: dlt.read("appended"), name="computed", schema=COMMENTED)
        dlt.create_streaming_table("latest", schema=COMMENTED)
        dlt.apply_changes("latest", "raw", ["id"], sequence_by="n")
        dlt.create_streaming_table("mirror", schema=COMMENTED)
        dlt.apply_changes_from_snapshot("mirror", "computed", keys=["id"], stored_as_scd_type=1)
    """)
    p.arrive("a.json", {"id": 1, "n": 1, "m": {"u": "x"}, "a": [{"q": 1}]})
    p.run()
    p.arrive("b.json", {"id": 2, "n": 1, "m": {"u": "y"}, "a": [{"q": 2}]})
    p.run()
    for name in ("appended", "computed", "latest", "mirror"):
        assert p.rows(name, "id", "m") == [(1, {"u": "x"}), (2, {"u": "y"})]
        fields = {field.name: field for field in p.spark.read.format("delta").load(str(p.path(name))).schema}
        assert fields["m"].dataType["u"].metadata == {"comment": "who"}
        assert fields["a"].dataType.elementType["q"].metadata == {"comment": "what"}
    p.run()
    assert p.statuses() == {"appended": "IDLE", "computed": "IDLE", "latest": "IDLE", "mirror": "COMPLETED"}
