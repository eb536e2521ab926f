"""One rule on the rows of one stored table: how many break it, and which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.names import all_quoted, split_name
from lakelet.config.rule_files import read_all
from lakelet.files.paths import AnyPath
from lakelet.inspection.inspector import Note, TableInfo, TableRows, first_note, list_tables, run_sql
from lakelet.inspection.table_lookup import find_dataset
from lakelet.language.sql_text.spark_sql import in_spark_sql
from lakelet.storage.eventlog.reading import read_events
from lakelet.storage.eventlog.states import EventType
from lakelet.storage.root import Storage


@dataclass(frozen=True)
class Trial:
    """A rule on a table. `rows`: of the table; `failed`: those that break the rule, NULL included; `examples`: some of them."""

    dataset: str
    rule: str | None
    constraint: str
    where: Location | None
    rows: int
    failed: int
    columns: Sequence[str]
    examples: Sequence[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "rule": self.rule,
            "constraint": self.constraint,
            "file": self.where and self.where.file,
            "line": self.where and self.where.line,
            "rows": self.rows,
            "failed": self.failed,
            "examples": [dict(row) for row in self.examples],
        }


def try_rule(storage: AnyPath, folder: Path, rule: str, table: str, *, limit: int, note: Note = lambda text: None) -> Trial:
    """Judge the stored rows of a table. `rule`: the name of one of its rules, in the rule files or in the last update's code, or SQL text.

    `note`: see `Note`.
    Raises UNKNOWN_TABLE, RULE_UNKNOWN for a name that no rule has, UNKNOWN_COLUMN, EXPECTATION_INVALID for text that is not a condition.
    """
    info, note = stored_table(storage, table), first_note(note)
    name, constraint, where = _meant(storage, folder, rule, info)
    broken = f"NOT coalesce((\n{in_spark_sql(constraint)}\n), false)"
    source = all_quoted(split_name(info.name))
    try:
        (counts,) = run_sql(storage, f"SELECT count(*) AS n, count_if({broken}) AS failed FROM {source}", note=note).rows
        found = (
            run_sql(storage, f"SELECT * FROM {source} WHERE {broken} LIMIT {limit}", note=note)
            if counts["failed"] and limit
            else TableRows((), iter(()))
        )
    except LakeletError as problem:
        if problem.code != "SQL_FAILED":
            problem.where = where
            raise
        todo = f"The rule is judged on the columns of {info.name}: {', '.join(c['name'] for c in info.columns[:12])}"
        what = f"the rule is not a condition on the rows: {constraint}"
        raise LakeletError("EXPECTATION_INVALID", what, dataset=info.name, where=where, why=problem.why, todo=todo) from None
    rows = list(islice(found.rows, limit))
    return Trial(info.name, name, constraint, where, int(counts["n"]), int(counts["failed"]), found.columns, rows)


def stored_table(storage: AnyPath, table: str) -> TableInfo:
    """A stored table with its columns. Raises UNKNOWN_TABLE."""
    dataset = find_dataset(Storage(storage).registry(), table)
    info = next(one for one in list_tables(storage, private=True) if one.name == dataset.name)
    if info.version is None:
        raise LakeletError("UNKNOWN_TABLE", f"{dataset.name} is known but was not written yet", todo="lakelet run")
    return info


def _meant(storage: AnyPath, folder: Path, rule: str, info: TableInfo) -> tuple[str | None, str, Location | None]:
    """Name, text and location of the rule that is meant."""
    short = info.name.rsplit(".", 1)[-1]
    named: dict[str, tuple[str, Location | None]] = {}
    for event in read_events(storage, event_type=EventType.DATASET_DEFINITION):
        if event["origin"].get("dataset_name") == info.name:
            rules = event["details"][EventType.DATASET_DEFINITION]["expectations"]
            named |= {one["name"]: (one["constraint"], None) for one in rules}
    for written in read_all(folder)[0]:
        own = written.section == "datasets" and written.subject in (short, info.name)
        if own or (written.name in named and named[written.name][0] == written.constraint):
            named[written.name] = (written.constraint, Location(written.file, written.line))
    if rule in named:
        return rule, *named[rule]
    columns = {column["name"].lower() for column in info.columns}
    if rule.isidentifier() and rule.lower() not in columns and rule.lower() not in ("true", "false", "null"):
        todo = f'Rules of {info.name}: {", ".join(named) or "none"}. SQL text is taken too: lakelet rules test "amount > 0" {short}'
        raise LakeletError("RULE_UNKNOWN", f"{info.name} has no rule {rule!r}", nearest=nearest_names(rule, named), todo=todo)
    return None, rule, None
