"""Each flow has one kind, and each kind says how its flows are analysed, reported, decided and run."""

from __future__ import annotations

import pytest

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.flows.kinds import EXECUTIONS
from lakelet.language.model import ChangeSpec, Flow, Replacement
from lakelet.plan import kinds
from lakelet.plan.decisions import Strategy
from lakelet.plan.kinds import KINDS, FlowKind, kind_of
from lakelet.storage.eventlog.states import FlowType

NAME = TableName("c", "s", "t")
CHANGES = {"source": "x", "keys": (("id",),)}


def flow(**given):
    return Flow("c.s.t", NAME, lambda: None, Location("p.py", 1), True, **given)


def test_each_kind_is_decided_and_run_in_one_way_and_no_other_is() -> None:
    assert set(EXECUTIONS) == set(KINDS)
    assert {value for value in vars(kinds).values() if isinstance(value, FlowKind)} == set(KINDS)


def test_kinds_have_names_of_their_own_and_words_of_the_event_log() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert {EXECUTIONS[kind].flow_type for kind in KINDS} == set(FlowType)


def test_a_stream_never_replaces_what_it_could_compute_and_a_batch_has_no_checkpoint_to_go_on_from() -> None:
    assert {kind.strategy for kind in KINDS if kind.streams} == {Strategy.STREAM}
    assert [kind for kind in KINDS if not kind.streams and kind.strategy is not Strategy.STREAM] == [kinds.VIEW, kinds.REPLACE_PART]


@pytest.mark.parametrize(
    ("declared", "to_sink", "streams", "complete", "kind"),
    [
        (flow(), False, True, False, kinds.APPEND),
        (flow(), False, True, True, kinds.COMPLETE),
        (flow(), False, False, False, kinds.VIEW),
        (flow(once=True), False, False, False, kinds.ONCE),
        (flow(changes=ChangeSpec(**CHANGES)), False, True, False, kinds.CHANGE),
        (flow(changes=ChangeSpec(**CHANGES, once=True)), False, False, False, kinds.CHANGE_ONCE),
        (flow(changes=ChangeSpec(**CHANGES, once=True)), False, True, False, kinds.CHANGE_STREAM_ONCE),
        (flow(changes=ChangeSpec(**CHANGES, snapshots="periodic")), False, False, False, kinds.SNAPSHOT),
        (flow(changes=ChangeSpec(**CHANGES, snapshots=lambda version: None, once=True)), False, False, False, kinds.SNAPSHOT),
        (flow(replaces=Replacement(keys=("id",), sequence_by="at")), False, True, False, kinds.REPLACE_KEYS),
        (flow(replaces=Replacement(where="id > 1")), False, False, False, kinds.REPLACE_PART),
        (flow(), True, True, False, kinds.SINK),
        (flow(update=True), True, True, False, kinds.SINK_UPDATES),
        (flow(once=True), True, False, False, kinds.SINK_ONCE),
    ],
)
def test_the_kind_of_a_flow_follows_from_what_is_declared_and_from_its_query(declared, to_sink, streams, complete, kind) -> None:
    assert kind_of(declared, to_sink=to_sink, streams=streams, complete=complete) is kind


def test_rows_that_are_read_again_come_again_unless_the_kind_replaces_or_merges_them() -> None:
    again = [kind for kind in KINDS if kind.streams and kind.adds_again]
    assert again == [kinds.APPEND, kinds.REPLACE_KEYS, kinds.SINK, kinds.SINK_UPDATES]
