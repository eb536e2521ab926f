"""Updates that have ended, kept beside the event log, so that the next report reads only what came since.

The file may be missing, old or damaged: then everything is read again. It belongs to one event log and one version of Lakelet.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Union, get_args, get_origin, get_type_hints

from lakelet.base.errors import LakeletError
from lakelet.base.version import VERSION
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.summaries import History, UpdateRun

_FORMAT = 4
_WITH_DEFINITIONS = 2
"""Number of newest updates of a pipeline that keep their definitions: the page compares the last one with those before."""


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
    content = {"format": _FORMAT, "version": VERSION, "log": log, "updates": [_plain(update) for update in reversed(kept)]}
    write_atomically(file, json.dumps(content, ensure_ascii=False, separators=(",", ":")))


@dataclass(frozen=True)
class _Field:
    """A field of a dataclass. `default`: with which it is left out; `made`: its value from JSON, None where that is the value itself."""

    name: str
    default: Any
    made: Callable[[Any], Any] | None


_known: dict[Any, tuple[_Field, ...]] = {}


def _fields(kind: Any) -> tuple[_Field, ...]:
    if kind not in _known:
        types_of = get_type_hints(kind)
        _known[kind] = tuple(_Field(f.name, f.default, _maker(types_of[f.name])) for f in fields(kind))
    return _known[kind]


def _plain(value: Any) -> Any:
    """A value of the page for JSON: dataclasses as objects without the fields that have their defaults."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if not is_dataclass(value):
        return value
    found = ((f.name, getattr(value, f.name), f.default) for f in _fields(type(value)))
    return {name: _plain(one) for name, one, default in found if one is not default and one != default}


def _value(kind: Any, given: Mapping[str, Any]) -> Any:
    """A dataclass from an object of JSON. Raises TypeError and ValueError where it is none."""
    values = dict(given)
    for field in _fields(kind):
        if field.made is not None and field.name in values:
            values[field.name] = field.made(values[field.name])
    return kind(**values)


def _maker(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of a type from JSON; None for the types that JSON has."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (one,) = [_maker(k) for k in inner if k is not type(None)]
        return None if one is None else lambda given: None if given is None else one(given)
    if origin is tuple and inner[-1] is ...:
        return partial(_tuple, _maker(inner[0]))
    if origin is tuple:
        parts = [_maker(k) or (lambda given: given) for k in inner]
        return lambda given: tuple(part(one) for part, one in zip(parts, given, strict=True))
    if origin is Mapping:
        return partial(_mapping, _maker(inner[1]))
    if is_dataclass(kind):
        return partial(_value, kind)
    return kind if issubclass(kind, Enum) else None


def _tuple(each: Callable[[Any], Any] | None, given: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(given) if each is None else tuple(map(each, given))


def _mapping(each: Callable[[Any], Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    return dict(given) if each is None else {key: each(one) for key, one in given.items()}


__all__ = ["load", "save"]
