"""Foreign commits: what others commit to a change table (docs/decisions/0023-foreign-commits.md).

One commit adopts their rows into the internal table and stores the adopted version of the target. A second commit gives the target the
files of the internal table again, so that the next changes can be mirrored. Maintenance (OPTIMIZE, VACUUM, RESTORE, properties) needs only
the second one. Each step can be repeated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.cdc import foreign_rows, latest
from lakelet.cdc.change_table import Retention
from lakelet.cdc.changes import HIDDEN, Layout, col, stored_layout
from lakelet.cdc.counts import complete, kept_by
from lakelet.cdc.generated_columns import completed
from lakelet.cdc.mirror import MIRRORED, PART, VISIBLE, MirrorPosition, commit_text, position, seen_from_above, without_hidden
from lakelet.cdc.state import PROPERTY, ChangeState
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.files.table_files import located
from lakelet.jvm import delta
from lakelet.language.sql.values import ColumnDefinition
from lakelet.storage.delta import schemas, table_spec
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import Declaration
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.root import INTERNAL

ADOPTED = "lakelet.adopted"
"""Application id in the internal log; its version is the version of the target whose changes by others it holds."""

_FACTS = "lakelet_adopted"
_SMALL = 32 << 20  # bytes; an internal table up to this size is written again as a whole
_REFUSED = (
    "delta.constraints.",
    "delta.columnmapping.mode",
    "delta.enablerowtracking",
    "delta.enableincommittimestamps",
    "delta.appendonly",
)
_OURS = ("lakelet.", "delta.enableexpiredlogcleanup", "delta.columnmapping.", "delta.rowtracking", "delta.incommittimestamp")


@dataclass(frozen=True)
class _ForeignChanges:
    """Foreign commits since the last one of Lakelet.

    base: the version of the target that is compared to find rows changed by hand; None for the internal table's.
    by_hand: rows may have been changed by hand since then. restored: an older version of the table was restored.
    """

    base: int | None
    by_hand: bool
    restored: bool


@dataclass(frozen=True)
class TableState:
    """A change table as rows changed by hand need it: its state, its columns, how long tombstones count (None: for ever)."""

    state: ChangeState
    shape: Layout
    retention: Retention | None
    computed: tuple[ColumnDefinition, ...] = ()


def adopt(session: SparkSession, target: AnyPath, table_state: TableState | None) -> None:
    """Adopt foreign commits, so that the target's log can mirror the internal one again.

    `table_state` None: rows changed by hand are removed, as in a full refresh.

    Raises CDC_TABLE_ALTERED, CDC_FILES_GONE, CDC_ROW_BY_HAND; then nothing was written.
    """
    if not position(target).foreign:
        return
    inner = target / INTERNAL
    with lock_of(inner).alone():
        public = FileTransaction(session, target)
        now = position(target, public.read_version)
        internal = FileTransaction(session, inner)
        found, same = _look(public, now, inner), True
        if table_state is not None:
            _check_description(public, internal)
            _check_files(public, internal)
            if _carry_properties(public, internal, found):
                internal = FileTransaction(session, inner)
            same = not found.restored and _unshown(inner, now) is None
            if found.by_hand and _adopt(public, internal, now, found, table_state):
                reached("changes.adopted")
                internal = FileTransaction(session, inner)
            same = same and _adopted_upto(inner, now)[1]
        _give_back(public, internal, now, data_change=not same or table_state is None)
    reached("changes.settled")


# ------------------------------------------------------------------------------------------------- what others committed


def _look(public: FileTransaction, now: MirrorPosition, inner: AnyPath) -> _ForeignChanges:
    """Return what foreign commits did, from their log files."""
    log = TableLog(public.path)
    start, _ = _adopted_upto(inner, now)
    bases: dict[int, int | None] = {now.public: None, start: None if start == now.public else start}
    by_hand = restored = False
    for version in now.foreign:
        if version <= start:
            continue
        try:
            actions = log.actions(version)
        except FileNotFoundError:  # cleaned up
            actions = [{"add": {}}]
        if any(a.get("commitInfo", {}).get("operation") == "RESTORE" for a in actions):
            bases[version] = _restored_to(public, bases, version)
            continue
        bases[version] = bases[version - 1]
        by_hand |= any(a[kind].get("dataChange", True) for a in actions for kind in ("add", "remove") if kind in a)
    base = bases[now.newest]
    restored = base is not None and base > start
    return _ForeignChanges(base, by_hand, restored)


def _restored_to(public: FileTransaction, bases: Mapping[int, int | None], version: int) -> int | None:
    """The base after a RESTORE: that of the version whose files came back; the RESTORE itself where that is older than what we know."""
    files = public.file_ids(version)
    for earlier in sorted(bases, reverse=True):
        if earlier >= 0 and public.file_ids(earlier) == files:
            return bases[earlier]
    return version


def _adopted_upto(inner: AnyPath, now: MirrorPosition) -> tuple[int, bool]:
    """The version of the target up to which changes by hand are in the internal log, and whether its rows were the same after that."""
    log = TableLog(inner)
    commits = [log.commit(version) for version in range(now.internal + 1, log.version() + 1)]
    found = [facts for commit in commits if commit and (facts := (commit.user_metadata or {}).get(_FACTS))]
    return max([now.public, *(int(facts["version"]) for facts in found)]), all(facts["same"] for facts in found)


def _check_description(public: FileTransaction, internal: FileTransaction) -> None:
    """Raise CDC_TABLE_ALTERED for columns or properties that changes cannot be applied with."""
    known = {f.name: f.dataType.simpleString() for f in internal.schema.fields}  # NOT NULL in structs counts for the target only
    kinds = {f.name: f.dataType.simpleString() for f in public.schema.fields}
    wrong = [f"column {name} {kind}" for name, kind in kinds.items() if known.get(name) != kind]
    mine = public.metadata()["partitionColumns"]
    if [PART, *mine] != internal.metadata()["partitionColumns"]:
        wrong.append(f"partition columns ({', '.join(mine)})")
    own = internal.properties
    wrong += [f"property {k} = {v}" for k, v in public.properties.items() if k.lower().startswith(_REFUSED) and own.get(k) != v]
    if wrong:
        raise LakeletError(
            "CDC_TABLE_ALTERED",
            f"the table was altered by hand: {'; '.join(wrong)}",
            why="columns, constraints and such properties of a streaming table come from its definition",
            todo="Take it back (ALTER TABLE … DROP CONSTRAINT, UNSET TBLPROPERTIES; for columns RESTORE TABLE … TO VERSION AS OF …) and "
            "declare it in the pipeline; or do a full refresh of the table.",
        )


def _check_files(public: FileTransaction, internal: FileTransaction) -> None:
    """Raise CDC_FILES_GONE if a file removed from the target was also deleted: the sequences of its rows were in it."""
    theirs = by_id(public.files())
    for id, (_, body) in visible_by_id(internal.files(), HIDDEN).items():
        if id not in theirs and not located(public.path, body["path"]).exists():
            raise LakeletError(
                "CDC_FILES_GONE",
                f"{body['path']} was deleted from {public.path}, with the state of the rows in it",
                why="OPTIMIZE or a statement put other files in its place, and VACUUM … LITE deleted it before the next update",
                todo="Put the file back, or do a full refresh of the table.",
            )


def _carry_properties(public: FileTransaction, internal: FileTransaction, found: _ForeignChanges) -> bool:
    """Give the internal table the properties and the comment that were set on the target, so that they stay; those declared win with the
    next changes. What the target has from an earlier definition was not set by hand."""
    own, theirs, before = (
        internal.properties,
        public.metadata().get("description"),
        Declaration.recorded(public.properties) or Declaration(),
    )
    by_hand = {k: v for k, v in public.properties.items() if own.get(k) != v and before.properties.get(k) != v}
    new = {k: v for k, v in by_hand.items() if not k.lower().startswith((*_REFUSED, *_OURS))}
    stored = internal.spec()
    comment = theirs if theirs and theirs != before.comment and not stored.comment else stored.comment
    if found.restored or not (new or comment != stored.comment):
        return False
    internal.describe(replace(stored, properties={**(stored.properties or {}), **new}, comment=comment), replace=False)
    internal.commit([], user_metadata={})
    return True


def _unshown(inner: AnyPath, now: MirrorPosition) -> Mapping[str, Any] | None:
    """Return the facts of the newest micro-batch that is not mirrored yet; None if there is none."""
    for version in range(TableLog(inner).version(), now.internal, -1):
        for line in commit_text(inner, version).splitlines():
            kept = kept_by(complete(json.loads(line)["commitInfo"])) if line.startswith('{"commitInfo"') else None
            if kept is not None:
                return {"lakelet": kept}
    return None


# --------------------------------------------------------------------------------------------- changes made by hand


def _adopt(
    public: FileTransaction,
    internal: FileTransaction,
    now: MirrorPosition,
    found: _ForeignChanges,
    table_state: TableState,
) -> bool:
    """Commit rows changed by hand to the internal table; False if there are none. Raises CDC_ROW_BY_HAND."""
    shape, state = stored_layout(table_state.shape, internal.schema), table_state.state
    columns = shape.visible.fieldNames()
    current = now.internal == internal.read_version
    if found.base is None and current:
        ours, theirs = _only_different(public, internal)
    else:
        ours = public.rows_at(found.base) if found.base is not None else _visible(internal.rows_at(now.internal))
        theirs = public.rows_at(now.newest)
    changes = foreign_rows.differences(ours, theirs, columns).localCheckpoint()
    if changes.isEmpty():
        return False
    foreign_rows.check(changes, shape)
    inner = internal.rows()
    seen = internal.rows_at(now.internal) if found.base is None and not current else None
    truncate = latest.last_truncate(inner, shape, None)[0] if state.truncates else None
    before = foreign_rows.Before(inner, seen, found.base is None, truncate, table_state.retention)
    after = completed(foreign_rows.state(state, changes, before, shape), table_state.computed).localCheckpoint()
    touched = foreign_rows.keys_of(changes, shape)
    shown = public.rows_at(now.newest).join(touched, list(shape.keys), "left_semi")
    same = foreign_rows.differences(shown, _visible(after), columns).isEmpty()
    if not state.deletes:
        stored = internal.spec()
        buries = {PROPERTY: replace(state, deletes=True).to_json()}
        internal.describe(replace(stored, properties={**(stored.properties or {}), **buries}), replace=False)
    _replace(internal, touched, after, shape, {_FACTS: {"version": now.newest, "same": same}}, Txn(ADOPTED, now.newest))
    return True


def _visible(rows: DataFrame) -> DataFrame:
    return rows.where(F.col(PART).isin(*VISIBLE))


def _only_different(public: FileTransaction, internal: FileTransaction) -> tuple[DataFrame, DataFrame]:
    """The rows of the files that only one of the two tables has."""
    theirs, ours = by_id(public.files()), visible_by_id(internal.files(), HIDDEN)
    return (
        internal.rows_of([file for id, (file, _) in ours.items() if id not in theirs]),
        public.rows_of([file for id, file in theirs.items() if id not in ours]),
    )


def _replace(internal: FileTransaction, touched: DataFrame, state: DataFrame, shape: Layout, kept: Mapping[str, Any], txn: Txn) -> None:
    """Write the files that hold some keys again, with the new state of these keys."""
    files, keys = internal.files(), list(shape.keys)
    if internal.size > _SMALL:
        named = internal.rows().select(*map(col, keys), F.col("_metadata.file_name").alias("__file"))
        names = {row[0] for row in named.join(touched, keys, "left_semi").select("__file").distinct().collect()}
        files = [file for file in files if str(file.path()).rpartition("/")[2] in names]
    rest = internal.rows_of(files).join(touched, keys, "left_anti")
    schema = internal.schema
    written = internal.write(schemas.aligned(rest.unionByName(state, allowMissingColumns=True), schema))
    reached("changes.taken")
    internal.commit([*(file.remove() for file in files), *written], user_metadata=kept, txn=txn)


# ------------------------------------------------------------------------------------------------ the target's log again


def _give_back(public: FileTransaction, internal: FileTransaction, now: MirrorPosition, *, data_change: bool) -> None:
    """Commit the files of the newest internal version to the target.

    `data_change`: rows differ from those before it, for readers of the target as a stream.
    """
    theirs, ours = by_id(public.files()), visible_by_id(internal.files(), HIDDEN)
    actions = [removal(file, data_change=data_change) for id, file in theirs.items() if id not in ours]
    for id, (_, body) in ours.items():
        if id not in theirs:
            actions.append(public.action({"add": {**body, "dataChange": data_change}}))
    kept = _unshown(internal.path, now) or {}
    actions += public.protocol_with(internal)
    actions += _description(public, internal)
    public.commit(actions, user_metadata=kept, txn=Txn(MIRRORED, internal.read_version))


def _description(public: FileTransaction, internal: FileTransaction) -> list[Any]:
    """Return the metadata action that makes the target match the internal table; None if it matches."""
    theirs, ours = public.metadata(), internal.metadata()
    without_hidden(ours, HIDDEN)
    before, now = Declaration.recorded(theirs["configuration"]), Declaration.recorded(ours["configuration"]) or Declaration()
    properties = table_spec.properties(theirs["configuration"], ours["configuration"], now)
    comment = table_spec.comment(theirs.get("description"), before, now, ours.get("description"))
    same = properties == theirs["configuration"] and comment == theirs.get("description")
    if same and public.schema == T.StructType.fromJson(json.loads(ours["schemaString"])):
        return []
    return [public.action({"metaData": {**ours, "configuration": properties, **({"description": comment} if comment else {})}})]


# --- files between the two logs of a change table, without writing them again -------------------------------------------------------------


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
        if body["partitionValues"].get(PART) in VISIBLE:
            seen_from_above(body, hidden)
            found[_id(body)] = file, body
    return found


def removal(file: Any, *, data_change: bool) -> Any:
    """The action that removes a file."""
    return file.removeWithTimestamp(int(time.time() * 1000), data_change)


def _id(body: Mapping[str, Any]) -> FileId:
    vector = body.get("deletionVector")
    return body["path"], vector and f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


__all__ = ["TableState", "adopt"]
