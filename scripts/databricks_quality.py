"""Writes what shows the event log on Databricks: the SQL of its views, and an AI/BI dashboard over them.

    .venv/bin/python scripts/databricks_quality.py

The dashboard is put together from the values below; its queries have the views of `lakelet.storage.eventlog.views` in front of them, so
that it needs nothing but the published event log. They run in `lakelet sql` with that one name replaced. A test compares the files in
`resources/` with what this writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.storage.eventlog.views import databricks_script, with_views

RESOURCES = Path(__file__).parents[1] / "resources"
VIEWS_FILE = RESOURCES / "sql" / "quality_views.sql"
DASHBOARD_FILE = RESOURCES / "quality.dashboard.lvdash.json"
EVENT_LOG = "system_a_event_log"
"""Name under which the pipeline publishes its event log (`event_log:` in its YAML), in the schema of its tables."""
COLUMNS = 6

HEAD = """\
-- Views of a pipeline's event log: the same names and columns as in `lakelet sql`.
-- The job quality_views runs it in the catalog and schema of the deployment target, where the pipeline publishes its event log.
-- Written by scripts/databricks_quality.py; changes belong into src/lakelet/storage/eventlog/views/.

"""

DATASETS = {
    "updates": """\
SELECT u.pipeline_name, u.update_id, u.state, u.cause, u.started_at, u.duration_s, u.selection, u.rows_written, u.dropped_records,
  coalesce(r.violations, 0) AS violations, coalesce(r.broken_rules, 0) AS broken_rules, u.failed_flows, u.error
FROM updates u
LEFT JOIN (
  SELECT update_id, sum(failed_records) AS violations, count_if(failed_records > 0) AS broken_rules
  FROM (
    SELECT update_id, dataset, expectation, sum(failed_records) AS failed_records
    FROM expectation_metrics
    GROUP BY update_id, dataset, expectation
  )
  GROUP BY update_id
) r ON r.update_id = u.update_id""",
    "flows": """\
SELECT u.pipeline_name, u.started_at, f.update_id, f.flow_name, f.dataset, f.flow_type, f.status, f.duration_s,
  coalesce(f.output_rows, 0) + coalesce(f.upserted_rows, 0) AS rows_written, f.deleted_rows, f.dropped_records,
  f.backlog_files, f.backlog_bytes, f.error_class, f.error_message
FROM flow_metrics f
JOIN updates u ON u.update_id = f.update_id
WHERE f.status <> 'EXCLUDED'""",
    "rules": """\
SELECT u.pipeline_name, u.started_at, e.update_id, e.updated_at, e.dataset, e.expectation, e.`constraint`, e.action,
  e.passed_records, e.failed_records, e.pass_rate, e.owner, e.description, e.tags
FROM expectation_metrics e
JOIN updates u ON u.update_id = e.update_id""",
    "health": """\
SELECT h.*, timestampdiff(MINUTE, h.last_completed_at, current_timestamp()) AS minutes_since_completed
FROM dataset_health h""",
    "schema_changes": """\
SELECT changed_at, dataset, change, column_name, data_type, file
FROM schema_changes""",
    "checks": """\
SELECT checked_at, dataset, check_name, severity,
  CASE WHEN success IS NULL THEN 'not run' WHEN success THEN 'passed' ELSE 'failed' END AS result, observed, expected, message,
  owner, description, tags
FROM table_checks""",
    "freshness": """\
SELECT dataset, dataset_type, owner, last_status, last_completed_at, sources_changed_at, contains_at, behind_since_at, lag_s,
  waiting_rows, waiting_for
FROM dataset_freshness""",
    "affected": """\
SELECT cause, cause_owner, problem, since_at, failed_updates, dataset, owner, distance, error
FROM affected_datasets""",
    "bad_input": """\
SELECT reported_at, dataset, problem, bad_records, file, line, unit, cause, remedy
FROM bad_input""",
    "faults": """\
SELECT kind, dataset, name, owner, since_update_id, since_at, failed_updates, duration_s, failed_records
FROM faults""",
}


@dataclass(frozen=True)
class Field:
    """A column of a widget's query: its name there, the SQL that makes it, how it is titled and scaled on an axis."""

    name: str
    expression: str
    title: str = ""
    scale: str = "quantitative"

    def axis(self) -> dict[str, Any]:
        return {"fieldName": self.name, "scale": {"type": self.scale}, "displayName": self.title or self.name}


def column(name: str, title: str = "", scale: str = "categorical") -> Field:
    return Field(name, f"`{name}`", title or name.replace("_", " "), scale)


def total(name: str, title: str) -> Field:
    return Field(f"sum({name})", f"SUM(`{name}`)", title)


DAY = Field("daily(started_at)", 'DATE_TRUNC("DAY", `started_at`)', "day", "temporal")
UPDATE = Field("started_at", "`started_at`", "update", "temporal")


