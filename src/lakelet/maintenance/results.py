"""Result of the maintenance of one table, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.language.model import Kind
from lakelet.maintenance.layout import OptimizeJob


@dataclass(frozen=True)
class Amount:
    """Files and their bytes."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class MaintenanceResult:
    """One table after maintenance, or as it would be.

    Attributes:
        name, kind, path: the dataset, and where its files lie.
        before, after: files of the newest version. `after` is None where nothing was read, and has the number of files only, about,
            and `bytes` of before, for an OPTIMIZE that a dry run would do.
        job: what OPTIMIZE did; None where it was left out.
        removed: files that VACUUM deleted.
        retention: seconds that removed files are kept; None where that was not asked.
        why: why OPTIMIZE was done or left out.
        notes: what else there is to know, for example which files a stream waits for.
        error: what ended the table's maintenance.
    """

    name: str
    kind: Kind
    path: str
    before: Amount | None = None
    after: Amount | None = None
    job: OptimizeJob | None = None
    removed: Amount = Amount()
    retention: float | None = None
    why: str = ""
    notes: tuple[str, ...] = ()
    error: LakeletError | None = None

    @property
    def left_alone(self) -> bool:
        """Whether nothing was done to it."""
        return self.job is None and not self.removed.files

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": str(self.kind.value),
            "path": self.path,
            "before": _json(self.before),
            "after": _json(self.after),
            "optimize": None if self.job is None else str(self.job.how.value),
            "columns": [] if self.job is None else list(self.job.columns),
            "removed": _json(self.removed),
            "retention_hours": None if self.retention is None else round(self.retention / 3600, 4),
            "left_alone": self.left_alone,
            "why": self.why,
            "notes": list(self.notes),
            "error": None if self.error is None else {"code": self.error.code, "message": self.error.what, "why": self.error.why},
        }


def _json(amount: Amount | None) -> dict[str, int] | None:
    return None if amount is None else {"files": amount.files, "bytes": amount.bytes}
