"""Names of the DLT language that this version knows but does not execute: exact signatures, coded refusals. Layer 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from lakelet.errors import LakeletError, Location
from lakelet.registry import caller_location


def unsupported(feature: str, where: Location | None = None) -> NoReturn:
    """Raise NOT_SUPPORTED_YET for a part of the language: silence would change the result."""
    raise LakeletError(
        "NOT_SUPPORTED_YET",
        f"{feature} is part of the DLT language, but this version of Lakelet does not execute it",
        where=where or caller_location(),
        todo="Leave it out, or run this pipeline on Databricks until a later version supports it.",
    )


def apply_changes(
    target: Any,
    source: Any,
    keys: Any,
    sequence_by: Any,
    where: Any = None,
    ignore_null_updates: Any = None,
    apply_as_deletes: Any = None,
    apply_as_truncates: Any = None,
    column_list: Any = None,
    except_column_list: Any = None,
    stored_as_scd_type: Any = "1",
    track_history_column_list: Any = None,
    track_history_except_column_list: Any = None,
    flow_name: Any = None,
    once: bool = False,
    ignore_null_updates_column_list: Any = None,
    ignore_null_updates_except_column_list: Any = None,
    columns_to_update: Any = None,
) -> None:
    unsupported("apply_changes")


def create_auto_cdc_flow(
    target: Any,
    source: Any,
    keys: Any,
    sequence_by: Any,
    system_sequence_by: Any = None,
    ignore_null_updates: Any = False,
    ignore_null_updates_column_list: Any = None,
    ignore_null_updates_except_column_list: Any = None,
    columns_to_update: Any = None,
    apply_as_deletes: Any = None,
    apply_as_truncates: Any = None,
    column_list: Any = None,
    except_column_list: Any = None,
    stored_as_scd_type: Any = "1",
    track_history_column_list: Any = None,
    track_history_except_column_list: Any = None,
    name: Any = None,
    once: bool = False,
    flow_name: Any = None,
) -> None:
    unsupported("create_auto_cdc_flow")


def apply_changes_from_snapshot(
    target: Any,
    source: Any = None,
    keys: Any = None,
    stored_as_scd_type: Any = None,
    snapshot_and_version: Any = None,
    track_history_column_list: Any = None,
    track_history_except_column_list: Any = None,
) -> None:
    unsupported("apply_changes_from_snapshot")


def create_auto_cdc_from_snapshot_flow(
    target: Any,
    source: Any,
    keys: Any,
    stored_as_scd_type: Any = "1",
    track_history_column_list: Any = None,
    track_history_except_column_list: Any = None,
) -> None:
    unsupported("create_auto_cdc_from_snapshot_flow")


def create_sink(name: str, format: str, options: Mapping[str, Any] | None = None) -> None:
    unsupported("create_sink")


def foreach_batch_sink(name: Any = None) -> Any:
    unsupported("foreach_batch_sink")


def update_flow(target: Any, name: Any = None, spark_conf: Any = None, comment: Any = None) -> Any:
    unsupported("update_flow")


def replace_flow(
    target: Any, replace_using: Any = None, sequence_by: Any = None, name: Any = None, comment: Any = None, spark_conf: Any = None
) -> Any:
    unsupported("replace_flow")


def on_event_hook(user_event_hook_fn: Any = None, max_allowable_consecutive_failures: int | None = None) -> Any:
    unsupported("on_event_hook")
