"""Decorators that declare expectations (docs/semantics/expectations.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.raised import line_of_text
from lakelet.base.user_code import caller_location
from lakelet.language.argument_types import Expression, F, Rules
from lakelet.language.arguments import invalid
from lakelet.language.model import Action, Expectation
from lakelet.language.registry import active_registry
from lakelet.language.sql_text.spark_sql import in_spark_sql, written_text
from lakelet.language.wrappers import BOUND, NO_RULES, NO_RULES_TODO, PENDING, RULELESS, wrapper


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
    return Expectation(name, constraint if text is None else in_spark_sql(text), action, where, written=text)


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


def _single(action: Action, name: Any, inv: Any, description: Any, constraint: Any) -> Callable[[F], F]:
    label, rule = name if name is not None else description, inv if inv is not None else constraint
    return _expecting([_rule(label, rule, action, caller_location())])


def expect(
    name: str | None = None, inv: Expression | None = None, *, description: str | None = None, constraint: Expression | None = None
) -> Callable[[F], F]:
    """Count the rows that break a constraint, and keep them (EP-3).

    Args:
        name: of the expectation, as reports show it.
        inv: the constraint: a boolean expression over the columns of the dataset. A row for which it is NULL breaks it.
        description: what the rule is for; the name, where none is given.
        constraint: another name of `inv`.

    Raises ARGUMENT_INVALID for a name that is no text, or a constraint that is neither text nor a Column.
    """
    return _single(Action.WARN, name, inv, description, constraint)


def expect_or_drop(
    name: str | None = None, inv: Expression | None = None, *, description: str | None = None, constraint: Expression | None = None
) -> Callable[[F], F]:
    """Leave out the rows that break a constraint, and count them (EP-3).

    The arguments and errors are those of `expect`.
    """
    return _single(Action.DROP, name, inv, description, constraint)


def expect_or_fail(
    name: str | None = None, inv: Expression | None = None, *, description: str | None = None, constraint: Expression | None = None
) -> Callable[[F], F]:
    """Fail the flow when a row breaks a constraint; nothing of the batch is written (EP-3).

    The arguments and errors are those of `expect`.
    """
    return _single(Action.FAIL, name, inv, description, constraint)


def expect_all(expectations: Rules) -> Callable[[F], F]:
    """Count the rows that break one of several constraints, and keep them (EP-3).

    Args:
        expectations: names of expectations to their constraints.

    Raises ARGUMENT_INVALID for anything but a dictionary of names and constraints.
    """
    return _expecting(rules_of(expectations, Action.WARN, caller_location()))


def expect_all_or_drop(expectations: Rules) -> Callable[[F], F]:
    """Leave out the rows that break one of several constraints, and count them (EP-3).

    The argument and errors are those of `expect_all`.
    """
    return _expecting(rules_of(expectations, Action.DROP, caller_location()))


def expect_all_or_fail(expectations: Rules) -> Callable[[F], F]:
    """Fail the flow when a row breaks one of several constraints (EP-3).

    The argument and errors are those of `expect_all`.
    """
    return _expecting(rules_of(expectations, Action.FAIL, caller_location()))
