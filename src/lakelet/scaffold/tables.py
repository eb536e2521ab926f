"""Texts of a new table: its source file, its rules, its test with example values. Pure."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import PurePosixPath

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import quoted_if_needed
from lakelet.scaffold.files import NewFile, invalid_name

LAYERS = ("bronze", "silver", "gold")
_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")
_WIDTH = 140
"""Longest line of Python, in characters."""
_DECORATORS = {"warn": "expect_all", "drop": "expect_all_or_drop", "fail": "expect_all_or_fail"}


@dataclass(frozen=True)
class NewName:
    """Layer and name of a new table."""

    layer: str
    name: str


def table_name(text: str) -> NewName:
    """Return layer and name of a text such as `silver.refunds`. Raises NAME_INVALID."""
    layer, dot, name = text.rpartition(".")
    if not dot:
        todo = f"Put one of {', '.join(LAYERS)} in front: silver.{text}"
        raise LakeletError("NAME_INVALID", f"{text!r} names no layer", todo=todo)
    if layer not in LAYERS:
        what = f"{layer!r} is not a layer; layers are {', '.join(LAYERS)}"
        raise LakeletError("NAME_INVALID", what, nearest=nearest_names(layer, LAYERS), todo=f"For example: silver.{name}")
    if not _TABLE_NAME.fullmatch(name) or keyword.iskeyword(name):
        proposal = re.sub(r"\W+", "_", name.lower(), flags=re.ASCII).strip("_0123456789")
        raise invalid_name(name, "a table", "lower-case letters, digits and _, first a letter, and not a Python keyword", proposal)
    return NewName(layer, name)


class Language(Enum):
    """Language of the new table."""

    PYTHON = "python"
    SQL = "sql"


@dataclass(frozen=True)
class SourceTable:
    """A stored table that the new one reads.

    Attributes:
        name: as the pipeline's code reads it.
        full_name: with catalog and schema.
        layer: the layer whose folder has its code; "" where no code of the project declares it.
        streamable: whether a stream may read it.
        columns: name and Spark type of each.
    """

    name: str
    full_name: str
    layer: str
    streamable: bool
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SuggestedRule:
    """A row rule. `action`: warn or drop."""

    action: str
    name: str
    constraint: str


@dataclass(frozen=True)
class NewTable:
    """A table to write.

    Attributes:
        where: SQL condition on the source's rows; None for all of them.
        rules: rules that the source's rows suggest.
        rules_text: the same rules as the text of a rule file.
        folder: folder of the table's code, relative to the project's.
    """

    name: NewName
    source: SourceTable
    where: str | None
    language: Language
    rules: tuple[SuggestedRule, ...]
    rules_text: str
    folder: PurePosixPath

    @property
    def streams(self) -> bool:
        """Whether the table is a streaming table; gold tables, and readers of tables that no stream can read, are materialized views."""
        return self.source.streamable and self.name.layer != "gold"

    @property
    def columns(self) -> tuple[str, ...]:
        """The source's columns without those that Auto Loader adds."""
        return tuple(name for name, _ in self.source.columns if name != "_rescued_data")

    @property
    def file(self) -> PurePosixPath:
        """Its source file."""
        return self.folder / f"{self.name.name}.{'py' if self.language is Language.PYTHON else 'sql'}"


def named_source(text: str, tables: Sequence[SourceTable]) -> SourceTable:
    """Return the table that `text` names: by name, `layer.name`, or with schema and catalog. Raises UNKNOWN_TABLE with the nearest."""
    wanted = text.lower()
    for table in tables:
        parts = table.full_name.lower().split(".")
        layers = (table.layer,) if table.layer else LAYERS  # where no code determines the layer, any matches
        spellings = {".".join(parts[i:]) for i in range(len(parts))} | {f"{layer}.{parts[-1]}" for layer in layers}
        if wanted in spellings | {table.name.lower()}:
            return table
    names = [f"{table.layer}.{table.name}" if table.layer else table.name for table in tables]
    raise LakeletError(
        "UNKNOWN_TABLE",
        f"the storage holds no table {text}",
        nearest=nearest_names(text, names),
        todo="List all: lakelet show" if tables else "Fill the tables first: lakelet run",
    )


def table_files(new: NewTable) -> list[NewFile]:
    """Return the files of the table: its code, its rules if the code reads any, its test."""
    name = new.name.name
    files = [NewFile(new.file, _python(new) if new.language is Language.PYTHON else _sql(new))]
    if new.rules_text and (new.language is Language.PYTHON or "checks:" in new.rules_text):
        files.append(NewFile.of(f"expectations/{name}.yml", _rules(new)))
    return [*files, NewFile.of(f"tests/test_{name}.py", _test(new))]


