"""The error about a table that nobody knows, as code that reads tables "if they are there" expects it."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException

from lakelet.base.errors import DefinitionError

_CONDITION = "TABLE_OR_VIEW_NOT_FOUND"


class MissingTable(DefinitionError, AnalysisException):
    """UNKNOWN_DATASET, which code that asked for the table can catch as Spark's error (LG-30). `name`: the table, as it was asked for."""

    name: str = ""

    def getCondition(self) -> str:
        return _CONDITION

    def getErrorClass(self) -> str:
        return _CONDITION

    def getSqlState(self) -> str:
        return "42P01"

    def getMessageParameters(self) -> dict[str, str]:
        return {"relationName": self.name}

    def getQueryContext(self) -> list[Any]:
        return []

    def getMessage(self) -> str:
        return f"[{_CONDITION}] The table or view {self.name} cannot be found."


__all__ = ["MissingTable"]
