"""What the rules counted in a batch that a fail rule stopped: in the event log, its views and the page (EP-5, EP-8)."""

from __future__ import annotations

import json
import pickle

import pytest

from lakelet.dashboard.changes import what_changed
from lakelet.inspection.inspector import run_sql
from lakelet.storage.eventlog.fold import reduce_events

KINDS = """
    import dlt
    from pyspark.sql import functions as F

    def files(folder):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", 1)
        return reader.schema("id BIGINT, n BIGINT").load(spark.conf.get("landing") + "/" + folder)

    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_fail("low", "n < 100")
    @dlt.expect_or_drop("positive", "n > 0")
    @dlt.expect("even", "n % 2 = 0")
    @dlt.expect_all_or_fail({
        "known": "id IS NOT NULL",
        "present": "n IS NOT NULL",
    })
    def streamed():
        return files("in")

    @dlt.view
    @dlt.expect_or_fail("of_view", "n < 100")
    @dlt.expect("small", "n < 2")
    def shared():
        return spark.createDataFrame([(1, 1), (2, 200)], "id BIGINT, n BIGINT") if spark.conf.get("bad") == "1" else spark.range(2).select(
            "id", F.col("id").alias("n"))

    @dlt.table
    @dlt.expect_or_fail("own", "id < 2")
    def computed():
        return dlt.read("shared")

    @dlt.view
    def events():
        return files("in")

    dlt.create_streaming_table("changed", expect_all_or_fail={"low": "n < 100"}, expect_all={"even": "n % 2 = 0"})
    dlt.apply_changes(target="changed", source="events", keys=["id"], sequence_by="n")

    dlt.create_streaming_table("compared", expect_all_or_fail={"low": "n < 100"})
    dlt.apply_changes_from_snapshot(target="compared", source="plain", keys=["id"], stored_as_scd_type=1)

    @dlt.view
    def plain():
        return spark.createDataFrame([(1, 1), (2, 200 if spark.conf.get("bad") == "1" else 2)], "id BIGINT, n BIGINT")

    dlt.create_streaming_table("loaded", expect_all_or_fail={"low": "n < 100"})

    @dlt.append_flow(target="loaded", once=True)
    def load():
        return dlt.read("plain")

    @dlt.table
    def base():
        return files("in")

    dlt.create_sink("outside", "delta", {"path": spark.conf.get("landing") + "/out"})

    @dlt.append_flow(target="outside")
    def send():
        return dlt.read_stream("base").join(dlt.read("shared"), "id").select("id")
"""
AS_FAILED = {
    "streamed": {"low": (3, 1), "positive": (2, 2), "even": (3, 1), "known": (4, 0), "present": (4, 0)},
    "shared": {"of_view": (1, 2), "small": (1, 1)},
    "computed": {"own": (1, 1)},
    "changed": {"low": (3, 1), "even": (3, 1)},
    "compared": {"low": (1, 1)},
    "loaded": {"low": (1, 1)},
}


def page(p):
    """(passed, failed) of each rule in the newest update that measured it, and the sentences about the newest update."""
    history = reduce_events(
        [{**row, "details": json.dumps(row["details"]), "timestamp": row["timestamp"].isoformat()} for row in p.logged()]
    )
    latest = {}
    for update in history.updates:
        latest |= update.counts_by_rule
    return latest, [(c.about.rsplit(".", 1)[-1], c.rule, c.text) for c in what_changed(history) if c.rule]


