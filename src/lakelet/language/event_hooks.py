"""`@dp.on_event_hook`: functions that get every event of an update (RE-17).

Here they are declared; `update.hook_runner` calls them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.user_code import function_location
from lakelet.language.argument_types import F
from lakelet.language.arguments import invalid
from lakelet.language.model import Hook
from lakelet.language.registry import active_registry


def on_event_hook(user_event_hook_fn: F | None = None, max_allowable_consecutive_failures: int | None = None) -> F | Callable[[F], F]:
    """Have the decorated function called with each event of an update, a dictionary whose `details` are parsed (RE-17).

    A decorator, with and without parentheses.

    Args:
        user_event_hook_fn: the function, when the decorator is written without parentheses.
        max_allowable_consecutive_failures: the hook is disabled when it fails more often than this in a row; None means never.

    Raises ARGUMENT_INVALID unless the function takes exactly one argument.
    """
    if user_event_hook_fn is None:
        return lambda function: _declare_hook(function, max_allowable_consecutive_failures)
    return _declare_hook(user_event_hook_fn, max_allowable_consecutive_failures)


def _declare_hook(hook: F, allowed: int | None) -> F:
    where = function_location(hook)
    _check_hook_function(hook, where)
    if allowed is not None and (isinstance(allowed, bool) or not isinstance(allowed, int) or allowed < 0):
        todo = "Give a number from 0 on, or None for no limit."
        raise invalid(f"max_allowable_consecutive_failures is {allowed!r}", where, todo)
    name = getattr(hook, "__name__", type(hook).__name__)
    active_registry().add_hook(Hook(name, hook, where, allowed))
    return hook


def _check_hook_function(function: Any, where: Location) -> None:
    """Refuse what could not be called with one event."""
    todo = "Write @dp.on_event_hook above: def my_hook(event): ..."
    if not callable(function):
        raise invalid(f"on_event_hook decorates a function, got {function!r}", where, todo)
    if inspect.iscoroutinefunction(function):
        raise invalid("an event hook cannot be an async function: nobody would await it", where, todo)
    try:
        signature = inspect.signature(function)
        signature.bind({})
    except TypeError as problem:
        what = f"an event hook takes exactly one argument, the event: {problem}"
        raise invalid(what, where, todo) from None
    if len(signature.parameters) != 1:
        what = f"an event hook takes exactly one argument, the event; this one has {len(signature.parameters)}"
        raise invalid(what, where, todo)
