"""Decorators that declare flows of their own (docs/semantics/datasets.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.user_code import caller_location, function_location
from lakelet.language.argument_types import F, Settings
from lakelet.language.arguments import invalid, refuse_given, settings, text
from lakelet.language.decorated import (
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
from lakelet.language.model import Flow, Replacement
from lakelet.language.registry import active_registry


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
