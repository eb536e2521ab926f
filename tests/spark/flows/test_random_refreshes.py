"""Materialized views equal their queries after any changes of their inputs, however they are refreshed (tests/view_refreshes)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import Project
from tests.view_refreshes.lives import Life, LifeSpec
from tests.view_refreshes.tally import Tally

FORCED = (None, "groups", "merge", "append", "mixed", "full")


def lived(spec: LifeSpec, project: Project) -> Tally:
    tally = Tally()
    Life(spec, project, tally).run()
    assert not tally.findings, "\n\n".join(map(str, tally.findings)) + f"\n\n{tally.table()}"
    return tally


def test_views_equal_their_queries_after_random_changes(project: Callable[..., Project]) -> None:
    tally = lived(LifeSpec(seed=1, rounds=1, forced="mixed", views=5), project())
    assert sum(tally.compared.values()) >= 8


@pytest.mark.long
@pytest.mark.in_ci("merge")
@pytest.mark.parametrize("forced", FORCED, ids=str)
def test_views_equal_their_queries_with_a_technique_forced(forced: str | None, project: Callable[..., Project]) -> None:
    tally = lived(LifeSpec(seed=2, rounds=3, forced=forced, appends=forced in ("merge", "append")), project())
    assert sum(tally.compared.values()) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 7))
@pytest.mark.parametrize("forced", FORCED, ids=str)
def test_views_equal_their_queries_in_long_lives(forced: str | None, seed: int, project: Callable[..., Project]) -> None:
    lived(LifeSpec(seed=seed, rounds=12, forced=forced, appends=forced in ("merge", "append"), views=30), project())


@pytest.mark.long
def test_the_comparison_sees_one_row_too_few_and_one_count_too_many(project: Callable[..., Project]) -> None:
    spec = LifeSpec(seed=1, rounds=0, views=("warned_rows", "by_key"))
    life = Life(spec, project(), Tally())
    life.begin()
    assert not life.tally.findings
    largest = max(filter(None, life.project.rows("by_key", "k")))
    life.spark.sql(f"DELETE FROM delta.`{life.project.path('by_key')}` WHERE k = '{largest}'")
    life.refresh(None)
    assert [(one.kind, one.view, one.technique) for one in life.tally.findings] == [("other rows", "by_key", "NO_OP")]
    assert "missing (1 rows)" in str(life.tally.findings[0])
    assert "--seed 1 --rounds 0 --forced None --views by_key" in str(life.tally.findings[0])
    _count_twice(life)
    assert [(one.kind, one.view) for one in life.tally.findings[1:]] == [("other counts of rules", "warned_rows")]


def _count_twice(life: Life) -> Any:
    """Let the log of the next update say of each event twice that it happened."""
    life.inputs["facts"].insert(life.inputs["facts"].new_rows(1))
    before = life._update

    def twice(request: Any) -> Any:
        result = before(request)
        life.project.events *= 2
        return result

    life._update = twice  # type: ignore[method-assign]
    life.refresh(None)


@pytest.mark.long
def test_an_operation_is_told_in_words_that_are_the_same_for_the_same_seed(tmp_path: Path, spark: Any) -> None:
    histories = []
    for name in ("one", "other"):
        life = Life(LifeSpec(seed=5, rounds=1, views=("counts",), events=False), Project(tmp_path / name, spark), Tally())
        life.run()
        histories.append(life.history)
    assert histories[0] == histories[1]
    assert len(histories[0]) >= 4
