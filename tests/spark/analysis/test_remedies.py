"""What a stored table cannot follow is refused with the command that helps, and that command helps."""

from __future__ import annotations

import pytest

FILES = """
    import dlt
    from pyspark.sql import functions as F

    def landed(folder):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        return reader.option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing") + "/" + folder)

    def plain(folder):
        return spark.readStream.schema("kind STRING, amount BIGINT").json(spark.conf.get("landing") + "/" + folder)

    @dlt.table
    def bronze():
        return landed("a").select("kind", "amount")

    @dlt.table
    def other():
        return landed("b").select("kind", "amount")
"""
TABLE = 'dlt.read_stream("bronze")'
AGGREGATE = '.groupBy("kind").agg(F.max("amount").alias("amount"))'
CASES = {
    "distinct_then_grouped": (f'{TABLE}.dropDuplicates(["kind"])', f'{TABLE}.dropDuplicates(["kind"]){AGGREGATE}', "STREAM_STATE_CHANGED"),
    "plain_then_grouped": (TABLE, TABLE + AGGREGATE, "STREAM_STATE_CHANGED"),
    "grouped_then_plain": (TABLE + AGGREGATE, TABLE, "STREAM_STATE_CHANGED"),
    "more_keys": (f'{TABLE}.dropDuplicates(["kind"])', f'{TABLE}.dropDuplicates(["kind", "amount"])', "STREAM_STATE_CHANGED"),
    "more_sources": (TABLE, f'{TABLE}.union(dlt.read_stream("other"))', "STREAM_SOURCES_CHANGED"),
    "another_table": (TABLE, 'dlt.read_stream("other")', "STREAM_SOURCES_CHANGED"),
    "files_then_table": ('landed("a").select("kind", "amount")', TABLE, "STREAM_SOURCES_CHANGED"),
    "table_then_files": (TABLE, 'landed("a").select("kind", "amount")', "STREAM_SOURCES_CHANGED"),
    "table_then_plain_files": (TABLE, 'plain("a")', "STREAM_SOURCES_CHANGED"),
    "plain_files_then_table": ('plain("a")', TABLE, "STREAM_SOURCES_CHANGED"),
    "files_then_plain_files": ('landed("a").select("kind", "amount")', 'plain("a")', "STREAM_SOURCES_CHANGED"),
    "plain_files_then_files": ('plain("a")', 'landed("a").select("kind", "amount")', "STREAM_SOURCES_CHANGED"),
    "partitioned": (TABLE, TABLE, "PARTITIONS_CHANGED"),
}


def definitions(place):
    tables = ""
    for name, case in CASES.items():
        partition = 'partition_cols=["kind"]' if name == "partitioned" and place == 1 else ""
        tables += f"\n    @dlt.table({partition})\n    def {name}():\n        return {case[place]}\n"
    return FILES + tables


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit_is_an_error_that_names_the_remedy_and_the_remedy_works(project):
    p = project(definitions(0))
    for folder in "ab":
        p.arrive("1.json", {"kind": "x", "amount": 1}, {"kind": "y", "amount": 2}, folder=folder)
    p.run()
    before = {name: p.rows(name) for name in CASES}
    p.write(definitions(1))
    p.arrive("2.json", {"kind": "z", "amount": 3}, folder="a")
    p.run(expect="FAILED")
    assert p.errors() == {name: case[2] for name, case in CASES.items()}
    assert {name: p.rows(name) for name in CASES} == before
    for error in p.result.errors:
        assert f"lakelet run --full-refresh {error.dataset}" in str(error.todo)
        assert "[id =" not in str(error)
        if error.code != "PARTITIONS_CHANGED" and not str(error.dataset).endswith("grouped"):
            assert f"lakelet run --reset-checkpoint {error.dataset}" in str(error.todo)
    state = next(e for e in p.result.errors if str(e.dataset).endswith("distinct_then_grouped"))
    assert "Streaming stateful operator name does not match" in str(state.why)
    assert "dedupe" in str(state.why)
    assert "42K03" in str(state.why)

    kept = ["grouped_then_plain", "more_sources", "table_then_files"]
    p.run(full_refresh=tuple(c for c in CASES if c not in kept), reset_checkpoint=tuple(kept))
    rows = [("x", 1), ("y", 2), ("z", 3)]
    wanted = dict.fromkeys(CASES, rows) | {"another_table": rows[:2]}
    wanted |= {name: sorted(before[name] + rows + (rows[:2] if name == "more_sources" else [])) for name in kept}
    assert {name: p.rows(name) for name in CASES} == wanted
    p.run()
    assert {name for name, status in p.statuses().items() if status != "IDLE"} == {"table_then_plain_files", "files_then_plain_files"}


