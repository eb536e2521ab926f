"""Properties of a table about its maintenance (MT-2, MT-4, MT-6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakelet.config.delta_properties import seconds
from lakelet.config.properties import MANAGED, Z_ORDER, look_up

TARGET_BYTES = 256 << 20
"""Size of the files that OPTIMIZE makes, unless the table property delta.targetFileSize says another one."""
LEAST_SECONDS = 3600.0
"""So long a removed file is kept for those who read it now, even where the table declares less."""

_RETENTION, _WEEK = "delta.deletedFileRetentionDuration", 7 * 86_400.0
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class MaintenanceSettings:
    """How a table wants to be maintained.

    Attributes:
        optimized: whether OPTIMIZE may rewrite its files.
        target_bytes: size of the files that OPTIMIZE makes.
        z_order: columns to sort the rows by, as declared; none for compaction only.
        retention: seconds that a file is kept after a commit removed it.
    """

    optimized: bool = True
    target_bytes: int = TARGET_BYTES
    z_order: tuple[str, ...] = ()
    retention: float = _WEEK

    @classmethod
    def of(cls, properties: Mapping[str, str], least: float = LEAST_SECONDS) -> MaintenanceSettings:
        """Read them. `least`: seconds of retention that no property can shorten. Raises ValueError for a value that was set by hand."""
        columns = (look_up(properties, Z_ORDER) or "").split(",")
        target, kept = look_up(properties, "delta.targetFileSize"), look_up(properties, _RETENTION)
        return cls(
            optimized=(look_up(properties, MANAGED) or "true").strip().lower() != "false",
            target_bytes=TARGET_BYTES if target is None else size(target),
            z_order=tuple(name.strip().strip("`") for name in columns if name.strip()),
            retention=max(least, _WEEK if kept is None else seconds(kept)),
        )


def size(text: str) -> int:
    """Bytes of a size as Databricks writes it: `104857600`, `100mb`, `1 GB`. Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    if not found or int(found[1]) == 0:
        raise ValueError(f"delta.targetFileSize is {text!r}: a size is expected, for example 104857600 or '100mb'")
    return int(found[1]) * _UNITS[found[2]]
