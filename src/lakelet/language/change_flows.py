"""Change data capture as declared: `apply_changes`, `create_auto_cdc_flow` and their forms for snapshots (CD-10).

A call checks its arguments and records a flow with a `ChangeSpec`; which columns there are is known to analysis only. Both spellings mean
the same; the older one has the arguments of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import call_user_code, caller_location, is_library
from lakelet.language.argument_types import Columns, Expression, ScdType, Snapshots
from lakelet.language.arguments import columns, expression, invalid, plain_column
from lakelet.language.model import ChangeSpec, ColumnPath, Flow, NullUpdates
from lakelet.language.registry import active_reader, active_registry

_SCD_TYPES: Mapping[Any, int] = {"1": 1, "2": 2, 1: 1, 2: 2}
_BITEMPORAL = "bitemporal"


@dataclass(frozen=True, slots=True)
class ChangeArguments:
    """The arguments of `apply_changes` as the user gave them, but for target and name of the flow."""

    source: Any
    keys: Any
    sequence_by: Any
    where: Any = None
    ignore_null_updates: Any = None
    apply_as_deletes: Any = None
    apply_as_truncates: Any = None
    column_list: Any = None
    except_column_list: Any = None
    stored_as_scd_type: Any = "1"
    track_history_column_list: Any = None
    track_history_except_column_list: Any = None
    once: Any = False
    ignore_null_updates_column_list: Any = None
    ignore_null_updates_except_column_list: Any = None
    columns_to_update: Any = None
    system_sequence_by: Any = None


def apply_changes(
    target: str,
    source: str,
    keys: Columns,
    sequence_by: Expression,
    where: Expression | None = None,
    ignore_null_updates: bool | None = None,
    apply_as_deletes: Expression | None = None,
    apply_as_truncates: Expression | None = None,
    column_list: Columns | None = None,
    except_column_list: Columns | None = None,
    stored_as_scd_type: ScdType | None = "1",
    track_history_column_list: Columns | None = None,
    track_history_except_column_list: Columns | None = None,
    flow_name: str | None = None,
    once: bool = False,
    ignore_null_updates_column_list: Columns | None = None,
    ignore_null_updates_except_column_list: Columns | None = None,
    columns_to_update: Expression | None = None,
    system_sequence_by: Expression | None = None,
    name: str | None = None,
) -> None:
    """Declare a flow that applies the change events of the stream `source` to the streaming table `target` (CD-10).

    Args:
        target: name of a table that `create_streaming_table` declares.
        source: name of the dataset or table whose rows are change events, read as a stream.
        keys: columns that identify a row.
        sequence_by: what orders the events of a key, whatever the order of their arrival.
        where: condition of the events that count.
        ignore_null_updates: a NULL in an event leaves the stored value as it is.
        apply_as_deletes: condition of the events that delete their row.
        apply_as_truncates: condition of the events that empty the table; type 1 only.
        column_list: the columns that the target gets; all by default.
        except_column_list: the columns that the target does not get.
        stored_as_scd_type: 1 keeps current rows, 2 keeps history with `__START_AT` and `__END_AT`, "bitemporal" keeps what was known when,
            too.
        track_history_column_list: a change in one of these columns begins a new version; type 2 only.
        track_history_except_column_list: a change in any column but these begins a new version; type 2 only.
        flow_name: name of the flow; that of the target by default.
        once: the rows that are there at the first update are applied, and nothing after it until a full refresh.
        ignore_null_updates_column_list: `ignore_null_updates` for these columns only.
        ignore_null_updates_except_column_list: `ignore_null_updates` for all columns but these.
        columns_to_update: a column of the source with the names of the columns that an event sets.
        system_sequence_by: what says when an event became known; bitemporal tables only.
        name: the same as `flow_name`.

    Raises ARGUMENT_INVALID for a value of the wrong type, CDC_CONTRADICTION for arguments that exclude each other (CD-10).
    """
    given = ChangeArguments(
        source=source,
        keys=keys,
        sequence_by=sequence_by,
        where=where,
        ignore_null_updates=ignore_null_updates,
        apply_as_deletes=apply_as_deletes,
        apply_as_truncates=apply_as_truncates,
        column_list=column_list,
        except_column_list=except_column_list,
        stored_as_scd_type=stored_as_scd_type,
        track_history_column_list=track_history_column_list,
        track_history_except_column_list=track_history_except_column_list,
        once=once,
        ignore_null_updates_column_list=ignore_null_updates_column_list,
        ignore_null_updates_except_column_list=ignore_null_updates_except_column_list,
        columns_to_update=columns_to_update,
        system_sequence_by=system_sequence_by,
    )
    location = caller_location()
    declare_changes(given, target, _flow_name(name, flow_name, location), location)


def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Columns,
    sequence_by: Expression,
    system_sequence_by: Expression | None = None,
    ignore_null_updates: bool = False,
    ignore_null_updates_column_list: Columns | None = None,
    ignore_null_updates_except_column_list: Columns | None = None,
    columns_to_update: Expression | None = None,
    apply_as_deletes: Expression | None = None,
    apply_as_truncates: Expression | None = None,
    column_list: Columns | None = None,
    except_column_list: Columns | None = None,
    stored_as_scd_type: ScdType | None = "1",
    track_history_column_list: Columns | None = None,
    track_history_except_column_list: Columns | None = None,
    name: str | None = None,
    once: bool = False,
    flow_name: str | None = None,
    where: Expression | None = None,
) -> None:
    """Declare a flow that applies the change events of the stream `source` to the streaming table `target` (CD-10).

    The newer name of `apply_changes`, with its arguments in another order; frameworks give both the older names.

    Raises ARGUMENT_INVALID for a value of the wrong type, CDC_CONTRADICTION for arguments that exclude each other (CD-10).
    """
    given = ChangeArguments(
        source=source,
        keys=keys,
        sequence_by=sequence_by,
        where=where,
        ignore_null_updates=ignore_null_updates,
        apply_as_deletes=apply_as_deletes,
        apply_as_truncates=apply_as_truncates,
        column_list=column_list,
        except_column_list=except_column_list,
        stored_as_scd_type=stored_as_scd_type,
        track_history_column_list=track_history_column_list,
        track_history_except_column_list=track_history_except_column_list,
        once=once,
        ignore_null_updates_column_list=ignore_null_updates_column_list,
        ignore_null_updates_except_column_list=ignore_null_updates_except_column_list,
        columns_to_update=columns_to_update,
        system_sequence_by=system_sequence_by,
    )
    location = caller_location()
    declare_changes(given, target, _flow_name(name, flow_name, location), location)


def _flow_name(name: Any, flow_name: Any, location: Location) -> Any:
    """Return the name of the flow: each function takes it under the name of the other one too."""
    if name is not None and flow_name is not None:
        raise _contradicting_arguments("name and flow_name are the same argument", location, "Give one of them.")
    return name if name is not None else flow_name


def apply_changes_from_snapshot(
    target: str,
    source: Snapshots | None = None,
    keys: Columns | None = None,
    stored_as_scd_type: ScdType | None = None,
    snapshot_and_version: Snapshots | None = None,
    track_history_column_list: Columns | None = None,
    track_history_except_column_list: Columns | None = None,
    once: bool = False,
) -> None:
    """Declare a flow that compares full copies of a source with `target` and applies the differences (CD-17).

    Args:
        target: name of a table that `create_streaming_table` declares.
        source: name of a table or view, read once per update; a function from the last version to the next (snapshot, version) or None; or
            one snapshot with its version.
        keys: columns that identify a row.
        stored_as_scd_type: 1 keeps current rows, 2 keeps history with `__START_AT` and `__END_AT`; 1 by default.
        snapshot_and_version: the old name of `source`.
        track_history_column_list: a change in one of these columns begins a new version; type 2 only.
        track_history_except_column_list: a change in any column but these begins a new version; type 2 only.
        once: the snapshot that is there at the first update is applied, and nothing after it until a full refresh.

    Raises ARGUMENT_INVALID for a value of the wrong type, CDC_CONTRADICTION for arguments that exclude each other (CD-17).
    """
    where = caller_location()
    given = _source_of_snapshots(source, snapshot_and_version, where)
    _declare_snapshot_flow(
        target, given, keys, stored_as_scd_type, track_history_column_list, track_history_except_column_list, once, where
    )


def create_auto_cdc_from_snapshot_flow(
    target: str,
    source: Snapshots | None = None,
    keys: Columns | None = None,
    stored_as_scd_type: ScdType | None = None,
    track_history_column_list: Columns | None = None,
    track_history_except_column_list: Columns | None = None,
    once: bool = False,
    snapshot_and_version: Snapshots | None = None,
) -> None:
    """Declare a flow that compares full copies of a source with `target` and applies the differences (CD-17).

    The newer name of `apply_changes_from_snapshot`, with its arguments in another order.

    Raises ARGUMENT_INVALID for a value of the wrong type, CDC_CONTRADICTION for arguments that exclude each other (CD-17).
    """
    where = caller_location()
    given = _source_of_snapshots(source, snapshot_and_version, where)
    _declare_snapshot_flow(
        target, given, keys, stored_as_scd_type, track_history_column_list, track_history_except_column_list, once, where
    )


# ------------------------------------------------------------------------------------------------------- declarations


def declare_changes(given: ChangeArguments, target: Any, name: Any, where: Location, **of_flow: Any) -> None:
    """Declare a change flow from the arguments of `apply_changes`, `given` by name.

    `of_flow`: other fields of the flow; its `query`, where the source is more than a name.
    Raises ARGUMENT_INVALID, CDC_CONTRADICTION or NOT_SUPPORTED_YET (CD-10).
    """
    nulls, null_columns = _null_updates(given, where)
    system = _system_sequence(given, where)
    spec = ChangeSpec(
        source=_required_name("source", given.source, where),
        keys=_key_columns(given.keys, where),
        sequence_by=expression("sequence_by", given.sequence_by, where, needed=True),
        scd_type=2 if system is not None else _scd_type(given.stored_as_scd_type, where),
        system_sequence_by=system,
        apply_as_deletes=expression("apply_as_deletes", given.apply_as_deletes, where),
        apply_as_truncates=expression("apply_as_truncates", given.apply_as_truncates, where),
        column_list=columns("column_list", given.column_list, where),
        except_column_list=columns("except_column_list", given.except_column_list, where),
        track_history_column_list=columns("track_history_column_list", given.track_history_column_list, where),
        track_history_except_column_list=columns("track_history_except_column_list", given.track_history_except_column_list, where),
        ignore_null_updates=nulls,
        ignore_null_columns=null_columns,
        columns_to_update=plain_column("columns_to_update", given.columns_to_update, where),
        where=expression("where", given.where, where),
        once=_true_or_false("once", given.once, where),
    )
    _add_change_flow(spec, target, name, where, **of_flow)


def _source_of_snapshots(source: Any, snapshot_and_version: Any, where: Location) -> Any:
    if source is not None and snapshot_and_version is not None:
        raise _contradicting_arguments("source and snapshot_and_version are the same argument", where, "Give one of them.")
    return source if source is not None else snapshot_and_version


def _declare_snapshot_flow(
    target: Any, source: Any, keys: Any, scd_type: Any, tracked: Any, untracked: Any, once: Any, where: Location
) -> None:
    if _is_bitemporal(scd_type):
        raise _contradicting_arguments(
            'stored_as_scd_type="bitemporal" does not go with snapshots: they have one time only',
            where,
            "Apply the changes of a feed with create_auto_cdc_flow, which has sequence_by and system_sequence_by; or keep type 1 or 2.",
        )
    function = source if callable(source) else _once_a_version(source) if isinstance(source, tuple) and len(source) == 2 else None
    spec = ChangeSpec(
        source=None if function else _required_name("source", source, where),
        keys=_key_columns(keys, where),
        scd_type=_scd_type(scd_type, where),
        track_history_column_list=columns("track_history_column_list", tracked, where),
        track_history_except_column_list=columns("track_history_except_column_list", untracked, where),
        once=_true_or_false("once", once, where),
        snapshots=function or "periodic",
    )
    _add_change_flow(spec, target, None, where)


def _once_a_version(given: tuple[Any, Any]) -> Callable[[Any], Any]:
    """The function that gives one (snapshot, version), read while the file was loaded: there is nothing more once it was applied."""
    return lambda latest: None if latest == given[1] else given


def _add_change_flow(spec: ChangeSpec, target: Any, name: Any, where: Location, **of_flow: Any) -> None:
    _check_together(spec, where)
    registry = active_registry()
    table = registry.resolve(_required_name("target", target, where), where)
    flow = str(table)
    if name is not None:
        text = _required_name("flow_name", name, where)
        flow = text if "." in text else str(registry.resolve(f"`{text}`", where))
    of_flow = {"query": lambda: _rows_of_source(spec, where), **of_flow}
    registry.add_flow(Flow(name=flow, target=table, where=where, default=False, changes=spec, **of_flow))


def _rows_of_source(spec: ChangeSpec, where: Location) -> Any:
    """What the flow reads: events as a stream, or for `once` as either; a snapshot as a batch, the first where a function gives them."""
    reader = active_reader()
    if reader is None:
        raise LakeletError("OUTSIDE_PIPELINE", "the source of a change flow was read outside of an update", where=where)
    if callable(spec.snapshots):
        return _first_snapshot(call_user_code(spec.snapshots, None), where)
    try:
        if spec.once and spec.snapshots is None:
            return reader.batch_or_stream(str(spec.source))
        return reader.table(str(spec.source), streaming=spec.snapshots is None)
    except LakeletError as error:
        if error.where is None or is_library(error.where.file):  # no code of the user's asked for the source
            error.where = where
        raise


def _first_snapshot(given: Any, where: Location) -> Any:
    """The DataFrame of what a snapshot function gave. Raises CDC_NO_SNAPSHOT where there is none."""
    found = given[0] if isinstance(given, tuple) and len(given) == 2 else None
    if found is None:
        raise LakeletError("CDC_NO_SNAPSHOT", "the snapshot function gave no first snapshot", where=where)
    return found


def _check_together(spec: ChangeSpec, where: Location) -> None:
    """Refuse arguments that exclude each other (CD-10)."""
    for one, other in (
        ("column_list", "except_column_list"),
        ("track_history_column_list", "track_history_except_column_list"),
    ):
        if getattr(spec, one) is not None and getattr(spec, other) is not None:
            raise _contradicting_arguments(f"{one} and {other} exclude each other", where, "Keep one of them.")
    history = spec.track_history_column_list is not None or spec.track_history_except_column_list is not None
    if history and spec.scd_type == 1:
        raise _contradicting_arguments(
            "track_history_* goes with SCD type 2 only: type 1 keeps no history", where, 'Write stored_as_scd_type="2", or leave it out.'
        )
    if spec.bitemporal and spec.columns_to_update is not None:
        raise _contradicting_arguments(
            "columns_to_update does not go with a bitemporal table", where, "Leave it out, or set ignore_null_updates for partial events."
        )
    if spec.apply_as_truncates is not None and spec.scd_type == 2:
        raise _contradicting_arguments(
            "apply_as_truncates goes with SCD type 1 only: history cannot be truncated", where, "Leave it out, or keep the table as type 1."
        )
    if spec.columns_to_update is not None and spec.ignore_null_updates is not NullUpdates.NONE:
        raise _contradicting_arguments(
            "columns_to_update and ignore_null_updates exclude each other: both say what an event sets", where, "Keep one of them."
        )
    selected = {path[0].lower() for path in spec.column_list or ()}
    left_out = {path[0].lower() for path in spec.except_column_list or ()}
    for key in spec.keys:
        if (spec.column_list is not None and key[0].lower() not in selected) or key[0].lower() in left_out:
            raise _contradicting_arguments(
                f"the key column {key[0]!r} is not among the columns of the target", where, "Keys are always kept."
            )


def _null_updates(given: ChangeArguments, where: Location) -> tuple[NullUpdates, tuple[ColumnPath, ...]]:
    """The three forms of ignore_null_updates: all leaves, the listed ones, all but the listed ones; False and None mean none."""
    everything = given.ignore_null_updates
    if not (everything is None or isinstance(everything, bool)):
        raise invalid(f"ignore_null_updates must be True or False, got {everything!r}", where, "Name columns in its lists.")
    names = ("ignore_null_updates_column_list", "ignore_null_updates_except_column_list")
    listed, left_out = (columns(name, getattr(given, name), where, nested=True) for name in names)
    if listed is not None and left_out is not None:
        raise _contradicting_arguments(f"{names[0]} and {names[1]} exclude each other", where, "Keep one of them.")
    if everything and (listed is not None or left_out is not None):
        raise _contradicting_arguments("ignore_null_updates=True means all columns, and a list was given too", where, "Keep one of them.")
    if listed is not None:
        return NullUpdates.ON, listed
    if left_out is not None:
        return NullUpdates.EXCEPT, left_out
    return (NullUpdates.ALL if everything else NullUpdates.NONE), ()


# ---------------------------------------------------------------------------------------------------- argument checks


def _contradicting_arguments(what: str, where: Location, todo: str) -> LakeletError:
    return LakeletError("CDC_CONTRADICTION", what, where=where, todo=todo)


def _required_name(argument: str, value: Any, where: Location) -> str:
    if not isinstance(value, str) or not value.strip():
        todo = "Name a view: the query that makes the events belongs into one." if argument == "source" else None
        raise invalid(f"{argument} must be a name as text, got {value!r}", where, todo)
    return value


def _true_or_false(argument: str, value: Any, where: Location) -> bool:
    if not isinstance(value, bool):
        raise invalid(f"{argument} must be True or False, got {value!r}", where)
    return value


def _key_columns(value: Any, where: Location) -> tuple[ColumnPath, ...]:
    found = columns("keys", value, where)
    if not found:
        raise invalid("keys names no column", where, 'Write keys=["id"]: the columns that identify a row.')
    return found


def _system_sequence(given: ChangeArguments, where: Location) -> Any:
    """What orders the events by when they became known; None unless the table is bitemporal (BT-1)."""
    system, bitemporal = given.system_sequence_by, _is_bitemporal(given.stored_as_scd_type)
    if bitemporal and system is None:
        todo = "Write system_sequence_by: the column that says when an event became known."
        raise _contradicting_arguments('stored_as_scd_type="bitemporal" needs system_sequence_by', where, todo)
    if system is not None and not bitemporal:
        todo = 'Write stored_as_scd_type="bitemporal", or leave it out.'
        raise _contradicting_arguments("system_sequence_by goes with bitemporal tables only", where, todo)
    return expression("system_sequence_by", system, where)


def _is_bitemporal(scd_type: Any) -> bool:
    return isinstance(scd_type, str) and scd_type.lower() == _BITEMPORAL


def _scd_type(value: Any, where: Location) -> int:
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, str | int) or value not in _SCD_TYPES:
        todo = 'Write "1" to keep current rows, "2" to keep history, "bitemporal" to keep what was known when, too.'
        raise invalid(f'stored_as_scd_type must be 1, 2 or "bitemporal", got {value!r}', where, todo)
    return _SCD_TYPES[value]
