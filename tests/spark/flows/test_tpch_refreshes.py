"""The 22 questions of TPC-H as materialized views equal their queries after inserts, deletes and updates (tests/view_refreshes/tpch.py)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.spark.conftest import Project
from tests.view_refreshes.lives import SWITCH, chosen_techniques, environment
from tests.view_refreshes.oracle import Oracle, wrong_rows
from tests.view_refreshes.tally import Tally
from tests.view_refreshes.tpch import QUESTIONS, Warehouse, pipeline_texts

MOST_EMPTY = 8
"""Of the 22 answers: the others have rows at every time, so that a wrong one shows."""


def asked(made: Project, *, forced: str | None, seed: int) -> tuple[Tally, list[str]]:
    """The pipeline of questions, refreshed after each function; what was compared, and what was wrong."""
    for name, text in pipeline_texts().items():
        made.write(text, name)
    made.run()
    warehouse, oracle, tally, wrong = Warehouse(made, random.Random(seed)), Oracle(made.spark), Tally(), []
    for change in (warehouse.load, *warehouse.rounds()):
        change()
        with environment(SWITCH, forced):
            made.run()
        techniques, answers = chosen_techniques(made), warehouse.answers(oracle)
        for view in QUESTIONS:
            tally.count(view.name, *techniques[view.name])
            kind, told = wrong_rows(made.spark, made.path(view.name), answers[view.name])
            if kind:
                wrong.append(f"{view.name} by {techniques[view.name][0]}: {kind}\n{told}\n" + "\n".join(warehouse.history))
        empty = sorted(name for name, answer in answers.items() if not answer.rows)
        assert len(empty) <= MOST_EMPTY, empty
    return tally, wrong


@pytest.mark.slow
@pytest.mark.parametrize("forced", [None, "groups", "full"], ids=str)
def test_the_22_questions_are_right_after_each_refresh_function(forced: str | None, project: Callable[..., Project]) -> None:
    tally, wrong = asked(project(), forced=forced, seed=7)
    print(tally.views(), tally.table(), sep="\n\n")  # which are computed as a whole, and why
    assert wrong == []
    assert sum(tally.compared.values()) == 22 * 5
