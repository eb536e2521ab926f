"""The functions of `import dlt` and `from pyspark import pipelines as dp` (docs/semantics/datasets.md).

Declaring does nothing but declare: a decorator checks its arguments, records a frozen value in the active registry and gives back a
callable that still is the user's function. `DLT` and `DP` at the end say which names each module has.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import caller_location, function_location
from lakelet.base.names import TableName, split_name
from lakelet.language.change_flows import (
    apply_changes,
    apply_changes_from_snapshot,
    create_auto_cdc_flow,
    create_auto_cdc_from_snapshot_flow,
)
from lakelet.language.event_hooks import on_event_hook
from lakelet.language.model import Action, Dataset, Expectation, Flow, Kind
from lakelet.language.registry import active_reader, active_registry
from lakelet.language.sinks import NO_RULES, NO_RULES_TODO, RULELESS, create_sink, foreach_batch_sink
from lakelet.language.sql.lengths import without_lengths
from lakelet.language.sql_text.spark_words import in_words_of_spark
from lakelet.language.unsupported import replace_flow, unsupported

F = TypeVar("F", bound=Callable[..., Any])
_BOUND = "__lakelet_dataset__"
_MORE_THAN_TYPES = re.compile(r"\b(GENERATED|CONSTRAINT|DEFAULT|PRIMARY\s+KEY|FOREIGN\s+KEY|REFERENCES|UNIQUE|MASK)\b", re.IGNORECASE)
_PENDING = "__lakelet_expectations__"


# ---------------------------------------------------------------------------------------------------- argument checks


def _invalid(what: str, where: Location, todo: str | None = None) -> LakeletError:
    return LakeletError("ARGUMENT_INVALID", what, where=where, todo=todo)


def _text(name: str, value: Any, where: Location) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _invalid(f"{name} must be text, got {type(value).__name__}", where)
    return value


def _texts(name: str, value: Any, where: Location) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
        raise _invalid(f"{name} must be a list of column names, got {value!r}", where)
    return tuple(value)


def _settings(name: str, value: Any, where: Location) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise _invalid(f"{name} must be a dictionary with text keys, got {value!r}", where)
    return {k: ("true" if v else "false") if isinstance(v, bool) else str(v) for k, v in value.items()}


def _schema(value: Any, where: Location) -> Any:
    if value is not None and not isinstance(value, str) and not hasattr(value, "fieldNames"):
        raise _invalid(f"schema must be DDL text or a StructType, got {type(value).__name__}", where)
    found, computed = _columns(value, where)
    if computed:
        unsupported(f"the computed column {computed[0].name!r} of a table without a query of its own", where)
    return found


def _columns(schema: Any, where: Location) -> tuple[Any, tuple[Any, ...]]:
    """A schema as Spark reads it, and the columns of it that are computed."""
    if not isinstance(schema, str) or not _MORE_THAN_TYPES.search(schema):
        return schema, ()
    from lakelet.language.sql.inpython import declared_columns  # here, because few tables need it

    return declared_columns(schema, where, active_registry().note)


def _refuse(where: Location, **given: Any) -> None:
    """Refuse each argument that was given a value: it would otherwise be ignored."""
    for name, value in given.items():
        if value:
            unsupported(f"the argument {name}", where)


# ------------------------------------------------------------------------------------------------------ declarations


def _dataset(kind: Kind, name: str | None, where: Location, expectations: Sequence[Expectation], options: Mapping[str, Any]) -> TableName:
    registry = active_registry()
    options = dict(options)
    if options.pop("row_filter", None):
        raise LakeletError(
            "PROTECTION_REFUSED",
            "row_filter would not be applied: rows would be shown that it hides",
            where=where,
            todo="Leave it out where the data may be seen.",
        )
    _refuse(where, **{k: options.pop(k, None) for k in ("replace_using", "sequence_by")})
    if options.pop("path", None):
        registry.note("path has no effect here: the table lies in the storage, and is read by its name", where)
    if options.pop("cluster_by_auto", False):
        registry.note("cluster_by_auto has no effect here: there is no background optimisation", where)
    policy = options.pop("refresh_policy", None)
    if policy not in (None, "auto", "full", "incremental", "incremental_strict"):
        raise _invalid(f"refresh_policy {policy!r} is none of auto, incremental, incremental_strict, full", where)
    if policy == "incremental_strict":
        unsupported("refresh_policy='incremental_strict'", where)
    if policy == "incremental":
        registry.note("refresh_policy='incremental' has no effect here: the view is recomputed when its inputs changed", where)
    full = registry.resolve(_text("name", name, where) or "", where)
    if options.get("partition_cols") and options.get("cluster_by"):
        raise _invalid("partition_cols and cluster_by exclude each other", where, "Keep one of them.")
    schema, limits = without_lengths(_schema(options.pop("schema", None), where), where)
    registry.add_dataset(
        Dataset(
            name=full,
            kind=kind,
            where=where,
            comment=_text("comment", options.pop("comment", None), where),
            spark_conf=_settings("spark_conf", options.pop("spark_conf", None), where),
            table_properties=_settings("table_properties", options.pop("table_properties", None), where),
            partition_cols=_texts("partition_cols", options.pop("partition_cols", None), where),
            cluster_by=_texts("cluster_by", options.pop("cluster_by", None), where),
            schema=schema,
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
    _no_arguments(function, where)
    name = options.pop("name", None)
    if name is None:
        name = _function_name(function, where)
    options["schema"], computed = _columns(options.get("schema"), where)
    full = _dataset(kind, name, where, getattr(function, _PENDING, ()), options)
    query = getattr(function, "__wrapped__", function) if hasattr(function, _BOUND) else function
    if computed:
        from lakelet.language.sql.inpython import computing

        query = computing(query, computed, where)
    active_registry().add_flow(Flow(name=str(full), target=full, query=query, where=where, default=True))
    return _callable(query, full)


def _function_name(function: Any, where: Location) -> str:
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise _invalid("the dataset has no name, and its function has none either", where, 'Give it one: name="...".')
    return str(name)


def _no_arguments(function: Any, where: Location) -> None:
    """Refuse a function that cannot be called without arguments: nobody would give it any."""
    try:
        inspect.signature(function).bind()
    except TypeError as problem:
        todo = "Give the argument a default: `def query(region=region):` also keeps the value of a loop."
        raise _invalid(f"the dataset's function is called without arguments: {problem}", where, todo) from None
    except ValueError:  # a callable without a readable signature
        pass


def _callable(query: Callable[..., Any], bound: TableName | None = None) -> Callable[..., Any]:
    """A thin wrapper that calls `query`; carries the dataset it declared, so that outer expectation decorators find it."""

    @functools.wraps(query)
    def call(*args: Any, **kwargs: Any) -> Any:
        return query(*args, **kwargs)

    call.__dict__.pop(_PENDING, None)
    if bound is not None:
        setattr(call, _BOUND, bound)
    return call


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
        for expectation in _rules(given[key] or {}, action, where)
    ]
    _delta_only(format)
    skip = ("name", "where", "expect_all", "expect_all_or_drop", "expect_all_or_fail", "format")
    _dataset(Kind.STREAMING_TABLE, name, where, rules, {k: v for k, v in given.items() if k not in skip})


def append_flow(
    name: Any = None,
    target: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, Any] | None = None,
    once: bool = False,
    import_checkpoint: Any = None,
) -> Callable[[F], F]:
    """Declare the decorated function as a flow that appends to the streaming table or sink `target`.

    `once`: its query is a batch, appended one time until a full refresh (DS-9).
    """
    where = caller_location()
    if not isinstance(once, bool):
        raise _invalid(f"once must be True or False, got {once!r}", where)
    _refuse(where, import_checkpoint=import_checkpoint)
    return _flow_into("append_flow", target, name, where, {"comment": comment, "spark_conf": spark_conf}, once=once)


def append_flow_into(
    target: str | None = None,
    name: Any = None,
    once: bool = False,
    spark_conf: Mapping[str, Any] | None = None,
    comment: str | None = None,
    import_checkpoint: Any = None,
) -> Callable[[F], F]:
    """`dp.append_flow`: the same, its first argument is the target."""
    return append_flow(name, target, comment, spark_conf, once, import_checkpoint)


append_flow_into.__name__ = append_flow_into.__qualname__ = "append_flow"


def update_flow(
    target: str | None = None, name: Any = None, spark_conf: Mapping[str, Any] | None = None, comment: str | None = None
) -> Callable[[F], F]:
    """Declare the decorated function as a flow that sends a sink the rows of its result that changed (SK-8)."""
    return _flow_into("update_flow", target, name, caller_location(), {"comment": comment, "spark_conf": spark_conf})


def _flow_into(kind: str, target: Any, name: Any, where: Location, given: Mapping[str, Any], *, once: bool = False) -> Callable[[F], F]:
    """The decorator `kind` of a flow called `name` into `target`; `given`: comment and spark_conf, to be checked."""
    if callable(name) or callable(target) or not _text("target", target, where):
        raise _invalid(f"{kind} needs a target", where, f'Write @dlt.{kind}(target="table").')

    def declare(function: F) -> F:
        if not callable(function):
            raise _invalid(f"{kind} decorates a function", where)
        if getattr(function, _PENDING, None):
            raise _invalid(NO_RULES, where, NO_RULES_TODO)
        registry = active_registry()
        _no_arguments(function, function_location(function))
        flow_name = _text("name", name, where) or _function_name(function, where)
        query = getattr(function, "__wrapped__", function) if hasattr(function, _BOUND) else function
        registry.add_flow(
            Flow(
                name=flow_name if "." in flow_name else str(registry.resolve(f"`{flow_name}`", where)),
                target=registry.resolve(str(target), where),
                query=query,
                where=function_location(function),
                default=False,
                comment=_text("comment", given["comment"], where),
                spark_conf=_settings("spark_conf", given["spark_conf"], where),
                once=once,
                update=kind == "update_flow",
            )
        )
        return _without_rules(function)

    return declare


def _without_rules(function: F) -> F:
    """The function, wrapped so that an expectation above the decorator of a flow is refused; it would have no effect."""
    if hasattr(function, _BOUND) or getattr(function, RULELESS, False):
        return function
    found = _callable(function)
    setattr(found, RULELESS, True)
    return found  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------------------ expectations


def _rules(rules: Any, action: Action, where: Location) -> list[Expectation]:
    if not isinstance(rules, Mapping):
        raise _invalid(f"expectations must be a dictionary of name and constraint, got {type(rules).__name__}", where)
    return [_rule(name, constraint, action, where) for name, constraint in rules.items()]


def _rule(name: Any, constraint: Any, action: Action, where: Location) -> Expectation:
    if not isinstance(name, str) or not name:
        raise _invalid(f"the name of an expectation must be text, got {name!r}", where)
    if not isinstance(constraint, str) and not hasattr(constraint, "alias"):
        raise _invalid(f"the constraint of {name!r} must be SQL text or a Column, got {type(constraint).__name__}", where)
    return Expectation(name, in_words_of_spark(constraint) if isinstance(constraint, str) else constraint, action, where)


def _expecting(expectations: Sequence[Expectation]) -> Callable[[F], F]:
    """Works below and above the dataset decorator: on a bound function it adds, on a plain one it waits (EP-6)."""

    where = caller_location()

    def attach(function: F) -> F:
        if not callable(function):
            raise _invalid(f"an expectation decorates a dataset's function, got {function!r}", where)
        bound = getattr(function, _BOUND, None)
        if bound is not None:
            active_registry().add_expectations(bound, expectations)
            return function
        if getattr(function, RULELESS, False):
            raise _invalid(NO_RULES, where, NO_RULES_TODO)
        waiting = _callable(function)
        # Decorators apply from the inside out; the outermost is written first, so it comes first.
        setattr(waiting, _PENDING, (*expectations, *getattr(function, _PENDING, ())))
        return waiting  # type: ignore[return-value]

    return attach


def _single(action: Action) -> Callable[..., Callable[[F], F]]:
    def decorator(name: str | None = None, inv: Any = None, *, description: str | None = None, constraint: Any = None) -> Callable[[F], F]:
        where = caller_location()
        label, rule = name if name is not None else description, inv if inv is not None else constraint
        return _expecting([_rule(label, rule, action, where)])

    return decorator


def _several(action: Action) -> Callable[[Mapping[str, Any]], Callable[[F], F]]:
    def decorator(expectations: Mapping[str, Any]) -> Callable[[F], F]:
        return _expecting(_rules(expectations, action, caller_location()))

    return decorator


expect = _single(Action.WARN)
expect_or_drop = _single(Action.DROP)
expect_or_fail = _single(Action.FAIL)
expect_all = _several(Action.WARN)
expect_all_or_drop = _several(Action.DROP)
expect_all_or_fail = _several(Action.FAIL)


# ------------------------------------------------------------------------------------------------------------- reads


def _reader_or_error(call: str) -> Any:
    reader = active_reader()
    if reader is None:
        raise LakeletError(
            "OUTSIDE_PIPELINE",
            f"{call} was called outside of a dataset's function",
            where=caller_location(),
            todo="Move the call into the function that returns the dataset's DataFrame.",
        )
    return reader


def read(name: str) -> Any:
    """Batch DataFrame of a dataset of this pipeline, or of a table from outside."""
    return _reader_or_error("dlt.read").batch(_dataset_name("dlt.read", name))


def read_stream(name: str) -> Any:
    """Streaming DataFrame of a dataset of this pipeline, or of a table from outside."""
    return _reader_or_error("dlt.read_stream").stream(_dataset_name("dlt.read_stream", name), {})


def _dataset_name(call: str, name: Any) -> str:
    if isinstance(name, str):
        return name
    bound = getattr(name, _BOUND, None)
    todo = f'Write {call}("{bound.name}").' if bound else None
    raise _invalid(f"{call} takes the name of a dataset as text, got {type(name).__name__}", caller_location(), todo)


def enable_local_execution() -> None:
    """`dlt.enable_local_execution` of the published stub: nothing to do, the module's functions work here."""


