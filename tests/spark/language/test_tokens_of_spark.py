"""Tokens of SQL text against Spark's own lexer: the same kinds at the same characters."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from lakelet.language.sql_text.tokens import Token, all_tokens, tokens

pytestmark = pytest.mark.spark

_SHOWN = re.compile(r"\[@-1,(\d+):(\d+)='.*?',<(\d+)>(?:,channel=\d+)?,\d+:\d+\]", re.DOTALL)
_KINDS = {"STRING_LITERAL": "string", "DOUBLEQUOTED_STRING": "string", "BACKQUOTED_IDENTIFIER": "name", "SIMPLE_COMMENT": "comment",
          "BRACKETED_COMMENT": "comment"}  # fmt: skip
_NUMBERS = ("BIGINT_LITERAL", "SMALLINT_LITERAL", "TINYINT_LITERAL", "INTEGER_VALUE", "EXPONENT_VALUE", "DECIMAL_VALUE", "FLOAT_LITERAL",
            "DOUBLE_LITERAL", "BIGDECIMAL_LITERAL")  # fmt: skip
_SPANS = {"HENT_START": ("HENT_END", "hint"), "BEGIN_DOLLAR_QUOTED_STRING": ("END_DOLLAR_QUOTED_STRING", "string")}

PIECES = [
    *("a", "b1", "`c``d`", "1", "1.5", ".5", "1.", "2L", "1e3BD", "1e", "0x1F", "1_0", "é", "名", "x'1F'", "n'a'", "user-defined"),
    *("'s'", "'it''s'", r"'a\'b'", r"r'\'", '"d"', '"d""e"', "$$it's$$", "$t$ ' $$ $t$", "-- c\n", "-- c\\\nd\n", "-- c\r", "/* c */"),
    *("/* a /* b */ c */", "/*/ a */", ".", ",", "::", "=>", "->", "||", "<=>", "(", ")", "{", "}", "#", "$", "@", "?", "€", ";", ":"),
    *(" ", "\n", "\t", "  ", "\u00a0", "\u2028"),
]


def of_spark(lexer, text: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of each token of Spark's lexer; signs character by character."""
    names, rows = lexer.names, lexer.rows(text)
    at = 0
    while at < len(rows):
        start, stop, number = rows[at]
        name = names[number]
        if name in _SPANS:
            end, kind = _SPANS[name]
            while names[rows[at][2]] != end:
                at += 1
            yield kind, text[start : rows[at][1]]
        elif name != "WS":
            kind = _KINDS.get(name) or ("number" if name in _NUMBERS else "word")
            yield from parts(kind, text[start:stop].rstrip("\r\n") if name == "SIMPLE_COMMENT" else text[start:stop])
        at += 1


def ours(text: str) -> Iterator[tuple[str, str]]:
    for token in all_tokens(text):
        part = text[token.start : token.stop]
        if token.kind == "number" and part[0] in "xX":  # Spark puts them together later
            yield from (("word", part[0]), ("string", part[1:]))
        else:
            yield from parts(token.kind, part)


def parts(kind: str, text: str) -> Iterator[tuple[str, str]]:
    sign = kind == "word" and not (text[0].isalnum() or text[0] == "_")
    yield from ((kind, part) for part in (text if sign else [text]))


def is_closed(text: str) -> bool:
    """Whether all strings and comments end; of a text like `*/* c */` Spark reads the first two signs as the end of a hint."""
    return "*/*" not in text and not any(token.kind == "open" for token in all_tokens(text))


class Lexer:
    def __init__(self, spark) -> None:
        self.parser = spark._jvm.org.apache.spark.sql.catalyst.parser
        self.streams = spark._jvm.org.antlr.v4.runtime.CharStreams
        vocabulary = self.parser.SqlBaseLexer.VOCABULARY
        self.names = [str(vocabulary.getSymbolicName(number)) for number in range(vocabulary.getMaxTokenType() + 1)]

    def rows(self, text: str) -> list[tuple[int, int, int]]:
        found = self.parser.SqlBaseLexer(self.parser.UpperCaseCharStream(self.streams.fromString(text))).getAllTokens()
        rows = [(t.getStartIndex(), t.getStopIndex() + 1, t.getType()) for t in (found.get(i) for i in range(found.size()))]
        assert "".join(text[start:stop] for start, stop, _ in rows) == text
        return rows


@pytest.fixture(scope="module")
def lexer(spark) -> Lexer:
    return Lexer(spark)


def test_texts_of_all_pieces_have_the_tokens_that_spark_reads(lexer):
    dice = random.Random(4)
    texts = [text for text in (*PIECES, *("".join(dice.choices(PIECES, k=12)) for _ in range(80))) if is_closed(text)]
    assert len(texts) > 100
    told = {text: (list(ours(text)), list(of_spark(lexer, text))) for text in texts}
    assert {text: pair for text, pair in told.items() if pair[0] != pair[1]} == {}


LITERALS = ["'it''s'", r"'a\'b'", r"r'a\n'", r"'\u0041\n\t\\'", r"'100\% \_'", r"'\x'", r"'\101'", r"'\U0001F600'", '"a""b"',
            "'größe'", r"'\Z\b\r\0'"]  # fmt: skip


@pytest.mark.parametrize("literal", LITERALS)
def test_a_string_says_what_it_says_in_spark(spark, literal):
    (token,) = tokens(literal)
    assert (token.kind, token.value) == ("string", spark.sql(f"SELECT {literal}").first()[0])
    assert isinstance(token, Token)
