"""Continuous updates: when a flow is due, and who asks for one (RE-15, decision 18)."""

from __future__ import annotations

import textwrap

import pytest

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import load_config
from lakelet.update.executor import Rounds, pace

EVERY = "pipelines.trigger.interval"


@pytest.mark.parametrize(
    ("settings", "streaming", "external", "seconds"),
    [
        ([], True, True, 5),
        ([], False, False, 60),
        ([], False, True, 600),
        ([{EVERY: "10 seconds"}], False, True, 10),
        ([{}, {EVERY: "1 hour"}], True, False, 3600),
        ([{EVERY: "2 minutes"}, {EVERY: "1 hour"}], True, False, 120),
        ([{"Pipelines.Trigger.Interval": "1 day"}], True, False, 86400),
        ([{EVERY: "0 seconds"}], True, False, 0),
        ([{EVERY: "5 minutes", "pipelines.trigger": "RealTime"}, {EVERY: "1 hour"}], True, False, 5),
    ],
)
def test_the_nearest_interval_counts_and_streams_look_more_often_than_views(settings, streaming, external, seconds):
    assert pace(settings, streaming=streaming, external=external) == seconds


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_each_flow_is_due_after_its_own_interval():
    clock = Clock()
    rounds = Rounds({"bronze": 5, "gold": 60}, clock=clock)
    seen = []
    for _ in range(14):
        seen.append((clock.now - 100, rounds.due()))
        clock.now += rounds.pause()
    assert seen[0] == (0, ["bronze", "gold"])
    assert seen[1] == (5, ["bronze"])
    assert [moment for moment, due in seen if "gold" in due] == [0, 60]


def test_a_round_that_took_longer_than_the_interval_is_followed_by_the_next_one_at_once():
    clock = Clock()
    rounds = Rounds({"bronze": 5}, clock=clock)
    rounds.due()
    clock.now += 12
    assert rounds.due() == ["bronze"]
    assert rounds.due() == []


def test_a_flow_that_failed_rests_and_the_others_do_not_wait_for_it():
    clock = Clock()
    rounds = Rounds({"bad": 5, "good": 5}, clock=clock)
    rounds.due()
    rounds.postpone("bad", 20)
    clock.now += 5
    assert rounds.due() == ["good"]
    clock.now += 15
    assert rounds.due() == ["bad", "good"]


def test_rounds_end_when_something_failed_for_good():
    ran = []
    Rounds({"a": 0}).go_on(ran.append, ended=lambda: len(ran) == 3, sleep=lambda seconds: None)
    assert ran == [["a"]] * 3
    Rounds({}).go_on(ran.append, ended=lambda: False)
    assert len(ran) == 3


def test_a_pace_of_zero_still_lets_the_processor_rest():
    assert Rounds({"a": 0}).pause() == 0.1


# -------------------------------------------------------------------------------------------------------- who asks for it


def config(folder, value, **flags):
    text = f"""
        resources:
          pipelines:
            etl:
              continuous: {value}
              libraries: [{{file: {{path: etl.py}}}}]
    """
    (folder / "databricks.yml").write_text(textwrap.dedent(text))
    (folder / "etl.py").write_text("import dlt\n")
    return load_config([], cwd=folder, environ={}, **flags)


@pytest.mark.parametrize(
    ("value", "flag", "continuous"),
    [("true", None, True), ("false", None, False), ("true", False, False), ("false", True, True), ("", None, False)],
)
def test_the_bundle_says_whether_an_update_is_continuous_and_a_flag_wins(tmp_path, value, flag, continuous):
    assert config(tmp_path, value, continuous=flag).continuous is continuous


def test_a_value_that_is_neither_true_nor_false_is_refused_with_its_line(tmp_path):
    with pytest.raises(LakeletError, match=r"databricks\.yml, line 5") as caught:
        config(tmp_path, "sometimes")
    assert caught.value.code == "CONFIG_INVALID"
