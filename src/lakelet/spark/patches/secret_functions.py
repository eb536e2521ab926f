"""`secret` and `try_secret` in SQL text: secrets of the environment, as `dbutils.secrets` gives them (LG-28)."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession

from lakelet.base import secrets
from lakelet.base.redaction import remember
from lakelet.base.user_code import caller_location
from lakelet.jvm.sessions import has_function, java_session, plain_sql
from lakelet.language.sql_text.tokens import Token, literal, plain_tokens

_OR_FAIL, _OR_NULL = "secret", "try_secret"
NAMES = (_OR_FAIL, _OR_NULL)
_KNOWN = "lakelet.secrets"
"""Setting of a session that has the functions: the variables that they know, which are those that its texts have named so far."""
_lock = threading.Lock()


def register(session: SparkSession, text: str) -> None:
    """Give the JVM session of this thread the two functions, unless the pipeline has functions of these names.

    Raises SECRET_MISSING for a call of `secret` whose arguments are written out and name no secret of the environment.
    """
    jsession = java_session(session)
    ours = jsession.conf().contains(_KNOWN)
    if not ours and any(has_function(session, function) for function in NAMES):
        return
    wanted = _wanted(plain_tokens(text))
    with _lock:  # flows of one session run beside each other
        before = set(str(jsession.conf().get(_KNOWN)).split()) if ours else set()
        if ours and wanted <= before:
            return
        known = {name: os.environ[name] for name in sorted(wanted | before)}
        for value in known.values():
            remember(value)
        jsession.conf().set(_KNOWN, " ".join(known))
        for function, body in _bodies(known):
            plain_sql(jsession, f"CREATE OR REPLACE TEMPORARY FUNCTION {function}(scope STRING, key STRING) RETURNS STRING RETURN {body}")


def _wanted(found: Sequence[Token]) -> set[str]:
    """The variables that a text may ask for: those that its calls name, all of them where one computes its arguments."""
    wanted: set[str] = set()
    for at, token in enumerate(found):
        qualified = at > 0 and found[at - 1].upper == "."
        if qualified or token.upper.lower() not in NAMES or [one.upper for one in found[at + 1 : at + 2]] != ["("]:
            continue
        arguments = found[at + 2 : at + 6]
        if [one.upper for one in arguments] != ["", ",", "", ")"] or {arguments[0].kind, arguments[2].kind} != {"string"}:
            return {name for name in os.environ if name.startswith(secrets.PREFIX)}
        scope, key = arguments[0].value, arguments[2].value
        if token.upper.lower() == _OR_FAIL:
            secrets.secret(scope, key, os.environ, caller_location())
        wanted |= {secrets.variable(scope, key)} & os.environ.keys()
    return wanted


def _bodies(known: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The two functions, and what they return. Values are in base64: in SQL text some signs of theirs would mean something."""
    pairs = ", ".join(f"{literal(name)}, '{base64.b64encode(value.encode()).decode()}'" for name, value in known.items())
    name = f"upper(concat({literal(secrets.PREFIX)}, regexp_replace(concat(scope, '_', key), {literal(secrets.REPLACED)}, '_')))"
    value = f"CAST(unbase64(try_element_at(map({pairs}), {name})) AS STRING)" if pairs else "CAST(NULL AS STRING)"
    missing = f"raise_error(concat('the environment has no variable ', {name}))"
    return (_OR_FAIL, f"coalesce({value}, {missing})"), (_OR_NULL, value)


__all__ = ["NAMES", "register"]
