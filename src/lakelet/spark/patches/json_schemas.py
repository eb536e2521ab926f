"""`schema_of_json_agg(text)`: one schema that takes the JSON texts of all rows, in words that `from_json` reads (LG-31)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.autoloader.formats.json.inference import NULL, Type, finish, merge, to_spark, type_of
from lakelet.autoloader.formats.json.text import BrokenText, parse
from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted_if_needed
from lakelet.jvm.sessions import has_function

NAME = "schema_of_json_agg"


def schema_of_texts(texts: Iterable[str | None], *options: object) -> str:
    """The schema of these texts, as Spark's `schema_of_json` writes that of one: `STRUCT<a: BIGINT, b: ARRAY<STRING>>`.

    Texts that are NULL or blank, or no JSON, count for nothing; without any other it is STRING. Raises LakeletError for options.
    """
    if options:
        raise LakeletError("NOT_SUPPORTED_YET", f"{NAME} with options is not supported: it takes one argument, the text")
    found: Type = NULL
    for text in texts:
        if text is not None and text.strip():
            try:
                found = merge(found, type_of(parse(text)))
            except BrokenText:
                continue
    finished = finish(found)
    return "STRUCT<>" if finished is None else _sql(to_spark(finished))


def _sql(kind: Any) -> str:
    if isinstance(kind, T.StructType):
        return "STRUCT<" + ", ".join(f"{quoted_if_needed(f.name)}: {_sql(f.dataType)}" for f in kind.fields) + ">"
    return f"ARRAY<{_sql(kind.elementType)}>" if isinstance(kind, T.ArrayType) else str(kind.simpleString()).upper()


def register(session: SparkSession) -> None:
    """Give the JVM session of this thread the function, unless it has one of this name."""
    import pandas as pd
    from pyspark.sql.pandas.functions import pandas_udf

    make: Any = pandas_udf

    def of_group(texts: Any, *options: Any) -> Any:
        return schema_of_texts(texts, *options)

    of_group.__annotations__ = {"texts": pd.Series, "options": pd.Series, "return": str}  # pyspark takes it for an aggregate by them
    if not has_function(session, NAME):
        session.udf.register(NAME, make(of_group, "string"))


__all__ = ["NAME", "register", "schema_of_texts"]
