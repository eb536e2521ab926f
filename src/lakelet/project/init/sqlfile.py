"""Reads the SQL of a source: its statements by the pipeline's own front end, their names by `sqltexts`. No Spark."""

from __future__ import annotations

from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.language.model import Kind
from lakelet.language.notebook import Source
from lakelet.language.sql.grammar import is_setting, statement
from lakelet.language.sql.values import CreateDataset, CreateFlow, Fragment, Name, Remark, Setting, Use
from lakelet.language.sql_text.spark_sql import parameters
from lakelet.language.sql_text.statements import Cell, CellText, StatementText, interpolated, statements
from lakelet.language.sql_text.tokens import OpenToken
from lakelet.project.init.findings import (
    CodeLocation,
    DatasetFound,
    FileReading,
    Holes,
    ParameterFound,
    RefusedFeature,
    StrictExpression,
    TableRead,
)
from lakelet.project.init.paths import path_found
from lakelet.project.init.sqltexts import names_of
from lakelet.project.init.strict import strict_texts

_REFUSALS = ("NOT_SUPPORTED_YET", "PROTECTION_REFUSED", "SQL_STATEMENT_REFUSED", "SQL_SYNTAX")


def read_sql(source: Source, reading: FileReading, holes: Holes) -> None:
    """Add to `reading` what the SQL of the source says."""
    for cell in source.own():
        text = CellText(Cell(cell.text, cell.line, cell.number), reading.file)
        reader = _Statements(reading, holes, text)
        try:
            for begin, end in statements(text):
                reader.read(begin, end)
        except LakeletError as error:
            reader.refuse(error)
    if reading.scripts and (not reading.stored or reading.scripts > reading.stored):
        reading.declares = False
        reading.aside = "most of its statements declare nothing: a script"


class _Statements:
    def __init__(self, reading: FileReading, holes: Holes, text: CellText) -> None:
        self.reading, self.holes, self.text = reading, holes, text
        self.settings: dict[str, str] = {}
        self.used: tuple[str, ...] = ()

    def read(self, begin: int, end: int) -> None:
        try:
            text = interpolated(self.text, begin, end, self._value)
            if not is_setting(text):
                text = text.edited(*self._with_parameters(text))
            remarks: list[Remark] = []
            self._take(statement(text, remarks), text)
        except LakeletError as error:
            self.refuse(error)
        except RecursionError:
            location = self._location(self.text.location(begin))
            self.reading.refused.append(RefusedFeature("SQL_SYNTAX", "the statement is nested too deeply", location))

    def refuse(self, error: LakeletError) -> None:
        """Keep an error, unless a parameter with an unknown value may cause it."""
        unsure = error.code == "SQL_SYNTAX" and self.holes.first_in(error.what) is not None
        if error.code in _REFUSALS and error.where is not None and not unsure:
            declares_nothing = error.code == "SQL_STATEMENT_REFUSED"
            self.reading.scripts += declares_nothing
            self.reading.stored += not declares_nothing
            self.reading.refused.append(RefusedFeature(error.code, self.holes.shown(error.what), self._location(error.where)))

    def _value(self, key: str, where: Location, in_list: bool = False) -> str:
        if key in self.settings:
            return self.settings[key]
        if key not in self.reading.given:
            self.reading.parameters.append(ParameterFound(key, None, self._location(where)))
        return self.holes.token(key)

    def _with_parameters(self, text: StatementText) -> tuple[str, tuple[tuple[int, int], ...]]:
        try:
            return parameters(text.text, lambda key, at: self._value(key, text.location(at)))
        except OpenToken:
            return text.text, ()

    def _take(self, found: object, text: StatementText) -> None:
        reading = self.reading
        if isinstance(found, Setting):
            self.settings[found.key] = found.value
            reading.given.add(found.key)
        elif isinstance(found, Use):
            self.used = tuple(part for part in (found.catalog, found.schema) if part)
        elif isinstance(found, CreateFlow):
            reading.declares = True
            reading.stored += 1
            self._names(found.query or (found.changes.source if found.changes else None), text, None)
        elif isinstance(found, CreateDataset):
            reading.declares = True
            kind = found.kind.value
            reading.stored += found.kind is not Kind.VIEW or found.view == "live"
            name = self._full(found.name)
            computed = self.holes.first_in(name.split(".")[-1]) is not None
            reading.datasets.append(DatasetFound(self.holes.shown(name), kind, self._location(found.where), computed))
            self._names(found.query or (found.changes.source if found.changes else None), text, self.holes.shown(name))

    def _full(self, name: Name) -> str:
        single = len(name.parts) == 1 and self.used
        parts = (*self.used, *name.parts) if single else name.parts
        return ".".join(parts)

    def _names(self, query: Fragment | None, text: StatementText, within: str | None) -> None:
        if query is None:
            return
        plain = query.text.lstrip().upper().startswith(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
        lead = "" if plain else "FROM "
        found = names_of(lead + query.text)

        def location(start: int) -> CodeLocation:
            return self._location(text.location(query.start + max(0, start - len(lead))))

        for table in found.tables:
            bare = "." not in table.text
            name = ".".join((*self.used, table.text)) if bare and self.used else table.text
            if self.holes.first_in(table.text) is None or len(table.text.split(".")) > 1:
                self.reading.tables.append(TableRead(self.holes.shown(name), location(table.start), within))
        self.reading.paths += [path_found(path.text, self.holes, location(path.start), path.format) for path in found.paths]
        self.reading.refused += [hosted(one.text, location(one.start)) for one in found.hosted]
        strict = [StrictExpression(self.holes.shown(one.text), one.format, location(one.start)) for one in strict_texts(lead + query.text)]
        self.reading.strict += strict

    def _location(self, where: Location) -> CodeLocation:
        return CodeLocation(self.reading.file, where.line, where.cell)


def hosted(function: str, location: CodeLocation) -> RefusedFeature:
    """A function that only Databricks has."""
    return RefusedFeature(
        "NOT_SUPPORTED_YET", f"the function {function} belongs to Databricks; register one of this name to run here", location
    )


def relative(path: Path, folder: Path) -> str:
    """The path as the report names it."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
