"""The words of the pipeline language: sqlglot's tokenizer for Databricks, each word for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError

from lakelet.base.errors import LakeletError
from lakelet.language.sql_text.statements import StatementText

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


class Pipelines(Databricks):
    """Databricks SQL, word by word: `PARTITIONED BY` is two words, and no statement takes the rest of its text as one string."""

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS: ClassVar = {k: v for k, v in Databricks.Tokenizer.KEYWORDS.items() if not set(k) & set(" {}%")}
        COMMANDS: ClassVar = set()


@dataclass(frozen=True)
class Word:
    """One word of a statement: `text[start:stop]`. `upper`: as a keyword; empty for strings and quoted names. `value`: what it says."""

    upper: str
    value: str
    start: int
    stop: int
    kind: str

    @property
    def is_name(self) -> bool:
        """Whether it can be (a part of) a name."""
        return self.kind == "name" or (self.kind == "word" and (self.upper[0].isalnum() or self.upper[0] == "_"))


def words(statement: StatementText) -> list[Word]:
    """The words of a statement, comments left out. Raises SQL_SYNTAX where a string or name does not end."""
    try:
        return words_of(statement.text)
    except SqlglotError:
        raise LakeletError("SQL_SYNTAX", "the statement has a string or name that does not end", where=statement.location(0)) from None


def words_of(text: str) -> list[Word]:
    """The words of any piece of SQL. Raises SqlglotError."""
    found: list[Word] = []
    for token in Pipelines().tokenize(text):
        word = _word(token, text)
        if found and word.start < found[-1].stop:  # `1L` comes as three tokens of one place
            continue
        if found and word.kind == "string" and found[-1].kind == "string" and word.start == found[-1].stop:
            before = found.pop()  # 'it''s'
            word = Word("", before.value + text[word.start] + word.value, before.start, word.stop, "string")
        found.append(word)
    return found


def _word(token: Token, text: str) -> Word:
    start, stop = token.start, token.end + 1
    if token.token_type in _STRINGS:
        return Word("", token.text, start, stop, "string")
    if token.token_type is TokenType.IDENTIFIER:
        return Word("", token.text, start, stop, "name")
    if token.token_type in (TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.BYTE_STRING):
        return Word("", text[start:stop], start, stop, "number")
    raw = text[start:stop]
    return Word(raw.upper() or "?", raw, start, stop, "hint" if token.token_type is TokenType.HINT else "word")
