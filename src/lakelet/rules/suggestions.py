"""Rules that all or nearly all rows of a table meet today, from one profile of it: NULLs, ranges, small sets, unique columns.

DuckDB makes the profile where it answers the queries as Spark does, else Spark. Both give the same suggestions: numbers of distinct values
that decide one are exact, and numbers become text here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lakelet.base.errors import LakeletError
from lakelet.base.names import all_quoted, quoted, quoted_if_needed, split_name
from lakelet.config.rule_files import read_all
from lakelet.files.paths import AnyPath
from lakelet.inspection.inspector import Note, TableInfo, first_note, run_sql
from lakelet.rules.predicates import literal
from lakelet.rules.trial import stored_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGEST_SET = 20
"""Largest number of values that make a set; more are an open range."""
FEW = 0.01
"""Largest share of the rows that may break a suggested rule."""
_UNIQUE = 0.9
"""Share of distinct values from which a column's values may be meant to be unique."""
_LEAST_SHARE, _MOST_SHARE = 0.75, 1.3
"""What Spark estimates of a number of distinct values is between these shares of it; an estimate is off by 5 % in two of three cases."""
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class ColumnProfile:
    """One column.

    Attributes:
        known: how many values are not NULL.
        distinct: how many of them differ, if the type can be unique; about how many, where that decides nothing.
        least, greatest: of numbers and dates.
        values: all values, where they are few.
        common: the values that nearly all rows have, where they are few and others occur.
        others: about how many values are none of `common`.
        negative: how many numbers are below zero.
    """

    name: str
    type: str
    known: int
    distinct: int
    least: str | None = None
    greatest: str | None = None
    values: tuple[str, ...] | None = None
    common: tuple[str, ...] | None = None
    others: int = 0
    negative: int = 0

    @property
    def is_number(self) -> bool:
        return self.type.split("(")[0] in _NUMBERS


@dataclass(frozen=True)
class Suggestion:
    """A rule, or for action `checks` a table check on the column.

    Attributes:
        dropped: how many rows of today it would have dropped, or of a rule that only warns, how many break it; none for a table check.
        coverage: the share of rows with a value that it says something about, 0 to 1.
    """

    dataset: str
    action: str
    rule: str
    constraint: str
    column: str
    rows: int
    dropped: int
    coverage: float

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "coverage": round(self.coverage, 4)}


def suggest(
    storage: AnyPath, folder: Path, table: str, *, note: Note = lambda text: None, spark: SparkSession | None = None
) -> list[Suggestion]:
    """Profile a stored table, and measure each suggestion. Raises UNKNOWN_TABLE.

    At most 1 % of the rows break a suggested rule. Rules that the files have already, word for word, are left out. `note`: see
    `Note`. `spark`: answers all queries, if it is given.
    """
    info = stored_table(storage, table)
    written = {_plain(rule.constraint) for rule in read_all(folder)[0]}
    every = _measured(storage, info, all_quoted(split_name(info.name)), info.name.rsplit(".", 1)[-1], note, spark)
    return [one for one in every if _plain(one.constraint) not in written]


def suggest_for_new(
    storage: AnyPath, table: str, dataset: str, where: str | None, *, note: Note = lambda text: None, spark: SparkSession | None = None
) -> list[Suggestion]:
    """Suggest rules for a dataset that is to hold the rows of a stored table that meet the SQL condition `where`, None for all.

    All of these rows meet them, so that the new dataset loses none. `note`: see `Note`. `spark`: answers all queries, if it is given.

    Raises UNKNOWN_TABLE, UNKNOWN_COLUMN, and SQL_FAILED for a condition that fails analysis.
    """
    info = stored_table(storage, table)
    source = all_quoted(split_name(info.name))
    found = _measured(storage, info, f"(SELECT * FROM {source} WHERE\n{where}\n)" if where else source, dataset, note, spark)
    return [one for one in found if one.dropped == 0]


def _plain(constraint: str) -> str:
    return " ".join(constraint.split()).lower()


def _measured(storage: AnyPath, info: TableInfo, source: str, dataset: str, note: Note, spark: SparkSession | None) -> list[Suggestion]:
    """The suggestions for `dataset` that at most a few rows of `source` break; `source` is a name or a query with the columns of `info`."""
    rows = _Rows(storage, source, first_note(note), spark)
    counts = _counts(info, rows)
    every = list(suggestions(dataset, counts["n"], [_profile(rows, at, column, counts) for at, column in enumerate(info.columns)]))
    if not every:
        return []
    measured = rows.one([_measuring(at, one) for at, one in enumerate(every)])
    judged = [replace(one, dropped=int(measured[f"s{at}"])) for at, one in enumerate(every)]
    return [one for one in judged if one.dropped <= (0 if one.action == "checks" else FEW * one.rows)]


