"""The states of an update and its flows: each change is one event, and what is asked later is what was told."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName
from lakelet.language.model import Kind
from lakelet.plan.decisions import Decision, PlanStep, Strategy
from lakelet.plan.graph import GraphNode
from lakelet.storage.eventlog.events import Event, Reporter
from lakelet.storage.eventlog.states import FlowState, Level, UpdateState
from lakelet.storage.root import Storage
from lakelet.update.progress import UpdateProgress
from lakelet.update.tasks import UnanalyzedTask


def task(name: str, *inputs: str) -> UnanalyzedTask:
    node = GraphNode(TableName("main", "shop", name), Kind.STREAMING_TABLE, (), (), (), (), (), Location("a.py", 1))
    return UnanalyzedTask(node, inputs)


ORDERS = task("orders", "main.shop.raw")
RAW = task("raw")


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def progress(tmp_path: Path, told: list[Event]) -> UpdateProgress:
    datasets = {work.target: SimpleNamespace(name=work.target) for work in (ORDERS, RAW)}
    reporter = Reporter("p", "shop", "abcdef01", Storage(tmp_path), frozenset(), told.append)
    environment: Any = SimpleNamespace(catalog=SimpleNamespace(datasets=datasets), reporter=reporter)
    return UpdateProgress(environment)


def shown(told: list[Event]) -> list[tuple[str, str, Any]]:
    return [(event.level.value, event.message, json.loads(event.details_json())[event.event_type]) for event in told]


def test_the_states_of_an_update_are_told_with_who_stopped_it_and_when_it_goes_on(progress: UpdateProgress, told: list[Event]) -> None:
    progress.update_is(UpdateState.RUNNING)
    progress.update_is(UpdateState.STOPPING, cause="USER_ACTION")
    assert progress.is_stopping
    progress.update_is(UpdateState.FAILED, again="; retry 1 of 5 follows in 5 s")
    progress.update_is(UpdateState.FAILED)
    assert not progress.is_stopping
    assert shown(told) == [
        ("INFO", "Update abcdef is RUNNING.", {"state": "RUNNING"}),
        ("INFO", "Update abcdef is STOPPING.", {"state": "STOPPING", "cancellation_cause": "USER_ACTION"}),
        ("WARN", "Update abcdef is FAILED; retry 1 of 5 follows in 5 s.", {"state": "FAILED"}),
        ("ERROR", "Update abcdef is FAILED.", {"state": "FAILED"}),
    ]


def test_a_flow_has_ended_once_it_was_told_so(progress: UpdateProgress) -> None:
    found = [progress.flow_has_ended(RAW)]
    for state in (FlowState.QUEUED, FlowState.STARTING, FlowState.RUNNING, FlowState.IDLE):
        progress.flow_is(RAW, state, "")
        found.append(progress.flow_has_ended(RAW))
    assert found == [False, False, False, False, True]
    assert not progress.flow_has_ended(ORDERS)


def test_a_flow_that_failed_for_good_is_an_error_of_the_update_and_one_that_is_tried_again_is_not(
    progress: UpdateProgress, told: list[Event]
) -> None:
    problem = LakeletError("FLOW_FAILED", "it broke")
    progress.flow_is(RAW, FlowState.FAILED, "once more", level=Level.WARN, error=problem)
    assert progress.errors == []
    progress.flow_failed(RAW, problem)
    progress.flow_skipped(ORDERS, ("main.shop.raw",))
    progress.flow_stopped(ORDERS)
    assert progress.errors == [problem]
    assert shown(told)[1:] == [
        ("ERROR", "Flow 'main.shop.raw' has FAILED: it broke", {"status": "FAILED"}),
        ("WARN", "Flow 'main.shop.orders' was SKIPPED because main.shop.raw failed.", {"status": "SKIPPED"}),
        ("INFO", "Flow 'main.shop.orders' was STOPPED.", {"status": "STOPPED"}),
    ]


def test_the_step_of_a_flow_is_what_was_decided_last(progress: UpdateProgress) -> None:
    progress.decided(ORDERS, Decision(Strategy.SKIP, "nothing is new"))
    progress.decided(ORDERS, Decision(Strategy.STREAM, "a file is new"))
    name, above = "main.shop.orders", ("main.shop.raw",)
    assert progress.steps == {name: PlanStep(name, Kind.STREAMING_TABLE, name, Strategy.STREAM, "a file is new", above)}
