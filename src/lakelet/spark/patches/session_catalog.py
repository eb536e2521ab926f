"""What `spark.catalog`, `SHOW TABLES` and `current_catalog()` answer while an update runs (LG-23).

The names are those of the pipeline, which Spark's own catalog does not have: the tables of the storage, those from outside (`--table`), and
those that code created. A session that is asked for the current names gets functions of these names, as it cannot be set to use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import CatalogMetadata, Database, Table

from lakelet.base.names import TableName, split_name
from lakelet.jvm.sessions import drop_builtin, java_session, plain_sql, view_names
from lakelet.language.registry import names_used
from lakelet.language.sql_text.commands import ListingStatement, shown
from lakelet.language.sql_text.tokens import literal
from lakelet.spark.names.outside import outside_tables, stored_tables
from lakelet.spark.patches.doors import Call, Rest, around, before

# ---------------------------------------------------------------------------------------- catalogs, schemas and tables


_INTERNAL = "__lakelet_"


def _readable_tables() -> list[TableName]:
    """Every table that code outside of functions can read, in the order of their names."""
    found = {name.key: name for name in (*stored_tables().names(), *outside_tables().names())}
    return [found[key] for key in sorted(found)]


def _schemas_with_tables(catalog: str) -> list[str]:
    """The schemas of a catalog that have tables; the pipeline's own always."""
    own = stored_tables().namespace
    found = {name.schema.lower(): name.schema for name in _readable_tables() if name.catalog.lower() == catalog.lower()}
    if catalog.lower() == own.catalog.lower():
        found.setdefault(own.schema.lower(), own.schema)
    return [found[key] for key in sorted(found)]


def _catalogs_with_tables() -> list[str]:
    own = stored_tables().namespace.catalog
    found = {own.lower(): own, **{name.catalog.lower(): name.catalog for name in _readable_tables()}}
    return [found[key] for key in sorted(found)]


def _catalog_and_schema(scope: str) -> tuple[str, str]:
    """(catalog, schema) that a name of one or two parts means; those of the pipeline for an empty one. Raises ValueError."""
    own = stored_tables().namespace
    parts = split_name(scope) if scope else ()
    if len(parts) > 2:
        raise ValueError(f"{scope!r} has {len(parts)} parts; the name of a schema has one or two")
    catalog, schema = ((own.catalog, own.schema)[: 2 - len(parts)] + parts) if parts else (own.catalog, own.schema)
    return catalog, schema


def _names_matching(names: Iterable[str], pattern: str | None) -> set[str]:
    """The names that match a pattern of Spark's: `*` is any text, `|` is or, and case does not count."""
    if not pattern:
        return set(names)
    expressions = [re.compile(".*".join(map(re.escape, one.strip().split("*"))), re.IGNORECASE) for one in pattern.split("|")]
    return {name for name in names if any(expression.fullmatch(name) for expression in expressions)}


def _tables_of_schema(spark: SparkSession, scope: str, pattern: str | None) -> list[Table]:
    """The tables of a schema, and the temporary views of the session."""
    catalog, schema = _catalog_and_schema(scope)
    found = [
        Table(name.name, name.catalog, [name.schema], None, "MANAGED", False)
        for name in _readable_tables()
        if (name.catalog.lower(), name.schema.lower()) == (catalog.lower(), schema.lower())
    ]
    found += [Table(view, None, None, None, "TEMPORARY", True) for view in view_names(spark) if not view.startswith(_INTERNAL)]
    wanted = _names_matching((table.name for table in found), pattern)
    return [table for table in found if table.name in wanted]


_LISTING_WHY = "Spark's catalog has other names than the pipeline's, and none with three parts"


@around(_LISTING_WHY)
def answer_listing(call: Call, rest: Rest) -> DataFrame:
    """Answer a statement that lists catalogs, schemas or tables."""
    asked = shown(call.get("sqlQuery"))
    found = _rows_of_listing(call.target, asked) if asked is not None else None
    rows: DataFrame = rest(call) if found is None else found
    return rows