@dataclass(frozen=True)
class _Rows:
    """The rows to profile. `source`: a table, or a query in parentheses. `spark` answers everything, if it is given."""

    storage: AnyPath
    source: str
    note: Note
    spark: SparkSession | None

    def one(self, items: Sequence[str], for_spark: Sequence[str] | None = None) -> Mapping[str, Any]:
        """The one row of an aggregation. `for_spark`: its items where Spark makes it."""
        (found,) = self._run(self._text(items), self._text(for_spark) if for_spark else None)
        return found

    def most_frequent(self, column: str) -> Mapping[str, int]:
        """The most frequent values of a column of texts, one more than make a set, and how often each occurs."""
        name = quoted(column)
        text = f"SELECT {name} AS item, count(*) AS times FROM {self.source} WHERE {name} IS NOT NULL GROUP BY {name}"
        return {row["item"]: int(row["times"]) for row in self._run(f"{text} ORDER BY times DESC LIMIT {LARGEST_SET + 1}")}

    def _text(self, items: Sequence[str]) -> str:
        return f"SELECT {', '.join(items)} FROM {self.source}"

    def _run(self, text: str, for_spark: str | None = None) -> Iterator[dict[str, Any]]:
        try:
            return run_sql(self.storage, text, spark=self.spark, note=self.note, for_spark=for_spark).rows
        except LakeletError as problem:
            problem.where = None  # the user has not written the query
            raise


def _can_be_unique(type_: str) -> bool:
    return not type_.startswith(("array", "map", "struct", "binary", "variant", "interval", "float", "double", "timestamp"))


def _counts(info: TableInfo, rows: _Rows) -> Mapping[str, Any]:
    """By column: k0, k1, … values that are not NULL, d… distinct ones, a… least, b… greatest, m… negative ones; `n`: all rows."""
    plain, exact, estimated = ["count(*) AS n"], [], []
    for at, column in enumerate(info.columns):
        name, kind = quoted(column["name"]), column["type"].split("(")[0]
        plain.append(f"count({name}) AS k{at}")
        if _can_be_unique(kind):
            exact.append(f"count(DISTINCT {name}) AS d{at}")
            estimated.append(f"approx_count_distinct({name}) AS d{at}")
        if kind in ("date", "timestamp", "timestamp_ntz"):
            plain.append(f"CAST(min({name}) AS STRING) AS a{at}, CAST(max({name}) AS STRING) AS b{at}")
        elif kind in _NUMBERS:
            least, greatest = (f"CAST({f}({name}) AS DOUBLE)" if kind == "float" else f"{f}({name})" for f in ("min", "max"))
            plain.append(f"{least} AS a{at}, {greatest} AS b{at}, count_if({name} < 0) AS m{at}")
    found = dict(rows.one([*plain, *exact], [*plain, *estimated, "true AS estimated"]))
    if found.pop("estimated", False):
        undecided = [item for item in exact if _is_undecided(info, found, int(item.rpartition(" AS d")[2]))]
        found |= rows.one(undecided) if undecided else {}
    return found


def _is_undecided(info: TableInfo, found: Mapping[str, Any], at: int) -> bool:
    """Whether an estimated number of distinct values may be one that makes a suggestion."""
    known, about = int(found[f"k{at}"]), int(found[f"d{at}"])
    few = info.columns[at]["type"] == "string" and about <= _MOST_SHARE * _most_distinct(known)
    return few or about >= _LEAST_SHARE * _UNIQUE * known


def _most_distinct(known: int) -> float:
    """Of how many distinct values nearly all rows can have one of a set."""
    return LARGEST_SET + FEW * known


def _profile(rows: _Rows, at: int, column: Mapping[str, str], found: Mapping[str, Any]) -> ColumnProfile:
    known, distinct = int(found[f"k{at}"]), int(found.get(f"d{at}") or 0)
    least, greatest = (_number_text(found.get(f"{key}{at}")) for key in ("a", "b"))
    negative = int(found.get(f"m{at}") or 0)
    profile = ColumnProfile(column["name"], column["type"], known, distinct, least, greatest, negative=negative)
    if column["type"] != "string" or not known or distinct > _most_distinct(known):
        return profile
    counted = rows.most_frequent(column["name"])
    common = {value: times for value, times in counted.items() if times > FEW * known}
    others = known - sum(common.values())
    nearly_all = common and len(common) <= LARGEST_SET and 0 < others <= FEW * known
    return replace(
        profile,
        values=tuple(sorted(counted)) if len(counted) <= LARGEST_SET else None,
        common=tuple(sorted(common)) if nearly_all else None,
        others=others if nearly_all else 0,
    )


