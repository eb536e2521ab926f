"""SQL text of Databricks in the words that Spark has."""

from __future__ import annotations

import re

_MAY_BE_PATH = re.compile(r"(?<!:):(?!:)\s*(?:[^\W\d]|\d+[^\W\d]|[`\['\"])")  # also in strings; no time of day


def in_words_of_spark(text: str) -> str:
    """Return SQL text with each path into JSON (`raw:a.b`) as the call that Spark has for it; other text comes back unchanged."""
    if not _MAY_BE_PATH.search(text):
        return text
    from lakelet.language.sql_text.json_paths import json_paths  # here, because it loads sqlglot

    return json_paths(text)
