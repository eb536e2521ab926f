"""sqlglot's dialect of Databricks for the pipeline language, and its tokenizer as `tokens.py` uses it. Importing this loads sqlglot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sqlglot import Token
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError


class Pipelines(Databricks):
    """Databricks SQL, word by word: `PARTITIONED BY` is two words, and no statement takes the rest of its text as one string."""

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS: ClassVar = {k: v for k, v in Databricks.Tokenizer.KEYWORDS.items() if not set(k) & set(" {}%")}
        COMMANDS: ClassVar = set()


class _Tokenizer(Pipelines.Tokenizer):
    KEYWORDS: ClassVar = {k: v for k, v in Pipelines.Tokenizer.KEYWORDS.items() if k.isidentifier() or not any(c.isalnum() for c in k)}
    HEX_STRINGS: ClassVar = []


def raw_tokens(text: str) -> Sequence[Token]:
    """sqlglot's tokens of a text, up to the first string or name that does not end."""
    tokenizer = _Tokenizer(Pipelines)
    try:
        return tokenizer.tokenize(text)
    except TokenError:
        return tokenizer.tokens
