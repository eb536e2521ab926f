"""The rows that came to a table and those that left it between two of its versions (IV-20 to IV-23).

In: the log of the table. Out: a `TableChange` in numbers and the files that the rows are in, from the log alone; their frames for Spark.
The rows are a superset of what changed, as files are written again whole: rows that came and left unchanged cancel in `consolidated`.
Only actions with `dataChange` count, so OPTIMIZE is nothing, and rows are read from the files that brought them, whatever was done with
these afterwards.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelet.base.text import counted
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.files.table_files import located, marks_path
from lakelet.jvm import delta
from lakelet.jvm.errors import MISSING
from lakelet.plan.refreshes import Issue, IssueType, TableChange
from lakelet.storage.delta import schemas
from lakelet.storage.delta.row_difference import balance, plain, signed

MOST_FILES = 20_000
"""With more files that came or left, reading them one by one takes longer than reading the table."""


class _File(NamedTuple):
    """A file with the rows of it that are marked as deleted: the same file with other marks is another one."""

    path: str
    marks: str


@dataclass(frozen=True)
class ChangedFiles:
    """What one table got and lost in the commits of (before, after].

    Attributes:
        change: in numbers.
        read_at: the version with whose columns the rows are read; no commit between `change.after` and it has rows.
        added, removed: the files, as `add` actions of a log.
        marked: some of them are the same file with other marks for deleted rows.
    """

    change: TableChange
    read_at: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    marked: bool = False


def changed_files(log: TableLog, key: str, before: int, after: int) -> ChangedFiles | Issue:
    """The files that came to the table of a dataset and those that left it; an `Issue` where its log does not tell.

    Files that came and left within the commits cancel. `before`, `after`: versions of the table, which is not older than that.
    """
    if before > after:
        return Issue(IssueType.OTHER_DATA, f"{key} is older than the version that was read")
    found = _Balance()
    for version in range(before + 1, after + 1):
        try:
            actions = log.actions(version, "add", "remove", "metaData")
        except FileNotFoundError:
            return Issue(IssueType.COMMITS_GONE, f"the commits of {key} since version {before} were cleaned up")
        for action in actions:
            found.add(action)
        if len(found.actions) > MOST_FILES:
            return Issue(IssueType.TOO_MANY_FILES, f"more than {MOST_FILES:,} files of {key} changed")
    described = _description_changed(log, key, before, found.descriptions)
    if described is not None:
        return described
    added, removed = found.files(1), found.files(-1)
    unreadable = next((file.path for file, action in removed if not _readable(action)), None)
    if unreadable is not None or any(abs(count) > 1 for count in found.count.values()):
        return Issue(IssueType.COMMITS_GONE, f"the log of {key} does not describe every file that came or left")
    missing = _missing(log.path, [*removed, *(one for one in added if one[0] in found.moved)])
    if missing:
        return Issue(
            IssueType.FILE_GONE, f"{counted(missing, 'file')} with earlier rows of {key} {'is' if missing == 1 else 'are'} deleted"
        )
    searched = sum(int(action["size"]) for _, action in (*added, *removed))
    change = TableChange(key, before, after, *_sizes(added, removed), _rows(added, removed), log.bytes(after), searched)
    marked = not {file.path for file, _ in added}.isdisjoint(file.path for file, _ in removed)
    return ChangedFiles(change, after, tuple(map(_add_line, added)), tuple(map(_add_line, removed)), marked)


@dataclass
class _Balance:
    """Files by how often they came, less how often they left.

    `actions`: the newest action about each. `moved`: those whose rows other files took over, as OPTIMIZE does.
    """

    count: Counter[_File] = field(default_factory=Counter)
    actions: dict[_File, Mapping[str, Any]] = field(default_factory=dict)
    moved: set[_File] = field(default_factory=set)
    descriptions: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, action: Mapping[str, Any]) -> None:
        ((kind, body),) = action.items()
        if kind == "metaData":
            self.descriptions.append(body)
            return
        file = _File(body["path"], _marks(body))
        if kind == "add" or not _readable(self.actions.get(file, {})):
            self.actions[file] = body
        if body.get("dataChange", True):
            self.count[file] += 1 if kind == "add" else -1
        elif kind == "remove":
            self.moved.add(file)

    def files(self, count: int) -> list[tuple[_File, Mapping[str, Any]]]:
        """Those that came (1) or left (-1), and did not come back."""
        return [(file, self.actions[file]) for file, found in self.count.items() if found == count]


def _marks(body: Mapping[str, Any]) -> str:
    marks = body.get("deletionVector")
    return "" if not marks else f"{marks['storageType']}{marks['pathOrInlineDv']}@{marks.get('offset')}"


def _readable(action: Mapping[str, Any]) -> bool:
    """Whether the log says enough of a file to read it. Of a removed one some writers only give the path."""
    return action.get("size") is not None and action.get("partitionValues") is not None


def _description_changed(log: TableLog, key: str, before: int, found: Sequence[Mapping[str, Any]]) -> Issue | None:
    """Why files of both versions are not rows of one table."""
    if not found:
        return None
    known = log.description(before)
    if known is None:
        return Issue(IssueType.COMMITS_GONE, f"the columns that {key} had in version {before} are not known any more")
    if any(one.get("id") != known.get("id") for one in found):
        return Issue(IssueType.OTHER_DATA, f"{key} was created again")
    if any(one.get("partitionColumns") != known.get("partitionColumns") for one in found):
        return Issue(IssueType.OTHER_PARTITIONS, f"{key} has other partition columns")
    return None


def _missing(table: AnyPath, files: Iterable[tuple[_File, Mapping[str, Any]]]) -> int:
    """How many of the files are deleted. Those of another store cannot be found out here: they count too."""
    paths = [path for file, action in files for path in (file.path, marks_path(action.get("deletionVector"))) if path is not None]
    return sum("://" in path or not located(table, path).exists() for path in paths)


def _sizes(*sides: Sequence[tuple[_File, Mapping[str, Any]]]) -> tuple[int, int]:
    """The bytes of the files that came and of those that left. Of one that only got marks they are the share of the rows that it lost."""
    came, left = ({file.path: action for file, action in side} for side in sides)
    marked = came.keys() & left.keys()
    added = sum(int(action["size"]) for path, action in came.items() if path not in marked)
    removed = sum(int(action["size"]) for path, action in left.items() if path not in marked)
    for path in marked:
        share = _share(came[path], left[path])
        added, removed = added + (0 if share > 0 else _part(left[path], -share)), removed + max(1, _part(left[path], share))
    return added, removed


def _share(after: Mapping[str, Any], before: Mapping[str, Any]) -> float:
    """The share of a file's rows that are marked as deleted after and were not before; 1 where that is not known."""
    rows = _records(after) or _records(before)
    return 1.0 if not rows else (_marked(after) - _marked(before)) / rows


