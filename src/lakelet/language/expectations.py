"""Decorators that declare expectations (docs/semantics/expectations.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lakelet.base.errors import Location
from lakelet.base.locations import caller_location
from lakelet.base.raised import line_of_text
from lakelet.language.arguments import invalid
from lakelet.language.decorated import BOUND, NO_RULES, NO_RULES_TODO, PENDING, RULELESS, wrapper
from lakelet.language.model import Action, Expectation
from lakelet.language.registry import active_registry
from lakelet.language.sql_text.spark_words import in_words_of_spark, written_text

F = TypeVar("F", bound=Callable[..., Any])


def rules_of(rules: Any, action: Action, where: Location) -> list[Expectation]:
    if not isinstance(rules, Mapping):
        raise invalid(f"expectations must be a dictionary of name and constraint, got {type(rules).__name__}", where)
    return [_rule(name, constraint, action, line_of_text(where, str(name))) for name, constraint in rules.items()]


def _rule(name: Any, constraint: Any, action: Action, where: Location) -> Expectation:
    if not isinstance(name, str) or not name:
        raise invalid(f"the name of an expectation must be text, got {name!r}", where)
    if not isinstance(constraint, str) and not hasattr(constraint, "alias"):
        raise invalid(f"the constraint of {name!r} must be SQL text or a Column, got {type(constraint).__name__}", where)
    text = written_text(constraint)
    return Expectation(name, constraint if text is None else in_words_of_spark(text), action, where, written=text)


def _expecting(expectations: Sequence[Expectation]) -> Callable[[F], F]:
    """Works below and above the dataset decorator: on a bound function it adds, on a plain one it waits (EP-6)."""

    where = caller_location()

    def attach(function: F) -> F:
        if not callable(function):
            raise invalid(f"an expectation decorates a dataset's function, got {function!r}", where)
        bound = getattr(function, BOUND, None)
        if bound is not None:
            active_registry().add_expectations(bound, expectations)
            return function
        if getattr(function, RULELESS, False):
            raise invalid(NO_RULES, where, NO_RULES_TODO)
        waiting = wrapper(function)
        # Decorators apply from the inside out; the outermost is written first, so it comes first.
        setattr(waiting, PENDING, (*expectations, *getattr(function, PENDING, ())))
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
        return _expecting(rules_of(expectations, action, caller_location()))

    return decorator


expect = _single(Action.WARN)
expect_or_drop = _single(Action.DROP)
expect_or_fail = _single(Action.FAIL)
expect_all = _several(Action.WARN)
expect_all_or_drop = _several(Action.DROP)
expect_all_or_fail = _several(Action.FAIL)
