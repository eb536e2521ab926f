"""The engine over random lives of a table, batch by batch as a flow applies them: the table that the rules state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakelet.cdc import writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import layout
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.transaction import Txn
from tests.cdc_scenarios import LEAVES, Batch, expected, scenario

WIDENING = {"delta.enableTypeWidening": "true"}
PATHS: Mapping[str, Mapping[str, str]] = {"rewritten": WIDENING, "merged": {**WIDENING, CHANGE_FEED: "true"}}
"""A table that keeps a change feed is merged, however small; others of this size are written again as a whole."""


def apply(spark: Any, folder: Path, batch: Batch, number: int, properties: Mapping[str, str]) -> None:
    """One batch as its flow would apply it."""
    frame = spark.createDataFrame([dict(event) for event in batch.events], batch.ddl)
    shape = layout(batch.spec, frame)
    wanted = TableSpec(shape.visible, properties=properties)
    table = ChangeTable(folder, (batch.spec, batch.other), wanted)
    measured = BatchMetrics("event", "update", "table", "random", number, 0)
    writing.apply(batch.spec, table, frame, shape, txn=Txn("random", number), measure=lambda: measured, replayed=False)


def found(spark: Any, folder: Path, *, history: bool) -> list[tuple[Any, ...]]:
    """The rows that readers see, in the form of `expected`."""
    rows = [row.asDict(recursive=True) for row in spark.read.format("delta").load(str(folder)).collect()]
    ends = ("__START_AT", "__END_AT") if history else ()
    return [(row["id"], {leaf: _value(row, leaf) for leaf in LEAVES}, *(row[name] for name in ends)) for row in rows]


def _value(row: Mapping[str, Any], leaf: Sequence[str]) -> Any:
    value: Any = row
    for name in leaf:
        value = None if value is None else value.get(name)
    whole = {"c": None, "d": None}
    if isinstance(value, list):
        return [whole | inner for inner in value]
    return {key: whole | inner for key, inner in value.items()} if isinstance(value, dict) else value


def _agrees(spark: Any, folder: Path, seed: int, scd_type: int, path: str) -> None:
    batches = scenario(seed, scd_type=scd_type)
    target = folder / f"{path}{seed}"
    for number, batch in enumerate(batches):
        apply(spark, target, batch, number, PATHS[path])
    rows, wanted = found(spark, target, history=scd_type == 2), expected(batches)
    assert sorted(rows, key=repr) == sorted(wanted, key=repr), f"seed {seed}"


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize(("seed", "scd_type", "path"), [(1, 1, "rewritten"), (2, 1, "merged"), (3, 2, "merged")])
def test_two_flows_with_changing_options_and_growing_columns_give_the_stated_table(tmp_path, spark, seed, scd_type, path):
    _agrees(spark, tmp_path, seed, scd_type, path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_many_more_lives_give_the_stated_table(tmp_path, spark, seed):
    for number, path in enumerate(PATHS):
        _agrees(spark, tmp_path, seed, 1 + (seed + number) % 3 // 2, path)