def _about(new: NewTable) -> str:
    return f"{new.name.layer.capitalize()}: {new.name.name}, from {new.source.name}"


def _python(new: NewTable) -> str:
    name, actions = new.name.name, _DECORATORS if new.rules else ()  # all of them: sections may be added later
    decorators = [f'@dlt.table(comment={python_text(_sentence(new))}, table_properties={{"quality": "{new.name.layer}"}})']
    decorators += [f'@dlt.{_DECORATORS[action]}(rules("{name}", "{action}"))' for action in actions]
    modules = ["import dlt", *(["", "from expectations import rules"] if actions else [])]
    return "\n".join([f'"""{_about(new)}."""', "", *modules, "", "", *decorators, f"def {name}():", *_query(new), ""])


def _query(new: NewTable) -> list[str]:
    """Return the lines of the function's body: one line if it fits, else a step per line."""
    steps = [f"{'spark.readStream' if new.streams else 'spark.read'}.table({python_text(new.source.name)})"]
    steps += [f".where({python_text(new.where)})"] if new.where else []
    columns = [python_text(quoted_if_needed(column)) for column in new.columns]
    select = f".select({', '.join(columns)})"
    one = f"    return {''.join(steps)}{select}"
    if len(one) <= _WIDTH:
        return [one]
    if len(steps) == 1:
        return [f"    return {steps[0]}.select(", *(f"        {column}," for column in columns), "    )"]
    return ["    return (", *(f"        {step}" for step in [*steps, *_list(".select(", columns, ")", 8)]), "    )"]


def _list(start: str, items: Sequence[str], end: str, indent: int) -> list[str]:
    """A list on one line if it fits after `indent` blanks, else with a line per item."""
    one = f"{start}{', '.join(items)}{end}"
    return [one] if indent + len(one) <= _WIDTH else [start, *(f"    {item}," for item in items), end]


def _sql(new: NewTable) -> str:
    kind = "STREAMING TABLE" if new.streams else "MATERIALIZED VIEW"
    constraints = [
        f"  CONSTRAINT {quoted_if_needed(rule.name)} EXPECT ({rule.constraint}){' ON VIOLATION DROP ROW' if rule.action == 'drop' else ''}"
        for rule in new.rules
    ]
    head = f"CREATE OR REFRESH {kind} {new.name.name}"
    listed = [f"{head} (", ",\n".join(constraints), ")"] if constraints else [head]
    source = f"STREAM({new.source.name})" if new.streams else new.source.name
    columns = ", ".join(map(quoted_if_needed, new.columns))
    return "\n".join(
        [
            f"-- {_about(new)}.",
            *listed,
            f"COMMENT '{_sql_text(_sentence(new))}'",
            f"TBLPROPERTIES ('quality' = '{new.name.layer}')",
            f"AS SELECT {columns}",
            f"FROM {source}" + (f"\nWHERE {new.where}" if new.where else "") + ";",
            "",
        ]
    )


def _rules(new: NewTable) -> str:
    head = f"# Suggested by the rows of {new.source.name} that there are today: keep what is true of tomorrow's too."
    return f"{head}\n{new.rules_text.rstrip()}\n"


def _test(new: NewTable) -> str:
    name, source = new.name.name, new.source.name
    columns = [f"{quoted_if_needed(column)} {kind}" for column, kind in new.source.columns]
    declared = _list("COLUMNS = ", [python_text(", ".join(columns))], "", 0)
    if len(declared) > 1:
        declared = [
            "COLUMNS = (",
            *(f"    {python_text(f'{column}, ')}" for column in columns[:-1]),
            f"    {python_text(columns[-1])}",
            ")",
        ]
    expected = _list(f"    assert {name}.columns == [", [python_text(column) for column in new.columns], "]", 0)
    values = [example(column, kind, [rule.constraint for rule in new.rules]) for column, kind in new.source.columns]
    needed = imports(values)
    if new.where is None:
        counted = [f"    assert {name}.count() == len(ROWS)"]
    else:
        counted = ["    # change me: have rows that meet the condition and rows that do not, and assert how many are left"]
    return "\n".join(
        [
            f'"""{name}, on rows of {source} that can be checked by hand."""',
            "",
            *needed,
            *([""] if needed else []),
            *declared,
            f"# change me: rows of {source} that say what the table is about",
            "ROWS = [",
            *_tuple(values),
            "]",
            "",
            "",
            f"def test_{name}_has_its_columns_and_keeps_its_rules(spark, load_pipeline):",
            "    rows = spark.createDataFrame(ROWS, COLUMNS)",
            f'    p = load_pipeline("{new.file}", inputs={{{python_text(source)}: rows}})',
            f'    {name} = p["{name}"]()',
            *(line if line.startswith("    assert") else f"    {line}" for line in expected),
            *counted,
            f'    for rule in p.expectations["{name}"].values():',
            f'        assert {name}.where(f"NOT coalesce(({{rule.text}}), false)").count() == 0, rule.name',
            "",
        ]
    )


