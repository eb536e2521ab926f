"""Gives the session functions that Spark has not, when SQL text that user code hands to pyspark may call them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from pyspark.sql import SparkSession

from lakelet.base.patching import Patch
from lakelet.language.sql_text.tokens import may_have
from lakelet.spark.patches import owners

_TAKING_TEXT = (
    *((owners.SESSION, "sql", "2.0.0"), (owners.FUNCTIONS, "expr", "1.5.0"), (owners.BUILTIN, "expr", "1.5.0")),
    *((owners.FRAME, "selectExpr", "1.3.0"), (owners.FRAME, "filter", "1.3.0"), (owners.FRAME, "where", "1.3.0")),
)


def of_text(names: Collection[str], register: Callable[[SparkSession], None], why: str) -> tuple[Patch, ...]:
    """Return the patches that call `register` with a session before it gets SQL text in which one of `names` stands."""
    return reading_text(names, lambda session, _: register(session), why)


def reading_text(names: Collection[str], act: Callable[[SparkSession, str], None], why: str) -> tuple[Patch, ...]:
    """Return the patches that call `act` with a session and each SQL text that it gets in which one of `names` stands."""

    def in_text(original: Any, update: SparkSession) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            values = (*given, *named.values())
            texts = [text for one in values for text in (one if isinstance(one, list) else [one]) if isinstance(text, str)]
            for text in texts:
                if may_have(text, names):
                    act(given[0] if given and isinstance(given[0], SparkSession) else update, text)
            return original(*given, **named)

        return call

    return tuple(Patch(owner, name, in_text, why, since) for owner, name, since in _TAKING_TEXT)


def builtin(session: SparkSession, name: str) -> Any:
    """Return Spark's identifier of a function of its own."""
    jvm = session._jvm
    assert jvm is not None
    some = jvm.scala.Option.apply
    return jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, some("builtin"), some("system"))


__all__ = ["builtin", "of_text", "reading_text"]
