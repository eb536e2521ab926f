"""Decorators and functions that declare tables and views (docs/semantics/datasets.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import caller_location, function_location
from lakelet.base.names import TableName, split_name
from lakelet.language.arguments import invalid, settings, text, texts
from lakelet.language.decorated import PENDING, check_no_parameters, function_name, unwrapped, wrapper
from lakelet.language.expectations import rules_of
from lakelet.language.model import Action, Dataset, Expectation, Flow, Kind
from lakelet.language.registry import active_registry
from lakelet.language.replacing import ARGUMENTS, replacement
from lakelet.language.sql.lengths import without_lengths
from lakelet.language.sql_text.tokens import may_have
from lakelet.language.unsupported import STRICT_POLICY, unsupported

_MORE_THAN_TYPES = ("GENERATED", "CONSTRAINT", "DEFAULT", "PRIMARY", "FOREIGN", "REFERENCES", "UNIQUE", "MASK")


def _dataset(
    kind: Kind,
    name: str | None,
    where: Location,
    expectations: Sequence[Expectation],
    options: Mapping[str, Any],
    filled: tuple[Any, ...] = (),
) -> TableName:
    """Record a dataset. `filled`: the columns that its own query gets besides those that it returns."""
    registry = active_registry()
    options = dict(options)
    if options.pop("row_filter", None):
        raise LakeletError(
            "PROTECTION_REFUSED",
            "row_filter would not be applied: rows would be shown that it hides",
            where=where,
            todo="Leave it out where the data may be seen.",
        )
    if options.pop("path", None):
        registry.note("path has no effect here: the table lies in the storage, and is read by its name", where)
    if options.pop("cluster_by_auto", False):
        registry.note("cluster_by_auto has no effect here: there is no background optimisation", where)
    policy = options.pop("refresh_policy", None)
    if policy not in (None, "auto", "full", "incremental", "incremental_strict"):
        raise invalid(f"refresh_policy {policy!r} is none of auto, incremental, incremental_strict, full", where)
    if policy in ("incremental", "incremental_strict"):
        why = "nothing is recomputed that is known to be unchanged, whatever the policy"
        strict = STRICT_POLICY if policy == "incremental_strict" else ""
        registry.note(f"refresh_policy='{policy}' has no effect here: {why}{strict}", where)
    full = registry.resolve(text("name", name, where) or "", where)
    if options.get("partition_cols") and options.get("cluster_by"):
        raise invalid("partition_cols and cluster_by exclude each other", where, "Keep one of them.")
    declared, computed = _schema(options.pop("schema", None), where)
    schema, limits = without_lengths(declared, where)
    registry.add_dataset(
        Dataset(
            name=full,
            kind=kind,
            where=where,
            comment=text("comment", options.pop("comment", None), where),
            spark_conf=settings("spark_conf", options.pop("spark_conf", None), where),
            table_properties=settings("table_properties", options.pop("table_properties", None), where),
            partition_cols=texts("partition_cols", options.pop("partition_cols", None), where),
            cluster_by=texts("cluster_by", options.pop("cluster_by", None), where),
            schema=schema,
            computed=computed,
            identities=tuple(column for column in (*computed, *filled) if column.identity is not None),
            always_whole=policy == "full",
            private=bool(options.pop("temporary", False)) | bool(options.pop("private", False)),
            expectations=(*limits, *expectations),
        )
    )
    if options:
        raise KeyError(f"options without a meaning: {sorted(options)}")
    return full


def _declare(kind: Kind, function: Any, options: Mapping[str, Any]) -> Any:
    """Decorator with and without parentheses, and plain call `dlt.table(func, name="x")`."""
    if function is None:
        return lambda given: _declare(kind, given, options)
    if not callable(function):
        raise RuntimeError(
            f"the first positional argument of a dataset decorator is the query function, got {function!r}; "
            "pass everything else by name, e.g. @dlt.table(name=...)"
        )
    options = dict(options)
    where = function_location(function)
    check_no_parameters(function, where)
    name = options.pop("name", None)
    if name is None:
        name = function_name(function, "dataset", where)
    replaces = replacement({key: options.pop(key, None) for key in ARGUMENTS}, where)
    if replaces is not None:
        kind = Kind.STREAMING_TABLE
    options["schema"], computed = _columns(options.get("schema"), where)
    full = _dataset(kind, name, where, getattr(function, PENDING, ()), options, computed)
    query = unwrapped(function)
    if computed:
        from lakelet.language.sql.inpython import computing

        query = computing(query, computed, where)
    active_registry().add_flow(Flow(name=str(full), target=full, query=query, where=where, default=True, replaces=replaces))
    return wrapper(query, full)


def _schema(value: Any, where: Location) -> tuple[Any, tuple[Any, ...]]:
    """A schema as Spark reads it, and the columns of it that are computed. Raises ARGUMENT_INVALID."""
    if value is not None and not isinstance(value, str) and not hasattr(value, "fieldNames"):
        raise invalid(f"schema must be DDL text or a StructType, got {type(value).__name__}", where)
    return _columns(value, where)


def _columns(schema: Any, where: Location) -> tuple[Any, tuple[Any, ...]]:
    if not isinstance(schema, str) or not may_have(schema, _MORE_THAN_TYPES):
        return schema, ()
    from lakelet.language.sql.inpython import declared_columns  # here, because few tables need it

    return declared_columns(schema, where, active_registry().note)


def table(
    query_function: Callable[[], Any] | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: Any = None,
    temporary: bool = False,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
    cluster_by_auto: bool = False,
    private: bool = False,
    replace_using: Any = None,
    replace_where: Any = None,
    sequence_by: Any = None,
) -> Any:
    """`dlt.table`: a streaming table if the query is a stream, else a materialized view (DS-3)."""
    options = {k: v for k, v in locals().items() if k != "query_function"}
    return _declare(Kind.TABLE, query_function, options)


def create_table_decorator(
    query_function: Callable[[], Any] | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: Any = None,
    temporary: bool = False,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
) -> Any:
    """`dlt.create_table`: the old name of `dlt.table`."""
    options = {k: v for k, v in locals().items() if k != "query_function"}
    return _declare(Kind.TABLE, query_function, options)


def streaming_table(
    query_function: Callable[[], Any] | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    path: str | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Sequence[str] | None = None,
    schema: Any = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: Any = None,
    replace_where: Any = None,
    sequence_by: Any = None,
    format: str | None = None,
    temporary: bool = False,
) -> Any:
    """`dp.table`: a streaming table; a materialized view if its query is a batch, as the templates of Databricks have it."""
    options = {k: v for k, v in locals().items() if k not in ("query_function", "format")}
    _delta_only(format)
    return _declare(Kind.TABLE, query_function, options)


def materialized_view(
    query_function: Callable[[], Any] | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    path: str | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Sequence[str] | None = None,
    schema: Any = None,
    refresh_policy: str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    format: str | None = None,
    temporary: bool = False,
) -> Any:
    """`dp.materialized_view`: a table that equals the result of its batch query after every update."""
    options = {k: v for k, v in locals().items() if k not in ("query_function", "format")}
    _delta_only(format)
    return _declare(Kind.MATERIALIZED_VIEW, query_function, options)


def _delta_only(format: str | None) -> None:
    if format is not None and format.lower() != "delta":
        unsupported(f"format={format!r} of a table")


def view(
    query_function: Callable[[], Any] | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
) -> Any:
    """`dlt.view` / `temporary_view`: a named query of the pipeline, never stored."""
    if isinstance(name, str):
        _single_part(name, caller_location())
    return _declare(Kind.VIEW, query_function, {"name": name, "comment": comment, "spark_conf": spark_conf})


def _single_part(name: str, where: Location) -> None:
    """Refuse a temporary view with a catalog or schema, which it does not have: such a name would never mean it."""
    try:
        parts = split_name(name)
    except ValueError:
        return  # reported where the name is resolved
    if len(parts) > 1 and (len(parts) > 2 or parts[0].lower() != "live"):
        why = "[MULTIPART_TEMPORARY_VIEW_NAME_NOT_SUPPORTED]"
        todo = f'Write name="{parts[-1]}"; queries read it by that name.'
        what = f"the name of a temporary view has one part, got {name!r}"
        raise LakeletError("ARGUMENT_INVALID", what, where=where, why=why, todo=todo)


def create_streaming_table(
    name: str,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    table_properties: Mapping[str, Any] | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: Any = None,
    expect_all: Mapping[str, Any] | None = None,
    expect_all_or_drop: Mapping[str, Any] | None = None,
    expect_all_or_fail: Mapping[str, Any] | None = None,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
    cluster_by_auto: bool = False,
    private: bool = False,
    format: str | None = None,
    temporary: bool = False,
) -> None:
    """A streaming table without a query of its own: append flows write to it (DS-5)."""
    where = caller_location()
    given = dict(locals())
    rules = [
        expectation
        for key, action in (("expect_all", Action.WARN), ("expect_all_or_drop", Action.DROP), ("expect_all_or_fail", Action.FAIL))
        for expectation in rules_of(given[key] or {}, action, where)
    ]
    _delta_only(format)
    skip = ("name", "where", "expect_all", "expect_all_or_drop", "expect_all_or_fail", "format")
    _dataset(Kind.STREAMING_TABLE, name, where, rules, {k: v for k, v in given.items() if k not in skip})
