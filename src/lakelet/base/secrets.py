"""Secrets of this machine: the secret `key` of `scope` is the environment variable `LAKELET_SECRET_<SCOPE>_<KEY>`.

Upper case, with `_` for what is neither letter nor digit: scope `kv-prod`, key `sql.password` → LAKELET_SECRET_KV_PROD_SQL_PASSWORD.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.redaction import remember

PREFIX = "LAKELET_SECRET_"
REPLACED = "[^A-Za-z0-9]"
"""What is `_` in the name of a variable: a regular expression of Python and Java."""
_REFERENCE = re.compile(r"\{\{\s*secrets/([^/{}]+)/([^/{}]+?)\s*\}\}")


def variable(scope: str, key: str) -> str:
    """The environment variable that holds a secret."""
    return PREFIX + re.sub(REPLACED, "_", f"{scope}_{key}").upper()


def secret(scope: str, key: str, environ: Mapping[str, str], where: Location | None) -> str:
    """Return the secret. Its value is blotted out in messages from here on.

    Raises SECRET_MISSING, which names the variable. `where`: what asks for it.
    """
    name = variable(scope, key)
    if name not in environ:
        raise LakeletError(
            "SECRET_MISSING",
            f"the secret {key!r} of the scope {scope!r} is not in the environment",
            where=where,
            nearest=nearest_names(name, [known for known in environ if known.startswith(PREFIX)]),
            todo=f"Set the variable {name}.",
        )
    value = environ[name]
    remember(value)
    return value


def reference(text: str) -> tuple[str, str] | None:
    """Scope and key of a setting whose value is `{{secrets/scope/key}}`; None for any other value."""
    found = _REFERENCE.fullmatch(text.strip())
    return (found[1], found[2]) if found else None