def _tuple(values: Sequence[str]) -> list[str]:
    """Return the lines of a tuple within a list: one line if it fits, else a line per value."""
    one = f"    ({', '.join(values)}{',' if len(values) == 1 else ''}),"
    return [one] if len(one) <= _WIDTH else ["    (", *(f"        {value}," for value in values), "    ),"]


def _sentence(new: NewTable) -> str:
    condition = f" where {' '.join(new.where.split())}" if new.where and len(new.where) < 60 else ""
    return f"Rows of {new.source.name}{condition}."


def _sql_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


_PLAIN = {
    **dict.fromkeys(("string", "char", "varchar"), '"a"'),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "1"),
    **dict.fromkeys(("float", "double"), "1.0"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "datetime(2026, 1, 1, 12)"),
    "boolean": "True",
    "date": "date(2026, 1, 1)",
    "binary": 'b"a"',
    "array": "[]",
    "map": "{}",
}
_LITERAL = re.compile(r"(?:BETWEEN |>= |>= DATE |IN \()(?:'(?P<text>(?:[^'\\]|\\.)*)'|(?P<number>-?[\d.]+(?:E-?\d+)?))")
"""The first value that a suggested rule names, after the column."""


def example(name: str, kind: str, constraints: Iterable[str]) -> str:
    """Return a value of a column as Python writes it. `kind`: its Spark type; `constraints`: the suggested rules of the table."""
    if name == "_rescued_data":
        return "None"
    column = quoted_if_needed(name)
    for constraint in constraints:
        rest = constraint.removeprefix(f"{column} IS NULL OR (")
        found = _LITERAL.match(rest.removeprefix(f"{column} ")) if rest.startswith(f"{column} ") else None
        if found:
            return _typed(kind, re.sub(r"\\(.)", r"\1", found["text"]) if found["number"] is None else found["number"])
    return placeholder(kind)


def placeholder(kind: str) -> str:
    """Return a value of a Spark type as Python writes it; None for types that have no simple one."""
    base = re.split("[<(]", kind, maxsplit=1)[0]
    if base == "struct":
        fields = [placeholder(field) for field in _field_types(kind[len("struct<") : -1])]
        return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
    if base == "decimal":
        precision, scale = map(int, re.findall(r"\d+", kind))
        return f"Decimal({1 if precision > scale else 0})"
    return _PLAIN.get(base, "None")


def imports(values: Iterable[str]) -> list[str]:
    """Return the import statements that the values need."""
    text = " ".join(values)
    dates = [name for name in ("date", "datetime") if re.search(rf"\b{name}\(", text)]
    return [
        *([f"from datetime import {', '.join(dates)}"] if dates else []),
        *(["from decimal import Decimal"] if "Decimal(" in text else []),
    ]


def _typed(kind: str, text: str) -> str:
    """The value that a rule names, in the type of its column."""
    if kind == "date":
        return repr(date.fromisoformat(text)).removeprefix("datetime.")
    if kind.startswith("timestamp"):
        day = date.fromisoformat(text)
        return f"datetime({day.year}, {day.month}, {day.day}, 12)"
    if kind.startswith("decimal"):
        return f"Decimal({text})" if text.lstrip("-").isdecimal() else f'Decimal("{text}")'
    if kind in ("float", "double"):
        return repr(float(text))
    return python_text(text) if kind.startswith(("string", "char", "varchar")) else text


def python_text(text: str) -> str:
    """Return a text as Python writes it, in double quotes where it can be."""
    return repr(text) if '"' in text or "\\" in text else json.dumps(text, ensure_ascii=False)


def _field_types(text: str) -> Iterator[str]:
    """The types of the fields between the angle brackets of a struct."""
    depth, begin, quote = 0, 0, False
    for at, character in enumerate(f"{text},"):
        quote ^= character == "`"
        depth += not quote and (character in "<(") - (character in ">)")
        if character == "," and depth == 0 and not quote and at > begin:
            field = text[begin:at]
            yield (field.partition("`:")[2] if field.startswith("`") else field.partition(":")[2]).strip()
            begin = at + 1
