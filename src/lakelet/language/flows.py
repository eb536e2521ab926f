"""Decorators that declare flows of their own, and those whose rows replace others (docs/semantics/replacing.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.user_code import caller_location, function_location
from lakelet.language.argument_types import Columns, Expression, F, Settings
from lakelet.language.arguments import columns, expression, invalid, refuse_given, settings, text
from lakelet.language.model import Flow, Replacement
from lakelet.language.registry import active_registry
from lakelet.language.wrappers import (
    BOUND,
    NO_RULES,
    NO_RULES_TODO,
    PENDING,
    RULELESS,
    check_no_parameters,
    function_name,
    unwrapped,
    wrapper,
)


def append_flow(
    name: str | None = None,
    target: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
    once: bool = False,
    import_checkpoint: Any = None,
) -> Callable[[F], F]:
    """Declare the decorated function as a flow that appends to the streaming table or sink `target` (DS-9).

    Args:
        name: of the flow; the function's name by default.
        target: name of a table of `create_streaming_table`, or of a sink.
        comment: text that reports show with the flow.
        spark_conf: settings of Spark while the flow runs.
        once: its query is a batch, which is appended one time until a full refresh.
        import_checkpoint: refused: checkpoints of other systems are not read.

    Raises ARGUMENT_INVALID for a missing target or a value of the wrong type, NOT_SUPPORTED_YET for `import_checkpoint`.
    """
    where = caller_location()
    if not isinstance(once, bool):
        raise invalid(f"once must be True or False, got {once!r}", where)
    refuse_given(where, import_checkpoint=import_checkpoint)
    return flow_into("append_flow", target, name, where, {"comment": comment, "spark_conf": spark_conf}, once=once)


def append_flow_into(
    target: str | None = None,
    name: str | None = None,
    once: bool = False,
    spark_conf: Settings | None = None,
    comment: str | None = None,
    import_checkpoint: Any = None,
) -> Callable[[F], F]:
    """Declare the decorated function as a flow that appends to the streaming table or sink `target` (DS-9).

    The arguments and errors are those of `dlt.append_flow`; `pyspark.pipelines` has the target first.
    """
    return append_flow(name, target, comment, spark_conf, once, import_checkpoint)


append_flow_into.__name__ = append_flow_into.__qualname__ = "append_flow"


def update_flow(
    target: str | None = None, name: str | None = None, spark_conf: Settings | None = None, comment: str | None = None
) -> Callable[[F], F]:
    """Declare the decorated function as a flow that sends a sink the rows of its result that changed (SK-8).

    Args:
        target: name of a sink.
        name: of the flow; the function's name by default.
        spark_conf: settings of Spark while the flow runs.
        comment: text that reports show with the flow.

    Raises ARGUMENT_INVALID for a missing target or a value of the wrong type.
    """
    return flow_into("update_flow", target, name, caller_location(), {"comment": comment, "spark_conf": spark_conf})


def flow_into(
    kind: str,
    target: Any,
    name: Any,
    where: Location,
    given: Mapping[str, Any],
    *,
    once: bool = False,
    replaces: Replacement | None = None,
) -> Callable[[F], F]:
    """The decorator `kind` of a flow called `name` into `target`; `given`: comment and spark_conf, to be checked."""
    if callable(name) or callable(target) or not text("target", target, where):
        raise invalid(f"{kind} needs a target", where, f'Write @dlt.{kind}(target="table").')

    def declare(function: F) -> F:
        if not callable(function):
            raise invalid(f"{kind} decorates a function", where)
        if getattr(function, PENDING, None):
            raise invalid(NO_RULES, where, NO_RULES_TODO)
        registry = active_registry()
        check_no_parameters(function, function_location(function))
        flow_name = text("name", name, where) or function_name(function, "dataset", where)
        query = unwrapped(function)
        registry.add_flow(
            Flow(
                name=flow_name if "." in flow_name else str(registry.resolve(f"`{flow_name}`", where)),
                target=registry.resolve(str(target), where),
                query=query,
                where=function_location(function),
                default=False,
                comment=text("comment", given["comment"], where),
                spark_conf=settings("spark_conf", given["spark_conf"], where),
                once=once,
                update=kind == "update_flow",
                replaces=replaces,
            )
        )
        return _without_rules(function)

    return declare


def _without_rules(function: F) -> F:
    """The function, wrapped so that an expectation above the decorator of a flow is refused; it would have no effect."""
    if hasattr(function, BOUND) or getattr(function, RULELESS, False):
        return function
    found = wrapper(function)
    setattr(found, RULELESS, True)
    return found  # type: ignore[return-value]


# --------------------------------------------------------------------------------------------- flows that replace rows


def replace_flow(
    target: str | None = None,
    replace_using: Columns | None = None,
    sequence_by: Expression | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
) -> Callable[[F], F]:
    """Declare the decorated function as a flow whose rows replace those of the streaming table `target` with the same keys (RP-2).

    Args:
        target: name of a table that `create_streaming_table` declares.
        replace_using: the key columns; the stored rows with the key of a new row go.
        sequence_by: what orders the rows of a key; the last one stays.
        name: of the flow; the function's name by default.
        comment: text that reports show with the flow.
        spark_conf: settings of Spark while the flow runs.

    Raises ARGUMENT_INVALID for a missing argument, a value of the wrong type or a column that is named twice.
    """
    where = caller_location()
    if replace_using is None:
        raise invalid("replace_flow needs replace_using", where, 'Write replace_using=["id"]: the columns whose rows go together.')
    replaces = replacement(None, replace_using, sequence_by, where)
    return flow_into("replace_flow", target, name, where, {"comment": comment, "spark_conf": spark_conf}, replaces=replaces)


def replacement(condition: Any, using: Any, sequence: Any, where: Location) -> Replacement | None:
    """Return what `replace_where`, `replace_using` and `sequence_by` of a table or flow say; None where none is given.

    Raises ARGUMENT_INVALID.
    """
    if condition is not None and (using is not None or sequence is not None):
        raise invalid("replace_where and replace_using exclude each other", where, "Keep one of them.")
    if condition is not None:
        return Replacement(where=expression("replace_where", condition, where))
    if using is None and sequence is None:
        return None
    if using is None or sequence is None:
        missing, has = ("replace_using", "sequence_by") if using is None else ("sequence_by", "replace_using")
        raise invalid(f"{has} needs {missing}", where, 'Write replace_using=["id"], sequence_by="changed_at".')
    return Replacement(keys=_replace_keys(using, where), sequence_by=expression("sequence_by", sequence, where))


def _replace_keys(given: Any, where: Location) -> tuple[str, ...]:
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else given
    found = columns("replace_using", listed, where)
    if not found:
        raise invalid("replace_using names no column", where, 'Write replace_using=["id"].')
    if len(found) < len(listed):
        raise invalid("replace_using names a column twice", where, "Name each column once.")
    return tuple(path[0] for path in found)
