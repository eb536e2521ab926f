"""Change flows that run once and read a stream, as in a first copy by Auto Loader beside a feed of changes."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors

SOURCES = """
import dlt

def files(folder):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, name STRING, seq INT")
    return reader.load(f"{spark.conf.get('landing')}/{folder}")

@dlt.view
@dlt.expect_or_drop("named", "name IS NOT NULL")
def copied():
    return files("copy")

@dlt.view
def changes():
    return files("changes")
"""
PYTHON = """
dlt.create_streaming_table("people")
same = {"target": "people", "keys": ["id"], "sequence_by": "seq", "except_column_list": ["seq"]}
dlt.create_auto_cdc_flow(name="first_copy", source="copied", once=True, **same)
dlt.create_auto_cdc_flow(name="fed", source="changes", **same)
"""
SQL = """
CREATE OR REFRESH STREAMING TABLE people;
CREATE FLOW first_copy AS AUTO CDC ONCE INTO people FROM STREAM(copied) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq);
CREATE FLOW fed AS AUTO CDC INTO people FROM STREAM(changes) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq);
"""


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "sql"])
def test_a_stream_that_is_applied_once_gives_what_is_there_at_first_and_no_more_until_a_full_refresh(project, language):
    p = project(SOURCES + PYTHON) if language == "python" else project(SOURCES)
    if language == "sql":
        p.write(SQL, name="people.sql")
    p.arrive("a.json", {"id": 1, "name": "one", "seq": 0}, {"id": 2, "name": "two", "seq": 0}, {"id": 3, "seq": 0}, folder="copy")
    p.arrive("b.json", {"id": 4, "name": "four", "seq": 0}, folder="copy")
    p.arrive("c.json", {"id": 2, "name": "TWO", "seq": 5}, folder="changes")
    p.run()
    assert p.rows("people", "id", "name") == [(1, "one"), (2, "TWO"), (4, "four")]
    p.arrive("d.json", {"id": 9, "name": "late copy", "seq": 0}, folder="copy")
    p.arrive("e.json", {"id": 4, "name": "FOUR", "seq": 5}, folder="changes")
    p.run()
    assert p.rows("people", "id", "name") == [(1, "one"), (2, "TWO"), (4, "FOUR")]
    versions = p.versions()
    p.run()
    assert p.versions() == versions
    p.run(full_refresh=["people"])
    assert p.rows("people", "id", "name") == [(1, "one"), (2, "TWO"), (4, "FOUR"), (9, "late copy")]


def test_a_batch_as_source_of_a_feed_is_refused_at_the_line_of_the_flow(project):
    p = project("""
    import dlt

    @dlt.view
    def rows():
        return spark.range(2)

    dlt.create_streaming_table("people")
    dlt.apply_changes("people", "rows", keys=["id"], sequence_by="id")  # here
    """)
    with pytest.raises(DefinitionErrors) as refused:
        p.run()
    (error,) = refused.value.errors
    assert error.code == "QUERY_KIND"
    assert (p.folder / "pipeline.py").read_text().splitlines()[error.where.line - 1].endswith("# here")


def test_rows_that_a_watermark_holds_back_from_a_flow_that_runs_once_bring_a_notice(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F

        @dlt.view
        def newest():
            rows = spark.readStream.schema("id INT, at TIMESTAMP").json(spark.conf.get("landing"))
            return rows.withWatermark("at", "1 hour").groupBy("id", F.window("at", "1 day")).agg(F.max("at").alias("at")).select("id", "at")

        dlt.create_streaming_table("people")
        dlt.create_auto_cdc_flow(target="people", source="newest", keys=["id"], sequence_by="at", once=True, name="first_copy")
    """)
    p.arrive("a.json", {"id": 1, "at": "2026-01-01T00:00:00Z"})

    told = [notice.text for notice in p.pipeline.check().notices]

    assert any("its watermark holds back never reach the table" in text for text in told), told