def _part(action: Mapping[str, Any], share: float) -> int:
    return round(int(action["size"]) * max(0.0, share))


def _marked(action: Mapping[str, Any]) -> int:
    return int((action.get("deletionVector") or {}).get("cardinality", 0))


def _records(action: Mapping[str, Any]) -> int | None:
    """The rows of a file, those that are marked as deleted included."""
    try:
        return int(json.loads(action.get("stats") or "")["numRecords"])
    except (ValueError, KeyError, TypeError):
        return None


def _rows(*sides: Sequence[tuple[_File, Mapping[str, Any]]]) -> int | None:
    """The rows of the files that came or left, as far as the files differ; None where a file has no statistics."""
    came, left = ({file.path: action for file, action in side} for side in sides)
    counts = {**{path: _records(action) for path, action in left.items()}, **{path: _records(action) for path, action in came.items()}}
    if None in counts.values():
        return None
    marks = {path: _marked(came.get(path, {})) + _marked(left.get(path, {})) for path in counts}
    both = came.keys() & left.keys()
    return sum(
        max(1, abs(_marked(came[path]) - _marked(left[path]))) if path in both else max(0, (rows or 0) - marks[path])
        for path, rows in counts.items()
    )


def _add_line(found: tuple[_File, Mapping[str, Any]]) -> str:
    """The action that adds a file, whether the log added or removed it."""
    file, action = found
    kept = {name: action[name] for name in ("deletionVector", "baseRowId", "defaultRowCommitVersion") if action.get(name) is not None}
    body = {"path": file.path, "partitionValues": action["partitionValues"], "size": action["size"], "modificationTime": 0}
    return json.dumps({"add": {**body, "dataChange": True, **kept}})


# --- frames -------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChangedRows:
    """The frames of what a table in `path` got and lost."""

    path: AnyPath
    files: ChangedFiles

    def added(self, spark: SparkSession) -> DataFrame:
        return self._rows_of(spark, self.files.added)

    def removed(self, spark: SparkSession) -> DataFrame:
        return self._rows_of(spark, self.files.removed)

    def consolidated(self, spark: SparkSession) -> DataFrame:
        """The rows that came or left, without those that came as often as they left, where Spark can compare rows."""
        added, removed = self._marked_rows(spark) or (self.added(spark), self.removed(spark))
        if not self.files.removed:
            return added
        if not self.files.added:
            return removed
        if not schemas.comparable(added.schema):
            return added.unionByName(removed)
        return plain(balance(signed(added, 1), signed(removed, -1)))

    def _marked_rows(self, spark: SparkSession) -> tuple[DataFrame, DataFrame] | None:
        """What came and left where rows were marked in files that stay: comparing both versions of such files takes ten times longer."""
        if self.files.marked:
            with suppress(*MISSING, PySparkException):
                return delta.changed_rows(spark, str(self.path), self.files.change.before, self.files.change.after)
        return None

    def _rows_of(self, spark: SparkSession, files: Sequence[str]) -> DataFrame:
        return delta.rows_at(spark, str(self.path), self.files.read_at, files)


__all__ = ["ChangedFiles", "ChangedRows", "changed_files"]
