"""Keys, types and values of each kind of resource, with the shape of schedules: Quartz cron expressions and time zones.

Tests compare the keys with the parameters of Databricks' SDK.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lakelet.deploy.bundle.forms import (
    ANYTHING,
    INTEGER,
    SWITCH,
    TEXT,
    TEXT_BY_NAME,
    TEXTS,
    Form,
    IntegerForm,
    ListForm,
    NamedForm,
    RecordForm,
    TextForm,
    choice,
    fields,
    switches,
    texts,
)
from lakelet.deploy.desired_state import PRINCIPALS, ResourceKind

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    ("seconds", 0, 59, ()),
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 1, 7, _DAYS),
    ("year", 1970, 2099, ()),
)
_SPECIAL = {
    "day of month": re.compile(r"L(-\d{1,2})?W?|\d{1,2}W"),
    "day of week": re.compile(r"L|[1-7]L|[1-7]#[1-5]|(SUN|MON|TUE|WED|THU|FRI|SAT)(L|#[1-5])"),
}


def wrong_cron(text: str) -> str | None:
    """Return the error of a Quartz cron expression, None for a valid one."""
    parts = text.upper().split()
    if len(parts) not in (6, 7):
        more = ": Quartz begins with the seconds" if len(parts) == 5 else ""
        return f"has {len(parts)} fields and not 6 or 7 (seconds, minutes, hours, day of month, month, day of week, year){more}"
    for part, (name, low, high, names) in zip(parts, _FIELDS, strict=False):
        if not _fits_field(part, name, low, high, names):
            return f"has {part!r} as {name}, which goes from {low} to {high}"
    if (parts[3] == "?") == (parts[5] == "?"):
        return "needs '?' as day of month or as day of week, and not as both"
    return None


def _fits_field(part: str, name: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    if part == "?":
        return name in _SPECIAL
    return all(_fits_entry(one, name, low, high, names) for one in part.split(","))


def _fits_entry(part: str, name: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    if name in _SPECIAL and _SPECIAL[name].fullmatch(part):
        return True
    head, slash, step = part.partition("/")
    if slash and not (step.isdigit() and int(step) >= 1):
        return False
    if head == "*":
        return True
    ends = head.split("-")
    return len(ends) <= 2 and all(_is_number_of_field(end, low, high, names) for end in ends)


def _is_number_of_field(text: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    return text in names or (text.isdigit() and low <= int(text) <= high)


@lru_cache(maxsize=1)
def _time_zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def wrong_time_zone(text: str) -> str | None:
    """Return the error of a time zone's name, None for a valid one."""
    zones = _time_zones()
    if not zones or text in zones or re.fullmatch(r"(UTC|GMT)?[+-]\d{1,2}(:\d{2})?", text) or re.fullmatch(r"[A-Z]{3}", text):
        return None
    return "is not a time zone; for example: Europe/Berlin, UTC"


LIFECYCLE = RecordForm("a lifecycle", switches("prevent_destroy started"))
RUN_AS = RecordForm("run_as", texts("user_name service_principal_name group_name"), one_of=(PRINCIPALS,))


def permissions(*levels: str) -> ListForm:
    """A list of permissions of these levels."""
    return ListForm(RecordForm("a permission", {"level": choice(*levels), **texts(" ".join(PRINCIPALS))}, ("level",), (PRINCIPALS,)))


def _mail(text: str) -> str | None:
    return None if re.fullmatch(r"[^@\s]+@[^@\s]+", text) else "is not an e-mail address"


_MAIL = TextForm(check=_mail)
_SECONDS, _COUNT = IntegerForm(0), IntegerForm(1)

# --- pipelines ------------------------------------------------------------------------------------------------------------------------

