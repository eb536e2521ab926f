"""Which version of each table was checked last, and what came out: kept beside the registry, so that no version is checked twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from lakelet.files.durable import write_atomically
from lakelet.storage.root import Storage

_FILE = "checks.json"


@dataclass(frozen=True)
class CheckedVersion:
    """The last checks of one table.

    Attributes:
        table: Delta's id of it.
        version: what was checked.
        definitions: digest of the checks, and of whether they could be run.
        failed: names of the critical checks that failed.
        newest: of each freshness check, the greatest value in seconds since 1970, None for none.
        stale: the freshness checks that failed.
    """

    table: str
    version: int
    definitions: str
    failed: tuple[str, ...] = ()
    newest: Mapping[str, float | None] = field(default_factory=dict)
    stale: tuple[str, ...] = ()


def load_checked(storage: Storage) -> Mapping[str, CheckedVersion]:
    """The last checks by the keys of the datasets; of a damaged file nothing: its tables are checked again."""
    with suppress(FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        found = json.loads((storage.system / _FILE).read_text())
        return {k: CheckedVersion(**{**v, "failed": tuple(v["failed"]), "stale": tuple(v["stale"])}) for k, v in found.items()}
    return {}


def save_checked(storage: Storage, checked: Mapping[str, CheckedVersion]) -> None:
    """Replace the last checks; nothing is written where nothing changed."""
    if checked != load_checked(storage):
        write_atomically(storage.system / _FILE, json.dumps({key: asdict(one) for key, one in sorted(checked.items())}, indent=1))
