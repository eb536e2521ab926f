"""The files in `resources/` for Databricks: as their script writes them, and in the form that an AI/BI dashboard has."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

from lakelet.config.update_config import load_config
from lakelet.storage.eventlog.views import NAMES, event_view
from tests.paths import ROOT

FILE = ROOT / "resources" / "quality.dashboard.lvdash.json"
DASHBOARD = json.loads(FILE.read_text(encoding="utf-8"))
VERSIONS = {"counter": 2, "table": 1, "bar": 3, "line": 3, "combo": 1, "filter-multi-select": 2, "filter-date-range-picker": 2}

PORTABLE = frozenset(
    (
        *(
            "aggregate",
            "array_join",
            "array_sort",
            "cast",
            "coalesce",
            "collect_set",
            "count",
            "count_if",
            "explode",
            "from_json",
            "get",
            "get_json_object",
            "least",
            "max",
            "max_by",
            "min",
            "min_by",
        ),
        *("nullif", "row_number", "size", "struct", "sum", "unix_micros"),
    )
)
"""Functions that Spark 4.2 and Databricks both document."""
KEYWORDS = frozenset(("in", "filter", "over", "as", "and", "from", "array", "where", "or", "then"))


def widgets() -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, int]]]:
    for page in DASHBOARD["pages"]:
        for item in page["layout"]:
            yield page, item["widget"], item["position"]


def named(value: Any, key: str) -> Iterator[str]:
    """All texts under a key, at any depth."""
    if isinstance(value, dict):
        yield from (text for name, text in value.items() if name == key)
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from named(one, key)


def test_the_files_are_what_the_script_writes() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "databricks_quality.py"))["files"]()
    assert {path.name: path.read_text(encoding="utf-8") for path in written} == {path.name: text for path, text in written.items()}


def test_queries_and_fields_of_every_widget_exist() -> None:
    datasets = {dataset["name"] for dataset in DASHBOARD["datasets"]}
    assert len(datasets) == len(DASHBOARD["datasets"])
    names = [widget["name"] for _, widget, _ in widgets()]
    assert len(names) == len(set(names)) >= 15
    for _, widget, _ in widgets():
        queries = {query["name"]: query["query"] for query in widget["queries"]}
        assert {query["datasetName"] for query in queries.values()} <= datasets
        fields = {field["name"] for query in queries.values() for field in query["fields"]}
        assert set(named(widget["spec"]["encodings"], "fieldName")) <= fields, widget["name"]
        assert set(named(widget["spec"]["encodings"], "queryName")) <= set(queries), widget["name"]
        assert widget["spec"]["version"] == VERSIONS[widget["spec"]["widgetType"]]


def test_widgets_lie_side_by_side_on_six_columns() -> None:
    for page in DASHBOARD["pages"]:
        taken: set[tuple[int, int]] = set()
        for _, widget, at in (one for one in widgets() if one[0] is page):
            assert at["x"] + at["width"] <= 6
            cells = {(x, y) for x in range(at["x"], at["x"] + at["width"]) for y in range(at["y"], at["y"] + at["height"])}
            assert taken.isdisjoint(cells), widget["name"]
            taken |= cells


def test_the_bundle_deploys_the_dashboard_and_still_loads() -> None:
    text = (ROOT / "resources" / "quality.dashboard.yml").read_text(encoding="utf-8")
    (path,) = re.findall(r"file_path: (\S+)", text)
    assert (ROOT / "resources" / path) == FILE
    assert load_config([str(ROOT)]).name == "system_a"


@pytest.mark.parametrize("name", NAMES)
def test_a_view_uses_functions_that_both_sides_have(name: str) -> None:
    query = re.sub(r"'[^']*'|`[^`]*`", "''", event_view(name).query)
    ctes = set(re.findall(r"(\w+) AS \(", query))
    called = {word.lower() for word in re.findall(r"\b(\w+)\s*\(", query)} - ctes - KEYWORDS
    assert called <= PORTABLE
    assert ":" not in query
    read = set(re.findall(r"\b(?:FROM|JOIN) (\w+)", query)) - ctes
    assert read <= {"event_log_raw", *NAMES[: NAMES.index(name)]}


def test_the_file_of_views_makes_each_view_behind_those_that_it_reads() -> None:
    text = (ROOT / "resources" / "sql" / "quality_views.sql").read_text(encoding="utf-8")
    assert re.findall(r"^CREATE OR REPLACE VIEW (\w+)$", text, re.MULTILINE) == ["event_log_raw", *NAMES]
    first, second, *others = re.findall(r"^(?!--)\S.*;$", text, re.MULTILINE)[:3]
    assert (first, second) == ("USE CATALOG IDENTIFIER(:catalog);", "USE SCHEMA IDENTIFIER(:schema);")
    assert others == ["AS SELECT * FROM system_a_event_log;"]
    assert not re.search(r"lakelet\.|CREATE TABLE|\bmain\b|\bcomms\b", text.split("\n\n", 1)[1])


@pytest.mark.parametrize("dataset", DASHBOARD["datasets"], ids=lambda dataset: dataset["name"])
def test_a_query_of_the_dashboard_reads_nothing_but_the_published_event_log(dataset: dict[str, Any]) -> None:
    query = "".join(dataset["queryLines"])
    tables = set(re.findall(r"\b(?:FROM|JOIN) ([\w.]+)", query)) - set(re.findall(r"(\w+) AS \(", query))
    assert tables == {"system_a_event_log"}
