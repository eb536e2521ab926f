"""With which definition each dataset was brought up to date last: kept beside the registry, for `--select state:modified`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress

from lakelet.base.errors import unknown_format
from lakelet.files.durable import write_atomically
from lakelet.plan.definition_changes import DefinitionParts
from lakelet.storage.root import Storage

_FILE = "definitions.json"
_FORMAT = 1


def load_definitions(storage: Storage) -> dict[str, DefinitionParts]:
    """The recorded definitions by the keys of the datasets; none of a damaged file: then every dataset counts as new.

    Raises FORMAT_UNKNOWN for another format.
    """
    with suppress(FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        found = json.loads((storage.system / _FILE).read_text())
        if found["format"] != _FORMAT:
            raise unknown_format(storage.system / _FILE, found["format"], _FORMAT)
        return {str(key): DefinitionParts.from_json(one) for key, one in found["datasets"].items()}
    return {}


def record_definitions(storage: Storage, updated: Mapping[str, DefinitionParts]) -> None:
    """Record the definitions of datasets that an update has brought up to date; nothing is written where nothing changed."""
    before = load_definitions(storage)
    _save(storage, before, {**before, **updated})


def forget_definitions(storage: Storage, keys: Collection[str]) -> None:
    """Remove the definitions of datasets, by their keys."""
    before = load_definitions(storage)
    _save(storage, before, {key: parts for key, parts in before.items() if key not in keys})


def _save(storage: Storage, before: Mapping[str, DefinitionParts], after: Mapping[str, DefinitionParts]) -> None:
    if after != before:
        content = {"format": _FORMAT, "datasets": {key: parts.as_json() for key, parts in sorted(after.items())}}
        write_atomically(storage.system / _FILE, json.dumps(content, indent=1))


__all__ = ["forget_definitions", "load_definitions", "record_definitions"]
