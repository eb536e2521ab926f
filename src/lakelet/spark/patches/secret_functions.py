"""`secret` and `try_secret` in SQL text: secrets of the environment, as `dbutils.secrets` gives them (LG-28)."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from lakelet.base import secrets
from lakelet.base.locations import caller_location
from lakelet.base.patching import Patch
from lakelet.base.redaction import remember
from lakelet.language.sql_text.tokens import literal, plain_tokens
from lakelet.spark.patches.text_functions import reading_text

_OR_FAIL, _OR_NULL = "secret", "try_secret"


def _register(session: SparkSession, text: str) -> None:
    """Give the JVM session of this thread the two functions, unless it has functions of these names.

    Raises SECRET_MISSING for a call of `secret` whose arguments are written out and name no secret of the environment.
    """
    _check(text)
    known = {name: value for name, value in os.environ.items() if name.startswith(secrets.PREFIX)}
    for value in known.values():
        remember(value)
    jsession, jvm = session._jsparkSession, session._jvm
    assert jvm is not None
    catalog, identifier = jsession.sessionState().catalog(), jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    pairs = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in known.items())
    name = f"upper(concat({literal(secrets.PREFIX)}, regexp_replace(concat(scope, '_', key), {literal(secrets.NO_NAME)}, '_')))"
    value = f"try_element_at(map({pairs}), {name})" if pairs else "CAST(NULL AS STRING)"
    missing = f"raise_error(concat('the environment has no variable ', {name}))"
    for function, body in ((_OR_FAIL, f"coalesce({value}, {missing})"), (_OR_NULL, value)):
        if not catalog.isTemporaryFunction(identifier(function)):
            jsession.sql(f"CREATE TEMPORARY FUNCTION {function}(scope STRING, key STRING) RETURNS STRING RETURN {body}")


def _check(text: str) -> None:
    found = plain_tokens(text)
    for call in zip(found, found[1:], found[2:], found[3:], found[4:], found[5:], strict=False):
        words, scope, key = [token.upper for token in call], call[2], call[4]
        if words == [_OR_FAIL.upper(), "(", "", ",", "", ")"] and scope.kind == key.kind == "string":
            secrets.secret(scope.value, key.value, os.environ, caller_location())


SECRETS: tuple[Patch, ...] = reading_text((_OR_FAIL, _OR_NULL), _register, "Spark has no secrets")
"""Patches that answer what a secret is."""

__all__ = ["SECRETS"]
