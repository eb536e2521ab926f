"""What the flows of an update share is complete when it is made, and nobody sets any of it later."""

from __future__ import annotations

import ast
from dataclasses import MISSING, FrozenInstanceError, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakelet.analysis.analyzer import AnalysisPass, Analyzer
from lakelet.analysis.results import AnalysisInputs, Findings
from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.flows.context import FileReads, FlowTask
from lakelet.flows.environment import Environment, UpdateMemory
from lakelet.language.model import Flow
from lakelet.language.registry import Notice
from lakelet.spark.names.catalog import Catalog
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.root import Storage
from tests.paths import ROOT

ANY: Any = SimpleNamespace()
HERE = Location("a.py", 3)


def environment(folder: Path) -> Environment:
    return Environment.of(ANY, ANY, Reporter("p", "shop", "u", Storage(folder), frozenset(), print), {"a": "1"})


def test_an_environment_is_complete_when_it_is_made(tmp_path: Path) -> None:
    made = environment(tmp_path)
    assert made.analyzer == Analyzer(made.spark, made.storage, made.catalog, {"a": "1"}, made.sources, made.analyzer.has_run)
    assert made.storage is made.reporter.storage


@pytest.mark.parametrize(
    "kind", [Environment, Analyzer, AnalysisInputs, AnalysisPass, Catalog, FileReads, FlowTask, Reporter], ids=lambda kind: kind.__name__
)
def test_a_context_refuses_to_be_changed(kind: type[Any]) -> None:
    made = object.__new__(kind)
    for field in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(made, field.name, None)


def test_an_analyzer_has_no_input_that_can_be_left_out() -> None:
    given = [field for field in fields(AnalysisInputs) if field.init]
    assert len(given) == 11
    assert [field.name for field in given if (field.default, field.default_factory) != (MISSING, MISSING)] == []


def test_no_module_sets_an_attribute_of_an_environment() -> None:
    """What changes while flows run is in its memory."""
    sources = ROOT / "src" / "lakelet"
    found = [
        f"{path.relative_to(sources)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(sources.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value).endswith("environment")
    ]
    assert found == []


def test_each_notice_of_a_flow_is_kept_once_in_order() -> None:
    one, two = Notice("one", HERE), Notice("two", HERE)
    f, g = (Flow(name, TableName("c", "s", name), lambda: None, HERE, True) for name in "fg")
    found = Findings()
    found.notice(f, two, one)
    found.notice(f, one)
    found.notice(g, one)
    assert {flow: list(notices) for flow, notices in found.notices.items()} == {"f": [two, one], "g": [one]}


def test_the_log_of_a_table_is_read_once_in_an_update(tmp_path: Path) -> None:
    memory = UpdateMemory()
    assert memory.log(tmp_path / "a") is memory.log(tmp_path / "a")
    assert memory.log(tmp_path / "a") is not memory.log(tmp_path / "b")
