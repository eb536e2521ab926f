"""Columns behind the full name of their table (`SELECT silver.orders.id FROM silver.orders`).

A table that a query names becomes a temporary view, which has one name: Spark finds `orders.id` then, and not `silver.orders.id`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lakelet.base.names import TableName
from lakelet.language.sql_text.table_names import with_short_prefixes
from lakelet.language.sql_text.tokens import may_have

_UNRESOLVED = ("UNRESOLVED_COLUMN", "CANNOT_RESOLVE_STAR_EXPAND", "UNRESOLVED_FIELD")


class ColumnPrefixes:
    """Names of tables, of several parts, as they may stand before columns of one query."""

    def __init__(self) -> None:
        self._names: set[tuple[str, ...]] = set()

    def add(self, written: Sequence[str], full: TableName | None) -> None:
        """A table without an alias, as the query writes it and by its full name, where it has one."""
        last = written[-1]
        names = [tuple(written), ("live", last)]
        if full is not None:
            names += [(full.catalog, full.schema, last), (full.schema, last)]
        self._names.update(name for name in names if len(name) > 1)

    def run(self, text: str, run: Callable[[str], DataFrame]) -> DataFrame:
        """Run a query with the last part alone of each of the names before columns; as it is, where Spark does not find a column then.

        A table's name goes before a column of type struct whose fields spell the same.
        """
        first = tuple({name[0].upper() for name in self._names})
        short = with_short_prefixes(text, self._names) if first and may_have(text, first) else text
        try:
            return run(short)
        except AnalysisException as problem:
            if short == text or not (problem.getCondition() or "").startswith(_UNRESOLVED):
                raise
            with suppress(AnalysisException):
                return run(text)
            raise
