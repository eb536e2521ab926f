"""Views whose update is killed while it brings them up to date, by each technique: the next update leaves them right, in one commit."""

from __future__ import annotations

import json

import pytest

from lakelet.base.failpoints import FAILPOINTS
from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project
from tests.view_refreshes.lives import SWITCH, Life, LifeSpec, environment
from tests.view_refreshes.tally import Tally

VIEWS = ("kept", "priced", "by_key", "latest", "distinct_pairs", "daily", "key_totals", "warned", "sales_left")
OF_KEYS = "view.keys_found"
"""Only reached where some keys of a view are computed again, or put together with new ones."""
VERSIONS: dict[str, dict[str, int]] = {}
"""Of the views before the update that dies, by technique."""


def spec(forced: str) -> LifeSpec:
    return LifeSpec(seed=11, forced=forced, appends=forced in ("append", "merge"), views=VIEWS, events=False)


def changed(project: Project, forced: str) -> None:
    """The views are computed, and then their inputs change."""
    life = Life(spec(forced), project, Tally())
    life.begin()
    assert life.tally.findings == []
    for number in range(3):
        life.change(number)
    (project.folder / "parameters.json").write_text(json.dumps(project.parameters))
    VERSIONS[forced] = life.versions()


def points(forced: str) -> tuple[str, ...]:
    """The points that views pass, each at the first view and at a later one."""
    passed = [point for point in FAILPOINTS if point.startswith("view.") and (point != OF_KEYS or forced in ("groups", "merge"))]
    return tuple(f"{point}@{nth}" for point in passed for nth in ((1, 2) if point == OF_KEYS else (1, 4)))


def scenario(forced: str) -> Scenario:
    return Scenario(lambda project: changed(project, forced), points(forced))


SCENARIOS = {forced: scenario(forced) for forced in ("groups", "merge", "append", "full")}


@pytest.mark.in_ci("groups-view.committed@1", "merge-view.committed@4")
@pytest.mark.parametrize(("forced", "point"), [(forced, point) for forced in SCENARIOS for point in points(forced)])
def test_a_view_is_right_after_its_update_died_there_and_was_written_once(forced: str, point: str, deaths: Deaths) -> None:
    with environment(SWITCH, forced):
        project = deaths.left_at(SCENARIOS[forced], point)
    life = Life(spec(forced), project, Tally())
    life.refresh(forced)
    assert life.tally.findings == []
    before, after = VERSIONS[forced], life.versions()
    assert {view: after[view] - before[view] for view in after if after[view] > before[view] + 1} == {}
    life.refresh(forced, quiet=True)
    assert life.tally.findings == []
    assert life.versions() == after
