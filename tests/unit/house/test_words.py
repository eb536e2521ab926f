"""Pages and docstrings use the words of the field, in sentences that a reader can hold in mind. No Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.paths import ROOT
from tests.unit.house.sentences import sentences, words
from tests.unit.house.test_citations import tracked
from tests.unit.house.test_named_modules import MODULES, PACKAGE, docstrings, tables

LONGEST = 35
MADE_FROM_THE_CODE = "docs/error-codes.md"
PAGES = [page.relative_to(ROOT).as_posix() for page in tracked("*.md") if page.name != "CHANGELOG.md"]
PAGES.remove(MADE_FROM_THE_CODE)


def private_words() -> list[str]:
    """The words in code font of the first column of the list of words in CONTRIBUTING.md: those that have no other meaning."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return [word for title, cells in tables(text) if title == "instead of" for word in re.findall(r"`([^`]+)`", cells[0])]


def prose(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of each sentence of a page, without the list of words itself."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "CONTRIBUTING.md":
        text = re.sub(r"\| instead of \|.*?\n\n", "\n\n", text, flags=re.DOTALL)
    return sentences(text)


def having(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}s?(?![\w-])", re.IGNORECASE)


def test_the_list_of_words_is_there_and_none_is_in_the_glossary() -> None:
    glossary = {cells[0] for title, cells in tables((ROOT / "docs/how-it-works.md").read_text(encoding="utf-8")) if title == "term"}
    assert len(private_words()) > 15
    assert len(glossary) > 30
    assert glossary & set(private_words()) == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_private_word(page: str) -> None:
    patterns = [having(word) for word in private_words()]
    found = [f"line {line}: {match[0]}: {text}" for line, text in prose(page) for pattern in patterns if (match := pattern.search(text))]
    assert found == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_sentence_of_more_than_35_words(page: str) -> None:
    assert [f"line {line}, {words(text)} words: {text}" for line, text in prose(page) if words(text) > LONGEST] == []


@pytest.mark.parametrize("word", private_words())
def test_no_docstring_has_a_private_word_that_is_gone(word: str) -> None:
    pattern = having(word)
    found = [
        f"{path.relative_to(ROOT)}:{start}: {text}"
        for path in MODULES.values()
        if pattern.search(path.read_text(encoding="utf-8"))
        for start, docstring in docstrings(path)
        for _, text in sentences(docstring)
        if pattern.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_no_docstring_of_a_room_has_a_sentence_of_more_than_35_words(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{start}, {words(text)} words: {text}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for start, docstring in docstrings(path)
        for _, text in sentences(docstring)
        if words(text) > LONGEST
    ]
    assert found == []


def test_sentences_are_counted_as_a_reader_counts_them() -> None:
    prose = "# Head\n\n**Choice.** One `a`, `b` and `c` here. Two\nmore (with [a link](x.md)).\n\n"
    page = f"{prose}| a cell; another | x |\n\n    code. Here.\n\n- An item.\n"
    assert [(line, text) for line, text in sentences(page)] == [
        (3, "**Choice."),
        (3, "One CODE, CODE and CODE here."),
        (3, "Two more (with a link)."),
        (6, "a cell"),
        (6, "another"),
        (6, "x"),
        (10, "An item."),
    ]
    assert words("One CODE, CODE and CODE here.") == 3
