"""A transform as a value: its name, its arguments without secrets, and the function that it is; and a record of those applied."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, ParamSpec, TypeVar

from pyspark.sql import DataFrame

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
OneToOne = Callable[[DataFrame], DataFrame]

SECRETS = frozenset({"key"})
"""Parameters whose values are never shown or recorded."""
_LONGEST = 200

_applied: ContextVar[list[AppliedTransform] | None] = ContextVar("lakelet_transforms_applied", default=None)


@dataclass(frozen=True)
class AppliedTransform:
    """A transform that was applied: its name, and each argument as text, secrets left out."""

    name: str
    arguments: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.arguments)})"


@dataclass(frozen=True)
class Transform(Generic[Result]):
    """Result of a function of this library: a callable for `DataFrame.transform`. Its repr is the call that made it, without secrets."""

    description: AppliedTransform
    run: Callable[[DataFrame], Result] = field(repr=False)

    def __call__(self, frame: DataFrame) -> Result:
        """Apply it to a frame; noted where a `recording` is open."""
        result = self.run(frame)
        record = _applied.get()
        if record is not None:
            record.append(self.description)
        return result

    def __repr__(self) -> str:
        return str(self.description)


@contextmanager
def recording() -> Iterator[list[AppliedTransform]]:
    """The transforms applied in this block, in order, by this thread. Lakelet opens one around the function of each flow.

    >>> from lakelet.transforms import drop, recording
    >>> with recording() as applied:
    ...     _ = spark.range(3).withColumn("a", F.lit(1)).transform(drop("a"))
    >>> [str(one) for one in applied]
    ["drop(columns=('a',), missing_ok=False)"]
    """
    found: list[AppliedTransform] = []
    token = _applied.set(found)
    try:
        yield found
    finally:
        _applied.reset(token)


def transform(
    make: Callable[Arguments, Callable[[DataFrame], Result]],
) -> Callable[Arguments, Transform[Result]]:
    """Decorate a function that returns a function of a frame: it then returns a `Transform`."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Transform[Result]:
        run = make(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return Transform(AppliedTransform(make.__name__, _shown(bound.arguments)), run)

    return made


def _shown(arguments: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _text(value)) for name, value in arguments.items() if name not in SECRETS)


def _text(value: object) -> str:
    """An argument as text; frames by their columns, as their rows are data."""
    if isinstance(value, DataFrame):
        return f"<{', '.join(value.columns)}>"
    if isinstance(value, tuple) and any(isinstance(one, DataFrame) for one in value):
        return "(" + ", ".join(map(_text, value)) + ")"
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
