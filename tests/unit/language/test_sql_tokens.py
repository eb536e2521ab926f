"""Tokens of SQL text: what begins and ends where, as Spark reads it."""

from __future__ import annotations

import pytest

from lakelet.language.sql_text.tokens import OpenToken, all_tokens, may_have, tokens


def kinds(text: str) -> list[tuple[str, str]]:
    """(kind, text) of each token."""
    return [(token.kind, text[token.start : token.stop]) for token in all_tokens(text)]


DIFFERENCES = {
    "comments are tokens": ("a -- b\n/* c */d", "word a|comment -- b|comment /* c */|word d"),
    "a backslash takes a comment into the next line": ("a -- it's \\\nb\nc", "word a|comment -- it's \\\nb|word c"),
    "a carriage return ends a comment": ("-- a\rb", "comment -- a|word b"),
    "comments hold comments": ("/* a /* b */ ; */ c", "comment /* a /* b */ ; */|word c"),
    "a comment that ends where it begins": ("/**/a/*/ */b", "comment /**/|word a|comment /*/ */|word b"),
    "no comments of templates": ("{# it's a #}'b'", "word {|word #|word it|string 's a #}'|word b|open '"),
    "a quote twice": ("'it''s' \"a\"\"b\"", "string 'it''s'|string \"a\"\"b\""),
    "strings next to each other": ("'a''b' 'c' 'd'\"e\"", "string 'a''b'|string 'c'|string 'd'|string \"e\""),
    "backslashes": (r"'a\'b' 'c\\' d", r"string 'a\'b'|string 'c\\'|word d"),
    "no backslashes in raw strings": (r"r'a\' R" + r'"b\" c', r"string r'a\'|string R" + r'"b\"|word c'),
    "a raw string has no quote": ("r'a''b'", "string r'a'|string 'b'"),
    "no national strings": ("n'a' N\"b\"", "word n|string 'a'|word N|string \"b\""),
    "hexadecimal numbers": ("x'1F' X'zz' x '1'", "number x'1F'|number X'zz'|word x|string '1'"),
    "dollar quotes": ("$$it's; -- $a$ $$ b $q$ $$ $q$c", "string $$it's; -- $a$ $$|word b|string $q$ $$ $q$|word c"),
    "dollars that quote nothing": ("$1 ${k} a$", "word $|number 1|word $|word {|word k|word }|word a|word $"),
    "numbers with a type": ("1L 2S 3Y 1.5F 1e3BD 12.D", "number 1L|number 2S|number 3Y|number 1.5F|number 1e3BD|number 12.D"),
    "numbers with a sign": ("1e-3+1", "number 1e-3|word +|number 1"),
    "words that begin with a digit": ("1_000 1e 0x1F 12abc 1BD2", "word 1_000|word 1e|word 0x1F|word 12abc|word 1BD2"),
    "fractions": (".5 1. 1..2 1.5e3x", "number .5|number 1.|number 1.|number .2|number 1|word .|word 5e3x"),
    "a number before a dot": ("1.a b.5c", "number 1|word .|word a|word b|word .|word 5c"),
    "no word has a sign": ("user-defined a@b a€b", "word user|word -|word defined|word a|word @|word b|word a|word €|word b"),
    "no word has a blank": ("PARTITIONED  BY", "word PARTITIONED|word BY"),
    "commands are words": ("SHOW it 'a'", "word SHOW|word it|string 'a'"),
    "names with back quotes": ("`a``b`.`c d`", "name `a``b`|word .|name `c d`"),
    "letters of all languages": ("größe, 名前", "word größe|word ,|word 名前"),
    "a hint": ("SELECT /*+ BROADCAST(a) */ b", "word SELECT|hint /*+ BROADCAST(a) */|word b"),
    "signs": ("a => b->c || d::e <=> f", "word a|word =>|word b|word ->|word c|word |||word d|word ::|word e|word <=>|word f"),
}


@pytest.mark.parametrize(("text", "expected"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_tokens_are_those_of_spark(text: str, expected: str):
    assert "|".join(f"{kind} {part}" for kind, part in kinds(text)) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [("'it''s'", "it's"), (r"'a\'b'", "a'b"), (r"r'a\n'", r"a\n"), ("$x$a'b$x$", "a'b"), ("`a``b`", "a`b"), (r"'\u0041\n'", "A\n")],
)
def test_the_value_of_a_string_or_name_is_what_it_says(text: str, value: str):
    assert [token.value for token in tokens(text)] == [value]


def test_words_are_in_upper_case_and_what_stands_in_quotes_is_no_word():
    assert [token.upper for token in tokens("select 'select' `select`")] == ["SELECT", "", ""]


@pytest.mark.parametrize(
    ("text", "opening", "start"),
    [
        ("a 'b", "'", 2),
        ('a "b\\"', '"', 2),
        ("a `b", "`", 2),
        ("a r'b", "'", 3),
        ("a /* /* b */", "/*", 2),
        ("SELECT /*+ b", "/*", 7),
        ("a $t$ b $$", "$t$", 2),
    ],
)
def test_what_does_not_end_is_the_last_token_and_an_error_for_readers(text: str, opening: str, start: int):
    last = all_tokens(text)[-1]
    assert (last.kind, last.value, last.start, last.stop) == ("open", opening, start, len(text))
    with pytest.raises(OpenToken, match="is not closed") as caught:
        tokens(text)
    assert caught.value.token == last


def test_a_text_that_sqlglot_reads_otherwise_everywhere_takes_no_time():
    text = "1.a n'x' .5 {# #} -- x\\\n\n" * 300
    assert len(tokens(text)) == 300 * 10


def test_a_word_is_looked_for_without_tokens():
    assert may_have("a(SELECT 1)", ("with", "select"))
    assert may_have("'select'", ("select",))  # only tokens know better
    assert not may_have("selected, `with_`", ("select", "with"))
