"""The rows that a view must have: its query on the rows that its inputs have now, by Spark without Lakelet; and what differs.

Rows are compared as bags, both ways. Exact types are compared exactly, floats by 12 significant digits; −0.0 equals 0.0, NaN equals NaN.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Window
from pyspark.sql import functions as F

from tests.view_refreshes.views import View

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(microseconds=1)
Bag = Counter[tuple[Any, ...]]
Columns = list[tuple[str, str]]
RuleKey = tuple[str, str]
"""Dataset and rule."""


@dataclass(frozen=True)
class Answer:
    """What a view must have.

    Attributes:
        rows, columns: of its table.
        counts: rows that passed and failed, by dataset and rule: of the view's own rules and those of the temporary views that it reads.
        fails: whether a rule that fails the update is broken.
    """

    rows: Bag
    columns: Columns
    counts: Mapping[RuleKey, tuple[int, int]]
    fails: bool


class Oracle:
    """Answers for the views of one pipeline, in a session of its own."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark.newSession()
        self._counts: dict[str, dict[RuleKey, tuple[int, int]]] = {}

    def answers(self, inputs: Mapping[str, pa.Table], views: Sequence[View], stored: Mapping[str, Path], *, zone: str) -> dict[str, Answer]:
        """`inputs`: the rows of the tables that are not views. `stored`: the tables of the views, which other views read as they are."""
        self._spark.conf.set("spark.sql.session.timeZone", zone)
        for name, rows in inputs.items():
            self._spark.createDataFrame(rows).createOrReplaceTempView(name)
        self._counts = {}
        found = {}
        for view in views:
            frame = self._frame(view)
            if view.temporary:
                self._keep_temporary(view, frame)
                continue
            found[view.name] = self._answer(view, frame)
            if any(view.name in other.reads for other in views) and view.name in stored:
                rows = self._spark.createDataFrame(stored_rows(self._spark, stored[view.name]), frame.schema)
                rows.createOrReplaceTempView(view.name)
        return found

    def _frame(self, view: View) -> Any:
        if not view.python:
            return self._spark.sql(view.text)
        scope: dict[str, Any] = {"dlt": _Names(self._spark), "spark": self._spark, "F": F, "Window": Window}
        lines = "\n    ".join(view.text.splitlines())
        exec(f"def query():\n    {lines}", scope)
        return scope["query"]()

    def _answer(self, view: View, frame: Any) -> Answer:
        judged, marks = _judged(view, frame)
        table = judged.toArrow()
        counts = _counted(view, table)
        for read in view.reads:
            counts.update(self._counts.get(read, {}))
        fails = any(rule.action == "fail" and counts[view.name, rule.name][1] for rule in view.rules)
        for rule, mark in zip(view.rules, marks, strict=True):
            if rule.action == "drop":
                table = table.filter(table[mark])
        return Answer(bag(table.drop_columns(marks)), columns_of(frame.schema.jsonValue()), counts, fails)

    def _keep_temporary(self, view: View, frame: Any) -> None:
        judged, marks = _judged(view, frame)
        self._counts[view.name] = _counted(view, judged.toArrow()) if view.rules else {}
        for rule, mark in zip(view.rules, marks, strict=True):
            if rule.action == "drop":
                judged = judged.where(mark)
        judged.drop(*marks).createOrReplaceTempView(view.name)


@dataclass(frozen=True)
class _Names:
    """In the place of the module `dlt`, inside a view's function."""

    spark: Any

    def read(self, name: str) -> Any:
        return self.spark.table(name)


def _judged(view: View, frame: Any) -> tuple[Any, list[str]]:
    """The rows with a column for each rule: whether it holds."""
    marks = [f"__rule_{number}" for number in range(len(view.rules))]
    tests = [F.coalesce(F.expr(rule.constraint), F.lit(False)).alias(mark) for rule, mark in zip(view.rules, marks, strict=True)]
    return frame.select("*", *tests), marks


def _counted(view: View, judged: pa.Table) -> dict[RuleKey, tuple[int, int]]:
    found = {}
    for number, rule in enumerate(view.rules):
        passed = sum(judged[f"__rule_{number}"].to_pylist())
        found[view.name, rule.name] = (passed, judged.num_rows - passed)
    return found


# --- stored tables ------------------------------------------------------------------------------------------------------------------------


def stored_rows(spark: Any, path: Path) -> pa.Table:
    """The rows of a Delta table, read by delta-rs; by Spark where that one cannot."""
    table = DeltaTable(str(path))
    features = table.protocol().reader_features or ()
    if "deletionVectors" in features or "columnMapping" in features:
        return spark.read.format("delta").load(str(path)).toArrow()
    return table.to_pyarrow_table()


def stored_columns(path: Path) -> Columns:
    return columns_of(json.loads(DeltaTable(str(path)).schema().to_json()))


def columns_of(schema: Mapping[str, Any]) -> Columns:
    """Names and types of columns; whether they may be NULL does not count."""
    return [(field["name"], json.dumps(_type(field["type"]), sort_keys=True)) for field in schema["fields"]]


def _type(kind: Any) -> Any:
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": [[field["name"], _type(field["type"])] for field in kind["fields"]]}
    return {name: _type(value) for name, value in kind.items() if name in ("type", "elementType", "keyType", "valueType")}


# --- bags ---------------------------------------------------------------------------------------------------------------------------------


def bag(table: pa.Table) -> Bag:
    """The rows of a table, each with how often it is there."""
    columns = [[_canonical(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def _canonical(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", f"{value + 0.0:.12g}")
    if isinstance(value, datetime):
        return ("time", (value - EPOCH) // MICROSECOND) if value.tzinfo else value
    if isinstance(value, dict):
        return tuple((name, _canonical(one)) for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ("list", *map(_canonical, value))
    return value


@dataclass(frozen=True)
class RowDifference:
    """Rows that are missing from a stored table, and rows that it has and must not have; each with how often."""

    missing: Bag
    extra: Bag

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)

    def __str__(self) -> str:
        lines = []
        for sign, found in (("missing", self.missing), ("too much", self.extra)):
            shown = sorted(found.items(), key=repr)[:6]
            lines += [f"  {sign} ({sum(found.values())} rows):", *(f"    {count} × {row}" for row, count in shown)] if found else []
        return "\n".join(lines)


def difference(wanted: Bag, found: Bag) -> RowDifference:
    return RowDifference(wanted - found, found - wanted)


def wrong_rows(spark: Any, path: Path, answer: Answer) -> tuple[str, str]:
    """What is wrong with the table of a view, and where; empty for nothing."""
    if (columns := stored_columns(path)) != answer.columns:
        return "other columns", f"  wanted {answer.columns}\n  found  {columns}"
    differing = difference(answer.rows, bag(stored_rows(spark, path)))
    return ("other rows", str(differing)) if differing else ("", "")
