"""Table names: one to three parts in user code, always three inside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PLAIN = re.compile(r"(?!(?:true|false|null)$)[A-Za-z_][A-Za-z0-9_]*", re.IGNORECASE)
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


@dataclass(frozen=True, order=True)
class TableName:
    """The full name of a dataset. Compares without case through `key`."""

    catalog: str
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.name}"

    @property
    def key(self) -> str:
        """Lower-case text under which the name is looked up: names do not differ by case alone."""
        return str(self).lower()


@dataclass(frozen=True)
class Namespace:
    """Where names with fewer than three parts live."""

    catalog: str = "main"
    schema: str = "default"

    def resolve(self, text: str) -> TableName:
        """The full name meant by one-, two- or three-part `text`; a leading `LIVE.` is dropped (DS-19).

        Raises ValueError if the text is not a name or has more than three parts.
        """
        parts = split_name(text)
        if len(parts) > 1 and parts[0].lower() == "live":
            parts = parts[1:]
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"{text!r} has {len(parts)} parts; a table name has one to three")
        catalog, schema, name = (self.catalog, self.schema)[: 3 - len(parts)] + parts
        return TableName(catalog, schema, name)


def is_plain(name: str) -> bool:
    """Whether a name needs no back quotes anywhere: Spark takes letters of ASCII only, and TRUE, FALSE and NULL are values."""
    return _PLAIN.fullmatch(name) is not None


def quoted(name: str) -> str:
    """The name in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def quoted_if_needed(name: str) -> str:
    """The name as SQL text has it, in back quotes only where it needs them."""
    return name if is_plain(name) else quoted(name)


def all_quoted(parts: Iterable[str]) -> str:
    """The dotted name with each part in back quotes."""
    return ".".join(map(quoted, parts))


def dotted(parts: Iterable[str]) -> str:
    """The dotted name, with back quotes around the parts that need them."""
    return ".".join(map(quoted_if_needed, parts))


def split_name(text: str) -> tuple[str, ...]:
    """Parts of a dotted name; back quotes protect dots. Raises ValueError if `text` is not a name."""
    parts: list[str] = []
    position = 0
    stripped = text.strip()
    while True:
        match = _PART.match(stripped, position)
        if not match:
            raise ValueError(f"{text!r} is not a table name")
        quoted, plain = match.groups()
        parts.append(quoted.replace("``", "`") if quoted is not None else plain.strip())
        position = match.end()
        if position == len(stripped):
            break
        if stripped[position] != ".":
            raise ValueError(f"{text!r} is not a table name")
        position += 1
    if not all(parts):
        raise ValueError(f"{text!r} is not a table name")
    return tuple(parts)


def given_names(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Names given one by one or as `a,b`; commas in back quotes stay."""
    found: list[str] = []
    for text in texts or ():
        part, quoted = "", False
        for character in text:
            quoted ^= character == "`"
            if character == "," and not quoted:
                found.append(part)
                part = ""
            else:
                part += character
        found.append(part)
    return tuple(name.strip() for name in found if name.strip())


def several_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """The names of an argument that takes several: a text is read as `given_names` reads it, and never letter by letter."""
    return (given_names([given]) or (given,)) if isinstance(given, str) else tuple(given)
