"""Which commits leave their checkpoints to a pause."""

from __future__ import annotations

from pathlib import Path

from lakelet.storage.delta.later_checkpoints import MOST, LaterCheckpoints

A, B = Path("/tables/a"), Path("/tables/b")


def test_commits_have_their_checkpoints_unless_an_update_with_pauses_says_otherwise() -> None:
    later = LaterCheckpoints()
    assert not later.leaves_out(A)
    with later.on():
        assert later.leaves_out(A)
    assert not later.leaves_out(A)


def test_a_table_that_never_rests_gets_its_checkpoints_within_commits() -> None:
    later = LaterCheckpoints()
    with later.on():
        assert [later.leaves_out(A) for _ in range(MOST)] == [True] * (MOST - 1) + [False]
        assert later.leaves_out(B)
        assert not later.leaves_out(A)
    with later.on():
        assert later.leaves_out(A)