ALERTS = ("on-update-success", "on-update-failure", "on-update-fatal-failure", "on-flow-failure")
_NOTIFICATION = RecordForm(
    "a notification", {"alerts": ListForm(choice(*ALERTS)), "email_recipients": ListForm(_MAIL)}, ("alerts", "email_recipients")
)
_PATH = {"path": TEXT}
LIBRARY = RecordForm(
    "a library",
    {
        "glob": RecordForm("a glob", {"include": TEXT}, ("include",)),
        "file": RecordForm("a file", _PATH, ("path",)),
        "notebook": RecordForm("a notebook", _PATH, ("path",)),
        "maven": ANYTHING,
        **texts("jar whl"),
    },
    one_of=(("glob", "file", "notebook", "jar", "maven", "whl"),),
)
CLUSTER = RecordForm(
    "a cluster",
    {
        **texts("driver_instance_pool_id driver_node_type_id instance_pool_id label node_type_id policy_id"),
        **switches("apply_policy_default_values enable_local_disk_encryption"),
        **fields(ANYTHING, "aws_attributes azure_attributes gcp_attributes cluster_log_conf init_scripts"),
        **fields(TEXT_BY_NAME, "custom_tags spark_conf spark_env_vars"),
        "autoscale": RecordForm(
            "autoscale",
            {"min_workers": INTEGER, "max_workers": INTEGER, "mode": choice("ENHANCED", "LEGACY")},
            ("min_workers", "max_workers"),
        ),
        "num_workers": IntegerForm(0),
        "ssh_public_keys": TEXTS,
    },
)
_CLUSTER_OF_JOBS = RecordForm(
    "a cluster",
    {
        **texts("cluster_name driver_instance_pool_id driver_node_type_id instance_pool_id node_type_id policy_id single_user_name"),
        **texts("data_security_mode dependency_mode kind runtime_engine spark_version"),
        **switches("apply_policy_default_values enable_elastic_disk enable_local_disk_encryption is_single_node use_ml_runtime"),
        **fields(INTEGER, "autotermination_minutes num_workers remote_disk_throughput total_initial_remote_disk_size"),
        **fields(TEXT_BY_NAME, "custom_tags spark_conf spark_env_vars"),
        **fields(ANYTHING, "aws_attributes azure_attributes gcp_attributes cluster_log_conf docker_image init_scripts workload_type"),
        **fields(ANYTHING, "driver_node_type_flexibility worker_node_type_flexibility"),
        "autoscale": RecordForm("autoscale", fields(INTEGER, "min_workers max_workers")),
        "ssh_public_keys": TEXTS,
    },
)
PIPELINE_LEVELS = ("CAN_MANAGE", "CAN_RUN", "CAN_VIEW", "IS_OWNER")
PIPELINE_REQUEST: dict[str, Form] = {
    **texts("budget_policy_id catalog id name parent_path root_path schema serverless_compute_id storage target usage_policy_id"),
    **switches("allow_duplicate_names continuous development photon serverless"),
    "channel": choice("CURRENT", "PREVIEW", any_case=True),
    "edition": choice("CORE", "PRO", "ADVANCED", any_case=True),
    "clusters": ListForm(CLUSTER),
    "configuration": TEXT_BY_NAME,
    "environment": RecordForm("an environment", {"dependencies": TEXTS, "environment_version": TEXT}),
    "event_log": RecordForm("event_log", texts("catalog name schema"), ("name",)),
    "filters": RecordForm("filters", {"include": TEXTS, "exclude": TEXTS}),
    "gateway_definition": ANYTHING,
    "ingestion_definition": ANYTHING,
    "libraries": ListForm(LIBRARY),
    "notifications": ListForm(_NOTIFICATION),
    "parameters": TEXT_BY_NAME,
    "restart_window": RecordForm(
        "restart_window",
        {
            "start_hour": INTEGER,
            "days_of_week": ListForm(choice("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")),
            "time_zone_id": TextForm(check=wrong_time_zone),
        },
        ("start_hour",),
    ),
    "run_as": RUN_AS,
    "tags": TEXT_BY_NAME,
    "trigger": ANYTHING,
}
"""What the request that makes a pipeline takes."""

_PIPELINE = RecordForm(
    "a pipeline",
    {**PIPELINE_REQUEST, "cascade_on_destroy": SWITCH, "permissions": permissions(*PIPELINE_LEVELS), "lifecycle": LIFECYCLE},
    at_most_one=(("schema", "target"), ("catalog", "storage")),
)

