"""Example values of columns as Python text: one that the suggested rules name, else one of the column's type. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import date

from lakelet.base.names import quoted_if_needed

_PLAIN = {
    **dict.fromkeys(("string", "char", "varchar"), '"a"'),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "1"),
    **dict.fromkeys(("float", "double"), "1.0"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "datetime(2026, 1, 1, 12)"),
    "boolean": "True",
    "date": "date(2026, 1, 1)",
    "binary": 'b"a"',
    "array": "[]",
    "map": "{}",
}
_LITERAL = re.compile(r"(?:BETWEEN |>= |>= DATE |IN \()(?:'(?P<text>(?:[^'\\]|\\.)*)'|(?P<number>-?[\d.]+(?:E-?\d+)?))")
"""The first value that a suggested rule names, after the column."""


def example(name: str, kind: str, constraints: Iterable[str]) -> str:
    """Return a value of a column as Python writes it. `kind`: its Spark type; `constraints`: the suggested rules of the table."""
    if name == "_rescued_data":
        return "None"
    column = quoted_if_needed(name)
    for constraint in constraints:
        rest = constraint.removeprefix(f"{column} IS NULL OR (")
        found = _LITERAL.match(rest.removeprefix(f"{column} ")) if rest.startswith(f"{column} ") else None
        if found:
            return _typed(kind, re.sub(r"\\(.)", r"\1", found["text"]) if found["number"] is None else found["number"])
    return placeholder(kind)


def placeholder(kind: str) -> str:
    """Return a value of a Spark type as Python writes it; None for types that have no simple one."""
    base = re.split("[<(]", kind, maxsplit=1)[0]
    if base == "struct":
        fields = [placeholder(field) for field in _field_types(kind[len("struct<") : -1])]
        return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
    if base == "decimal":
        precision, scale = map(int, re.findall(r"\d+", kind))
        return f"Decimal({1 if precision > scale else 0})"
    return _PLAIN.get(base, "None")


def imports(values: Iterable[str]) -> list[str]:
    """Return the import statements that the values need."""
    text = " ".join(values)
    dates = [name for name in ("date", "datetime") if re.search(rf"\b{name}\(", text)]
    return [
        *([f"from datetime import {', '.join(dates)}"] if dates else []),
        *(["from decimal import Decimal"] if "Decimal(" in text else []),
    ]


def _typed(kind: str, text: str) -> str:
    """The value that a rule names, in the type of its column."""
    if kind == "date":
        return repr(date.fromisoformat(text)).removeprefix("datetime.")
    if kind.startswith("timestamp"):
        day = date.fromisoformat(text)
        return f"datetime({day.year}, {day.month}, {day.day}, 12)"
    if kind.startswith("decimal"):
        return f"Decimal({text})" if text.lstrip("-").isdecimal() else f'Decimal("{text}")'
    if kind in ("float", "double"):
        return repr(float(text))
    return python_text(text) if kind.startswith(("string", "char", "varchar")) else text


def python_text(text: str) -> str:
    """Return a text as Python writes it, in double quotes where it can be."""
    return repr(text) if '"' in text or "\\" in text else json.dumps(text, ensure_ascii=False)


def _field_types(text: str) -> Iterator[str]:
    """The types of the fields between the angle brackets of a struct."""
    depth, begin, quote = 0, 0, False
    for at, character in enumerate(f"{text},"):
        quote ^= character == "`"
        depth += not quote and (character in "<(") - (character in ">)")
        if character == "," and depth == 0 and not quote and at > begin:
            field = text[begin:at]
            yield (field.partition("`:")[2] if field.startswith("`") else field.partition(":")[2]).strip()
            begin = at + 1


__all__ = ["example", "imports", "placeholder", "python_text"]