KINDS = {
    "stream": "dlt.read_stream('bronze')",
    "view": "dlt.read('bronze')",
    "changes": None,
}


def made_as(kind):
    if kind == "changes":
        return (
            "\n    dlt.create_streaming_table('t')"
            "\n    dlt.apply_changes(target='t', source='bronze', keys=['kind'], sequence_by='amount')\n"
        )
    return f"\n    @dlt.table\n    def t():\n        return {KINDS[kind]}\n"


@pytest.mark.in_ci(every=4)
@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), [("stream", "view"), ("view", "stream"), ("stream", "changes"), ("changes", "view")])
def test_a_table_of_another_kind_takes_its_place_by_a_full_refresh(project, before, after):
    p = project(FILES + made_as(before))
    for folder in "ab":
        p.arrive("1.json", {"kind": "x", "amount": 1}, folder=folder)
    p.run()
    p.write(FILES + made_as(after))
    p.arrive("2.json", {"kind": "y", "amount": 2}, folder="a")
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert error.code == "KIND_CHANGED"
    assert "lakelet run --full-refresh main.default.t" in str(error.todo)
    assert p.rows("t", "kind", "amount") == [("x", 1)]

    for _ in range(2):
        p.run(full_refresh=("t",))
        assert p.rows("t", "kind", "amount") == [("x", 1), ("y", 2)]
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    p.arrive("3.json", {"kind": "z", "amount": 3}, folder="a")
    p.run()
    assert p.rows("t", "kind", "amount") == [("x", 1), ("y", 2), ("z", 3)]


@pytest.mark.long
def test_a_type_that_the_table_cannot_take_is_refused_and_a_full_refresh_takes_it(project):
    source = (
        FILES
        + "\n    @dlt.table\n    def t():\n        return dlt.read_stream('bronze').select(F.col('amount').cast('{type}').alias('n'))\n"
    )
    p = project(source.replace("{type}", "int"))
    for folder in "ab":
        p.arrive("1.json", {"kind": "x", "amount": 1}, folder=folder)
    p.run()
    p.write(source.replace("{type}", "string")).run(expect="FAILED")
    (error,) = p.result.errors
    assert (error.code, error.dataset) == ("SCHEMA_INCOMPATIBLE", "main.default.t")
    assert "lakelet run --full-refresh main.default.t" in str(error.todo)
    p.run(full_refresh=("t",))
    assert p.rows("t") == ["1"]


@pytest.mark.slow
def test_other_partition_columns_of_a_change_table_are_refused_too(project):
    source = FILES + made_as("changes").replace("create_streaming_table('t')", "create_streaming_table('t'{more})")
    p = project(source.replace("{more}", ""))
    for folder in "ab":
        p.arrive("1.json", {"kind": "x", "amount": 1}, folder=folder)
    p.run()
    p.write(source.replace("{more}", ", partition_cols=['kind']"))
    p.arrive("2.json", {"kind": "y", "amount": 2}, folder="a")
    p.run(expect="FAILED")
    assert p.errors() == {"t": "PARTITIONS_CHANGED"}
    assert p.rows("t", "kind", "amount") == [("x", 1)]
    p.run(full_refresh=("t",))
    assert p.rows("t", "kind", "amount") == [("x", 1), ("y", 2)]
