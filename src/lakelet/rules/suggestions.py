"""Rules that all or nearly all rows of a table meet today, from one profile of it: NULLs, ranges, small sets, unique columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from lakelet.base.names import all_quoted, quoted, quoted_if_needed, split_name
from lakelet.config.rule_files import read_all
from lakelet.files.paths import AnyPath
from lakelet.inspection.inspector import Note, TableInfo, run_sql
from lakelet.rules.predicates import literal
from lakelet.rules.trial import stored_table

LARGEST_SET = 20
"""Largest number of values that make a set; more are an open range."""
FEW = 0.01
"""Largest share of the rows that may break a suggested rule."""
_TRACKED = 2000
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class ColumnProfile:
    """One column.

    Attributes:
        known: how many values are not NULL.
        distinct: about how many of them differ.
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


def suggest(storage: AnyPath, folder: Path, table: str, *, note: Note = lambda text: None) -> list[Suggestion]:
    """Profile a stored table in one aggregation, and measure each suggestion in a second one. Raises UNKNOWN_TABLE.

    At most 1 % of the rows break a suggested rule. Rules that the files have already, word for word, are left out. `note`: see `Note`.
    """
    info = stored_table(storage, table)
    written = {_plain(rule.constraint) for rule in read_all(folder)[0]}
    every = _measured(storage, info, all_quoted(split_name(info.name)), info.name.rsplit(".", 1)[-1], note)
    return [one for one in every if _plain(one.constraint) not in written]


def suggest_for_new(storage: AnyPath, table: str, dataset: str, where: str | None) -> list[Suggestion]:
    """Suggest rules for a dataset that is to hold the rows of a stored table that meet the SQL condition `where`, None for all.

    All of these rows meet them, so that the new dataset loses none.

    Raises UNKNOWN_TABLE, and SQL_FAILED for a condition that fails analysis.
    """
    info = stored_table(storage, table)
    source = all_quoted(split_name(info.name))
    found = _measured(storage, info, f"(SELECT * FROM {source} WHERE\n{where}\n)" if where else source, dataset)
    return [one for one in found if one.dropped == 0]


def _plain(constraint: str) -> str:
    return " ".join(constraint.split()).lower()


def _measured(storage: AnyPath, info: TableInfo, source: str, dataset: str, note: Note = lambda text: None) -> list[Suggestion]:
    """The suggestions for `dataset` that at most a few rows of `source` break; `source` is a name or a query with the columns of `info`."""
    (found,) = run_sql(storage, _profile_query(info, source), note=note).rows
    every = list(suggestions(dataset, int(found["n"]), list(_profiles(info, found))))
    if not every:
        return []
    (measured,) = run_sql(storage, _measuring_query(every, source), note=note).rows
    judged = [replace(one, dropped=int(measured[f"s{i}"])) for i, one in enumerate(every)]
    return [one for one in judged if one.dropped <= (0 if one.action == "checks" else FEW * one.rows)]  # profiles are approximate


def _simple(type_: str) -> bool:
    return not type_.startswith(("array", "map", "struct", "binary", "variant", "interval"))


def _profile_query(info: TableInfo, source: str) -> str:
    parts = ["count(*) AS n"]
    for i, column in enumerate(info.columns):
        name, kind = quoted(column["name"]), column["type"]
        parts.append(f"count({name}) AS k{i}")
        if not _simple(kind):
            continue
        parts.append(f"approx_count_distinct({name}) AS d{i}")
        if kind.split("(")[0] in (*_NUMBERS, "date", "timestamp", "timestamp_ntz"):
            parts.append(f"CAST(min({name}) AS STRING) AS a{i}, CAST(max({name}) AS STRING) AS b{i}")
            parts += [f"count_if({name} < 0) AS m{i}"] if kind.split("(")[0] in _NUMBERS else []
        elif kind == "string":
            parts.append(f"approx_top_k({name}, {LARGEST_SET + 1}, {_TRACKED}) AS t{i}")
    return f"SELECT {', '.join(parts)} FROM {source}"


def _profiles(info: TableInfo, found: Mapping[str, Any]) -> Iterator[ColumnProfile]:
    for i, column in enumerate(info.columns):
        known, top = int(found[f"k{i}"]), found.get(f"t{i}") or ()
        counted = {one["item"]: int(one["count"]) for one in top if one["item"] is not None}
        few = 0 < len(counted) <= LARGEST_SET and sum(counted.values()) == known
        values = tuple(sorted(counted)) if few else None
        common = {value: n for value, n in counted.items() if n > FEW * known}
        others = known - sum(common.values())
        nearly_all = common and len(common) <= LARGEST_SET and 0 < others <= FEW * known
        yield ColumnProfile(
            column["name"],
            column["type"],
            known,
            int(found.get(f"d{i}") or 0),
            found.get(f"a{i}"),
            found.get(f"b{i}"),
            values,
            tuple(sorted(common)) if nearly_all else None,
            others if nearly_all else 0,
            int(found.get(f"m{i}") or 0),
        )


def suggestions(dataset: str, rows: int, columns: Sequence[ColumnProfile]) -> Iterator[Suggestion]:
    """What the profile of a table suggests, column by column; nothing for an empty table."""
    for column in columns:
        if not rows or not column.known or column.name.startswith("_"):
            continue
        name, coverage = quoted_if_needed(column.name), column.known / rows
        if rows - column.known <= FEW * rows:
            missing = rows - column.known
            yield Suggestion(dataset, "drop", f"has_{column.name}", f"{name} IS NOT NULL", column.name, rows, missing, 1.0)
        unique = column.distinct >= 0.9 * column.known and column.known > 1
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


def _measuring_query(every: Sequence[Suggestion], source: str) -> str:
    parts = []
    for i, one in enumerate(every):
        name = quoted(one.column)
        broken = (
            f"count({name}) - count(DISTINCT {name})" if one.action == "checks" else f"count_if(NOT coalesce(({one.constraint}), false))"
        )
        parts.append(f"{broken} AS s{i}")
    return f"SELECT {', '.join(parts)} FROM {source}"


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
