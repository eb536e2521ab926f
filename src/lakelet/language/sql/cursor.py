"""A reading position in the words of one statement: checks keywords, takes names and fragments, reports what it expected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, TypeVar

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.names import split_name
from lakelet.language.sql.values import Fragment, Name
from lakelet.language.sql_text.statements import StatementText
from lakelet.language.sql_text.tokens import OpenToken, Token, tokens

T = TypeVar("T")
QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_CREATED = ("OR", "STREAMING", "MATERIALIZED", "LIVE", "INCREMENTAL", "TEMPORARY", "TEMP", "PRIVATE", "VIEW", "FLOW")
_OPEN, _CLOSE = "([{", ")]}"


class Cursor:
    """Reads a statement word by word. Everything it does not find raises SQL_SYNTAX at the position where it should be."""

    def __init__(self, statement: StatementText) -> None:
        self.statement = statement
        self.words = _statement_tokens(statement)
        self.at = 0

    # ------------------------------------------------------------------------------------------------------ what is next

    @property
    def ended(self) -> bool:
        return self.at >= len(self.words)

    def word(self, ahead: int = 0) -> Token | None:
        """The next word, or one further on."""
        at = self.at + ahead
        return self.words[at] if at < len(self.words) else None

    def sees(self, *keywords: str) -> bool:
        """Whether the next words are these keywords or signs."""
        found = self.words[self.at : self.at + len(keywords)]
        return [w.upper for w in found] == list(keywords)

    def where(self, word: Token | None = None) -> Location:
        """The position of a word, by default of the next one, or of the end of the statement."""
        found = word or self.word()
        return self.statement.location(found.start if found else len(self.statement.text))

    # ------------------------------------------------------------------------------------------------------- taking

    def skip(self, *keywords: str) -> bool:
        """Step over these keywords if they are next."""
        if not self.sees(*keywords):
            return False
        self.at += len(keywords)
        return True

    def expect(self, *keywords: str, purpose: str = "") -> Token:
        """Step over these keywords, each of which must be there."""
        for keyword in keywords:
            if not self.skip(keyword):
                self.fail(f"{keyword} is expected{purpose}", [keyword])
        return self.words[self.at - 1]

    def take(self) -> Token:
        found = self.word()
        if found is None:
            self.fail("the statement ends too early")
        self.at += 1
        return found

    def identifier(self, what: str) -> tuple[str, Location]:
        """One part of a name."""
        found, where = self.word(), self.where()
        if found is None or not found.is_name:
            self.fail(f"{what} is expected")
        self.at += 1
        return found.value, where

    def name(self, what: str) -> Name:
        """A dotted name, or IDENTIFIER('…') of constants."""
        where = self.where()
        if self.sees("IDENTIFIER", "("):
            self.at += 2
            text = self._constant_string()
            self.expect(")")
            return Name(self._split_identifier(text, where), where)
        parts = [self.identifier(what)[0]]
        while self.skip("."):
            parts.append(self.identifier(f"the next part of {what}")[0])
        return Name(tuple(parts), where)

    def _split_identifier(self, text: str, where: Location) -> tuple[str, ...]:
        try:
            return split_name(text)
        except ValueError as problem:
            raise LakeletError("SQL_SYNTAX", str(problem), where=where) from None

    def _constant_string(self) -> str:
        """Strings joined by `||`."""
        parts = [self.string("a string inside IDENTIFIER(…)")]
        while self.skip("||"):
            parts.append(self.string("a string inside IDENTIFIER(…)"))
        return "".join(parts)

    def string(self, what: str) -> str:
        found = self.word()
        if found is None or found.kind != "string":
            self.fail(f"{what} is expected")
        parts = []
        while (more := self.word()) is not None and more.kind == "string":  # strings next to each other are one
            parts.append(more.value)
            self.at += 1
        return "".join(parts)

    def listed(self, item: Callable[[], T], begins: Callable[[], bool] = lambda: False) -> tuple[T, ...]:
        """`(item, item, …)`. `begins`: whether an item begins here, which then needs no comma before it."""
        self.expect("(")
        found = [item()]
        while self.skip(",") or begins():
            found.append(item())
        if not self.skip(")"):
            self.fail(") or a comma is expected")
        return tuple(found)

    def column(self) -> str:
        """A column's name as text with back quotes."""
        return self.name("a column").text

    def enclosed(self, what: str) -> Fragment:
        """What stands between parentheses, which may hold more of them; neither is part of it."""
        opening = self.expect("(", purpose=f" around {what}")
        begin = self.at
        depth = 1
        while not self.ended:
            depth += _depth_change(self.words[self.at])
            if depth == 0:
                if begin == self.at:
                    self.fail(f"{what} is expected")
                found = self.fragment(begin, self.at)
                self.at += 1
                return found
            self.at += 1
        raise self.error("this parenthesis is not closed", where=self.where(opening))

    def until(self, what: str, ends: Callable[[], bool]) -> Fragment:
        """The words up to the first one outside of parentheses at which `ends`, or to the end of the statement."""
        begin, depth = self.at, 0
        while not self.ended and not (depth == 0 and (ends() or self.sees(")") or self.sees(","))):
            depth += _depth_change(self.words[self.at])
            self.at += 1
        if begin == self.at:
            self.fail(f"{what} is expected")
        return self.fragment(begin, self.at)

    def fragment(self, begin: int, end: int) -> Fragment:
        """The text from one word up to another, which is not part of it."""
        start, stop = self.words[begin].start, self.words[end - 1].stop
        return Fragment(self.statement.text[start:stop], start, self.statement.location(start))

    def rest(self) -> Fragment:
        """Everything that is left: a query."""
        first = self.word()
        if first is None or first.upper not in QUERY_WORDS:
            self.fail("a query is expected", QUERY_WORDS[:-1], todo="A query begins with SELECT, WITH, FROM, VALUES or TABLE.")
        begin = self.at
        self._check_balance()
        self._check_end()
        self.at = len(self.words)
        return self.fragment(begin, self.at)

    def _check_balance(self) -> None:
        """Raise SQL_SYNTAX for a parenthesis of the rest that has no other half."""
        opened: list[Token] = []
        for word in self.words[self.at :]:
            if word.upper and word.upper in _OPEN:
                opened.append(word)
            elif word.upper and word.upper in _CLOSE:
                if not opened:
                    raise self.error(f"this {word.value} closes nothing", where=self.where(word))
                opened.pop()
        if opened:
            raise self.error("this parenthesis is not closed", where=self.where(opened[-1]))

    def _check_end(self) -> None:
        """Raise SQL_SYNTAX where another statement begins in the rest."""
        for at in range(self.at, len(self.words) - 1):
            first, second = self.words[at].upper, self.words[at + 1].upper
            if (first == "CREATE" and second in _CREATED) or (first, second) in (("APPLY", "CHANGES"), ("AUTO", "CDC")):
                self.at = at
                self.end()

    def end(self) -> None:
        """Raise SQL_SYNTAX unless the statement ends here."""
        if not self.ended:
            self.fail("the statement should end here", todo="Put a semicolon between two statements.")

    # ------------------------------------------------------------------------------------------------------- errors

    def fail(self, what: str, expected: Collection[str] = (), todo: str | None = None) -> NoReturn:
        """Raise SQL_SYNTAX at the next word; among `expected` the nearest keyword is named."""
        found = self.word()
        got = f"found {found.value!r}" if found else "the statement ends here"
        nearest = nearest_names(found.upper, expected) if found and len(found.upper) > 2 else ()
        raise self.error(f"{what}, {got}", nearest=nearest, todo=todo)

    def error(self, what: str, *, where: Location | None = None, nearest: Sequence[str] = (), todo: str | None = None) -> LakeletError:
        return LakeletError("SQL_SYNTAX", what, where=where or self.where(), nearest=nearest, todo=todo)


def _depth_change(word: Token) -> int:
    return 1 if word.upper and word.upper in _OPEN else -1 if word.upper and word.upper in _CLOSE else 0


def _statement_tokens(statement: StatementText) -> list[Token]:
    """The tokens of a statement. Raises SQL_SYNTAX where one does not end."""
    try:
        return tokens(statement.text)
    except OpenToken as error:
        where = statement.location(error.token.start)
        raise LakeletError("SQL_SYNTAX", "the statement has a string or name that does not end", where=where) from None
