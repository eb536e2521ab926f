"""What the flows of an update share is complete when it is made, and nobody sets any of it later."""

from __future__ import annotations

import ast
from dataclasses import MISSING, FrozenInstanceError, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakelet.analysis.analyzer import Analyzer
from lakelet.autoloader.spec import SourceSpec
from lakelet.base.errors import Location
from lakelet.flows.analysed_flows import FlowNotices, FlowSources
from lakelet.flows.analyses import Analyses
from lakelet.flows.context import FlowRun
from lakelet.flows.environment import Environment, UpdateMemory
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
    assert made.analyses == Analyses(made.spark, made.storage, made.catalog, {"a": "1"}, made.sources, made.notices)
    assert made.storage is made.reporter.storage


@pytest.mark.parametrize("kind", [Environment, Analyses, Analyzer, Catalog, FlowRun, Reporter], ids=lambda kind: kind.__name__)
def test_a_context_refuses_to_be_changed(kind: type[Any]) -> None:
    made = object.__new__(kind)
    for field in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(made, field.name, None)


def test_an_analyzer_has_no_input_that_can_be_left_out() -> None:
    given = [field for field in fields(Analyzer) if field.init]
    assert len(given) == 10
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


def test_the_sources_of_a_flow_are_those_that_it_was_last_seen_with(tmp_path: Path) -> None:
    first, second, third = (SourceSpec(f"/in/{name}", {}) for name in "abc")
    sources = FlowSources(ANY, Storage(tmp_path))
    for number, spec in enumerate((first, second, third)):
        sources.add("f", number, spec)
    assert sources.of("f") == (first, second, third)
    sources.add("f", 0, third)
    assert (sources.of("f"), sources.of("g")) == ((third,), ())


def test_each_notice_of_a_flow_is_kept_once_in_order() -> None:
    one, two = Notice("one", HERE), Notice("two", HERE)
    notices = FlowNotices()
    notices.add("f", [two, one])
    notices.add("f", [one])
    notices.add("g", [one])
    assert (notices.of("f"), notices.of("h"), list(notices)) == ((two, one), (), [two, one, one])


def test_the_log_of_a_table_is_read_once_in_an_update(tmp_path: Path) -> None:
    memory = UpdateMemory()
    assert memory.log(tmp_path / "a") is memory.log(tmp_path / "a")
    assert memory.log(tmp_path / "a") is not memory.log(tmp_path / "b")
