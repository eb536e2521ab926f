"""Options of a reader as data: names, default, how a text is read, what is refused; and the one function that reads them (AL-1).

Each format, and Auto Loader itself, has one table of `Option`. Texts by lower-case name go in, values by lower-case name come out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.autoloader.formats.charsets import charset
from lakelet.base.errors import LakeletError, Location

PERMISSIVE, DROP, FAILFAST = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"
_SPELLED = {"\\t": "\t", "\\0": "\0", "\\u0000": "\0", "\\n": "\n", "\\r": "\r", "\\r\\n": "\r\n", "\\\\": "\\"}
"""Control characters that a text may spell out."""


@dataclass(frozen=True)
class Option:
    """One option without the prefix `cloudFiles.`.

    read: text → value; raises ValueError with what it must be.
    default: the value where the option is not given.
    only: texts, lower case, that this version can honour; others are NOT_SUPPORTED_YET. None: all.
    notice: why the option has no effect here, for one warning; None when it has one.
    aliases: further names; two names with different values are refused.
    """

    name: str
    read: Callable[[str], Any]
    default: Any = None
    only: tuple[str, ...] | None = None
    notice: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the first one first."""
        return (self.name, *self.aliases)


def flag(name: str, default: bool | None, *, only: bool | None = None, notice: str | None = None) -> Option:
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
        found = _SPELLED.get(value, value)
        if len(found) > 1:
            raise ValueError("must be one character")
        return found

    return Option(name, read, default)


def line_separator(*, most: int | None = None) -> Option:
    """`lineSep`, spelled out or not; None: the line ends of the format. `most`: how many characters it may have."""

    def read(value: str) -> str:
        found = _SPELLED.get(value, value)
        if not found or (most is not None and len(found) > most):
            raise ValueError("must not be empty" if most is None else f"must have 1 to {most} characters")
        return found

    return Option("lineSep", read)


def encoding(default: str | None, *, aliases: tuple[str, ...] = ("charset",)) -> Option:
    """The charset of text files; the value is the name that Python gives it."""
    return Option("encoding", charset, default, aliases=aliases)


def number(name: str, default: int, *, least: int = 0, notice: str | None = None) -> Option:
    """A whole number."""

    def read(value: str) -> int:
        try:
            found = int(value.strip())
        except ValueError:
            raise ValueError("must be a whole number") from None
        if found < least:
            raise ValueError(f"must be at least {least}")
        return found

    return Option(name, read, default, notice=notice)


def ratio(name: str, default: float, *, notice: str | None = None) -> Option:
    """A number above 0 and up to 1."""

    def read(value: str) -> float:
        try:
            found = float(value)
        except ValueError:
            raise ValueError("must be a number") from None
        if not 0 < found <= 1:
            raise ValueError("must be above 0 and at most 1")
        return found

    return Option(name, read, default, notice=notice)


def word(name: str, default: str, choices: Sequence[str], *, only: tuple[str, ...] | None = None, notice: str | None = None) -> Option:
    """One of some words, compared without case; the value is spelled as in `choices`."""

    def read(value: str) -> str:
        for choice in choices:
            if choice.lower() == value.strip().lower():
                return choice
        raise ValueError(f"must be one of {', '.join(choices)}")

    return Option(name, read, default, only, notice)


def date_pattern(name: str) -> Option:
    """A Java date-time pattern that can be honoured; None: Spark's own rules."""

    def read(value: str) -> str:
        from lakelet.autoloader.text_values import pattern_regex  # imports pyarrow

        pattern_regex(value)
        return value

    return Option(name, read)


LOCALE = text("locale", "en-US", only=("us", "en-us", "en"))
DATE_PATTERNS = (date_pattern("dateFormat"), date_pattern("timestampFormat"), date_pattern("timestampNTZFormat"))


def by_name(options: Sequence[Option]) -> Mapping[str, Option]:
    """The options by all their names in lower case."""
    return {name.lower(): option for option in options for name in option.names}


def read_options(
    options: Sequence[Option],
    given: Mapping[str, str],
    where: Location | None,
    *,
    prefix: str = "",
    defaults: Mapping[str, tuple[str, str]] | None = None,
) -> dict[str, Any]:
    """The value of each option by its first name in lower case: what is given, else the setting that is its default, else its own default.

    Args:
        options: the table.
        given: texts by lower-case name without prefix; what is not in the table is left to others.
        where: the call, for errors.
        prefix: `cloudFiles.` or nothing.
        defaults: lower-case name → the setting that is its default, and the text.

    Raises:
        LakeletError: CF_INVALID_OPTION_VALUE; NOT_SUPPORTED_YET for a value that cannot be honoured; CF_INCONSISTENT_OPTIONS for two names
            of one option with different values.
    """
    found: dict[str, Any] = {}
    for option in options:
        values = {
            name: _checked_value(option, f"option {prefix}{name}", given[name.lower()], where)
            for name in option.names
            if name.lower() in given
        }
        key, setting = option.name.lower(), (defaults or {}).get(option.name.lower())
        if not values and setting is not None:
            values = {
                option.name: _checked_value(
                    option, f"setting {setting[0]}, the default of option {prefix}{option.name},", setting[1], where
                )
            }
        first, *others = values.items() or [(option.name, option.default)]
        other = next((other for other in others if other[1] != first[1]), None)
        if other is not None:
            texts = [f"{prefix}{name} is {given[name.lower()]!r}" for name in (first[0], other[0])]
            what = f"option {' and '.join(texts)}: they are two names of one option"
            raise LakeletError("CF_INCONSISTENT_OPTIONS", what, where=where, todo="Leave one of them out.")
        found[key] = first[1]
    return found


def _checked_value(option: Option, called: str, text: str, where: Location | None) -> Any:
    try:
        found = option.read(text)
    except ValueError as problem:
        raise LakeletError("CF_INVALID_OPTION_VALUE", f"{called} {problem}, not {text!r}", where=where) from None
    if option.only is not None and text.strip(" ").lower() not in option.only:
        what = f"{called} is not supported yet" + (" with this value" if option.only else "")
        raise LakeletError("NOT_SUPPORTED_YET", what, where=where, todo=None if option.only else "Leave the option out.")
    return found
