"""Texts of a new table: its source file, its rules, its test. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import quoted_if_needed
from lakelet.scaffold.examples import example, imports, python_text
from lakelet.scaffold.names import LAYERS, NewName
from lakelet.scaffold.writing import NewFile

_WIDTH = 140
"""Longest line of Python, in characters."""
_DECORATORS = {"warn": "expect_all", "drop": "expect_all_or_drop", "fail": "expect_all_or_fail"}


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