# ------------------------------------------------------------------------------------------- what each module contains

_SHARED: Mapping[str, Any] = {
    "append_flow": append_flow,
    "apply_changes": apply_changes,
    "apply_changes_from_snapshot": apply_changes_from_snapshot,
    "create_auto_cdc_flow": create_auto_cdc_flow,
    "create_auto_cdc_from_snapshot_flow": create_auto_cdc_from_snapshot_flow,
    "create_sink": create_sink,
    "create_streaming_live_table": create_streaming_table,
    "create_streaming_table": create_streaming_table,
    "create_target_table": create_streaming_table,
    "create_view": view,
    "enable_local_execution": enable_local_execution,
    "expect": expect,
    "expect_all": expect_all,
    "expect_all_or_drop": expect_all_or_drop,
    "expect_all_or_fail": expect_all_or_fail,
    "expect_or_drop": expect_or_drop,
    "expect_or_fail": expect_or_fail,
    "foreach_batch_sink": foreach_batch_sink,
    "materialized_view": materialized_view,
    "on_event_hook": on_event_hook,
    "read": read,
    "readStream": read_stream,
    "read_stream": read_stream,
    "replace_flow": replace_flow,
    "temporary_view": view,
    "update_flow": update_flow,
    "view": view,
}

DLT: Mapping[str, Any] = {**_SHARED, "table": table, "create_table": create_table_decorator}
"""Names of `import dlt`."""

DP: Mapping[str, Any] = {**_SHARED, "table": streaming_table, "create_table": create_streaming_table, "append_flow": append_flow_into}
"""Names of `from pyspark import pipelines as dp`; `table` is a streaming table if its query streams, else a materialized view;
`create_table` is a plain function."""
