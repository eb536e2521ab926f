"""The inputs of a unit test: given tables, and other datasets of the same file, which their own functions make.

As forgiving as the package sdp-test: catalogs may be left out, columns that no row has are added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakelet.base.names import Namespace, split_name
from lakelet.testing.loading import InputFrames

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import DataFrame, SparkSession

__tracebackhide__ = True

_REPAIRS = 30


class Frames(Mapping[str, "DataFrame"]):
    """Frames by name, each made when it is first looked up. `makers`: what makes them."""

    def __init__(self, makers: Mapping[str, Callable[[], DataFrame]]) -> None:
        self._makers = makers
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class GivenTables(InputFrames):
    """Frames by table name or folder."""

    def __init__(self, namespace: Namespace, frames: Mapping[str, DataFrame]) -> None:
        super().__init__(namespace, frames)
        self.functions: Mapping[str, Callable[[], DataFrame]] = {}
        """Functions of datasets of the file, by key."""
        self.missed: list[str] = []
        """Keys of the tables that were read and not given."""
        self._results: dict[str, DataFrame] = {}
        self._widened: dict[str, DataFrame] = {}
        self._folders = {name.rstrip("/"): name for name in frames if "/" in name}

    def found(self, name: str) -> DataFrame | None:
        """The frame of the full name, else of the only one with this schema and name in another catalog, else what the file makes of it."""
        frame = self.given(self.namespace.resolve(name).key, exactly=len(split_name(name)) == 1)
        return self._made(self.namespace.resolve(name).key) if frame is None else frame

    def given(self, key: str, *, exactly: bool = False) -> DataFrame | None:
        """The frame that the test gives for a full name; unless `exactly`, also the only one that differs by its catalog alone."""
        if key in self._names or exactly:
            return self._frame(key) if key in self._names else None
        alike = [other for other in self._names if other.split(".", 1)[1] == key.split(".", 1)[1]]
        return self._frame(alike[0]) if len(alike) == 1 else None

    def _frame(self, key: str) -> DataFrame:
        """The frame of a given table, with the columns that were added to it."""
        return self._widened[key] if key in self._widened else self._frames[self._names[key]]

    def _made(self, key: str) -> DataFrame | None:
        """The result of the function that makes a dataset of the file. One that reads itself, in a circle, is not found."""
        self.missed.append(key)
        if key not in self.functions:
            return None
        if key not in self._results:
            functions, self.functions = self.functions, {k: f for k, f in self.functions.items() if k != key}
            try:
                self._results[key] = functions[key]()
            finally:
                self.functions = functions
        return self._results[key]

    def folder(self, path: object) -> DataFrame | None:
        name = self._folders.get(path.rstrip("/")) if isinstance(path, str) else None
        return self._frames[name] if name else None

    def sql(self, spark: SparkSession, text: str, run: Callable[[str], Any]) -> Any:
        """Run SQL text; a column that it reads and no table has is added to the tables, empty, as often as that helps."""
        from pyspark.errors import AnalysisException

        for _ in range(_REPAIRS):
            try:
                return super().sql(spark, text, run)
            except AnalysisException as error:
                if not self._repaired(error, text):
                    raise
        return super().sql(spark, text, run)

    def _repaired(self, error: AnalysisException, text: str) -> bool:
        """Add the column that Spark did not find to the table it was looked for in, else to all; whether there was one to add."""
        from pyspark.sql import functions as F

        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            return False
        parts = split_name((error.getMessageParameters() or {}).get("objectName", ""))
        column, qualifier = parts[-1], parts[-2].lower() if len(parts) > 1 else None
        named = aliases(text).get(qualifier, qualifier) if qualifier else None
        lacking = [key for key in self._names if column.lower() not in map(str.lower, self._frame(key).columns)]
        chosen = [key for key in lacking if key.rsplit(".", 1)[-1] == named] or lacking
        for key in chosen:
            self._widened[key] = self._frame(key).withColumn(column, F.lit(None).cast(likely_type(column, text)))
        return bool(chosen)


def aliases(text: str) -> dict[str, str]:
    """Table names, without qualifiers, by the aliases that a query gives them, in lower case; empty where it cannot be read."""
    import sqlglot
    from sqlglot import exp

    try:
        tables = list(sqlglot.parse_one(text, read="databricks").find_all(exp.Table))
    except sqlglot.errors.SqlglotError:
        return {}
    return {table.alias.lower(): table.name.lower() for table in tables if table.alias}


def likely_type(column: str, text: str) -> str:
    """The type of a column that only the query knows: BOOLEAN as a condition, DOUBLE if summed, BOOLEAN by the name `is_…`, else STRING."""
    name = re.escape(column)
    if re.search(rf"\bcase\s+when\s+{name}\b", text, re.IGNORECASE):
        return "BOOLEAN"
    if re.search(rf"\bsum\s*\(\s*{name}\s*\)", text, re.IGNORECASE):
        return "DOUBLE"
    return "BOOLEAN" if column.lower().startswith("is_") else "STRING"
