"""Secret values that must not appear in messages. Layer 0.

Whoever hands a secret to user code remembers it here; every error's text is passed through `redacted`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_KEY = re.compile(r"secret|password|passwd|token|jaas|credential|(access|account|private|api|sas)[._-]?key|signature", re.IGNORECASE)

REDACTED = "[REDACTED]"
_SHORTEST = 4  # blotting out every "a" or "12" would tell more than it hides

_values: set[str] = set()


def remember(value: str) -> None:
    """Blot out this value in messages from now on, for the life of the process."""
    if len(value) >= _SHORTEST:
        _values.add(value)


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options as they may be shown: without remembered values, and without the values of keys that sound like secrets."""
    return {key: REDACTED if _SECRET_KEY.search(key) else redacted(value) for key, value in options.items()}


def redacted(text: str) -> str:
    """The text without remembered values."""
    for value in sorted(_values, key=len, reverse=True):
        text = text.replace(value, REDACTED)
    return text
