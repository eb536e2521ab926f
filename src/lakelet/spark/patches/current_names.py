"""`current_catalog()`, `current_schema()` and `current_database()` are the pipeline's own, as on Databricks.

Spark has neither that catalog nor that schema, so it cannot be told to use them: a session that is asked gets functions of these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from lakelet.base.patching import Patch
from lakelet.language.registry import names_used
from lakelet.language.sql_text.tokens import literal
from lakelet.spark.patches import owners
from lakelet.spark.patches.text_functions import builtin, of_text

_CATALOG, _SCHEMAS = "current_catalog", ("current_schema", "current_database")


def _own(session: SparkSession) -> dict[str, str]:
    """What each function gives: the default names, or those of `USE`."""
    used = names_used()
    catalog, schema = (used.catalog, used.schema) if used else map(session.conf.get, ("pipelines.catalog", "pipelines.schema"))
    return {_CATALOG: str(catalog), **dict.fromkeys(_SCHEMAS, str(schema))}


def _tell(session: SparkSession) -> None:
    """Put functions that give the pipeline's names in the place of Spark's, in the JVM session of this thread."""
    jsession = session._jsparkSession
    for function, name in _own(session).items():
        jsession.sessionState().functionRegistry().dropFunction(builtin(session, function))
        jsession.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {function}() RETURNS STRING RETURN {literal(name)}")


def _function(original: Any, update: SparkSession) -> Any:
    def call() -> Any:
        _tell(update)
        return original()

    return call


def _answer(function: str) -> Callable[[Any, SparkSession], Any]:
    return lambda original, update: lambda self: _own(update)[function]


_WHY = "Spark has no catalog and schema of the pipeline's names, and would name its own"

CURRENT_NAMES: tuple[Patch, ...] = (
    *of_text((_CATALOG, *_SCHEMAS), _tell, _WHY),
    *(Patch(owners.FUNCTIONS, name, _function, _WHY, "3.5.0") for name in (_CATALOG, *_SCHEMAS)),
    *(Patch(owners.BUILTIN, name, _function, _WHY, "3.5.0") for name in (_CATALOG, *_SCHEMAS)),
    Patch(owners.CATALOG, "currentCatalog", _answer(_CATALOG), _WHY, "3.4.0"),
    Patch(owners.CATALOG, "currentDatabase", _answer(_SCHEMAS[0]), _WHY, "2.0.0"),
)
"""Patches that name the pipeline's catalog and schema."""

__all__ = ["CURRENT_NAMES"]
