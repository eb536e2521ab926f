"""Settings of jobs: what a workspace refuses, and what it fills in (facts 1.3, Jobs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from databricks.sdk.service.jobs import JobSettings, Task

from tests.workspace_double.wire import invalid

FIELDS = frozenset(field.name for field in fields(JobSettings))
TASK_FIELDS = frozenset(field.name for field in fields(Task))
_PIPELINE_TASK = {"pipeline_id", "full_refresh", "full_refresh_selection", "refresh_selection", "refresh_flow_selection"}
_PIPELINE_TASK |= {"reset_checkpoint_selection", "parameters"}
_KINDS = frozenset(key for key in TASK_FIELDS if key.endswith("_task"))


def check(settings: Mapping[str, Any]) -> None:
    """Refuse settings that cannot be. Raises ApiError 400."""
    for key in settings:
        if key not in FIELDS | {"access_control_list"}:
            raise invalid(f"Could not parse request object: unrecognized field {key!r} in the settings of a job")
    clocks = [key for key in ("schedule", "trigger", "continuous", "triggers") if settings.get(key)]
    if len(clocks) > 1:
        raise invalid(f"Only one of {' and '.join(clocks)} can be specified.")
    schedule = settings.get("schedule")
    if schedule and not (schedule.get("quartz_cron_expression") and schedule.get("timezone_id")):
        raise invalid("A schedule needs quartz_cron_expression and timezone_id.")
    if schedule and not 6 <= len(schedule["quartz_cron_expression"].split()) <= 7:
        raise invalid(f"Invalid quartz cron expression: {schedule['quartz_cron_expression']!r}")
    for key in ("schedule", "trigger", "continuous"):
        if (settings.get(key) or {}).get("pause_status", "PAUSED") not in ("PAUSED", "UNPAUSED"):
            raise invalid(f"Invalid pause_status in {key}")
    _check_tasks(settings.get("tasks") or [])


def _check_tasks(tasks: list[Mapping[str, Any]]) -> None:
    keys = [task.get("task_key") for task in tasks]
    if any(not key for key in keys):
        raise invalid("Missing required field: task_key")
    if len(set(keys)) < len(keys):
        raise invalid("Task keys must be unique.")
    for task in tasks:
        unknown = sorted(set(task) - TASK_FIELDS)
        if unknown:
            raise invalid(f"Could not parse request object: unrecognized field {unknown[0]!r} in a task")
        if len(_KINDS & set(task)) != 1:
            raise invalid(f"Task {task['task_key']} must have exactly one kind of task.")
        for needed in task.get("depends_on") or []:
            if needed.get("task_key") not in keys:
                raise invalid(f"Task {task['task_key']} depends on {needed.get('task_key')}, which does not exist.")
        if "pipeline_task" in task:
            wrong = sorted(set(task["pipeline_task"]) - _PIPELINE_TASK)
            if wrong or not task["pipeline_task"].get("pipeline_id"):
                raise invalid(f"Task {task['task_key']}: " + (f"unrecognized field {wrong[0]!r}" if wrong else "pipeline_id is missing"))


def stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a workspace keeps (REST API reference, example answer of "Get a single job"): with its own values filled in."""
    kept = {key: value for key, value in settings.items() if value is not None and key != "access_control_list"}
    filled: dict[str, Any] = {"name": "Untitled", "email_notifications": {}, "webhook_notifications": {}, "timeout_seconds": 0}
    filled |= {"max_concurrent_runs": 1, "format": "MULTI_TASK"}
    for key in ("schedule", "trigger", "continuous"):
        if kept.get(key):
            kept[key] = {"pause_status": "UNPAUSED", **kept[key]}
    if kept.get("tasks"):
        own = {"run_if": "ALL_SUCCESS", "timeout_seconds": 0, "email_notifications": {}}
        kept["tasks"] = [{**own, **task} for task in kept["tasks"]]
    return {**filled, **kept}
