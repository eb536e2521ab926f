"""Retries: who gets how many attempts, and what is not tried again (RE-12 to RE-14, decision 18)."""

from __future__ import annotations

import textwrap

import pytest

from lakelet.base.errors import CODES, LakeletError
from lakelet.config.update_config import load_config
from lakelet.update.executor import ItemOutcome, RetryAfter, execute, flow_threads
from lakelet.update.retries import FINAL_CODES, UNLIMITED, Retries

LOST = LakeletError("FLOW_FAILED", "the network was away")
BROKEN = LakeletError("EXPECTATION_VIOLATION", "a row broke a rule")


def pauses(retries, problem=LOST, conf=None, limit=10):
    found = []
    while len(found) < limit and (retry := retries.after_flow("orders", conf or {}, problem)):
        found.append(retry[0])
    return found


@pytest.mark.parametrize(
    ("development", "settings", "conf", "attempts"),
    [
        (False, {}, {}, 2),
        (None, {}, {}, 0),
        (True, {}, {}, 0),
        (False, {"pipelines.maxFlowRetryAttempts": "4"}, {}, 4),
        (None, {"pipelines.maxFlowRetryAttempts": "4"}, {}, 4),
        (True, {"pipelines.maxFlowRetryAttempts": "4"}, {}, 0),
        (False, {"PIPELINES.MAXFLOWRETRYATTEMPTS": "0"}, {}, 0),
        (False, {"spark.sql.pipelines.maxFlowRetryAttempts": "3"}, {}, 3),
        (False, {"pipelines.maxFlowRetryAttempts": "4"}, {"pipelines.maxFlowRetryAttempts": "1"}, 1),
    ],
)
def test_attempts_follow_from_the_mode_and_the_nearest_setting(development, settings, conf, attempts):
    assert len(pauses(Retries(settings, development), conf=conf)) == attempts


def test_pauses_double_within_bounds_and_restart_after_a_success():
    settings = {
        "pipelines.maxFlowRetryAttempts": "5",
        "spark.sql.pipelines.execution.watchdog.minRetryTime": "2s",
        "spark.sql.pipelines.execution.watchdog.maxRetryTime": "10s",
    }
    retries = Retries(settings)
    assert pauses(retries) == [2, 4, 8, 10, 10]
    retries.flow_succeeded("orders")
    assert pauses(retries)[0] == 2
    assert pauses(Retries({}, False)) == [5, 10]


def test_what_follows_from_the_data_itself_is_not_tried_again():
    assert pauses(Retries({}, False), BROKEN) == []
    assert pauses(Retries({}, False), LakeletError("SCHEMA_INCOMPATIBLE", "a column changed its type")) == []
    assert Retries({}, False).after_update([BROKEN]) is None
    assert Retries({}, False).after_update([BROKEN, LOST]) == (5, "retry 1 of 5")


def test_every_failure_that_is_final_has_a_code_of_ours():
    assert set(CODES) >= FINAL_CODES


@pytest.mark.parametrize(("attempt", "pause"), [(0, 5), (1, 10), (4, 80), (5, None)])
def test_a_failed_update_of_production_is_tried_again_five_times(attempt, pause):
    found = Retries({}, False, attempt=attempt).after_update([LOST])
    assert (found and found[0]) == pause
    assert Retries({}, None, attempt=attempt).after_update([LOST]) is None
    assert Retries({}, True, attempt=attempt).after_update([LOST]) is None


def test_a_continuous_update_is_tried_again_without_limit_and_so_are_its_flows():
    retries = Retries({}, False, continuous=True)
    assert retries.flow_limit({}) == UNLIMITED
    assert len(pauses(retries, limit=50)) == 50
    assert Retries({}, None, continuous=True, attempt=99).after_update([LOST]) == (3600, "retry 100")
    assert retries.after_update([BROKEN]) is None
    assert pauses(Retries({}, True, continuous=True)) == []


# ---------------------------------------------------------------------------------------------------------- executor


def test_an_item_that_is_to_be_tried_again_leaves_its_worker_to_others_and_holds_up_what_is_below():
    log = []

    def work(item):
        log.append(item)
        return RetryAfter(0.05) if item == "a" and log.count("a") < 3 else True

    inputs = {"a": [], "below": ["a"], "x": [], "y": [], "z": []}
    outcomes = execute(list(inputs), inputs, work, skipped=lambda *_: None, pool=flow_threads(1))
    assert log == ["a", "x", "y", "z", "a", "a", "below"]
    assert outcomes == {item: ItemOutcome(True) for item in inputs}


def test_an_item_that_fails_in_the_end_skips_what_is_below():
    results = iter([RetryAfter(0.01), False])
    skipped = {}
    execute(["a", "b"], {"a": [], "b": ["a"]}, lambda item: next(results), skipped=skipped.__setitem__, pool=flow_threads(4))
    assert skipped == {"b": ("a",)}


def test_an_interrupt_is_told_before_what_is_at_work_is_waited_for():
    log = []

    def work(item):
        if item == "interrupts":
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        execute(["interrupts"], {"interrupts": []}, work, skipped=lambda *_: None, pool=flow_threads(1), stopping=log.append)
    assert [type(stop) for stop in log] == [KeyboardInterrupt]


# ----------------------------------------------------------------------------------------------------- the mode


BUNDLE = """
    bundle: {{name: shop}}
    {presets}
    resources:
      pipelines:
        etl:
          name: etl
          {pipeline}
          libraries: [{{file: {{path: etl.py}}}}]
    targets:
      here: {{{target}}}
"""


@pytest.mark.parametrize(
    ("target", "pipeline", "presets", "development"),
    [
        ("default: true", "catalog: main", "", None),
        ("mode: development", "catalog: main", "", True),
        ("mode: development", "development: false", "", True),
        ("mode: production", "catalog: main", "", False),
        ("mode: production", "development: true", "", True),
        ("default: true", "development: false", "", False),
        ("default: true", "development: true", "", True),
        ("mode: development, presets: {pipelines_development: false}", "catalog: main", "", False),
        ("mode: production", "catalog: main", "presets: {pipelines_development: true}", True),
    ],
)
def test_the_bundle_says_whether_it_is_production(tmp_path, target, pipeline, presets, development):
    text = BUNDLE.format(target=target, pipeline=pipeline, presets=presets)
    (tmp_path / "databricks.yml").write_text(textwrap.dedent(text))
    (tmp_path / "etl.py").write_text("import dlt\n")
    assert load_config([], cwd=tmp_path, environ={}).development is development


@pytest.mark.parametrize("target", ["mode: prodction", "presets: {pipelines_development: maybe}"])
def test_a_mode_that_does_not_exist_is_refused_with_its_line(tmp_path, target):
    text = BUNDLE.format(target=target, pipeline="catalog: main", presets="")
    (tmp_path / "databricks.yml").write_text(textwrap.dedent(text))
    (tmp_path / "etl.py").write_text("import dlt\n")
    with pytest.raises(LakeletError, match=r"databricks\.yml, line 11") as caught:
        load_config([], cwd=tmp_path, environ={})
    assert caught.value.code == "CONFIG_INVALID"


def test_files_without_a_bundle_are_a_run_by_hand(tmp_path):
    (tmp_path / "etl.py").write_text("import dlt\n")
    assert load_config(["etl.py"], cwd=tmp_path, environ={}).development is None