# --- jobs -----------------------------------------------------------------------------------------------------------------------------

JOB_LEVELS = ("CAN_MANAGE", "CAN_MANAGE_RUN", "CAN_VIEW", "IS_OWNER")
PAUSE = choice("PAUSED", "UNPAUSED")
_SOURCE = choice("WORKSPACE", "GIT")
_ON = "on_start on_success on_failure on_duration_warning_threshold_exceeded on_streaming_backlog_exceeded"
EMAIL = RecordForm("email_notifications", {**fields(ListForm(_MAIL), _ON), "no_alert_for_skipped_runs": SWITCH})
WEBHOOK = RecordForm("webhook_notifications", fields(ListForm(RecordForm("a webhook", {"id": TEXT}, ("id",))), _ON))
HEALTH = RecordForm(
    "health",
    {
        "rules": ListForm(
            RecordForm(
                "a health rule",
                {
                    "metric": choice(
                        "RUN_DURATION_SECONDS",
                        *(f"STREAMING_BACKLOG_{unit}" for unit in ("BYTES", "FILES", "RECORDS", "SECONDS")),
                    ),
                    "op": choice("GREATER_THAN"),
                    "value": INTEGER,
                },
                ("metric", "op", "value"),
            )
        )
    },
)
CRON = TextForm(check=wrong_cron)
SCHEDULE = RecordForm(
    "a schedule",
    {"quartz_cron_expression": CRON, "timezone_id": TextForm(check=wrong_time_zone), "pause_status": PAUSE},
    ("quartz_cron_expression", "timezone_id"),
)
_WAITS: dict[str, Form] = {"min_time_between_triggers_seconds": IntegerForm(60), "wait_after_last_change_seconds": IntegerForm(60)}
PERIODIC = RecordForm("a periodic trigger", {"interval": _COUNT, "unit": choice("MINUTES", "HOURS", "DAYS", "WEEKS")}, ("interval", "unit"))
FILE_ARRIVAL = RecordForm("a file arrival trigger", {"url": TEXT, **_WAITS}, ("url",))
TABLE_UPDATE = RecordForm(
    "a table update trigger", {"table_names": TEXTS, "condition": choice("ANY_UPDATED", "ALL_UPDATED"), **_WAITS}, ("table_names",)
)
_KINDS_OF_TRIGGER = ("periodic", "file_arrival", "table_update", "model")
TRIGGER = RecordForm(
    "a trigger",
    {"periodic": PERIODIC, "file_arrival": FILE_ARRIVAL, "table_update": TABLE_UPDATE, "model": ANYTHING, "pause_status": PAUSE},
    one_of=(_KINDS_OF_TRIGGER,),
)
_TASK_KINDS: dict[str, Form] = {
    "pipeline_task": RecordForm(
        "a pipeline task",
        {
            "pipeline_id": TEXT,
            "full_refresh": SWITCH,
            "parameters": TEXT_BY_NAME,
            **fields(TEXTS, "full_refresh_selection refresh_selection refresh_flow_selection reset_checkpoint_selection"),
        },
        ("pipeline_id",),
    ),
    "notebook_task": RecordForm(
        "a notebook task", {**texts("notebook_path warehouse_id"), "base_parameters": TEXT_BY_NAME, "source": _SOURCE}, ("notebook_path",)
    ),
    "spark_python_task": RecordForm("a Python task", {"python_file": TEXT, "parameters": TEXTS, "source": _SOURCE}, ("python_file",)),
    "python_wheel_task": RecordForm(
        "a wheel task",
        {**texts("package_name entry_point"), "named_parameters": TEXT_BY_NAME, "parameters": TEXTS},
        ("package_name", "entry_point"),
    ),
    "sql_task": RecordForm(
        "a SQL task",
        {
            "warehouse_id": TEXT,
            "parameters": TEXT_BY_NAME,
            "file": RecordForm("the file of a SQL task", {"path": TEXT, "source": _SOURCE}, ("path",)),
            "query": RecordForm("the query of a SQL task", {"query_id": TEXT}, ("query_id",)),
            "alert": ANYTHING,
            "dashboard": ANYTHING,
        },
        ("warehouse_id",),
        one_of=(("file", "query", "alert", "dashboard"),),
    ),
    "dashboard_task": RecordForm(
        "a dashboard task", {**texts("dashboard_id warehouse_id"), "filters": TEXT_BY_NAME, "subscription": ANYTHING}, ("dashboard_id",)
    ),
    "run_job_task": RecordForm(
        "a task that runs a job",
        {
            "job_id": INTEGER,
            "job_parameters": TEXT_BY_NAME,
            **fields(TEXTS, "dbt_commands jar_params python_params spark_submit_params"),
            **fields(TEXT_BY_NAME, "notebook_params python_named_params sql_params"),
            "pipeline_params": ANYTHING,
        },
        ("job_id",),
    ),
    "condition_task": RecordForm(
        "a condition task",
        {
            "op": choice("EQUAL_TO", "NOT_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN", "LESS_THAN_OR_EQUAL"),
            **texts("left right"),
        },
        ("op", "left", "right"),
    ),
    **fields(ANYTHING, "for_each_task dbt_task alert_task spark_jar_task spark_submit_task clean_rooms_notebook_task"),
    **fields(ANYTHING, "dbt_cloud_task dbt_platform_task power_bi_task gen_ai_compute_task ai_runtime_task python_operator_task"),
}
TASK = RecordForm(
    "a task",
    {
        **_TASK_KINDS,
        **texts("task_key description environment_key existing_cluster_id job_cluster_key"),
        **switches("disable_auto_optimization disabled retry_on_timeout"),
        "depends_on": ListForm(RecordForm("a dependency", texts("task_key outcome"), ("task_key",))),
        "run_if": choice("ALL_SUCCESS", "ALL_DONE", "NONE_FAILED", "AT_LEAST_ONE_SUCCESS", "ALL_FAILED", "AT_LEAST_ONE_FAILED"),
        "max_retries": IntegerForm(-1),
        "min_retry_interval_millis": _SECONDS,
        "timeout_seconds": _SECONDS,
        "email_notifications": EMAIL,
        "webhook_notifications": WEBHOOK,
        "notification_settings": RecordForm(
            "notification_settings", switches("alert_on_last_attempt no_alert_for_canceled_runs no_alert_for_skipped_runs")
        ),
        "health": HEALTH,
        "libraries": ListForm(ANYTHING),
        "new_cluster": _CLUSTER_OF_JOBS,
        "compute": ANYTHING,
    },
    ("task_key",),
    one_of=(tuple(_TASK_KINDS),),
    at_most_one=(("existing_cluster_id", "job_cluster_key", "new_cluster", "environment_key"),),
)
JOB_REQUEST: dict[str, Form] = {
    **texts("budget_policy_id description name parent_path usage_policy_id"),
    "continuous": RecordForm("continuous", {"pause_status": PAUSE, "task_retry_mode": choice("NEVER", "ON_FAILURE")}),
    "edit_mode": choice("UI_LOCKED", "EDITABLE"),
    "format": choice("MULTI_TASK", "SINGLE_TASK"),
    "email_notifications": EMAIL,
    "environments": ListForm(RecordForm("an environment", {"environment_key": TEXT, "spec": NamedForm(ANYTHING)}, ("environment_key",))),
    "git_source": ANYTHING,
    "health": HEALTH,
    "job_clusters": ListForm(RecordForm("a job cluster", {"job_cluster_key": TEXT, "new_cluster": _CLUSTER_OF_JOBS}, ("job_cluster_key",))),
    "max_concurrent_runs": _COUNT,
    "notification_settings": RecordForm("notification_settings", switches("no_alert_for_canceled_runs no_alert_for_skipped_runs")),
    "parameters": ListForm(RecordForm("a job parameter", texts("name default"), ("name", "default"))),
    "performance_target": choice("PERFORMANCE_OPTIMIZED", "STANDARD"),
    "queue": RecordForm("queue", {"enabled": SWITCH}, ("enabled",)),
    "run_as": RUN_AS,
    "schedule": SCHEDULE,
    "tags": TEXT_BY_NAME,
    "tasks": ListForm(TASK),
    "timeout_seconds": _SECONDS,
    "trigger": TRIGGER,
    "triggers": ListForm(ANYTHING),
    "webhook_notifications": WEBHOOK,
}
"""What the request that makes a job takes."""