@dataclass(frozen=True)
class Widget:
    """A widget, and how much room it takes. `spec`: of the file format, without its frame."""

    name: str
    title: str
    dataset: str
    fields: tuple[Field, ...]
    spec: dict[str, Any]
    width: int
    height: int
    disaggregated: bool = False

    def as_json(self) -> dict[str, Any]:
        fields = [{"name": field.name, "expression": field.expression} for field in self.fields]
        query = {"datasetName": self.dataset, "fields": fields, "disaggregated": self.disaggregated}
        frame = {"showTitle": True, "title": self.title}
        return {"name": self.name, "queries": [{"name": "main_query", "query": query}], "spec": {**self.spec, "frame": frame}}


def counter(name: str, title: str, dataset: str, field: Field) -> Widget:
    spec = {"version": 2, "widgetType": "counter", "encodings": {"value": {"fieldName": field.name, "displayName": title}}}
    return Widget(name, title, dataset, (field,), spec, 2, 3)


def chart(name: str, title: str, dataset: str, kind: str, x: Field, y: Field, color: Field | None = None, *, width: int = 3) -> Widget:
    encodings = {"x": x.axis(), "y": y.axis(), **({"color": color.axis()} if color else {})}
    fields = (x, y, *((color,) if color else ()))
    return Widget(name, title, dataset, fields, {"version": 3, "widgetType": kind, "encodings": encodings}, width, 6)


def combo(name: str, title: str, dataset: str, x: Field, primary: Field, secondary: Field) -> Widget:
    y = {side: {"fields": [{"fieldName": f.name, "displayName": f.title}], "scale": {"type": "quantitative"}}
         for side, f in (("primary", primary), ("secondary", secondary))}  # fmt: skip
    spec = {"version": 1, "widgetType": "combo", "encodings": {"x": x.axis(), "y": y}}
    return Widget(name, title, dataset, (x, primary, secondary), spec, 3, 6)


def table(name: str, title: str, dataset: str, columns: Sequence[Field]) -> Widget:
    shown = [
        {"fieldName": one.name, "title": one.title, "order": number, "visible": True, **cell_type(one.name)}
        for number, one in enumerate(columns)
    ]
    spec = {"version": 1, "widgetType": "table", "encodings": {"columns": shown}, "itemsPerPage": 25, "condensed": True}
    return Widget(name, title, dataset, tuple(columns), spec, COLUMNS, 8, disaggregated=True)


def cell_type(name: str) -> dict[str, str]:
    """How a table shows a column, by what its name ends in."""
    if name.endswith("_at"):
        return {"type": "datetime", "displayAs": "datetime"}
    if name.endswith(("_rate", "_s")):
        return {"type": "float", "displayAs": "number"}
    if name.endswith(("_records", "_rows", "_flows", "_files")) or name in (
        "rows_written",
        "violations",
        "broken_rules",
        "minutes_since_completed",
    ):
        return {"type": "integer", "displayAs": "number"}
    return {"type": "string", "displayAs": "string"}


def columns_of(text: str) -> list[Field]:
    return [column(name) for name in text.split()]


PASS_RATE = Field("pass_rate", "SUM(`passed_records`) / NULLIF(SUM(`passed_records`) + SUM(`failed_records`), 0)", "pass rate")
FAILED_SHARE = Field("failed_pct", "100 * SUM(`failed_records`) / NULLIF(SUM(`passed_records`) + SUM(`failed_records`), 0)", "failed, %")
COUNT = Field("count(update_id)", "COUNT(`update_id`)", "updates")

CHANGE_COLUMNS = "changed_at dataset change column_name data_type file"

