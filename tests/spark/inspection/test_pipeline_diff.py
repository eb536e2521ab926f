"""`lakelet diff`: what changed code would do to stored tables, computed beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.inspection.pipeline_diff import DatasetDiff, DiffRequest, PipelineDiff, pipeline_diff
from tests.spark.conftest import Project

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def bronze():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, team STRING, amount INT")
        return files.load(spark.conf.get("landing"))

    @dlt.table
    @dlt.expect_or_drop("positive", "amount > 0")
    @dlt.expect("small", "amount < 100")
    def silver():
        return spark.readStream.table("bronze").select("id", "team", "amount")

    @dlt.table
    def gold():
        return spark.read.table("silver").groupBy("team").agg(F.sum("amount").alias("total"), F.count("*").alias("orders"))

    @dlt.table
    def other():
        return spark.read.table("bronze").select("id").distinct()
"""


@pytest.fixture
def orders(project: Callable[..., Project]) -> Project:
    made = project(PIPELINE)
    made.arrive("1.json", {"id": 1, "team": "a", "amount": 10}, {"id": 2, "team": "b", "amount": -5})
    made.run()
    made.arrive("2.json", {"id": 3, "team": "b", "amount": 200}, {"id": 4, "team": "b", "amount": 20})
    return made.run()


def diffed(made: Project, **request: Any) -> dict[str, DatasetDiff]:
    """The difference by short name; the storage must be as it was before."""
    before = made.snapshot()
    found = pipeline_diff(made.pipeline, DiffRequest(**request))
    assert made.snapshot() == before
    return {one.name.rsplit(".", 1)[-1]: one for one in found.datasets}


def counts(one: DatasetDiff) -> tuple[int, int, int]:
    assert one.rows is not None, one
    return one.rows.added, one.rows.removed, one.rows.changed


def test_nothing_changed_compares_nothing(orders: Project) -> None:
    assert pipeline_diff(orders.pipeline, DiffRequest()) == PipelineDiff((), orders.result.update_id)


def test_a_changed_stream_is_computed_over_all_its_input_with_what_reads_it(orders: Project) -> None:
    orders.write(PIPELINE.replace('"id", "team", "amount"', '"id", "team", (F.col("amount") + 1).alias("amount")', 1))
    found = diffed(orders, key=("id",), ignored=("Orders",))
    assert list(found) == ["gold", "silver"]
    assert (found["gold"].notes, found["silver"].notes) == (("values not compared, by --ignore: orders",), ())
    assert (found["silver"].state, counts(found["silver"]), found["silver"].key_source) == ("different", (0, 0, 3), "given")
    assert [(c.name, c.changed, c.share) for c in found["silver"].rows.columns] == [("amount", 3, 1.0)]
    assert (found["gold"].key_source, found["gold"].rows.key, counts(found["gold"])) == ("keys of the query", ("team",), (0, 0, 2))
    assert [(s.key, s.before, s.after) for s in found["gold"].rows.columns[0].samples] == [
        ({"team": "a"}, 10, 11),
        ({"team": "b"}, 220, 222),
    ]
    assert found["gold"].change is None
    assert found["silver"].change is not None
    assert found["silver"].change.text == "code: silver (pipeline.py)"


def test_no_sample_shows_a_value_of_a_personal_column(orders: Project) -> None:
    personal = PIPELINE.replace(
        "@dlt.table\n    def bronze", '@dlt.table(table_properties={"lakelet.personalColumns": "team"})\n    def bronze'
    )
    orders.write(personal.replace('"id", "team", "amount"', '"id", F.upper("team").alias("team"), "amount"', 1))
    for key, counted in ((("id",), (0, 0, 3)), ((), (3, 3, 0))):
        silver = diffed(orders, key=key, select=("silver",))["silver"]
        assert counts(silver) == counted
        rows = [row for pair in silver.rows.changed_rows for row in pair] + [*silver.rows.added_rows, *silver.rows.removed_rows]
        assert ({row["team"] for row in rows}, {row["amount"] for row in rows}) == ({"***"}, {10, 20, 200})
        assert {s.after for column in silver.rows.columns for s in column.samples} <= {"***"}


