"""Which commits leave their checkpoints and the compaction of their table to a pause."""

from __future__ import annotations

from pathlib import Path

from lakelet.storage.delta.deferred_upkeep import MOST, DeferredUpkeep

A, B = Path("/tables/a"), Path("/tables/b")


def test_commits_have_their_checkpoints_unless_an_update_with_pauses_says_otherwise() -> None:
    later = DeferredUpkeep()
    assert not later.leaves_out_checkpoint(A)
    with later.on():
        assert later.leaves_out_checkpoint(A)
    assert not later.leaves_out_checkpoint(A)


def test_a_table_that_never_rests_gets_its_checkpoints_within_commits() -> None:
    later = DeferredUpkeep()
    with later.on():
        assert [later.leaves_out_checkpoint(A) for _ in range(MOST)] == [True] * (MOST - 1) + [False]
        assert later.leaves_out_checkpoint(B)
        assert not later.leaves_out_checkpoint(A)
    with later.on():
        assert later.leaves_out_checkpoint(A)


def test_a_table_that_never_rests_is_compacted_within_a_commit() -> None:
    later = DeferredUpkeep()
    assert not later.leaves_out_compaction(A, 1)
    with later.on():
        assert later.leaves_out_compaction(A, MOST - 1)
        assert not later.leaves_out_compaction(A, 1)
        assert later.leaves_out_compaction(B, 1)
