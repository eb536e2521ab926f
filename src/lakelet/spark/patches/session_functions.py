"""SQL functions that Databricks has and Spark does not have, registered with a session before it gets a text that calls them.

`iff`, `getdate` and `charindex` are registered once per update. The others depend on the text, or on what holds when it runs: secrets,
groups of the user, the schema of many JSON texts, the pipeline's catalog and schema (`session_catalog`). Their step is `functions`.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.autoloader.formats.json.inferred_types import NULL, Type, finish, merge, to_spark, type_of
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, parse
from lakelet.base import secrets
from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted_if_needed
from lakelet.base.redaction import remember
from lakelet.base.user_code import caller_location
from lakelet.jvm.sessions import alias_builtin, has_function, java_session, plain_sql
from lakelet.language.sql_text.tokens import Token, literal, may_have, plain_tokens
from lakelet.spark.patches import session_catalog
from lakelet.spark.patches.doors import Call, before
from lakelet.spark.settings import note_once

# ----------------------------------------------------------------------------------- Spark functions under other names


_OTHER_NAMES = {"iff": "if", "getdate": "now", "charindex": "locate"}


def register_other_names(session: SparkSession) -> None:
    """Give a session Spark's functions by their other names too; its clones have them as well."""
    for name, known in _OTHER_NAMES.items():
        alias_builtin(session, name, known)


# ------------------------------------------------------------------------------------------ secrets of the environment (LG-28)


_SECRET, _TRY_SECRET = "secret", "try_secret"
SECRET_FUNCTIONS = (_SECRET, _TRY_SECRET)
_KNOWN_SECRETS = "lakelet.secrets"
"""Setting of a session that has the functions: the variables that they know, which are those that its texts have named so far."""
_secrets_lock = threading.Lock()


def register_secrets(session: SparkSession, text: str) -> None:
    """Give the JVM session of this thread the two functions, unless the pipeline has functions of these names.

    Raises SECRET_MISSING for a call of `secret` whose arguments are written out and name no secret of the environment.
    """
    jsession = java_session(session)
    ours = jsession.conf().contains(_KNOWN_SECRETS)
    if not ours and any(has_function(session, function) for function in SECRET_FUNCTIONS):
        return
    wanted = _variables_asked_for(plain_tokens(text))
    with _secrets_lock:  # flows of one session run beside each other
        before = set(str(jsession.conf().get(_KNOWN_SECRETS)).split()) if ours else set()
        if ours and wanted <= before:
            return
        known = {name: os.environ[name] for name in sorted(wanted | before)}
        for value in known.values():
            remember(value)
        jsession.conf().set(_KNOWN_SECRETS, " ".join(known))
        for function, body in _secret_function_bodies(known):
            plain_sql(jsession, f"CREATE OR REPLACE TEMPORARY FUNCTION {function}(scope STRING, key STRING) RETURNS STRING RETURN {body}")


def _variables_asked_for(found: Sequence[Token]) -> set[str]:
    """The variables that a text may ask for: those that its calls name, all of them where one computes its arguments."""
    wanted: set[str] = set()
    for at, token in enumerate(found):
        qualified = at > 0 and found[at - 1].upper == "."
        if qualified or token.upper.lower() not in SECRET_FUNCTIONS or [one.upper for one in found[at + 1 : at + 2]] != ["("]:
            continue
        arguments = found[at + 2 : at + 6]
        if [one.upper for one in arguments] != ["", ",", "", ")"] or {arguments[0].kind, arguments[2].kind} != {"string"}:
            return {name for name in os.environ if name.startswith(secrets.PREFIX)}
        scope, key = arguments[0].value, arguments[2].value
        if token.upper.lower() == _SECRET:
            secrets.secret(scope, key, os.environ, caller_location())
        wanted |= {secrets.variable(scope, key)} & os.environ.keys()
    return wanted


