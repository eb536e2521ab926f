"""The syntax tree of a query in Spark SQL, with function calls as they are written."""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.scripts import no_query
from lakelet.language.sql_text.tokens import plain_tokens

_SURE_TEXT = re.compile(r"[^\\$\x00]*")
_HINT = "/*+"


class _Calls(Spark):
    """Spark's dialect, where a function is its name and its arguments: the nodes of other engines stand for several of them."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        NO_PAREN_FUNCTIONS: ClassVar = {}


def parsed(text: str) -> exp.Expr:
    """The one query of a text. Raises NotSame where the text is not clear, is none, or has signs whose meaning is Spark's alone.

    Raises SQL_FAILED for a text of comments.
    """
    if not _SURE_TEXT.fullmatch(text) or _HINT in text:
        raise NotSame("the text has a backslash, a dollar sign or a hint")
    signs = [token.upper for token in plain_tokens(text)]
    if not signs:
        raise no_query()
    for sign, after in zip(signs, [*signs[1:], ")"], strict=True):
        if sign == "," and after in (")", "FROM", "WHERE", ";"):
            raise NotSame("a comma ends a list")
    try:
        found = _Calls().parse(text)
    except SqlglotError:
        raise NotSame("the query does not parse in the common part of SQL") from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise NotSame("the text is not one query")
    return found[0]