_JOB = RecordForm(
    "a job",
    {**JOB_REQUEST, "permissions": permissions(*JOB_LEVELS), "lifecycle": LIFECYCLE},
    at_most_one=(("schedule", "trigger", "continuous", "triggers"),),
)

# --- dashboards, schemas, volumes -----------------------------------------------------------------------------------------------------

DASHBOARD_LEVELS = ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE")
DASHBOARD_REQUEST: dict[str, Form] = texts("display_name parent_path warehouse_id dataset_catalog dataset_schema")
_DASHBOARD = RecordForm(
    "a dashboard",
    {
        **DASHBOARD_REQUEST,
        "serialized_dashboard": ANYTHING,
        "file_path": TEXT,
        "embed_credentials": SWITCH,
        "permissions": permissions(*DASHBOARD_LEVELS),
        "lifecycle": LIFECYCLE,
    },
    one_of=(("file_path", "serialized_dashboard"),),
)
SCHEMA_PRIVILEGES = (
    *("ALL_PRIVILEGES", "APPLY_TAG", "BROWSE", "CREATE_FUNCTION", "CREATE_MATERIALIZED_VIEW", "CREATE_MODEL", "CREATE_TABLE"),
    *("CREATE_VOLUME", "EXECUTE", "EXTERNAL_USE_SCHEMA", "MANAGE", "MODIFY", "READ_VOLUME", "REFRESH", "SELECT", "USE_SCHEMA"),
    "WRITE_VOLUME",
)
VOLUME_PRIVILEGES = ("ALL_PRIVILEGES", "APPLY_TAG", "MANAGE", "READ_VOLUME", "WRITE_VOLUME")