def _secret_function_bodies(known: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The two functions, and what they return. Values are in base64: in SQL text some signs of theirs would mean something."""
    pairs = ", ".join(f"{literal(name)}, '{base64.b64encode(value.encode()).decode()}'" for name, value in known.items())
    name = f"upper(concat({literal(secrets.PREFIX)}, regexp_replace(concat(scope, '_', key), {literal(secrets.REPLACED)}, '_')))"
    value = f"CAST(unbase64(try_element_at(map({pairs}), {name})) AS STRING)" if pairs else "CAST(NULL AS STRING)"
    missing = f"raise_error(concat('the environment has no variable ', {name}))"
    return (_SECRET, f"coalesce({value}, {missing})"), (_TRY_SECRET, value)


# -------------------------------------------------------------------------- groups of the user (LG-26)


GROUPS_PARAMETER = "lakelet.groups"
GROUP_FUNCTIONS = ("is_member", "is_account_group_member")


def register_groups(session: SparkSession) -> None:
    """Give the JVM session of this thread the two functions, unless it has functions of these names; notice where no group is given."""
    given = session.conf.get(GROUPS_PARAMETER, None)
    groups = [group.strip() for group in (given or "").split(",") if group.strip()]
    member = f"coalesce(name IN ({', '.join(map(literal, groups))}), false)" if groups else "false"
    for function in GROUP_FUNCTIONS:
        if not has_function(session, function):
            plain_sql(java_session(session), f"CREATE TEMPORARY FUNCTION {function}(name STRING) RETURNS BOOLEAN RETURN {member}")
    if given is None:
        note_once(
            f"is_member and is_account_group_member are false for every group: name those that you are in, --param {GROUPS_PARAMETER}=a,b"
        )


# ------------------------------------------------------------------------------------------ the schema of many texts (LG-31)


SCHEMA_OF_JSON_AGG = "schema_of_json_agg"


def schema_of_texts(texts: Iterable[str | None], *options: object) -> str:
    """The schema of these texts, as Spark's `schema_of_json` writes that of one: `STRUCT<a: BIGINT, b: ARRAY<STRING>>`.

    Texts that are NULL or blank, or no JSON, count for nothing; without any other it is STRING. Raises LakeletError for options.
    """
    if options:
        raise LakeletError("NOT_SUPPORTED_YET", f"{SCHEMA_OF_JSON_AGG} with options is not supported: it takes one argument, the text")
    found: Type = NULL
    for text in texts:
        if text is not None and text.strip():
            try:
                found = merge(found, type_of(parse(text)))
            except BrokenText:
                continue
    finished = finish(found)
    return "STRUCT<>" if finished is None else _ddl_of_type(to_spark(finished))


def _ddl_of_type(kind: Any) -> str:
    if isinstance(kind, T.StructType):
        return "STRUCT<" + ", ".join(f"{quoted_if_needed(f.name)}: {_ddl_of_type(f.dataType)}" for f in kind.fields) + ">"
    return f"ARRAY<{_ddl_of_type(kind.elementType)}>" if isinstance(kind, T.ArrayType) else str(kind.simpleString()).upper()


def register_json_schemas(session: SparkSession) -> None:
    """Give the JVM session of this thread the function, unless it has one of this name."""
    import pandas as pd
    from pyspark.sql.pandas.functions import pandas_udf

    make: Any = pandas_udf

    def of_group(texts: Any, *options: Any) -> Any:
        return schema_of_texts(texts, *options)

    of_group.__annotations__ = {"texts": pd.Series, "options": pd.Series, "return": str}  # pyspark takes it for an aggregate by them
    if not has_function(session, SCHEMA_OF_JSON_AGG):
        session.udf.register(SCHEMA_OF_JSON_AGG, make(of_group, "string"))


# ------------------------------------------------------------------------------------------------------------ the step


_REGISTERED: Mapping[tuple[str, ...], Callable[[SparkSession, str], None]] = {
    SECRET_FUNCTIONS: register_secrets,
    GROUP_FUNCTIONS: lambda session, _: register_groups(session),
    (SCHEMA_OF_JSON_AGG,): lambda session, _: register_json_schemas(session),
    session_catalog.CURRENT_NAME_FUNCTIONS: lambda session, _: session_catalog.register_current_names(session),
}
"""What gives a session functions for a text, by their names."""
_ALL_NAMES = tuple(name for names in _REGISTERED for name in names)


@before("Spark has no secrets, no groups of users, no schema of many JSON texts, and other names of catalog and schema")
def register_functions(call: Call) -> Call:
    """Register the functions that the texts of a call name."""
    session = call.target if isinstance(call.target, SparkSession) else call.update
    for text in _texts_of_call(call):
        if may_have(text, _ALL_NAMES):
            for names, register in _REGISTERED.items():
                if may_have(text, names):
                    register(session, text)
    return call


def _texts_of_call(call: Call) -> Iterator[str]:
    for value in (*call.arguments.values(), *call.get("kwargs", {}).values()):
        yield from (text for text in _flattened_values(value) if isinstance(text, str))


def _flattened_values(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flattened_values(item)
    else:
        yield value


__all__ = [
    "GROUPS_PARAMETER",
    "GROUP_FUNCTIONS",
    "SCHEMA_OF_JSON_AGG",
    "SECRET_FUNCTIONS",
    "register_functions",
    "register_groups",
    "register_json_schemas",
    "register_other_names",
    "register_secrets",
    "schema_of_texts",
]
