"""Columns behind the full name of their table (`SELECT silver.orders.id FROM silver.orders`).

A table that a query names becomes a temporary view, which has one name: Spark finds `orders.id` then, and not `silver.orders.id`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from pyspark.errors import AnalysisException

from lakelet.base.names import TableName
from lakelet.language.sql_text.table_names import RelationRef, with_short_prefixes
from lakelet.language.sql_text.tokens import may_have

_UNRESOLVED = ("UNRESOLVED_COLUMN", "CANNOT_RESOLVE_STAR_EXPAND", "UNRESOLVED_FIELD")

T = TypeVar("T")
Alias = Callable[[RelationRef], str]
"""What a table without an alias is called in the query."""


class ColumnPrefixes:
    """Names of tables, of several parts, as they may stand before columns of one query."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, ...], str] = {}  # name as the query writes it → full name; all in lower case
        self._names: dict[tuple[str, ...], set[str]] = {}  # name of several parts → full names

    def add(self, written: Sequence[str], full: TableName | None) -> None:
        """A table without an alias, as the query writes it and by its full name, where it has one."""
        parts = tuple(part.lower() for part in written)
        last = parts[-1]
        names = [parts, ("live", last)]
        if full is not None:
            names += [(full.catalog.lower(), full.schema.lower(), last), (full.schema.lower(), last)]
        self._written[parts] = key = full.key if full is not None else ".".join(parts)
        for name in names:
            if len(name) > 1:
                self._names.setdefault(name, set()).add(key)

    def run(self, with_aliases: Callable[[Alias], str], run: Callable[[str], T]) -> T:
        """Run a query whose columns may have names of tables before them.

        `with_aliases` gives the query with views for tables, and adds each table; its argument is what a table is called there. It is the
        last part of its name, also before columns; where Spark does not find a column then, the columns stay as they are written. A table's
        name goes before a column of type struct whose fields spell the same. Tables of one name in several schemas are told apart by their
        full names, if these stand before columns: before all of them, for `orders.id` is a column of the nearest FROM in Spark, and which
        one that is is not known here.
        """
        self._written.clear()
        self._names.clear()
        text = with_aliases(lambda ref: ref.parts[-1])
        first = tuple({name[0].upper() for name in self._names})
        if not first or not may_have(text, first):
            return run(text)
        if len({written[-1] for written in self._written}) < len(set(self._written.values())):
            full = with_aliases(self._full_name)
            of_one = {name: min(keys) for name, keys in self._names.items() if len(keys) == 1}
            apart = with_short_prefixes(full, {**of_one, **self._written})
            if apart != full:
                return run(apart)
        short = with_short_prefixes(text, {name: name[-1] for name in self._names})
        try:
            return run(short)
        except AnalysisException as problem:
            if short == text or not (problem.getCondition() or "").startswith(_UNRESOLVED):
                raise
            with suppress(AnalysisException):
                return run(text)
            raise

    def _full_name(self, ref: RelationRef) -> str:
        return self._written.get(tuple(part.lower() for part in ref.parts), ref.parts[-1])
