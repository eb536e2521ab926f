"""Expectations: counting, dropping, failing (docs/semantics/expectations.md)."""

from __future__ import annotations

import pytest

from lakelet.inspection.inspector import run_sql

AGES = [(1, 30), (2, None), (3, -5), (None, 40), (None, -1)]
READ = """(spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.schemaHints", "id BIGINT, age BIGINT")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))"""


def records(rows=AGES):
    return [{"id": i, "age": a} for i, a in rows]


def people(rules: str) -> str:
    return f"""
    import dlt

{rules}
    def people():
        return {READ}
"""


WORKED = people("""
    @dlt.table
    @dlt.expect("age_known", "age IS NOT NULL")
    @dlt.expect_or_drop("id_ok", "id IS NOT NULL")
    @dlt.expect_or_drop("age_ok", "age >= 0")
""")


def test_rows_are_counted_before_dropping_and_null_is_a_violation(project):
    p = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    assert p.rows("people", "id", "age") == [(1, 30)]
    assert p.quality() == {"age_known": (4, 1), "id_ok": (3, 2), "age_ok": (2, 3)}
    (batch,) = [e for e in p.events if e.body.get("data_quality")]
    assert batch.body["data_quality"]["dropped_records"] == 4
    assert batch.body["metrics"]["num_output_rows"] == 1
    assert batch.body["status"] == "RUNNING"


def test_a_fail_rule_beats_drop_writes_nothing_and_reports_the_row(project):
    p = project(WORKED.replace('@dlt.expect("age_known"', '@dlt.expect_or_fail("small", "id < 100")\n    @dlt.expect("age_known"'))
    p.arrive("a.json", *records())
    p.run(expect="FAILED")
    assert p.errors() == {"people": "EXPECTATION_VIOLATION"}
    (error,) = p.result.errors
    assert str(error).splitlines()[0] == "[EXPECTATION_VIOLATION] main.default.people: 2 of 5 rows break the fail rule 'small': id < 100"
    assert error.where.source.strip() == '@dlt.expect_or_fail("small", "id < 100")'
    assert error.why.splitlines() == [
        'The first such row (id is NULL): {"age": -1, "id": null, "_rescued_data": null}',
        "Nothing of this batch was written.",
    ]
    assert "main.default.people" not in p.storage.registry().datasets
    assert p.quality() == {"small": (3, 2), "age_known": (4, 1), "id_ok": (3, 2), "age_ok": (2, 3)}


def test_decorators_work_in_any_order_and_on_the_result_of_a_plain_call(project):
    p = project(f"""
    import dlt

    @dlt.expect_or_drop("id_ok", "id IS NOT NULL")
    @dlt.table()
    @dlt.expect_all({{"age_known": "age IS NOT NULL"}})
    def above():
        return {READ}

    def query():
        return dlt.read_stream("above")

    dlt.expect_all_or_drop({{"age_ok": "age >= 0"}})(dlt.table(query, name="called"))
    assert above.__name__ == "above"
""")
    p.arrive("a.json", *records())
    p.run()
    assert p.quality("above") == {"id_ok": (3, 2), "age_known": (4, 1)}
    assert p.quality("called") == {"age_ok": (1, 2)}
    assert p.rows("called", "id") == [1]


@pytest.mark.long
@pytest.mark.adaptive_too
def test_a_rule_on_a_view_filters_its_readers_and_is_counted_by_each(project):
    p = project(f"""
    import dlt

    @dlt.view
    @dlt.expect_or_drop("id_ok", "id IS NOT NULL")
    def checked():
        return {READ}

    @dlt.table
    def one():
        return dlt.read_stream("checked")

    @dlt.table
    def two():
        return spark.readStream.table("checked").where("age > 0")

    @dlt.view
    @dlt.expect("adult", "age >= 18")
    def batch_view():
        return dlt.read("one")

    @dlt.table
    def adults():
        return dlt.read("batch_view").where("age >= 18")
""")
    p.arrive("a.json", *records())
    p.run()
    assert p.rows("one", "id") == [1, 2, 3]
    assert p.rows("two", "id") == [1]
    assert p.quality("checked") == {"id_ok": (6, 4)}
    assert p.quality("batch_view") == {"adult": (1, 2)}
    found = {e.origin.flow_name: e.body["data_quality"]["dropped_records"] for e in p.events if e.body.get("data_quality")}
    assert found["main.default.one"] == 2


@pytest.mark.adaptive_too
def test_a_fail_rule_on_a_view_fails_the_flow_that_reads_it(project):
    p = project(f"""
    import dlt

    @dlt.view
    @dlt.expect_or_fail("id_ok", "id IS NOT NULL")
    def checked():
        return {READ}

    @dlt.table
    def strict():
        return dlt.read_stream("checked")

    @dlt.table
    def relaxed():
        return {READ}
""")
    p.arrive("a.json", *records())
    p.run(expect="FAILED")
    assert p.errors() == {"strict": "EXPECTATION_VIOLATION"}
    assert '"id": null' in p.result.errors[0].why
    assert p.statuses() == {"strict": "FAILED", "relaxed": "COMPLETED"}
    assert len(p.rows("relaxed")) == 5


def test_a_batch_whose_rows_are_all_dropped_is_still_counted(project):
    p = project(WORKED)
    p.arrive("a.json", {"id": None, "age": -1})
    p.run()
    assert p.quality()["id_ok"] == (0, 1)
    assert p.rows("people") == []


