"""States, types and levels of events: the texts that are stored, and that the code compares members with each other, not with texts."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

import pytest

from lakelet.base.text import TextEnum
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import EventType, FlowState, FlowType, HookState, Level, OperationState, UpdateState
from lakelet.storage.eventlog.writer import SCHEMA, event_row
from tests.paths import ROOT

SOURCES = ROOT / "src" / "lakelet"
STATES: tuple[type[TextEnum], ...] = (UpdateState, FlowState, FlowType, HookState, OperationState)
STORED = {
    UpdateState: "QUEUED CREATED WAITING_FOR_RESOURCES INITIALIZING RESETTING SETTING_UP_TABLES RUNNING STOPPING COMPLETED FAILED CANCELED",
    FlowState: "QUEUED STARTING PLANNING RUNNING COMPLETED FAILED SKIPPED STOPPED IDLE EXCLUDED",
    HookState: "FAILED STOPPED DISABLED",
    OperationState: "COMPLETED FAILED",
    FlowType: "APPEND UPDATE COMPLETE MATERIALIZED_VIEW CHANGE SNAPSHOT_CHANGE REPLACE_WHERE REPLACE_USING",
    Level: "INFO WARN ERROR METRICS",
    EventType: "user_action create_update runtime_details update_progress dataset_definition sink_definition flow_definition "
    "flow_progress operation_progress stream_progress planning_information hook_progress maintenance_progress notice schema_change "
    "source_records late_records clean_source column_lineage table_check",
}


@pytest.mark.parametrize("words", STORED, ids=lambda words: words.__name__)
def test_a_word_is_written_as_its_text_everywhere(words: type[TextEnum]) -> None:
    texts = STORED[words].split()
    assert [f"{word}" for word in words] == [str(word) for word in words] == [format(word, "") for word in words] == texts
    assert json.dumps({word: word for word in words}) == json.dumps({text: text for text in texts})
    assert {text: words(text) for text in texts} == {text: text for text in texts}


def test_an_event_is_stored_and_printed_as_plain_text() -> None:
    body = {"status": FlowState.SKIPPED, "nested": [HookState.DISABLED]}
    event = Event(EventType.FLOW_PROGRESS, "skipped", Origin("p", "shop", "u"), {EventType.FLOW_PROGRESS: body}, level=Level.WARN)
    assert event.details_json() == '{"flow_progress":{"status":"SKIPPED","nested":["DISABLED"]}}'
    shown = event.as_json()
    assert [type(shown[key]) for key in ("event_type", "level", "maturity_level")] == [str, str, str]
    assert [shown[key] for key in ("event_type", "level", "maturity_level")] == ["flow_progress", "WARN", "STABLE"]
    row = event_row(event)
    assert {key: row[key] for key in SCHEMA.names if key in shown and isinstance(shown[key], str) and key != "timestamp"} == {
        key: shown[key] for key in ("id", "message", "level", "maturity_level", "event_type")
    }


def test_an_event_of_an_unknown_type_or_level_cannot_be_made() -> None:
    for kind, level in (("flow_progres", "INFO"), ("flow_progress", "WARNING")):
        with pytest.raises(ValueError, match="is not a valid"):
            Event(kind, "", Origin("p", "shop", "u"), {kind: {}}, level=level)  # type: ignore[arg-type]


def test_a_flow_is_waiting_at_work_or_ended() -> None:
    assert {state for state in FlowState if state.is_at_work} == {"STARTING", "PLANNING", "RUNNING"}
    assert {state for state in FlowState if not state.has_ended and not state.is_at_work} == {"QUEUED"}
    assert {state for state in FlowState if state.is_done} == {"COMPLETED", "IDLE"}
    assert {state for state in UpdateState if state.has_ended} == {"COMPLETED", "FAILED", "CANCELED"}


def _outside_of_enumerations(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id == "TextEnum" for base in child.bases)):
            yield child
            yield from _outside_of_enumerations(child)


def test_no_module_writes_a_state_as_a_text() -> None:
    """Neither compares with one, nor looks one up, nor passes one on."""
    texts = {word.value for words in STATES for word in words} - {"APPEND", "UPDATE", "COMPLETE", "CHANGE"}  # words of SQL and Spark, too
    written = [
        f"{path.relative_to(SOURCES)}:{node.lineno}: {node.value}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "states.py"
        for node in _outside_of_enumerations(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in texts
    ]
    assert written == []


def test_no_module_compares_with_a_level_or_a_type_of_events_as_a_text() -> None:
    texts = {word.value for words in (Level, EventType) for word in words}
    compared = [
        f"{path.relative_to(SOURCES)}:{node.lineno}: {constant.value}"
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str) and constant.value in texts
    ]
    assert [one for one in compared if not one.startswith("spark/launch/java_process.py")] == []  # the level of a line of Spark's log
