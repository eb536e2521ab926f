"""The error about a table that nobody knows, as code that reads tables "if they are there" expects it."""

from __future__ import annotations

from pyspark.errors import AnalysisException

from lakelet.base.errors import DefinitionError, Location

_CONDITION = "TABLE_OR_VIEW_NOT_FOUND"


class MissingTable(DefinitionError, AnalysisException):
    """A table that is not there, which code that asked for it can catch as Spark's error (LG-30). `name`: the table, as it was asked for.

    `kind`: its code, UNKNOWN_DATASET, or CYCLE for the table that a function itself writes, before its first update (LG-32).
    `others`: errors about further tables of the same query that nobody knows.
    """

    others: tuple[MissingTable, ...] = ()

    def __init__(
        self, name: str, what: str, *, where: Location | None, todo: str, nearest: tuple[str, ...] = (), kind: str = "UNKNOWN_DATASET"
    ) -> None:
        DefinitionError.__init__(self, kind, what, where=where, todo=todo, nearest=nearest)
        message = f"The table or view {name} cannot be found."
        AnalysisException.__init__(self, message=message, errorClass=_CONDITION, messageParameters={"relationName": name})
        self.args = (self.code, self.what)
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_error, (self.name, self.what, self.where, self.dataset, self.todo, self.nearest, self.code))

    def getSqlState(self) -> str:
        return "42P01"


def _rebuild_error(
    name: str, what: str, where: Location | None, dataset: str | None, todo: str, nearest: tuple[str, ...], code: str
) -> MissingTable:
    problem = MissingTable(name, what, where=where, todo=todo, nearest=nearest, kind=code)
    problem.dataset = dataset
    return problem


__all__ = ["MissingTable"]
