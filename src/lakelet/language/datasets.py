"""Decorators and functions that declare tables and views (docs/semantics/datasets.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName, split_name
from lakelet.base.user_code import caller_location, function_location
from lakelet.language.argument_types import Columns, Expression, F, Rules, Schema, Settings
from lakelet.language.arguments import invalid, settings, text, texts
from lakelet.language.expectations import rules_of
from lakelet.language.flows import replacement
from lakelet.language.model import Action, Dataset, Expectation, Flow, Kind, RefreshPolicy
from lakelet.language.registry import active_registry
from lakelet.language.sql.varchar_lengths import without_lengths
from lakelet.language.sql_text.tokens import may_have
from lakelet.language.unsupported import unsupported
from lakelet.language.wrappers import PENDING, check_no_parameters, function_name, unwrapped, wrapper

_MORE_THAN_TYPES = ("GENERATED", "CONSTRAINT", "DEFAULT", "PRIMARY", "FOREIGN", "REFERENCES", "UNIQUE", "MASK")


@dataclass(frozen=True, slots=True)
class _DeclaredOptions:
    """What a table or view is declared with, but for its name: the arguments of the functions below, as the user gave them."""

    comment: Any = None
    spark_conf: Any = None
    table_properties: Any = None
    partition_cols: Any = None
    cluster_by: Any = None
    cluster_by_auto: Any = False
    schema: Any = None
    path: Any = None
    row_filter: Any = None
    private: Any = False
    refresh_policy: Any = None
    replace_using: Any = None
    replace_where: Any = None
    sequence_by: Any = None
    primary_key: tuple[str, ...] = ()


def _checked_dataset(
    kind: Kind, name: Any, where: Location, expectations: Sequence[Expectation], given: _DeclaredOptions, filled: tuple[Any, ...] = ()
) -> TableName:
    """Record a dataset and return its full name. `filled`: the columns that its own query gets besides those that it returns.

    Raises ARGUMENT_INVALID or PROTECTION_REFUSED.
    """
    registry = active_registry()
    if given.row_filter:
        raise LakeletError(
            "PROTECTION_REFUSED",
            "row_filter would not be applied: rows would be shown that it hides",
            where=where,
            todo="Leave it out where the data may be seen.",
        )
    if given.path:
        registry.note("path has no effect here: the table lies in the storage, and is read by its name", where)
    if given.cluster_by_auto:
        registry.note("cluster_by_auto has no effect here: there is no background optimisation", where)
    policy = _refresh_policy(given.refresh_policy, where)
    full = registry.resolve(text("name", name, where) or "", where)
    if given.partition_cols and given.cluster_by:
        raise invalid("partition_cols and cluster_by exclude each other", where, "Keep one of them.")
    declared, computed = _checked_schema(given.schema, where)
    schema, limits = without_lengths(declared, where)
    registry.add_dataset(
        Dataset(
            name=full,
            kind=kind,
            where=where,
            comment=text("comment", given.comment, where),
            spark_conf=settings("spark_conf", given.spark_conf, where),
            table_properties=settings("table_properties", given.table_properties, where),
            partition_cols=texts("partition_cols", given.partition_cols, where),
            cluster_by=texts("cluster_by", given.cluster_by, where),
            schema=schema,
            computed=computed,
            identities=tuple(column for column in (*computed, *filled) if column.identity is not None),
            refresh_policy=policy,
            primary_key=given.primary_key or _primary_key(given.schema, where),
            private=bool(given.private),
            expectations=(*limits, *expectations),
        )
    )
    return full


def _refresh_policy(given: Any, where: Location) -> RefreshPolicy:
    known = {policy.value: policy for policy in RefreshPolicy}
    if given is None:
        return RefreshPolicy.AUTO
    if not isinstance(given, str) or given not in known:
        raise invalid(f"refresh_policy {given!r} is none of {', '.join(known)}", where)
    return known[given]


def _declare_or_decorate(kind: Kind, function: F | None, name: Any, given: _DeclaredOptions) -> F | Callable[[F], F]:
    """Decorator with and without parentheses, and plain call `dlt.table(func, name="x")`."""
    if function is None:
        return lambda decorated: _declare_function(kind, decorated, name, given)
    return _declare_function(kind, function, name, given)


def _declare_function(kind: Kind, function: F, name: Any, given: _DeclaredOptions) -> F:
    if not callable(function):
        raise RuntimeError(
            f"the first positional argument of a dataset decorator is the query function, got {function!r}; "
            "pass everything else by name, e.g. @dlt.table(name=...)"
        )
    where = function_location(function)
    check_no_parameters(function, where)
    if name is None:
        name = function_name(function, "dataset", where)
    replaces = replacement(given.replace_where, given.replace_using, given.sequence_by, where)
    if replaces is not None:
        kind = Kind.STREAMING_TABLE
    schema, computed = _declared_columns(given.schema, where)
    stored = replace(given, schema=schema, primary_key=_primary_key(given.schema, where))
    full = _checked_dataset(kind, name, where, getattr(function, PENDING, ()), stored, computed)
    query = unwrapped(function)
    if computed:
        from lakelet.language.sql.python_schemas import computing

        query = computing(query, computed, where)
    active_registry().add_flow(Flow(name=str(full), target=full, query=query, where=where, default=True, replaces=replaces))
    return wrapper(query, full)  # type: ignore[return-value]


def _checked_schema(value: Any, where: Location) -> tuple[Any, tuple[Any, ...]]:
    """A schema as Spark reads it, and the columns of it that are computed. Raises ARGUMENT_INVALID."""
    if value is not None and not isinstance(value, str) and not hasattr(value, "fieldNames"):
        raise invalid(f"schema must be DDL text or a StructType, got {type(value).__name__}", where)
    return _declared_columns(value, where)


def _declared_columns(schema: Any, where: Location) -> tuple[Any, tuple[Any, ...]]:
    if not isinstance(schema, str) or not may_have(schema, _MORE_THAN_TYPES):
        return schema, ()
    from lakelet.language.sql.python_schemas import declared_columns  # here, because few tables need it

    return declared_columns(schema, where, active_registry().note)


def _primary_key(schema: Any, where: Location) -> tuple[str, ...]:
    """The columns of the primary key that a schema declares as text."""
    if not isinstance(schema, str) or not may_have(schema, ("PRIMARY",)):
        return ()
    from lakelet.language.sql.python_schemas import primary_key_of

    return primary_key_of(schema, where)


def table(
    query_function: F | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
    table_properties: Settings | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: Schema | None = None,
    temporary: bool = False,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
    cluster_by_auto: bool = False,
    private: bool = False,
    replace_using: Columns | None = None,
    replace_where: Expression | None = None,
    sequence_by: Expression | None = None,
) -> F | Callable[[F], F]:
    """Declare a table: a streaming table if the query is a stream, else a materialized view (DS-3).

    The decorator of `import dlt`, with and without parentheses.

    Args:
        query_function: the decorated function, which takes no argument and returns a DataFrame.
        name: of the table, with one, two or three parts; the function's name by default.
        comment: text that catalogs, reports and the page show with the table.
        spark_conf: settings of Spark while this query runs.
        table_properties: properties of the Delta table, and settings `pipelines.*`.
        partition_cols: columns whose values become folders; not together with `cluster_by`.
        path: has no effect here, with a notice: the table lies in the storage of the pipeline.
        schema: columns and their types, as a StructType or as DDL text. The text may hold generated columns, constraints and comments.
        temporary: the older name of `private`.
        cluster_by: columns by which `lakelet maintain` sorts the files.
        row_filter: refused: rows would be shown that the filter hides.
        cluster_by_auto: has no effect here, with a notice: nothing optimises tables in the background.
        private: the table is stored for the pipeline only; no other one finds it in the catalog.
        replace_using: columns whose values name the stored rows that a new row replaces; together with `sequence_by`.
        replace_where: condition of the stored rows that the result of the query replaces.
        sequence_by: what orders the rows with equal values of `replace_using`.

    Raises ARGUMENT_INVALID for a value of the wrong type or two arguments that exclude each other, PROTECTION_REFUSED for `row_filter`.
    """
    given = _DeclaredOptions(
        comment=comment,
        spark_conf=spark_conf,
        table_properties=table_properties,
        partition_cols=partition_cols,
        path=path,
        schema=schema,
        cluster_by=cluster_by,
        row_filter=row_filter,
        cluster_by_auto=cluster_by_auto,
        replace_using=replace_using,
        replace_where=replace_where,
        sequence_by=sequence_by,
        private=private or temporary,
    )
    return _declare_or_decorate(Kind.TABLE, query_function, name, given)


def create_table_decorator(
    query_function: F | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
    table_properties: Settings | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: Schema | None = None,
    temporary: bool = False,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
) -> F | Callable[[F], F]:
    """Declare a table: `dlt.create_table`, the old name of `dlt.table` (DS-3).

    The arguments are those of `dlt.table`.

    Raises ARGUMENT_INVALID for a value of the wrong type or two arguments that exclude each other, PROTECTION_REFUSED for `row_filter`.
    """
    given = _DeclaredOptions(
        comment=comment,
        spark_conf=spark_conf,
        table_properties=table_properties,
        partition_cols=partition_cols,
        path=path,
        schema=schema,
        cluster_by=cluster_by,
        row_filter=row_filter,
        private=temporary,
    )
    return _declare_or_decorate(Kind.TABLE, query_function, name, given)


def streaming_table(
    query_function: F | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
    table_properties: Settings | None = None,
    path: str | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Sequence[str] | None = None,
    schema: Schema | None = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: Columns | None = None,
    replace_where: Expression | None = None,
    sequence_by: Expression | None = None,
    format: str | None = None,
    temporary: bool = False,
) -> F | Callable[[F], F]:
    """Declare a streaming table from the streaming query that the decorated function returns (DS-3).

    The decorator of `pyspark.pipelines`, with and without parentheses. A query that is a batch makes a materialized view, as the templates
    of Databricks have it.

    Args:
        query_function: the decorated function, which takes no argument and returns a DataFrame.
        name: of the table, with one, two or three parts; the function's name by default.
        comment: text that catalogs, reports and the page show with the table.
        spark_conf: settings of Spark while this query runs.
        table_properties: properties of the Delta table, and settings `pipelines.*`.
        path: has no effect here, with a notice: the table lies in the storage of the pipeline.
        partition_cols: columns whose values become folders; not together with `cluster_by`.
        cluster_by_auto: has no effect here, with a notice: nothing optimises tables in the background.
        cluster_by: columns by which `lakelet maintain` sorts the files.
        schema: columns and their types, as a StructType or as DDL text. The text may hold generated columns, constraints and comments.
        row_filter: refused: rows would be shown that the filter hides.
        private: the table is stored for the pipeline only; no other one finds it in the catalog.
        replace_using: columns whose values name the stored rows that a new row replaces; together with `sequence_by`.
        replace_where: condition of the stored rows that the result of the query replaces.
        sequence_by: what orders the rows with equal values of `replace_using`.
        format: `delta`, the only one.
        temporary: the older name of `private`.

    Raises ARGUMENT_INVALID for a value of the wrong type or two arguments that exclude each other, PROTECTION_REFUSED for `row_filter`.
    """
    _delta_only(format)
    given = _DeclaredOptions(
        comment=comment,
        spark_conf=spark_conf,
        table_properties=table_properties,
        path=path,
        partition_cols=partition_cols,
        cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by,
        schema=schema,
        row_filter=row_filter,
        replace_using=replace_using,
        replace_where=replace_where,
        sequence_by=sequence_by,
        private=private or temporary,
    )
    return _declare_or_decorate(Kind.TABLE, query_function, name, given)


def materialized_view(
    query_function: F | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
    table_properties: Settings | None = None,
    path: str | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Sequence[str] | None = None,
    schema: Schema | None = None,
    refresh_policy: str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    format: str | None = None,
    temporary: bool = False,
) -> F | Callable[[F], F]:
    """Declare a table that equals the result of its batch query after every update (DS-4).

    A decorator, with and without parentheses.

    Args:
        query_function: the decorated function, which takes no argument and returns a DataFrame.
        name: of the table, with one, two or three parts; the function's name by default.
        comment: text that catalogs, reports and the page show with the table.
        spark_conf: settings of Spark while this query runs.
        table_properties: properties of the Delta table, and settings `pipelines.*`.
        path: has no effect here, with a notice: the table lies in the storage of the pipeline.
        partition_cols: columns whose values become folders; not together with `cluster_by`.
        cluster_by_auto: has no effect here, with a notice: nothing optimises tables in the background.
        cluster_by: columns by which `lakelet maintain` sorts the files.
        schema: columns and their types, as a StructType or as DDL text. The text may hold generated columns, constraints and comments.
        refresh_policy: `auto` computes a part of the view or all of it, what is estimated to be cheaper; `incremental` a part wherever
            that is right; `incremental_strict` fails an update that would compute all; `full` always computes all.
        row_filter: refused: rows would be shown that the filter hides.
        private: the table is stored for the pipeline only; no other one finds it in the catalog.
        format: `delta`, the only one.
        temporary: the older name of `private`.

    Raises ARGUMENT_INVALID for a value of the wrong type or two arguments that exclude each other, PROTECTION_REFUSED for `row_filter`.
    """
    _delta_only(format)
    given = _DeclaredOptions(
        comment=comment,
        spark_conf=spark_conf,
        table_properties=table_properties,
        path=path,
        partition_cols=partition_cols,
        cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by,
        schema=schema,
        refresh_policy=refresh_policy,
        row_filter=row_filter,
        private=private or temporary,
    )
    return _declare_or_decorate(Kind.MATERIALIZED_VIEW, query_function, name, given)


def _delta_only(format: str | None) -> None:
    if format is not None and format.lower() != "delta":
        unsupported(f"format={format!r} of a table")


def view(
    query_function: F | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
) -> F | Callable[[F], F]:
    """Declare a named query of the pipeline that is never stored (DS-1).

    A decorator, with and without parentheses.

    Args:
        query_function: the decorated function, which takes no argument and returns a DataFrame.
        name: of the view, one part; the function's name by default.
        comment: text that reports and the page show with the view.
        spark_conf: settings of Spark while this query is read.

    Raises ARGUMENT_INVALID for a value of the wrong type, or a name with a catalog or schema.
    """
    if isinstance(name, str):
        _single_part(name, caller_location())
    return _declare_or_decorate(Kind.VIEW, query_function, name, _DeclaredOptions(comment=comment, spark_conf=spark_conf))


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
    spark_conf: Settings | None = None,
    table_properties: Settings | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: Schema | None = None,
    expect_all: Rules | None = None,
    expect_all_or_drop: Rules | None = None,
    expect_all_or_fail: Rules | None = None,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
    cluster_by_auto: bool = False,
    private: bool = False,
    format: str | None = None,
    temporary: bool = False,
) -> None:
    """Declare a streaming table without a query of its own: append flows or change flows write to it (DS-5).

    Args:
        name: of the table, with one, two or three parts.
        comment: text that catalogs, reports and the page show with the table.
        spark_conf: settings of Spark while this query runs.
        table_properties: properties of the Delta table, and settings `pipelines.*`.
        partition_cols: columns whose values become folders; not together with `cluster_by`.
        path: has no effect here, with a notice: the table lies in the storage of the pipeline.
        schema: columns and their types, as a StructType or as DDL text. The text may hold generated columns, constraints and comments.
        expect_all: expectations whose violations are counted.
        expect_all_or_drop: expectations whose violations are left out and counted.
        expect_all_or_fail: expectations whose violations fail the flow.
        cluster_by: columns by which `lakelet maintain` sorts the files.
        row_filter: refused: rows would be shown that the filter hides.
        cluster_by_auto: has no effect here, with a notice: nothing optimises tables in the background.
        private: the table is stored for the pipeline only; no other one finds it in the catalog.
        format: `delta`, the only one.
        temporary: the older name of `private`.

    Raises ARGUMENT_INVALID for a value of the wrong type or two arguments that exclude each other, PROTECTION_REFUSED for `row_filter`.
    """
    where = caller_location()
    _delta_only(format)
    given = _DeclaredOptions(
        comment=comment,
        spark_conf=spark_conf,
        table_properties=table_properties,
        partition_cols=partition_cols,
        path=path,
        schema=schema,
        cluster_by=cluster_by,
        row_filter=row_filter,
        cluster_by_auto=cluster_by_auto,
        private=private or temporary,
    )
    rules = [
        *rules_of(expect_all or {}, Action.WARN, where),
        *rules_of(expect_all_or_drop or {}, Action.DROP, where),
        *rules_of(expect_all_or_fail or {}, Action.FAIL, where),
    ]
    _checked_dataset(Kind.STREAMING_TABLE, name, where, rules, given)
