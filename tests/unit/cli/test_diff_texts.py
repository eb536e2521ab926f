"""What `lakelet diff` prints: as lines of at most 100 columns, and as Markdown. No Spark session."""

from __future__ import annotations

import textwrap

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.text import width_of
from lakelet.cli.diff_texts import diff_lines, diff_markdown, share_text, verdict
from lakelet.inspection.pipeline_diff import DatasetDiff, PipelineDiff, RuleDifference
from lakelet.inspection.preview import ColumnChange
from lakelet.inspection.table_comparison import ChangedColumn, ChangedValue, TableComparison
from lakelet.plan.definition_changes import DefinitionChange

ROWS = TableComparison(
    schema=(ColumnChange("discount", None, "decimal(10,2)"), ColumnChange("currency", "string", None)),
    before=1_000,
    after=1_001,
    added=2,
    removed=1,
    changed=5,
    key=("order_id",),
    columns=(
        ChangedColumn("amount", 5, 0.005, (ChangedValue({"order_id": 7}, "1.50", "1.65"), ChangedValue({"order_id": 9}, None, "2.20"))),
        ChangedColumn("a|b", 1, 0.001, (ChangedValue({"order_id": 7}, "x" * 200, {"a": 1}),)),
    ),
    added_rows=({"amount": "1.00", "order_id": 12, **{f"column_{n}": "a long text in it" for n in range(9)}},),
    removed_rows=({"amount": "3.00", "order_id": 3},),
)
CHANGE = DefinitionChange("main.shop.orders", code=("orders (silver/orders.py)",), rules=("positive",))
ORDERS = DatasetDiff(
    "main.shop.orders",
    "streaming_table",
    CHANGE,
    ROWS,
    "check unique_order_id",
    (RuleDifference("positive", "drop", 1, 4),),
    (1, 4),
    notes=("a note that is so long that it does not fit into one line of a hundred columns, so that it goes on in the next line",),
)
FAILED = DatasetDiff(
    "main.shop.prices",
    "materialized_view",
    DefinitionChange("main.shop.prices", code=("the query (gold/prices.sql)",)),
    error=LakeletError("FLOW_FAILED", "the flow failed", where=Location("gold/prices.sql", 3), why="division by zero " * 20),
)
SKIPPED = DatasetDiff("main.shop.weekly", "materialized_view", skipped=True)
SAME = DatasetDiff("main.shop.same", "materialized_view", CHANGE, TableComparison((), 1, 1, 0, 0, 0))
FOUND = PipelineDiff((FAILED, SKIPPED, ORDERS, SAME), "u1")
EXPECTED = """\
    FAILED     prices
      code      the query (gold/prices.sql)
      [FLOW_FAILED] the flow failed
    SKIPPED    weekly
      changed   nothing of its own
    DIFFERENT  orders
      code      orders (silver/orders.py)
      rules     positive
      rows      1,000 → 1,001: 2 added, 1 removed, 5 changed; by order_id (check unique_order_id)
      schema    + discount decimal(10,2)
                - currency string
      column  changed  share  for example
      amount        5   <1 %  order_id=7: 1.50 → 1.65
                              order_id=9: NULL → 2.20
      a|b           1   <1 %  order_id=7: xxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxx → {'a': 1}
      added     order_id=12, amount=1.00, column_0=a long text in it, column_1=a long text in it, …
      removed   order_id=3, amount=3.00
      rule      action  violations before  after
      positive  drop                    1      4
      dropped   1 → 4 rows
      note      a note that is so long that it does not fit into one line of a hundred columns, so that
                it goes on in the next line
    equal      same  1 row; code, rules changed
"""


def test_the_lines_say_what_differs_worst_first() -> None:
    lines = [line.text.rstrip() for line in diff_lines(FOUND)]
    shown = [line for line in lines if "gold/prices.sql, line" not in line and "division" not in line]
    assert shown == textwrap.dedent(EXPECTED).splitlines()


def test_no_line_is_wider_than_100_columns() -> None:
    assert max(width_of(line.text) for line in diff_lines(FOUND)) <= 100


def test_markdown_has_a_table_and_folded_details() -> None:
    text = diff_markdown(FOUND)
    assert text.splitlines()[:8] == [
        "**lakelet diff**: 4 datasets compared with the last update: 1 failed, 1 skipped, 1 different, 1 equal. Nothing was written.",
        "",
        "| dataset | state | rows | added | removed | changed | schema | because |",
        "|---|---|---:|---:|---:|---:|---|---|",
        "| `prices` | failed |  |  |  |  |  | code: the query (gold/prices.sql) |",
        "| `weekly` | skipped |  |  |  |  |  | nothing of its own |",
        "| `orders` | different | 1,001 | 2 | 1 | 5 | `+ discount decimal(10,2)`, `- currency string` "
        "| code: orders (silver/orders.py); rules: positive |",
        "| `same` | equal | 1 | 0 | 0 | 0 |  | code: orders (silver/orders.py); rules: positive |",
    ]
    assert text.count("<details>") == text.count("</details>") == 3


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.0001, "<1 %"), (0.01, "1 %"), (0.5, "50 %"), (0.9999, ">99 %"), (1.0, "100 %")]
)
def test_a_share_is_neither_nothing_nor_all_unless_it_is(share: float, text: str) -> None:
    assert share_text(share) == text


def test_nothing_to_compare_is_said() -> None:
    assert diff_lines(PipelineDiff(())) == []
    assert verdict(PipelineDiff(())) == "No definition changed since the last update: nothing to compare."


def test_json_has_what_the_contract_names() -> None:
    (orders,) = (one for one in FOUND.as_json()["datasets"] if one["name"] == "main.shop.orders")
    assert {"schema", "added", "removed", "changed", "columns", "samples"} <= orders.keys()
    assert orders["columns"][0] == {"name": "amount", "changed": 5, "share": 0.005}
    assert orders["samples"]["changed"][0] == {"column": "amount", "key": {"order_id": 7}, "before": "1.50", "after": "1.65"}