PAGES: dict[str, tuple[str, tuple[Widget, ...]]] = {
    "overview": (
        "Overview",
        (
            counter("overview_updates", "Updates", "updates", COUNT),
            counter("overview_failed", "Failed updates", "updates", Field("failed", "COUNT_IF(`state` = 'FAILED')")),
            counter("overview_pass_rate", "Pass rate of all rules", "rules", PASS_RATE),
            chart("overview_states", "Updates by day", "updates", "bar", DAY, COUNT, column("state")),
            chart("overview_rows", "Rows written", "updates", "line", UPDATE, total("rows_written", "rows")),
            table(
                "overview_datasets",
                "Datasets",
                "health",
                columns_of(
                    "dataset dataset_type last_status last_completed_at minutes_since_completed output_rows dropped_records failed_records"
                    " pass_rate quarantined_records owner tags description error"
                ),
            ),
        ),
    ),
    "quality": (
        "Quality",
        (
            chart("quality_rates", "Pass rate by rule", "rules", "line", UPDATE, PASS_RATE, column("expectation")),
            combo("quality_failures", "Violations of rules", "rules", UPDATE, total("failed_records", "violations"), FAILED_SHARE),
            chart(
                "quality_dropped", "Dropped rows by dataset", "flows", "bar", UPDATE, total("dropped_records", "rows"), column("dataset")
            ),
            chart("quality_worst", "Violations by rule", "rules", "bar", total("failed_records", "violations"), column("expectation")),
            table(
                "quality_faults",
                "At fault now",
                "faults",
                columns_of("kind dataset name owner since_at failed_updates duration_s failed_records since_update_id"),
            ),
            table(
                "quality_rules",
                "Rules",
                "rules",
                columns_of(
                    "updated_at dataset expectation owner constraint action passed_records failed_records pass_rate tags description"
                ),
            ),
            table(
                "quality_checks",
                "Table checks",
                "checks",
                columns_of("checked_at dataset check_name owner severity result observed expected message tags description"),
            ),
        ),
    ),
    "updates": (
        "Updates",
        (
            chart("updates_duration", "Seconds per update", "updates", "bar", UPDATE, total("duration_s", "seconds"), column("state")),
            chart("updates_backlog", "Files that wait", "flows", "line", UPDATE, total("backlog_files", "files"), column("flow_name")),
            table(
                "updates_list",
                "Updates",
                "updates",
                columns_of(
                    "started_at state cause duration_s rows_written violations broken_rules dropped_records failed_flows selection error"
                    " update_id"
                ),
            ),
            table(
                "updates_flows",
                "Flows",
                "flows",
                columns_of("started_at flow_name status duration_s rows_written deleted_rows dropped_records error_class error_message"),
            ),
            table(
                "updates_affected",
                "Who is affected",
                "affected",
                columns_of("cause cause_owner problem since_at failed_updates dataset owner distance error"),
            ),
            table(
                "updates_freshness",
                "Freshness",
                "freshness",
                columns_of("dataset owner last_status lag_s behind_since_at contains_at sources_changed_at waiting_rows waiting_for"),
            ),
            table(
                "updates_input",
                "Bad input",
                "bad_input",
                columns_of("reported_at dataset problem bad_records file line unit cause remedy"),
            ),
            table("updates_schema", "Changes of schemas", "schema_changes", columns_of(CHANGE_COLUMNS)),
        ),
    ),
}
FILTERED = ("updates", "flows", "rules")
"""Datasets that have the columns of the filters by pipeline and time, which count on every page."""
OWNED = ("rules", "health", "checks", "freshness", "affected", "faults")
"""Datasets whose rows somebody answers for."""


def placed(widgets: Sequence[Widget]) -> list[dict[str, Any]]:
    """The widgets from left to right, in a new row where one does not fit."""
    x = y = row = 0
    layout = []
    for widget in widgets:
        if x + widget.width > COLUMNS:
            x, y, row = 0, y + row, 0
        layout.append({"widget": widget.as_json(), "position": {"x": x, "y": y, "width": widget.width, "height": widget.height}})
        x, row = x + widget.width, max(row, widget.height)
    return layout


def filter_of(name: str, title: str, kind: str, field: str, datasets: Sequence[str] = FILTERED) -> dict[str, Any]:
    """A filter on the column `field` of all the datasets that have it."""
    associativity = {"name": f"{field}_associativity", "expression": "COUNT_IF(`associative_filter_predicate_group`)"}
    queries = [
        {
            "name": f"{name}_{dataset}",
            "query": {
                "datasetName": dataset,
                "fields": [{"name": field, "expression": f"`{field}`"}, *([associativity] if "select" in kind else [])],
                "disaggregated": False,
            },
        }
        for dataset in datasets
    ]
    fields = [{"fieldName": field, "queryName": query["name"], "displayName": title} for query in queries]
    spec = {"version": 2, "widgetType": kind, "encodings": {"fields": fields}, "frame": {"showTitle": True, "title": title}}
    return {"name": name, "queries": queries, "spec": spec}


def dashboard() -> dict[str, Any]:
    """The file's content."""
    queries = {name: with_views(query, EVENT_LOG) for name, query in DATASETS.items()}
    datasets = [{"name": name, "displayName": name, "queryLines": query.splitlines(keepends=True)} for name, query in queries.items()]
    pages = [
        {"name": name, "displayName": title, "pageType": "PAGE_TYPE_CANVAS", "layout": placed(widgets)}
        for name, (title, widgets) in PAGES.items()
    ]
    filters = [
        filter_of("filter_pipeline", "Pipeline", "filter-multi-select", "pipeline_name"),
        filter_of("filter_time", "Started", "filter-date-range-picker", "started_at"),
        filter_of("filter_owner", "Owner", "filter-multi-select", "owner", OWNED),
    ]
    layout = [{"widget": one, "position": {"x": 0, "y": at, "width": 1, "height": 1}} for at, one in enumerate(filters)]
    pages.append({"name": "filters", "displayName": "Filters", "pageType": "PAGE_TYPE_GLOBAL_FILTERS", "layout": layout})
    return {"datasets": datasets, "pages": pages, "uiSettings": {"theme": {"widgetHeaderAlignment": "ALIGNMENT_UNSPECIFIED"}}}


def files() -> dict[Path, str]:
    """What belongs into `resources/`."""
    return {VIEWS_FILE: HEAD + databricks_script(EVENT_LOG), DASHBOARD_FILE: json.dumps(dashboard(), indent=2) + "\n"}


def main() -> None:
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
        print(file.relative_to(RESOURCES.parent))


if __name__ == "__main__":
    main()
