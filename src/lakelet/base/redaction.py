"""Secret values that must not appear in messages.

Whoever hands a secret to user code, or gets one from the environment, remembers it here; the text of every error and event is passed
through `redacted`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SECRET_KEY = re.compile(
    r"secret|password|passwd|passphrase|pwd|token|jaas|credential|(access|account|private|api|sas)[._-]?key|signature|connection[._-]?string",
    re.IGNORECASE,
)
_ABOUT_SECRETS = re.compile(
    r"[._-](scope|name|column|col|table|schema|provider|type|file|path|url|endpoint|ttl|timeout|seconds|enabled)$", re.IGNORECASE
)

_QUOTED_SECRET = re.compile(r"""(?:password|secret|token)\w*\s*=\s*(?P<quote>["'])(?P<value>.+?)(?P=quote)""", re.IGNORECASE)
"""A secret inside of an option, such as a line of JAAS."""

REDACTED = "[REDACTED]"
HIDDEN = "***"
"""What samples show of a value of a personal column."""
_SHAPES = re.compile(
    r"""(?P<before>
        \bauthorization["']?\s*[:=]\s*["']?(?:\w+\s+)?   # a header, whatever its scheme
        | \b(?:bearer|basic)\s+(?=[^\s"']*\d)            # a scheme and what looks like its credentials
        | ://(?=[^\s/@]*:[^\s/@]*@)                       # the user and password of an address
        | \b(?=dapi[0-9a-f]{16}) | \b(?=eyJ[\w-]{8,}\.)    # tokens of Databricks, JSON web tokens
    )[^\s"',;<>]{4,}?(?P<after>(?<=@)|(?=["',;<>\s]|$))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Credentials that nobody handed in: a workspace that repeats a request's headers, an address with a password."""
_SHORTEST = 4  # blotting out every "a" or "12" would show more than it hides

_values: set[str] = set()


def remember(value: str) -> None:
    """Blot out this value in messages from now on, for the life of the process, also as it stands in literals of SQL and JSON."""
    if len(value) >= _SHORTEST:
        _values.update((value, value.replace("\\", "\\\\").replace("'", "\\'"), json.dumps(value)[1:-1]))


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they may be shown: without remembered values, and without the values of keys that sound like secrets."""
    return {key: REDACTED if is_secret(key) else redacted(value) for key, value in options.items()}


def is_secret(key: str) -> bool:
    """Whether a key sounds like that of a secret; `db_password` does, `secret_scope` and `token_url` are only about one."""
    return bool(_SECRET_KEY.search(key)) and not _ABOUT_SECRETS.search(key)


def remember_secrets(settings: Mapping[str, Any]) -> None:
    """Blot out the values of the settings whose keys sound like secrets, also what is quoted in one: a line of JAAS holds a password."""
    for key, value in settings.items():
        if isinstance(value, str) and is_secret(key) and value.lower() not in ("true", "false"):
            remember(value)
            for quoted in _QUOTED_SECRET.finditer(value):
                remember(quoted["value"])


def redacted_values(value: Any) -> Any:
    """A JSON value whose texts are without remembered values; keys stay."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: redacted_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted_values(item) for item in value]
    return value


def redacted(text: str) -> str:
    """The text without remembered values and what has the form of credentials; plain text, also of the member of an enumeration."""
    text = str(text)
    for value in sorted(_values, key=len, reverse=True):
        text = text.replace(value, REDACTED)
    return _SHAPES.sub(_without, text)


def _without(found: re.Match[str]) -> str:
    return found["before"] + REDACTED + ("@" if found[0].endswith("@") else "")