def _grants(*privileges: str) -> ListForm:
    fields: dict[str, Form] = {"principal": TEXT, "privileges": ListForm(choice(*privileges, any_case=True))}
    return ListForm(RecordForm("a grant", fields, ("principal", "privileges")))


SCHEMA_REQUEST: dict[str, Form] = {
    **texts("name catalog_name comment storage_root"),
    "custom_max_retention_hours": INTEGER,
    "properties": TEXT_BY_NAME,
}
_SCHEMA = RecordForm(
    "a schema", {**SCHEMA_REQUEST, "grants": _grants(*SCHEMA_PRIVILEGES), "lifecycle": LIFECYCLE}, ("name", "catalog_name")
)
VOLUME_REQUEST: dict[str, Form] = {
    **texts("name catalog_name schema_name comment storage_location"),
    "volume_type": choice("MANAGED", "EXTERNAL", any_case=True),
}
_VOLUME = RecordForm(
    "a volume",
    {**VOLUME_REQUEST, "grants": _grants(*VOLUME_PRIVILEGES), "lifecycle": LIFECYCLE},
    ("name", "catalog_name", "schema_name"),
)

RESOURCES: dict[ResourceKind, RecordForm] = {
    ResourceKind.SCHEMA: _SCHEMA,
    ResourceKind.VOLUME: _VOLUME,
    ResourceKind.PIPELINE: _PIPELINE,
    ResourceKind.DASHBOARD: _DASHBOARD,
    ResourceKind.JOB: _JOB,
}

OTHER_KINDS = frozenset(
    (
        *("alerts", "apps", "catalogs", "clusters", "database_catalogs", "database_instances", "experiments", "external_locations"),
        *("genie_spaces", "instance_pools", "job_runs", "model_serving_endpoints", "models", "postgres_branches", "postgres_catalogs"),
        *("postgres_databases", "postgres_endpoints", "postgres_projects", "postgres_roles", "postgres_synced_tables"),
        *("quality_monitors", "registered_models", "secret_scopes", "secrets", "sql_warehouses", "synced_database_tables"),
        *("vector_search_endpoints", "vector_search_indexes"),
    )
)
"""Kinds of resources that a bundle can have and Lakelet does not deploy."""
