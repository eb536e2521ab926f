"""Updates that have ended, kept beside the event log, so that the next report reads only what came since.

The file may be missing, old or damaged: then everything is read again. It belongs to one event log and one version of Lakelet.
"""

from __future__ import annotations

import json
import types
from collections.abc import Hashable, Mapping
from dataclasses import asdict, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from lakelet.base.errors import LakeletError
from lakelet.base.version import VERSION
from lakelet.dashboard.values import History, UpdateRun
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath

_FORMAT = 1
_WITH_DEFINITIONS = 2
"""So many of the newest updates of a pipeline keep what they defined: the page compares today's with those before."""


def load(file: AnyPath, log: str) -> dict[str, UpdateRun]:
    """The ended updates of the event log with this id, by their own ids; none if the file does not have them."""
    try:
        found = json.loads(file.read_text())
        if (found["format"], found["version"], found["log"]) != (_FORMAT, VERSION, log):
            return {}
        return {update["id"]: _value(UpdateRun, update) for update in found["updates"]}
    except (OSError, ValueError, KeyError, TypeError, LakeletError):  # not there, or not as this version writes it
        return {}


def save(file: AnyPath, log: str, history: History) -> None:
    """Keep the updates of a history that have ended. Raises STORAGE_FAILED."""
    left: dict[str, int] = {}
    kept = []
    for update in reversed(history.updates):
        if not update.state.has_ended:
            continue
        if update.definitions:
            left[update.pipeline_id] = left.get(update.pipeline_id, 0) + 1
        kept.append(update if left.get(update.pipeline_id, 0) <= _WITH_DEFINITIONS else replace(update, definitions={}))
    content = {"format": _FORMAT, "version": VERSION, "log": log, "updates": [asdict(update) for update in reversed(kept)]}
    write_atomically(file, json.dumps(content, ensure_ascii=False, separators=(",", ":")))


@cache
def _types(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _value(kind: Any, given: Any) -> Any:
    """What JSON gives as a value of a type. Raises TypeError and ValueError where it is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if given is None else _value(next(one for one in inner if one is not type(None)), given)
    if origin is tuple and inner[-1] is ...:
        return tuple(_value(inner[0], one) for one in given)
    if origin is tuple:
        return tuple(_value(one, value) for one, value in zip(inner, given, strict=True))
    if origin is Mapping:
        return {key: _value(inner[1], value) for key, value in given.items()}
    known = _types(kind) if is_dataclass(kind) and isinstance(kind, Hashable) else None
    if known is not None:
        return kind(**{name: _value(known[name], value) for name, value in given.items()})
    if issubclass(kind, Enum):
        return kind(given)
    if not isinstance(given, kind):
        raise TypeError(f"{given!r} is no {kind.__name__}")
    return given


__all__ = ["load", "save"]
