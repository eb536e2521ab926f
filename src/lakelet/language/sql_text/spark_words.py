"""SQL text of Databricks in the words that Spark has."""

from __future__ import annotations

import re

from lakelet.language.sql_text.table_names import without_strings

_PATH = re.compile(r"[\w`\])]\s*:(?!:)\s*[\w`\['\"]")  # in text without the content of its strings


def in_words_of_spark(text: str) -> str:
    """Return SQL text with each path into JSON (`raw:a.b`) as the call that Spark has for it; other text comes back unchanged."""
    if not _PATH.search(without_strings(text)):
        return text
    from lakelet.language.sql_text.json_paths import json_paths  # here, because it loads sqlglot

    return json_paths(text)
