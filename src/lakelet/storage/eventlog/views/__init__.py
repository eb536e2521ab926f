"""Flat views of the event log, as SQL that Spark and Databricks both run (EL-13). No Spark.

The text of each view is the file of its name beside this one. It reads `event_log_raw`, the event log itself, and other views.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

EVENT_LOG = "event_log"
"""The event log in `lakelet sql`; also the schema in which the views are found where a table has the name of one."""
SOURCE = "event_log_raw"
"""The event log in the texts of the views, as in the queries of the public documentation."""
NAMES = (
    "latest_update",
    "flow_metrics",
    "updates",
    "expectation_metrics",
    "violation_samples",
    "dataset_health",
    "lineage",
    "schema_changes",
    "table_checks",
    "dataset_sources",
    "dataset_freshness",
    "affected_datasets",
    "bad_input",
    "faults",
)
"""The views; each reads only those before it."""
_READ = re.compile(r"\b(?:FROM|JOIN) (\w+)")


@dataclass(frozen=True)
class EventView:
    """`description`: one or more sentences; `query`: its SQL, without a comment."""

    name: str
    description: str
    query: str


@cache
def event_view(name: str) -> EventView:
    """The view of one of NAMES."""
    text = resources.files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    head, _, query = text.partition("\n")
    return EventView(name, head.removeprefix("-- "), query.strip())


def relation_of(parts: tuple[str, ...]) -> str | None:
    """What the parts of a name mean of the event log: SOURCE, one of NAMES, or None. `event_log.<view>` is the view, too."""
    words = tuple(part.lower() for part in parts)
    if len(words) == 2 and words[0] == EVENT_LOG:
        words = words[1:]
    if words in ((EVENT_LOG,), (SOURCE,)):
        return SOURCE
    return words[0] if len(words) == 1 and words[0] in NAMES else None


def views_read_by(query: str) -> tuple[str, ...]:
    """The views that a query reads, those that they read before them; SOURCE is not among them."""
    read, wanted = set[str](), [query]
    while wanted:
        found = set(_READ.findall(wanted.pop())).intersection(NAMES) - read
        read |= found
        wanted += [event_view(name).query for name in found]
    return tuple(name for name in NAMES if name in read)


def with_views(query: str, event_log: str) -> str:
    """The query with the views that it reads in front of it, for a place that has none of them. `event_log`: name of the published log."""
    texts = {SOURCE: f"SELECT * FROM {event_log}", **{name: event_view(name).query for name in views_read_by(query)}}
    return "WITH " + ",\n".join(f"{name} AS (\n{text}\n)" for name, text in texts.items()) + f"\n{query}"


def databricks_script(event_log: str) -> str:
    """SQL that creates the views on Databricks. Its parameters: catalog and schema, where the log is published as `event_log`."""
    statements = [
        "USE CATALOG IDENTIFIER(:catalog);",
        "USE SCHEMA IDENTIFIER(:schema);",
        f"CREATE OR REPLACE VIEW {SOURCE}\nCOMMENT 'The event log.'\nAS SELECT * FROM {event_log};",
    ]
    for name in NAMES:
        view = event_view(name)
        comment = view.description.replace("'", "''")
        statements.append(f"CREATE OR REPLACE VIEW {name}\nCOMMENT '{comment}'\nAS\n{view.query};")
    return "\n\n".join(statements) + "\n"