@pytest.mark.long
def test_EP8_what_rules_counted_in_a_failed_batch_is_in_the_log_its_views_and_the_page(project):
    p = project(KINDS)
    p.parameters["bad"] = "1"
    p.arrive("a.json", {"id": 1, "n": 2}, {"id": 2, "n": -2}, folder="in")
    p.arrive("b.json", {"id": 3, "n": 101}, {"id": 4, "n": -4}, folder="in")
    p.run(expect="FAILED")

    assert {name: p.quality(name) for name in AS_FAILED} == AS_FAILED
    failed = {str(e.origin.flow_name).rsplit(".", 1)[-1]: e for e in p.events if e.body.get("status") == "FAILED"}
    quality = {flow: e.body["data_quality"] for flow, e in failed.items()}
    assert {flow: found["scope"] for flow, found in quality.items()} == {
        **dict.fromkeys(("streamed", "computed", "changed", "compared", "load"), "FAILED_BATCH"),
        "send": "FIRST_VIOLATION",
    }
    assert {found["dropped_records"] for found in quality.values()} == {0}, "what is not written is not dropped"
    assert p.rows("streamed", "id") == [1], "the micro-batch before is kept, with its own event"
    assert [e.body["data_quality"]["dropped_records"] for e in p.events if e.origin.flow_name == failed["streamed"].origin.flow_name
            and e.body.get("data_quality")] == [1, 0]  # fmt: skip

    rows = run_sql(
        p.storage.root, "SELECT dataset, expectation, passed_records, failed_records FROM expectation_metrics", spark=p.spark
    ).rows
    seen = {}
    for row in rows:
        found = seen.setdefault(row["dataset"].rsplit(".", 1)[-1], {})
        passed, broken = found.get(row["expectation"], (0, 0))
        found[row["expectation"]] = passed + row["passed_records"], broken + row["failed_records"]
    assert seen == AS_FAILED
    health = run_sql(p.storage.root, "SELECT dataset, failed_records, pass_rate, dropped_records FROM dataset_health", spark=p.spark).rows
    found = {row["dataset"].rsplit(".", 1)[-1]: (row["failed_records"], row["pass_rate"], row["dropped_records"]) for row in health}
    assert (found["computed"], found["streamed"]) == ((1, 0.5, 0), (4, 0.8, 1))
    measured, _ = page(p)
    assert {(d.rsplit(".", 1)[-1], rule): (count.passed, count.failed) for (d, rule), count in measured.items()} == {
        (dataset, rule): counts for dataset, rules in AS_FAILED.items() for rule, counts in rules.items()
    }

    errors = {str(e.dataset).rsplit(".", 1)[-1]: e for e in p.result.errors}
    assert errors["streamed"].what == "1 of 2 rows breaks the fail rule 'low': n < 100"
    of_view = f"{errors['outside'].where.file}, line 21"
    assert errors["computed"].why.splitlines() == [
        'The first such row (id is 2): {"id": 2, "n": 200}',
        f"1 of 2 rows breaks also the fail rule 'of_view' of the view main.default.shared: n < 100 ({of_view})",
        "Nothing of this batch was written.",
    ]
    assert errors["outside"].what == "a row breaks the fail rule 'of_view' of the view main.default.shared: n < 100"
    assert pickle.loads(pickle.dumps(errors["computed"])).data_quality == errors["computed"].data_quality

    p.parameters["bad"] = "0"
    p.arrive("b.json", {"id": 3, "n": 4}, {"id": 4, "n": -4}, folder="in")
    p.write(KINDS.replace('"low", "n < 100"', '"low", "n < 1000"').replace('"low": "n < 100"', '"low": "n < 1000"'))
    p.run()
    assert p.rows("streamed", "id") == [1, 3]
    assert p.quality("streamed") == {"low": (2, 0), "positive": (1, 1), "even": (2, 0), "known": (2, 0), "present": (2, 0)}
    _, sentences = page(p)
    rose = {(about, rule) for about, rule, text in sentences if text.startswith("pass rate rose") or "pass its new text" in text}
    assert rose >= {
        ("streamed", "low"),
        ("computed", "own"),
        ("shared", "of_view"),
        ("changed", "low"),
        ("compared", "low"),
        ("loaded", "low"),
    }
    assert not [one for one in sentences if "fell" in one[2] and one[1] in ("low", "own", "of_view")]


def test_the_error_of_a_fail_rule_names_the_line_of_each_rule_the_first_row_and_the_rows_seen(project):
    p = project("""
    import dlt

    @dlt.table
    @dlt.expect_all_or_fail({
        "cheap": "`unit price` < 10",
        "named": "name IS NOT NULL AND name <> 'x'",
    })
    @dlt.expect_or_fail("few", "tags.n < 3")
    def priced():
        return spark.sql("SELECT 1 AS id, 20.5D AS `unit price`, NULL AS name, named_struct('n', 1) AS tags")
    """)
    p.run(expect="FAILED")
    (error,) = p.result.errors
    lines = str(error).splitlines()
    assert lines[0] == "[EXPECTATION_VIOLATION] main.default.priced: 1 of 1 row breaks the fail rule 'cheap': `unit price` < 10"
    assert lines[1].endswith("pipeline.py, line 6, column 6")
    assert lines[4] == '  The first such row (unit price is 20.5): {"id": 1, "unit price": 20.5, "name": null, "tags": {"n": 1}}'
    assert lines[5].startswith("  1 of 1 row breaks also the fail rule 'named': name IS NOT NULL AND name <> 'x' (")
    assert lines[5].endswith("pipeline.py, line 7)")
    assert len([line for line in lines if "EXPECTATION_VIOLATION" in line]) == 1
    assert p.quality() == {"cheap": (0, 1), "named": (0, 1), "few": (1, 0)}
