"""The functions that decorators give back: thin wrappers of the user's function that remember what was declared about it.

Attributes of a wrapper: `BOUND` is the dataset that the function declared, `PENDING` the expectations whose dataset comes later.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.language.arguments import invalid

BOUND = "__lakelet_dataset__"
PENDING = "__lakelet_expectations__"
RULELESS = "__lakelet_ruleless__"
"""Marks a function to which expectations cannot be attached: that of a flow or sink."""

NO_RULES = "expectations belong to tables and views, not to flows and sinks"
NO_RULES_TODO = "Give them to create_streaming_table(expect_all=...), or to the view that the flow reads."


def function_name(function: Any, kind: str, where: Location) -> str:
    """Return the name of a function, which names the dataset or sink (`kind`) too. Raises ARGUMENT_INVALID for a lambda."""
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise invalid(f"the {kind} has no name, and its function has none either", where, 'Give it one: name="...".')
    return str(name)


def check_signature(function: Any, where: Location, arguments: Sequence[Any], what: str, todo: str) -> None:
    """Refuse a function that cannot be called with `arguments`: `what` says how it is called, `todo` how to write it."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as problem:
        raise invalid(f"{what}: {problem}", where, todo) from None
    except ValueError:  # a callable without a readable signature
        pass


def check_no_parameters(function: Any, where: Location) -> None:
    """Refuse a function that cannot be called without arguments: nobody would give it any."""
    todo = "Give the argument a default: `def query(region=region):` also keeps the value of a loop."
    check_signature(function, where, (), "the dataset's function is called without arguments", todo)


def wrapper(query: Callable[..., Any], bound: TableName | None = None) -> Callable[..., Any]:
    """A thin wrapper that calls `query`; carries the dataset it declared, so that outer expectation decorators find it."""

    @functools.wraps(query)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # pytest shows the frames of the user's test and function only
        return query(*args, **kwargs)

    call.__dict__.pop(PENDING, None)
    if bound is not None:
        setattr(call, BOUND, bound)
    return call


def unwrapped(function: Any) -> Any:
    """Return the user's own function if `function` is the wrapper of a dataset decorator."""
    return getattr(function, "__wrapped__", function) if hasattr(function, BOUND) else function