def _number_text(value: Any) -> str | None:
    """A number as Spark's SQL writes it; texts as they are."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, float) or not value or 1e-3 <= abs(value) < 1e7:
        return str(value + 0)  # both zeros are 0.0
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{int(exponent) + len(digits) - 1}"


def suggestions(dataset: str, rows: int, columns: Sequence[ColumnProfile]) -> Iterator[Suggestion]:
    """What the profile of a table suggests, column by column; nothing for an empty table."""
    for column in columns:
        if not rows or not column.known or column.name.startswith("_"):
            continue
        name, coverage = quoted_if_needed(column.name), column.known / rows
        if rows - column.known <= FEW * rows:
            missing = rows - column.known
            yield Suggestion(dataset, "drop", f"has_{column.name}", f"{name} IS NOT NULL", column.name, rows, missing, 1.0)
        unique = column.distinct >= _UNIQUE * column.known and column.known > 1
        for rule, condition, broken in _conditions(name, column, rows, unique):
            text = condition if column.known == rows else f"{name} IS NULL OR ({condition})"
            yield Suggestion(dataset, "warn", rule, text, column.name, rows, broken, coverage)
        if unique and not column.type.startswith(("float", "double", "timestamp")):
            yield Suggestion(dataset, "checks", f"{column.name}_unique", column.name, column.name, rows, 0, coverage)


def _conditions(name: str, column: ColumnProfile, rows: int, unique: bool) -> Iterator[tuple[str, str, int]]:
    """Names and texts of the conditions on the values of a column, and how many rows break each."""
    numbered = unique and column.type in ("smallint", "int", "bigint")  # such numbers go on
    every = None if numbered else _range(name, column) or _set(name, column, rows)
    if every:
        yield f"{column.name}_{_word(column)}", every, 0
    if 0 < column.negative <= FEW * rows:
        yield f"{column.name}_not_negative", f"{name} >= 0", column.negative
    if column.common is not None:
        yield f"{column.name}_common", _in(name, column.common), column.others


def _word(column: ColumnProfile) -> str:
    return "known" if column.values is not None else "in_range"


def _range(name: str, column: ColumnProfile) -> str | None:
    """From zero where nothing is negative; up to the greatest value. Of dates only the beginning: they go on."""
    if column.least is None or column.greatest is None:
        return None
    if column.is_number:
        if column.least.lower() in ("nan", "infinity", "-infinity") or column.greatest.lower() in ("nan", "infinity"):
            return None
        least = "0" if float(column.least) >= 0 else column.least
        return f"{name} BETWEEN {least} AND {column.greatest}"
    first = date.fromisoformat(column.least[:10]) if len(column.least) >= 10 and column.least[4] == "-" else None
    return f"{name} >= DATE '{first.isoformat()}'" if first is not None else None


def _set(name: str, column: ColumnProfile, rows: int) -> str | None:
    """A set of values, of which each came several times."""
    if column.values is None or rows < 2 * len(column.values):
        return None
    return _in(name, column.values)


def _in(name: str, values: Sequence[str]) -> str:
    return f"{name} IN ({', '.join(literal(value) for value in values)})"


def _measuring(at: int, one: Suggestion) -> str:
    """The item of a query that counts the rows which break a suggestion."""
    name = quoted(one.column)
    if one.action == "checks":
        return f"count({name}) - count(DISTINCT {name}) AS s{at}"
    return f"count_if(NOT coalesce(({one.constraint}), false)) AS s{at}"


def suggested_yaml(found: Sequence[Suggestion]) -> str:
    """A rule file with the suggestions; a comment after each says what it would have dropped today, and what it covers."""
    if not found:
        return ""
    lines = ["datasets:", f"  {_scalar(found[0].dataset)}:"]
    for action in ("drop", "warn", "checks"):
        chosen = [one for one in found if one.action == action]
        lines += [f"    {action}:"] if chosen else []
        for one in chosen:
            value = f"{{unique: {_scalar(one.column)}}}" if action == "checks" else _scalar(one.constraint)
            covered = "" if one.coverage == 1 else f"; {one.coverage:.1%} of the rows have a value"
            broken = "dropped" if action == "drop" else "break it"
            today = f"no duplicates in {one.rows:,} rows" if action == "checks" else f"{one.dropped:,} of {one.rows:,} rows {broken}"
            lines.append(f"      {_scalar(one.rule)}: {value}  # today {today}{covered}")
    return "\n".join(lines)


def _scalar(text: str) -> str:
    dumped: str = yaml.safe_dump(text, width=100_000, allow_unicode=True)
    return dumped.removesuffix("...\n").strip()