def _rows_of_listing(spark: SparkSession, asked: ListingStatement) -> DataFrame | None:
    """The rows of a statement that lists, with the columns that they have on Databricks; None for a name of too many parts."""
    if len(split_name(asked.scope or "all")) > (1 if asked.what == "SCHEMAS" else 2):
        return None
    if asked.what == "CATALOGS":
        names = _names_matching(_catalogs_with_tables(), asked.pattern)
        return spark.createDataFrame([(name,) for name in _catalogs_with_tables() if name in names], "catalog STRING")
    if asked.what == "SCHEMAS":
        catalog = split_name(asked.scope)[0] if asked.scope else stored_tables().namespace.catalog
        names = _names_matching(_schemas_with_tables(catalog), asked.pattern)
        return spark.createDataFrame([(name,) for name in _schemas_with_tables(catalog) if name in names], "databaseName STRING")
    tables = spark.catalog.listTables(asked.scope or None, asked.pattern or None)
    rows = [((table.namespace or [""])[-1], table.name, table.isTemporary) for table in tables]
    return spark.createDataFrame(rows, "database STRING, tableName STRING, isTemporary BOOLEAN")


@around(_LISTING_WHY)
def list_tables(call: Call, rest: Rest) -> list[Table]:
    """Return the tables of a schema, and the temporary views."""
    return _tables_of_schema(call.target._sparkSession, call.get("dbName") or "", call.get("pattern"))


@around(_LISTING_WHY)
def list_databases(call: Call, rest: Rest) -> list[Database]:
    """Return the schemas of the pipeline's catalog."""
    catalog = stored_tables().namespace.catalog
    names = _names_matching(_schemas_with_tables(catalog), call.get("pattern"))
    return [Database(name, catalog, None, "") for name in _schemas_with_tables(catalog) if name in names]


@around(_LISTING_WHY)
def list_catalogs(call: Call, rest: Rest) -> list[CatalogMetadata]:
    """Return the catalogs that have tables."""
    names = _names_matching(_catalogs_with_tables(), call.get("pattern"))
    return [CatalogMetadata(name, None) for name in _catalogs_with_tables() if name in names]


@around(_LISTING_WHY)
def database_exists(call: Call, rest: Rest) -> bool:
    """Return whether a schema has tables."""
    catalog, schema = _catalog_and_schema(call.get("dbName"))
    return schema.lower() in (name.lower() for name in _schemas_with_tables(catalog))


# ------------------------------------------------------------------- current_catalog, current_schema, current_database


_CATALOG, _SCHEMAS = "current_catalog", ("current_schema", "current_database")
CURRENT_NAME_FUNCTIONS = (_CATALOG, *_SCHEMAS)


def _current_names(session: SparkSession) -> dict[str, str]:
    """What each function gives: the default names, or those of `USE`."""
    used = names_used()
    catalog, schema = (used.catalog, used.schema) if used else map(session.conf.get, ("pipelines.catalog", "pipelines.schema"))
    return {_CATALOG: str(catalog), **dict.fromkeys(_SCHEMAS, str(schema))}


def register_current_names(session: SparkSession) -> None:
    """Replace Spark's functions by functions that give the pipeline's names, in the JVM session of this thread."""
    for function, name in _current_names(session).items():
        drop_builtin(session, function)
        plain_sql(java_session(session), f"CREATE OR REPLACE TEMPORARY FUNCTION {function}() RETURNS STRING RETURN {literal(name)}")


_CURRENT_WHY = "Spark has no catalog and schema of the pipeline's names, and would name its own"


@before(_CURRENT_WHY)
def use_current_names(call: Call) -> Call:
    """Register the functions before a column calls one of them."""
    register_current_names(call.update)
    return call


@around(_CURRENT_WHY)
def answer_current_name(call: Call, rest: Rest) -> str:
    """Answer what the session catalog is asked for."""
    return _current_names(call.update)[_CATALOG if call.method == "currentCatalog" else _SCHEMAS[0]]
