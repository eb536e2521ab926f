"""Options of a reader as data: name, default, and how its text is checked (AL-1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """One option without the prefix `cloudFiles.`.

    read: text → value; raises ValueError with what it must be.
    default: the value where the option is not given.
    only: texts, lower case, that this version can honour; others are NOT_SUPPORTED_YET. None: all.
    notice: why the option has no effect here, for one warning; None when it has one.
    """

    name: str
    read: Callable[[str], Any]
    default: Any = None
    only: tuple[str, ...] | None = None
    notice: str | None = None


def flag(name: str, default: bool, *, only: bool | None = None, notice: str | None = None) -> Option:
    """A boolean option; `only`: the one value that can be honoured."""

    def read(text: str) -> bool:
        if text.strip().lower() not in ("true", "false"):
            raise ValueError("must be true or false")
        return text.strip().lower() == "true"

    return Option(name, read, default, None if only is None else (str(only).lower(),), notice)


def text(name: str, default: str | None = None, *, only: tuple[str, ...] | None = None, notice: str | None = None) -> Option:
    """An option whose text is taken as it is."""
    return Option(name, str, default, only, notice)


def char(name: str, default: str | None) -> Option:
    """An option of one character; `\\t`, `\\0` and `\\u0000` spelled out count as one."""

    def read(value: str) -> str:
        named = {"\\t": "\t", "\\0": "\0", "\\u0000": "\0", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}.get(value, value)
        if len(named) > 1:
            raise ValueError("must be one character")
        return named

    return Option(name, read, default)


def number(name: str, default: int, *, least: int = 0) -> Option:
    """A whole number."""

    def read(value: str) -> int:
        try:
            found = int(value.strip())
        except ValueError:
            raise ValueError("must be a whole number") from None
        if found < least:
            raise ValueError(f"must be at least {least}")
        return found

    return Option(name, read, default)


def ratio(name: str, default: float) -> Option:
    """A number above 0 and up to 1."""

    def read(value: str) -> float:
        try:
            found = float(value)
        except ValueError:
            raise ValueError("must be a number") from None
        if not 0 < found <= 1:
            raise ValueError("must be above 0 and at most 1")
        return found

    return Option(name, read, default)


def word(name: str, default: str, choices: Sequence[str], *, only: tuple[str, ...] | None = None, notice: str | None = None) -> Option:
    """One of some words, compared without case; the value is spelled as in `choices`."""

    def read(value: str) -> str:
        for choice in choices:
            if choice.lower() == value.strip().lower():
                return choice
        raise ValueError(f"must be one of {', '.join(choices)}")

    return Option(name, read, default, only, notice)


def date_pattern(name: str) -> Option:
    """A Java date-time pattern that `java_patterns` can honour; None: Spark's own rules."""

    def read(value: str) -> str:
        from lakelet.autoloader.types.text_values import pattern_regex  # imports pyarrow

        pattern_regex(value)
        return value

    return Option(name, read)


def by_key(options: Sequence[Option]) -> Mapping[str, Option]:
    """The options by their names in lower case, as readers see them."""
    return {option.name.lower(): option for option in options}


LOCALE = text("locale", "en-US", only=("us", "en-us", "en"))
PERMISSIVE, DROP, FAILFAST = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"
