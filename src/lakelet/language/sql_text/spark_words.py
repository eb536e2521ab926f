"""SQL text of Databricks in the words that Spark has."""

from __future__ import annotations

import re
from typing import Any

from lakelet.language.sql_text.tokens import edited, may_have, plain_tokens

_SWITCH = "SKIPCHANGECOMMITS"
_MAY_BE_PATH = re.compile(r"(?<!:):(?!:)\s*(?:[^\W\d]|\d+[^\W\d]|[`\['\"])")  # also in strings; no time of day


_WRITTEN = "lakelet_written"


def note_written(column: object, text: str) -> None:
    """Keep the text of `F.expr(text)` with its column, if it may be a path into JSON text, which the column itself cannot be."""
    if _MAY_BE_PATH.search(text):
        vars(column)[_WRITTEN] = text


def written_text(condition: Any) -> str | None:
    """The text of a condition: as given, or of a column that `note_written` noted; None for any other column."""
    found = condition if isinstance(condition, str) else getattr(condition, "__dict__", {}).get(_WRITTEN)
    return None if found is None else str(found)


def in_words_of_spark(text: str) -> str:
    """Return SQL text with each path into JSON (`raw:a.b`) as the call that Spark has for it; other text comes back unchanged."""
    if not _MAY_BE_PATH.search(text):
        return text
    from lakelet.language.sql_text.json_paths import json_paths  # here, because it loads sqlglot

    return json_paths(text)


def with_values(text: str) -> str:
    """Return SQL text with the value of each option that may go without: `STREAM t WITH (SKIPCHANGECOMMITS)` means `= TRUE`."""
    if not may_have(text, [_SWITCH]):
        return text
    found = plain_tokens(text)
    bare = [
        token.stop
        for before, token, after in zip(found, found[1:], found[2:], strict=False)
        if token.upper == _SWITCH and before.upper in ("(", ",") and after.upper in (")", ",")
    ]
    return edited(text, [(at, at, " = TRUE") for at in bare])
