"""Moments as ISO 8601 text. Pure."""

from __future__ import annotations

import re
from datetime import datetime

_FRACTION = re.compile(r"\.([0-9]{1,6})[0-9]*")


def moment_of(text: str) -> datetime:
    """Return the moment, with a zone if the text has one: `Z`, or an offset. Raises ValueError.

    The second may have any number of digits, of which six count. Python 3.10 reads none, three or six of them, and no `Z`.
    """
    return datetime.fromisoformat(_FRACTION.sub(lambda found: "." + found[1].ljust(6, "0"), text.replace("Z", "+00:00"), count=1))


__all__ = ["moment_of"]
