"""`current_catalog()`, `current_schema()` and `current_database()` are the pipeline's own, as on Databricks.

Spark has neither that catalog nor that schema, so it cannot be told to use them: a session that is asked gets functions of these names.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelet.jvm.sessions import drop_builtin, java_session, plain_sql
from lakelet.language.registry import names_used
from lakelet.language.sql_text.tokens import literal
from lakelet.spark.patches.doors import Call, Rest, around, before

_CATALOG, _SCHEMAS = "current_catalog", ("current_schema", "current_database")
NAMES = (_CATALOG, *_SCHEMAS)


def _own(session: SparkSession) -> dict[str, str]:
    """What each function gives: the default names, or those of `USE`."""
    used = names_used()
    catalog, schema = (used.catalog, used.schema) if used else map(session.conf.get, ("pipelines.catalog", "pipelines.schema"))
    return {_CATALOG: str(catalog), **dict.fromkeys(_SCHEMAS, str(schema))}


def register(session: SparkSession) -> None:
    """Put functions that give the pipeline's names in the place of Spark's, in the JVM session of this thread."""
    for function, name in _own(session).items():
        drop_builtin(session, function)
        plain_sql(java_session(session), f"CREATE OR REPLACE TEMPORARY FUNCTION {function}() RETURNS STRING RETURN {literal(name)}")


_WHY = "Spark has no catalog and schema of the pipeline's names, and would name its own"


@before(_WHY)
def named(call: Call) -> Call:
    """Register the functions before a column calls one of them."""
    register(call.update)
    return call


@around(_WHY)
def answered(call: Call, rest: Rest) -> str:
    """Answer what the session catalog is asked for."""
    return _own(call.update)[_CATALOG if call.method == "currentCatalog" else _SCHEMAS[0]]


__all__ = ["NAMES", "answered", "named", "register"]