def test_existing_rows_are_not_checked_again_when_a_rule_changes(project):
    p = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    p.write(WORKED.replace("age >= 0", "age >= 100"))
    p.run()
    assert p.statuses() == {"people": "IDLE"}
    assert p.rows("people", "id") == [1]


@pytest.mark.adaptive_too
def test_rules_of_a_materialized_view_cover_its_whole_result(project):
    p = project("""
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    @dlt.expect_or_drop("even", F.col("id") % 2 == 0)
    @dlt.expect("small", "id < 3")
    def numbers():
        return spark.range(5)
""")
    p.run()
    assert p.rows("numbers") == [0, 2, 4]
    assert p.quality() == {"even": (3, 2), "small": (3, 2)}


def test_EL7_the_numbers_of_a_materialized_view_are_in_its_completed_event(project):
    p = project("""
        import dlt

        @dlt.table
        @dlt.expect_or_drop("low", "id < 2")
        def numbers():
            return spark.range(3)
    """)
    p.run()
    told = [e.body for e in p.events if e.event_type == "flow_progress"]
    assert [body["status"] for body in told] == ["QUEUED", "STARTING", "RUNNING", "COMPLETED"]
    assert [body["status"] for body in told if "metrics" in body or "data_quality" in body] == ["COMPLETED"]
    assert told[-1]["metrics"]["num_output_rows"] == 2
    assert told[-1]["data_quality"]["expectations"] == [
        {"name": "low", "dataset": "main.default.numbers", "passed_records": 2, "failed_records": 1}
    ]
    query = (
        "SELECT sum(details:flow_progress.metrics.num_output_rows::BIGINT) AS n, count(*) AS events FROM event_log_raw "
        "WHERE event_type = 'flow_progress' AND details:flow_progress.status = 'COMPLETED'"
    )
    assert list(run_sql(p.storage.root, query).rows) == [{"n": 2, "events": 1}]


@pytest.mark.long
def test_rows_behind_the_watermark_are_counted_and_shown(project):
    p = project("""
    import dlt

    @dlt.table
    def deduplicated():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.schemaHints", "at TIMESTAMP")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing"))
                .withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"]))
""")
    p.arrive("a.json", {"id": 1, "at": "2026-03-01T10:00:00Z"}, {"id": 1, "at": "2026-03-01T10:00:00Z"})
    p.run()
    p.arrive("b.json", {"id": 2, "at": "2026-02-01T10:00:00Z"}, {"id": 3, "at": "2026-03-01T10:30:00Z"})
    p.run()
    assert p.rows("deduplicated", "id") == [1, 3]
    (late,) = [e for e in p.events if e.event_type == "late_records"]
    assert late.body["dropped_by_watermark"] == 1
    assert late.level == "WARN"


@pytest.mark.slow
def test_a_rule_of_a_streaming_table_may_name_a_column_that_a_join_by_name_hides(project):
    p = project("""
    import dlt

    @dlt.table
    def customers():
        return spark.createDataFrame([(1, "Rome"), (2, "Oslo")], "customer INT, city STRING")

    @dlt.table
    def orders():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, customer INT")
        return reader.load(spark.conf.get("landing"))

    @dlt.table
    @dlt.expect_or_drop("known", "customers.customer IS NOT NULL")
    @dlt.expect("early", "orders.id < 3")
    @dlt.expect_or_fail("named", "id IS NOT NULL")
    def with_city():
        return dlt.read_stream("orders").join(dlt.read("customers"), "customer", "left")
    """)
    p.arrive("a.json", {"id": 1, "customer": 1}, {"id": 2, "customer": 9}, {"id": 3, "customer": 2})
    p.run()
    assert p.table("with_city").column_names == ["customer", "id", "city"]
    assert p.rows("with_city", "id", "city") == [(1, "Rome"), (3, "Oslo")]
    assert p.quality("with_city") == {"known": (2, 1), "early": (2, 1), "named": (3, 0)}
    p.arrive("b.json", {"customer": 9})
    p.run(expect="FAILED")
    assert '{"customer": 9, "id": null, "city": null}' in str(p.result.errors[0])


def test_rules_that_only_count_are_right_whatever_they_are_made_of(project):
    rules = {
        "plain": "age >= 0",
        "between": "age BETWEEN 0 AND 35 AND nullif(id, 2) IS NOT NULL",
        "by_python": "is_even(id)",
        "by_chance": "rand() <= 1",
        "by_subquery": "id <= (SELECT max(id) FROM VALUES (1), (2) AS t(id))",
    }
    tables = "".join(
        f"\n    @dlt.table(name='{name}')\n    @dlt.expect('{name}', {rule!r})\n    def q_{name}(): return {READ}\n"
        for name, rule in rules.items()
    )
    p = project(f"""
    import dlt

    spark.udf.register("is_even", lambda number: number is not None and number % 2 == 0, "boolean")
{tables}
    @dlt.table
    @dlt.expect_all({rules!r})
    def together(): return {READ}
""")
    p.arrive("a.json", *records())
    p.run()
    expected = {"plain": (2, 3), "between": (1, 4), "by_python": (1, 4), "by_chance": (5, 0), "by_subquery": (2, 3)}
    assert {name: p.quality(name) for name in rules} == {name: {name: counts} for name, counts in expected.items()}
    assert p.quality("together") == expected
    assert len(p.rows("together", "id", "age")) == 5
