"""A Delta transaction that moves files between the two logs of a change table, without writing them again."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from lakelet.cdc.mirror import PART, ROWS, seen_from_above
from lakelet.jvm import delta
from lakelet.storage.delta.transaction import Transaction

FileId = tuple[str, str | None]
"""A data file in a version of a table: its path, and the deletion vector that it is read with."""


class FileTransaction(Transaction):
    """Delta's own classes do the work; this only calls them."""

    def rows_at(self, version: int) -> DataFrame:
        """The table's rows in another version."""
        return self.spark.read.format("delta").option("versionAsOf", str(version)).load(str(self.path))

    def file_ids(self, version: int) -> frozenset[FileId]:
        """The files of another version."""
        return frozenset(_id(json.loads(file.json())["add"]) for file in delta.files_at(self.spark, self._txn, version))

    def metadata(self) -> dict[str, Any]:
        """The table's description as its log spells it."""
        found: dict[str, Any] = json.loads(self._txn.metadata().json())["metaData"]
        return found

    def protocol_with(self, other: FileTransaction) -> list[Any]:
        """The action that lets this table hold files of the other one too; none if it can."""
        both = delta.protocol_with(self.spark, self._txn, other._txn)
        return [] if both is None else [both]

    def action(self, action: Mapping[str, Any]) -> Any:
        """An action, given as the log spells it."""
        return self.action_of(json.dumps(action))


def by_id(files: Sequence[Any]) -> dict[FileId, Any]:
    """Files of the target."""
    return {_id(json.loads(file.json())["add"]): file for file in files}


def visible_by_id(files: Sequence[Any], hidden: Collection[str]) -> dict[FileId, tuple[Any, dict[str, Any]]]:
    """The files of the internal table that the target shows, as they are called there, each with its action in the target's log."""
    found = {}
    for file in files:
        body = json.loads(file.json())["add"]
        if body["partitionValues"].get(PART) == ROWS:
            seen_from_above(body, hidden)
            found[_id(body)] = file, body
    return found


def removal(file: Any, *, data_change: bool) -> Any:
    """The action that removes a file."""
    return file.removeWithTimestamp(int(time.time() * 1000), data_change)


def _id(body: Mapping[str, Any]) -> FileId:
    vector = body.get("deletionVector")
    return body["path"], vector and f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
