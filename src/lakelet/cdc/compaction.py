"""Puts the small files together that batches in order add to a change table: ended rows, events and last events (decision 0094).

Nothing that readers see changes, and nothing is reported to those of the target as a stream. A table does without it, only slower.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.base.failpoints import reached
from lakelet.cdc import heads
from lakelet.cdc.changes import HIDDEN, Layout, col
from lakelet.cdc.foreign_commits import removal
from lakelet.cdc.mirror import LAST, PART, ROWS, STATE, mirror
from lakelet.files.paths import AnyPath
from lakelet.storage.delta import schemas
from lakelet.storage.delta.batch_metrics import size_of
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.transaction import Transaction
from lakelet.storage.root import INTERNAL

EVERY = 25
"""Commits between two checks of the files of a table."""

MOST, SMALL, LARGE = 40, 16 << 20, 64 << 20
"""Small files of a table before they are put together; bytes of a small file, and of one that comes of them."""


def is_due(version: int) -> bool:
    """Whether the files of a table are checked after its internal version."""
    return version > 0 and version % EVERY == 0


def compact(session: SparkSession, target: AnyPath, shape: Layout) -> None:
    """Put small files of the internal table together if there are many. The commit keeps no batch."""
    inner = target / INTERNAL
    with lock_of(inner).alone():
        transaction = Transaction(session, inner)
        parts = F.col(PART).isin(ROWS, STATE, LAST)
        small = [file for file in transaction.files_of(transaction.rows().where(parts)) if int(file.size()) < SMALL]
        if len(small) < MOST:
            return
        reached_before = heads.reached_by(inner)
        rows = _folded(transaction.rows_of(small), shape)
        tasks, keys = 1 + size_of(small) // LARGE, [col(key) for key in shape.keys]
        spread = rows.coalesce(1) if tasks == 1 else rows.repartitionByRange(tasks, *keys)
        files = transaction.write(schemas.aligned(spread.sortWithinPartitions(PART, *keys), transaction.schema))
        added = [_unchanged(transaction, file) for file in files]
        kept = {} if reached_before is None else {heads.REACHED: reached_before}
        transaction.commit([*(removal(file, data_change=False) for file in small), *added], user_metadata=kept)
        reached("changes.compacted")
        mirror(target, HIDDEN)


def _folded(rows: DataFrame, shape: Layout) -> DataFrame:
    """The rows of files with one last event of each key."""
    last = rows.where(F.col(PART) == LAST)
    others = rows.where(F.col(PART) != LAST)
    return others.unionByName(heads.last_events(last, shape), allowMissingColumns=True)


def _unchanged(transaction: Transaction, file: Any) -> Any:
    """The action that adds a file without a change for readers."""
    added = json.loads(file.json())["add"]
    return transaction.action_of(json.dumps({"add": {**added, "dataChange": False}}))


__all__ = ["compact", "is_due"]
