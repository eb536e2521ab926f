"""What only the run finds fails its own branch, and the next update repairs it."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.spark.analysis.marked_mistakes import HEAD, NUMBERS

BRANCHES = (
    NUMBERS
    + """
    def files(folder, **options):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").options(**options)
        return reader.option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing") + "/" + folder)

    def causes():
        from pathlib import Path
        return Path(spark.conf.get("landing"), "causes").exists()

    @dlt.table
    def unreadable():
        return files("unreadable", **{"cloudFiles.schemaHints": "id BIGINT"})

    @dlt.table
    def missing():
        return files("missing")

    @dlt.table
    def missing_batch():
        return spark.read.schema("id BIGINT").json(spark.conf.get("landing") + "/missing")

    @dlt.table
    def empty():
        return files("empty")

    @dlt.table
    def function():
        if causes():
            raise ValueError("of the user")  # function
        return spark.range(1)

    @dlt.view
    def view():
        if causes():
            raise ValueError("of the view")  # view
        return spark.range(1)

    @dlt.table
    def reads_view():
        return dlt.read("view")

    def divided(x):
        return 1 // x  # worker

    @dlt.table
    def udf():
        start = 0 if causes() else 1
        return dlt.read("numbers").where(f"id >= {start}").select(F.udf(divided, "long")("id").alias("id"))

    @dlt.table
    def cast():
        return dlt.read("numbers").selectExpr(f"CAST({'concat(id, chr(97))' if causes() else 'id'} AS INT) AS id")

    @dlt.table
    def time():
        text = "'2024-03-01T10:00:00Z'" if causes() else "current_timestamp()"
        return dlt.read("numbers").selectExpr(f"unix_timestamp({text}) AS id")

    @dlt.table
    @dlt.expect_or_fail("small", f"id < {2 if causes() else 3}")
    def fail_rule():
        return dlt.read_stream("numbers")

    @dlt.table
    def below():
        return dlt.read("unreadable").select("id").union(dlt.read("numbers"))

    @dlt.table
    def below_below():
        return dlt.read("below")

    @dlt.table
    def good():
        return files("good")

    @dlt.table
    def below_good():
        return dlt.read_stream("good").select("id")
"""
)


FAILED = {
    "unreadable": "FAILED_READ_FILE",
    "missing": "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
    "missing_batch": "FLOW_FAILED",
    "empty": "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
    "function": "USER_FUNCTION_FAILED",
    "view": "USER_FUNCTION_FAILED",
    "udf": "FLOW_FAILED",
    "cast": "FLOW_FAILED",
    "time": "FLOW_FAILED",
    "fail_rule": "EXPECTATION_VIOLATION",
}


@pytest.mark.long
def test_a_failure_at_run_time_stays_in_its_branch_and_the_next_update_repairs_it(project):
    p = project(BRANCHES)
    p.arrive("causes", "{}")
    p.arrive("a.json", {"id": 1}, folder="good")
    p.arrive("b.json", {"id": 7}, folder="unreadable")
    packed = p.landing / "unreadable" / "a.json.gz"
    packed.write_bytes(gzip.compress(b'{"id": 5}\n' * 1000)[:20])
    (p.landing / "empty").mkdir()
    p.run(expect="FAILED")

    assert p.errors() == FAILED
    ended = p.statuses()
    assert {name for name, status in ended.items() if status == "COMPLETED"} == {"numbers", "good", "below_good"}
    assert {name for name, status in ended.items() if status == "SKIPPED"} == {"below", "below_below"}
    assert p.rows("below_good") == [1]
    assert not any((p.path(name) / "_delta_log").exists() for name in ended if ended[name] in ("FAILED", "SKIPPED"))
    assert [str(e) for e in p.result.errors if not (e.where and e.todo)] == []
    errors = {str(e.dataset).rsplit(".", 1)[-1]: e for e in p.result.errors}
    lines = (p.folder / "pipeline.py").read_text().splitlines()
    assert lines[errors["function"].where.line - 1].endswith("# function")
    assert lines[errors["view"].where.line - 1].endswith("# view")
    assert lines[errors["udf"].where.line - 1].endswith("# worker")
    assert all("spark.sql.ansi.enabled" in errors[name].todo for name in ("cast", "time"))
    assert "a.json.gz" in errors["unreadable"].what
    assert "the fail rule 'small'" in errors["fail_rule"].what

    (p.landing / "causes").unlink()
    packed.write_bytes(gzip.compress(b'{"id": 5}\n'))
    p.arrive("a.json", {"id": 2}, folder="missing")
    p.arrive("a.json", {"id": 3}, folder="empty")
    p.run()
    assert p.rows("unreadable", "id") == [5, 7]
    assert p.rows("below_below", "id") == [0, 1, 2, 5, 7]
    assert (p.rows("missing", "id"), p.rows("missing_batch"), p.rows("empty", "id")) == ([2], [2], [3])
    assert (p.rows("function"), p.rows("reads_view"), p.rows("udf"), p.rows("cast")) == ([0], [0], [0, 1], [0, 1, 2])
    assert p.rows("fail_rule") == [0, 1, 2]
    assert p.rows("below_good") == [1]


@pytest.mark.slow
def test_a_file_that_vanishes_before_it_is_read_fails_its_table_until_it_is_back(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def bronze():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
        return reader.load(spark.conf.get("landing"))
"""
    )
    p.arrive("a.json", {"id": 1})
    packed = p.landing / "b.json.gz"
    packed.write_bytes(b"broken")
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert error.what.endswith("b.json.gz cannot be read"), str(error)
    packed.unlink()
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.what.endswith("b.json.gz is missing")) == ("FAILED_READ_FILE", True)
    assert "Put the file back" in error.todo
    packed.write_bytes(gzip.compress(b'{"id": 2}\n'))
    p.run()
    assert p.rows("bronze") == [1, 2]