def test_without_a_key_a_changed_row_is_removed_and_added(orders: Project) -> None:
    orders.write(PIPELINE.replace('"id", "team", "amount"', '"id", "team", (F.col("amount") * 2).alias("amount")', 1))
    silver = diffed(orders)["silver"]
    assert counts(silver) == (3, 3, 0)
    assert silver.notes == ("no key is known: a changed row counts as removed and added; name the key with --key COL,…",)


def test_a_changed_rule_shows_its_counts_before_and_after(orders: Project) -> None:
    orders.write(PIPELINE.replace("amount > 0", "amount > 15").replace("amount < 100", "amount < 300"))
    silver = diffed(orders)["silver"]
    assert counts(silver) == (0, 1, 0)
    assert [(r.name, r.before, r.after) for r in silver.rules] == [("positive", 1, 2), ("small", 1, 0)]
    assert silver.dropped == (1, 2)


def test_a_named_dataset_is_computed_though_nothing_changed(orders: Project) -> None:
    found = diffed(orders, names=("silver",))
    assert {name: one.state for name, one in found.items()} == {"silver": "equal", "gold": "equal"}


def test_columns_and_tables_that_are_new(orders: Project) -> None:
    text = PIPELINE.replace('F.count("*").alias("orders")', 'F.count("*").alias("n")')
    orders.write(text + "\n    @dlt.table\n    def more():\n        return spark.read.table('other')\n")
    found = diffed(orders)
    gold, more = found["gold"], found["more"]
    assert [(c.column, c.before, c.after) for c in gold.rows.schema] == [("n", None, "bigint"), ("orders", "bigint", None)]
    assert (gold.state, counts(gold)) == ("different", (0, 0, 0))
    assert (more.state, more.rows.after, counts(more)) == ("new", 4, (4, 0, 0))


def test_a_failing_dataset_and_what_reads_it_are_reported(orders: Project) -> None:
    orders.write(PIPELINE.replace('"id", "team", "amount"', '"id", "team", F.expr("amount / (id - id)").alias("amount")', 1))
    found = diffed(orders)
    assert {name: one.state for name, one in found.items()} == {"silver": "failed", "gold": "skipped"}
    assert found["silver"].error is not None


HOOKED = """
    import dlt

    @dlt.table
    def one():
        return spark.range(1)

    @dlt.on_event_hook
    def told(event):
        with open(spark.conf.get("told"), "a") as file:
            file.write("x")
"""


def test_event_hooks_are_not_called(project: Callable[..., Project], tmp_path: Path) -> None:
    made, told = project(HOOKED), tmp_path / "told.txt"
    made.parameters["told"] = str(told)
    before = len(made.run() and told.read_text())
    assert diffed(made, names=("one",))["one"].state == "equal"
    assert len(told.read_text()) == before > 0


def test_a_key_that_no_dataset_has_is_refused(orders: Project) -> None:
    with pytest.raises(LakeletError, match="'no'") as refused:
        diffed(orders, names=("gold",), key=("no",))
    assert refused.value.code == "USAGE"


KEYS = """
    CREATE STREAMING TABLE changes (id INT, v INT);
    CREATE FLOW f AS AUTO CDC INTO changes FROM STREAM(source) KEYS (id) SEQUENCE BY v;
    CREATE MATERIALIZED VIEW source (id INT, v INT, PRIMARY KEY (id, v)) AS SELECT * FROM VALUES (1, 1), (1, 2), (2, 1) AS t(id, v);
    CREATE MATERIALIZED VIEW once AS SELECT id AS number, max(v) AS v FROM source GROUP BY id HAVING count(*) > 0;
"""


def test_keys_are_found(project: Callable[..., Project]) -> None:
    made = project().write(KEYS, "q.sql").run()
    made.write(KEYS.replace("(2, 1)", "(2, 3)"), "q.sql")
    found = diffed(made)
    assert {name: (one.key_source, one.rows.key) for name, one in found.items()} == {
        "changes": ("keys of the change flow", ("id",)),
        "source": ("primary key", ("id", "v")),
        "once": ("keys of the query", ("number",)),
    }
    assert {name: counts(one) for name, one in found.items()} == {"changes": (0, 0, 1), "source": (1, 1, 0), "once": (0, 0, 1)}
