"""The words of the event log: states of updates and flows, types and levels of events (EL-1, EL-5). They are stored, so none changes."""

from __future__ import annotations

from lakelet.base.text import TextEnum


class UpdateState(TextEnum):
    """The state of an update, as `update_progress` reports it. Only Databricks reports WAITING_FOR_RESOURCES."""

    QUEUED = "QUEUED"
    CREATED = "CREATED"
    WAITING_FOR_RESOURCES = "WAITING_FOR_RESOURCES"
    INITIALIZING = "INITIALIZING"
    RESETTING = "RESETTING"
    SETTING_UP_TABLES = "SETTING_UP_TABLES"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def has_ended(self) -> bool:
        return self in UpdateState.ends()

    @classmethod
    def ends(cls) -> tuple[UpdateState, ...]:
        """The states that an update ends in."""
        return (cls.COMPLETED, cls.FAILED, cls.CANCELED)


class FlowState(TextEnum):
    """The state of a flow in one update, as `flow_progress` reports it. The engine does not report PLANNING."""

    QUEUED = "QUEUED"
    STARTING = "STARTING"
    PLANNING = "PLANNING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    STOPPED = "STOPPED"
    IDLE = "IDLE"
    EXCLUDED = "EXCLUDED"

    @property
    def is_at_work(self) -> bool:
        return self in (FlowState.STARTING, FlowState.PLANNING, FlowState.RUNNING)

    @property
    def has_ended(self) -> bool:
        return self is not FlowState.QUEUED and not self.is_at_work

    @property
    def is_done(self) -> bool:
        """Whether the flow's target is up to date now."""
        return self in (FlowState.COMPLETED, FlowState.IDLE)

    @property
    def mark(self) -> str:
        """`good`, `warning` or `bad`; "" for a flow that took no part."""
        if self is FlowState.EXCLUDED:
            return ""
        return "bad" if self is FlowState.FAILED else "good" if self.is_done else "warning"


WORST_FIRST = (
    FlowState.FAILED,
    FlowState.RUNNING,
    FlowState.STARTING,
    FlowState.PLANNING,
    FlowState.QUEUED,
    FlowState.STOPPED,
    FlowState.SKIPPED,
    FlowState.COMPLETED,
    FlowState.IDLE,
    FlowState.EXCLUDED,
)
"""States of a flow; of several flows into one dataset the first in this order is that of the dataset."""


class HookState(TextEnum):
    """States of an event hook in `hook_progress`."""

    FAILED = "FAILED"
    STOPPED = "STOPPED"
    DISABLED = "DISABLED"


class OperationState(TextEnum):
    """The state of a part of a flow's work, as `operation_progress` reports it, and of a table's maintenance."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class FlowType(TextEnum):
    """How a flow's rows get into its target, as `flow_definition` reports it (EL-6)."""

    APPEND = "APPEND"
    UPDATE = "UPDATE"
    COMPLETE = "COMPLETE"
    MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
    CHANGE = "CHANGE"
    SNAPSHOT_CHANGE = "SNAPSHOT_CHANGE"
    REPLACE_WHERE = "REPLACE_WHERE"
    REPLACE_USING = "REPLACE_USING"


class EventType(TextEnum):
    """Types of events; the type is the only key of an event's `details`."""

    USER_ACTION = "user_action"
    CREATE_UPDATE = "create_update"
    RUNTIME_DETAILS = "runtime_details"
    UPDATE_PROGRESS = "update_progress"
    DATASET_DEFINITION = "dataset_definition"
    SINK_DEFINITION = "sink_definition"
    FLOW_DEFINITION = "flow_definition"
    FLOW_PROGRESS = "flow_progress"
    OPERATION_PROGRESS = "operation_progress"
    STREAM_PROGRESS = "stream_progress"
    PLANNING_INFORMATION = "planning_information"
    HOOK_PROGRESS = "hook_progress"
    MAINTENANCE_PROGRESS = "maintenance_progress"
    NOTICE = "notice"
    SCHEMA_CHANGE = "schema_change"
    SOURCE_RECORDS = "source_records"
    LATE_RECORDS = "late_records"
    CLEAN_SOURCE = "clean_source"
    COLUMN_LINEAGE = "column_lineage"
    TABLE_CHECK = "table_check"

    @property
    def is_of_lakelet(self) -> bool:
        """Whether Databricks does not have the type (EL-3)."""
        return self in _OURS


_OURS = frozenset(
    (
        *(EventType.NOTICE, EventType.SCHEMA_CHANGE, EventType.SOURCE_RECORDS, EventType.LATE_RECORDS, EventType.CLEAN_SOURCE),
        *(EventType.COLUMN_LINEAGE, EventType.TABLE_CHECK),
    )
)


class Level(TextEnum):
    """How much an event matters. METRICS: measurements of every micro-batch, of which there are many."""

    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    METRICS = "METRICS"


class Maturity(TextEnum):
    """Whether the shape of an event may still change (EL-3)."""

    STABLE = "STABLE"
    EVOLVING = "EVOLVING"