def test_broken_lines_and_wrong_types_are_kept_counted_and_warned_about(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def bronze():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
        return reader.option("cloudFiles.schemaHints", "id BIGINT, _corrupt_record STRING").load(spark.conf.get("landing"))
"""
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.arrive("b.json", {"id": 3}, '{"id": 4', {"id": "five"}, "no json at all")
    p.run()
    assert sorted(p.rows("bronze", "id"), key=repr) == [1, 2, 3, None, None, None]
    kept = " ".join(map(str, p.rows("bronze", "_corrupt_record") + p.rows("bronze", "_rescued_data")))
    assert all(text in kept for text in ('{"id": 4', "five", "no json at all"))
    (warning,) = [e for e in p.events if e.event_type == "source_records"]
    body = warning.body
    assert (body["corrupt"], body["rescued"], body["first_line"]) == (2, 1, 2)
    assert body["first_file"].endswith("/b.json")
    assert warning.level == "WARN"
    assert "2 broken and 1 partly rescued" in warning.message


def test_text_after_the_value_of_a_json_line_is_not_read_and_counted(project, spark):
    p = project(
        HEAD
        + """
    def bronze(kind, **options):
        @dlt.table(name=kind)
        def table():
            reader = spark.readStream.format("cloudFiles").options(**options)
            return reader.load(spark.conf.get("landing") + "/" + kind)

    types = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    bronze("lines", **types)
    bronze("documents", multiLine="true", **types)
"""
    )
    p.arrive("lines/a.json", '{"id": 1},', '[{"id": 2},{"id": 3}] ...', '{"id": 4} {"id": 5}', {"id": 6})
    p.arrive("documents/a.json", '[{"id": 1},', '{"id": 2}]', '{"id": 3}')
    p.arrive("documents/b.json", {"id": 4})
    p.run()
    for name, multi_line in (("lines", False), ("documents", True)):
        plain = spark.read.option("multiLine", multi_line).json(f"{p.landing}/{name}")
        assert sorted(p.rows(name, "id")) == sorted(row.id for row in plain.collect())
    found = {e.body["flow_name"].rsplit(".", 1)[-1]: e for e in p.events if e.event_type == "source_records"}
    assert {name: (e.body["passed_over"], e.body["rescued"], e.body["corrupt"]) for name, e in found.items()} == {
        "lines": (3, 0, 0),
        "documents": (1, 0, 0),
    }
    assert "3 with unread text after the JSON value; the first in file:" in found["lines"].message
    assert found["lines"].message.endswith("/lines/a.json, line 1.")


def test_bytes_of_another_encoding_are_named_with_place_and_option(project):
    p = project(
        HEAD
        + """
    def bronze(kind, **options):
        @dlt.table(name=kind)
        def table():
            reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", kind).options(**options)
            return reader.load(spark.conf.get("landing") + "/" + kind)

    bronze("csv")
    bronze("json")
    bronze("xml", rowTag="r")
    bronze("text")
"""
    )
    contents = {
        "csv": b"id,name\n1,Ann\n2,Jos\xe9\n",
        "json": b'{"id":1,"name":"Ann"}\n{"id":2,"name":"Jos\xe9"}\n',
        "xml": b"<x>\n<r><id>1</id><name>Ann</name></r>\n<r><id>2</id><name>Jos\xe9</name></r>\n</x>",
        "text": b"Ann\nBob\nJos\xe9\n",
    }
    for kind, content in contents.items():
        (p.landing / kind).mkdir(parents=True)
        (p.landing / kind / f"a.{kind}").write_bytes(content)
    p.run()
    found = {e.body["flow_name"].rsplit(".", 1)[-1]: e for e in p.events if e.event_type == "source_records"}
    places = {"csv": "line 3, column name", "json": "line 2, column name", "xml": "line 3, column name", "text": "line 3"}
    assert set(found) == set(places)
    for kind, place in places.items():
        body = found[kind].body
        assert body["undecodable"] == 1
        assert f"/{kind}/a.{kind}, {place}: the byte 0xE9 is not UTF-8. It looks like ISO-8859-1: " in body["reason"]
        assert '.option("encoding", "ISO-8859-1")' in found[kind].message
    assert sorted(p.rows("csv", "name")) == ["Ann", "Jos\ufffd"]


@pytest.mark.parametrize("option", ['.option("badRecordsPath", ROOT + "/bad")', '.option("mode", "DROPMALFORMED")'])
def test_records_that_options_leave_out_are_counted_and_warned_about(project, option):
    p = project(
        HEAD
        + f"""
    ROOT = spark.conf.get("landing")

    @dlt.table
    @dlt.expect("any", "true")
    def bronze():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("pathGlobFilter", "*.json*")
        reader = reader{option}.option("ignoreCorruptFiles", "true")
        return reader.schema("id BIGINT").load(ROOT)
"""
    )
    p.arrive("a.json", {"id": 1}, {"id": 2})
    p.arrive("b.json", {"id": 3}, '{"id": 4', {"id": "five"})
    (p.landing / "c.json.gz").write_bytes(b"broken")
    p.run()
    assert p.rows("bronze") == [1, 2, 3]
    assert p.quality("bronze") == {"any": (3, 0)}
    (warning,) = [e for e in p.events if e.event_type == "source_records"]
    body = warning.body
    assert (body["records"], body["corrupt"], body["left_out"], body["rescued"]) == (6, 3, 3, 0)
    assert (body["first_file"].endswith("/b.json"), body["first_line"]) == (True, 2)
    assert "3 broken and 0 partly rescued record(s)" in warning.message
    assert ", of which 3 left out; the first in" in warning.message
    if "bad" in option:
        kept = [json.loads(line) for file in (p.landing / "bad").rglob("part-*.json") for line in file.read_text().splitlines()]
        assert sorted(one["path"].rsplit("/", 1)[-1] for one in kept) == ["b.json", "b.json", "c.json.gz"]


def test_what_reads_a_failed_table_through_views_is_skipped(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def bronze():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))

    dlt.view(lambda: dlt.read_stream("bronze"), name="streamed")
    dlt.view(lambda: dlt.read("streamed"), name="again")
    dlt.table(lambda: dlt.read_stream("streamed"), name="appended")
    dlt.table(lambda: dlt.read("again"), name="computed")
    dlt.table(lambda: spark.range(1), name="other")
"""
    )
    p.run(expect="FAILED")
    assert p.statuses() == {"bronze": "FAILED", "appended": "SKIPPED", "computed": "SKIPPED", "other": "COMPLETED"}
    assert p.errors() == {"bronze": "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE"}
