"""What changed in the definitions of datasets: code, rules and settings, compared with those of another time. Pure.

In: two definitions of a dataset as digests of their parts (`DefinitionParts`). Out: the names of the parts that differ. A manifest, the
output of `lakelet graph --json`, has the definitions of a whole pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.text import counted, listed

STATE = "state:"
"""What a selector of changed datasets begins with."""
MODIFIED = "state:modified"
_ASPECTS = ("code", "rules", "settings")


@dataclass(frozen=True)
class DefinitionParts:
    """The definition of one dataset: a digest by the name of each part.

    Attributes:
        code: its functions, what they call, and the queries of SQL; of the views that it reads too.
        rules: its expectations, and the checks of its table.
        settings: comment, properties, columns, `spark_conf`, and the parameters that its code reads.
    """

    code: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, dict[str, str]]:
        return {aspect: dict(sorted(getattr(self, aspect).items())) for aspect in _ASPECTS}

    @classmethod
    def from_json(cls, found: Any) -> DefinitionParts:
        """Raises TypeError or KeyError for other values than `as_json` gives."""
        return cls(*({str(name): str(value) for name, value in found[aspect].items()} for aspect in _ASPECTS))


@dataclass(frozen=True)
class DefinitionChange:
    """What changed in the definition of one dataset: the names of the parts that differ. `new`: it had no definition."""

    dataset: str
    new: bool = False
    code: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The change in a few words: `code: clean (lib/names.py); rules: positive`."""
        if self.new:
            return "new"
        return "; ".join(f"{aspect}: {listed(names, 3)}" for aspect, names in self.by_aspect.items())

    @property
    def by_aspect(self) -> dict[str, tuple[str, ...]]:
        """The names of the parts that differ by `code`, `rules` and `settings`, where some do."""
        return {aspect: names for aspect in _ASPECTS if (names := getattr(self, aspect))}

    @property
    def aspects(self) -> str:
        """Which of code, rules and settings differ."""
        return ", ".join(self.by_aspect)

    def as_json(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "new": self.new, **{aspect: list(getattr(self, aspect)) for aspect in _ASPECTS}}


def definition_changes(
    before: Mapping[str, DefinitionParts], now: Mapping[str, DefinitionParts], names: Mapping[str, str]
) -> dict[str, DefinitionChange]:
    """Return what changed, by key of the datasets whose definition is another one. `names`: full names by key."""
    found = {}
    for key, parts in now.items():
        if key not in before:
            found[key] = DefinitionChange(names[key], new=True)
        elif parts != before[key]:
            differing = {aspect: _differing(getattr(before[key], aspect), getattr(parts, aspect)) for aspect in _ASPECTS}
            found[key] = DefinitionChange(names[key], **differing)  # type: ignore[arg-type]
    return found


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in sorted({*before, *now}) if before.get(name) != now.get(name))


def changes_text(changes: Sequence[DefinitionChange]) -> list[str]:
    """The changes as lines: one line for each dataset, below a headline."""
    if not changes:
        return []
    return [f"{counted(len(changes), 'dataset')} changed since the last update:", *(f"  {one.dataset}  {one.text}" for one in changes)]


def manifest_of(selector: str) -> str | None:
    """Return the path of the manifest in `state:modified:PATH`, None for `state:modified`. Raises USAGE for another state."""
    state, _, path = selector.removeprefix(STATE).partition(":")
    if state != "modified":
        raise LakeletError(
            "USAGE",
            f"--select names the state {state!r}, which is not known",
            nearest=nearest_names(selector, [MODIFIED]),
            todo=f"Write {MODIFIED}, or {MODIFIED}:PATH with the path of a saved manifest.",
        )
    return path or None


def read_manifest(path: str | Path) -> dict[str, DefinitionParts]:
    """Return the definitions of a file that `lakelet graph --json` wrote, by key. Raises USAGE for another file."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return {str(one["name"]).lower(): DefinitionParts.from_json(one["definition"]) for one in found["datasets"]}
    except OSError as problem:
        why = problem.strerror or str(problem)
    except (ValueError, TypeError, KeyError, AttributeError):
        why = "It is not the output of lakelet graph --json, or of a version that wrote no definitions."
    todo = f"Save one where the code is as it was: lakelet graph --json > {path}"
    raise LakeletError("USAGE", f"the manifest {path} cannot be read", why=why, todo=todo)


__all__ = [
    "MODIFIED",
    "STATE",
    "DefinitionChange",
    "DefinitionParts",
    "changes_text",
    "definition_changes",
    "manifest_of",
    "read_manifest",
]
