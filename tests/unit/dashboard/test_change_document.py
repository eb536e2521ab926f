"""The document of a change that is not stored yet, and the files that it is made of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lakelet.base import redaction
from lakelet.base.errors import LakeletError
from lakelet.dashboard.change_document import change_document, read_diff
from lakelet.dashboard.page import documents
from lakelet.inspection.pipeline_diff import PipelineDiff
from lakelet.inspection.table_comparison import TableComparison
from tests.event_logs import shop, shop_tables, site
from tests.unit.cli.test_diff_texts import FOUND, ORDERS, ROWS

PAIRS = (({"order_id": 7, "amount": "1.50", "ratio": 0.0}, {"order_id": 7, "amount": "1.65", "ratio": -0.0}),)


def document(found: PipelineDiff, **numbers: int) -> dict[str, Any]:
    """The document of a difference as the page gets it: through JSON."""
    return change_document(json.loads(json.dumps(found.as_json())), numbers, ["u0", "u1", "u2"])


def dataset(found: PipelineDiff, name: str) -> dict[str, Any]:
    return next(one for one in document(found)["datasets"] if one["name"] == f"main.shop.{name}")


def test_datasets_keep_their_order_and_the_update_before_is_one_of_the_page() -> None:
    made = change_document(FOUND.as_json(), {"main.shop.orders": 4}, ["u0", "u1", "u2"])
    assert (made["update"], made["n"]) == ("u1", 1)
    states = [(one["d"], one["state"]) for one in made["datasets"]]
    assert states == [("main.shop.prices", "failed"), ("main.shop.weekly", "skipped"), (4, "different"), ("main.shop.same", "equal")]
    assert change_document(FOUND.as_json(), {}, [])["n"] is None


def test_a_dataset_has_definition_schema_rows_with_shares_columns_rules_and_notes() -> None:
    orders = dataset(FOUND, "orders")
    assert orders["definition"] == {"new": False, "code": ["orders (silver/orders.py)"], "rules": ["positive"], "settings": []}
    assert orders["schema"] == [["discount", None, "decimal(10,2)"], ["currency", "string", None]]
    assert orders["rows"] == {"before": 1000, "after": 1001, "added": [2, 2 / 1001], "removed": [1, 0.001], "changed": [5, 5 / 999]}
    assert (orders["key"], orders["key_source"]) == (["order_id"], "check unique_order_id")
    amount = ["amount", 5, 0.005, [[[["order_id", "7"]], "1.50", "1.65"], [[["order_id", "9"]], None, "2.20"]]]
    assert orders["columns"][0] == amount
    assert orders["columns"][1][3] == [[[["order_id", "7"]], "x" * 200, '{"a": 1}']]
    assert (orders["rules"], orders["dropped"]) == ([["positive", "drop", 1, 4]], [1, 4])
    assert orders["notes"] == list(ORDERS.notes)


def test_rows_stand_side_by_side_and_only_cells_that_changed_have_two_values() -> None:
    rows = replace(ROWS, changed_rows=PAIRS, added_rows=({"order_id": 9, "amount": "2.00", "ratio": 1.5},), removed_rows=())
    samples = dataset(PipelineDiff((replace(ORDERS, rows=rows),)), "orders")["samples"]
    assert samples["columns"] == ["order_id", "amount", "ratio"]
    assert samples["rows"] == [["changed", ["7", ["1.50", "1.65"], ["0.0", "-0.0"]]], ["added", ["9", "2.00", "1.5"]]]


def test_a_dataset_that_could_not_be_computed_has_the_error_and_no_rows() -> None:
    prices = dataset(FOUND, "prices")
    assert prices["rows"] is None
    assert (prices["error"]["code"], prices["error"]["sentence"]) == ("FLOW_FAILED", "the flow failed")
    assert "division by zero" in prices["error"]["text"]
    assert dataset(FOUND, "weekly")["error"] is None


def test_cells_are_cut_and_secrets_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_values", {"s3cr3t-value"})
    rows = TableComparison((), 1, 2, 1, 0, 0, added_rows=({"a": "y" * 500, "b": "with s3cr3t-value"},))
    ((_, cells),) = dataset(PipelineDiff((replace(ORDERS, rows=rows),)), "orders")["samples"]["rows"]
    assert len(cells[0]) == 200
    assert "s3cr3t" not in cells[1]


def test_the_page_of_a_storage_without_a_difference_says_nothing_of_one() -> None:
    plain = site(shop(3), tables=shop_tables())
    assert "change" not in plain.overview()
    assert "change" not in dict(documents(plain))
    shown = replace(plain, diff=FOUND.as_json())
    assert shown.overview()["change"] == 3
    assert dict(documents(shown))["change"]()["update"] == "u1"


# --- files ----------------------------------------------------------------------------------------------------------------------------


def test_a_written_difference_is_read(tmp_path) -> None:
    (tmp_path / "change.json").write_text(json.dumps(FOUND.as_json(), indent=2), encoding="utf-8")
    assert read_diff(tmp_path / "change.json") == json.loads(json.dumps(FOUND.as_json()))


def without(*path: str | int, **put: Any) -> dict[str, Any]:
    """A difference without the value at a path, or with others there."""
    found = json.loads(json.dumps(FOUND.as_json()))
    at = found
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    at.update(put)
    return found


@pytest.mark.parametrize(
    ("content", "where", "why"),
    [
        ("", "change.json", "It is empty, as after a lakelet diff that stopped with an error."),
        ('{\n"datasets": [', "change.json, line 2", "It is not JSON: Expecting value."),
        (b"\xff\xfe{", "change.json", "It is not text in UTF-8."),
        ([{"name": "a"}], "change.json", "the whole is list"),
        ({"target": "dev", "pipeline": "shop", "equal": True, "datasets": []}, "change.json", "the object has no 'update'"),
        (without("datasets", 2, "samples", "changed_rows"), "change.json", "datasets[2].samples has no 'changed_rows'"),
        (without("datasets", 0, "state", state=3), "change.json", "datasets[0].state is int"),
        (without("datasets", 2, "rules", 0, "after", after=True), "change.json", "datasets[2].rules[0].after is bool"),
    ],
)
def test_a_file_that_is_not_a_result_of_diff_is_refused_with_the_place(tmp_path, content, where, why) -> None:
    raw = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
    (tmp_path / "change.json").write_bytes(raw)
    with pytest.raises(LakeletError) as raised:
        read_diff(tmp_path / "change.json")
    lines = raised.value.lines()
    assert lines[0] == f"[USAGE] --diff {tmp_path / 'change.json'}: this file is not a result of lakelet diff"
    assert lines[1].endswith(where)
    assert why in lines[2]
    assert lines[-1] == "  Write it with: lakelet diff --json > change.json"


def test_a_file_that_is_missing_gets_the_nearest_name(tmp_path) -> None:
    (tmp_path / "changes.json").write_text("{}")
    with pytest.raises(LakeletError) as raised:
        read_diff(tmp_path / "change.json")
    assert raised.value.nearest == ("changes.json",)
    assert raised.value.why == "No such file or directory"
