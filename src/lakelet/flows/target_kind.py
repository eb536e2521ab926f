"""A stored table that is now made in another way: its kind, and whether flows append or apply changes (DS-8).

A full refresh remakes it. What appends and what replaces share one folder, where the first commit takes the old rows away; a change
table has an internal log beside the visible one, so it never takes the folder of a table that had none, nor leaves it its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import count

from lakelet.analysis.analyzed import AnalyzedDataset
from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowRun
from lakelet.language.model import Kind
from lakelet.storage.root import INTERNAL, StoredDataset, new_table_path


def check_role(run: FlowRun) -> None:
    """Raise KIND_CHANGED if the table was filled by changes and is now appended to, or the other way round."""
    if run.dataset.kind is Kind.SINK or not _changes_role(run.path(), run.analyzed):
        return
    before, now = "the target of change flows", "a table that flows append rows to"
    if _applies_changes(run.analyzed):
        before, now = now, before
    raise LakeletError(
        "KIND_CHANGED",
        f"it was {before}, and is now {now}",
        dataset=str(run.dataset.name),
        where=run.dataset.where,
        todo=f"Change it back, give it another name, or drop its rows and compute it again: lakelet run --full-refresh {run.dataset.name}",
    )


def remade(root: AnyPath, stored: StoredDataset, analyzed: AnalyzedDataset | None, *, taken: Collection[str]) -> StoredDataset:
    """The entry of a dataset that is reset, with the kind it now has, and another folder where it needs one (none of `taken`)."""
    if analyzed is None:
        return stored
    found = replace(stored, kind=analyzed.kind)
    if Kind.SINK in (stored.kind, found.kind):  # what a sink wrote lies where it says, and stays
        return found if stored.kind is found.kind else replace(found, path=new_table_path(analyzed.dataset.name))
    if not _changes_role(root / stored.path, analyzed):
        return found
    return replace(found, path=next(path for n in count(1) if (path := f"{stored.path}~{stored.epoch + n}") not in taken))


def _changes_role(path: AnyPath, analyzed: AnalyzedDataset) -> bool:
    is_change_table = TableLog(path / INTERNAL).version() >= 0
    if is_change_table == _applies_changes(analyzed):
        return False
    return is_change_table or TableLog(path).version() >= 0


def _applies_changes(analyzed: AnalyzedDataset) -> bool:
    return any(f.flow.changes is not None for f in analyzed.flows)


__all__ = ["check_role", "remade"]
