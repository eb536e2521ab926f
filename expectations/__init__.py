"""Rules as data: the YAML files of this folder, handed to the expectation decorators as `{name: constraint}`.

A file holds up to three sections, each `owner: action: name: constraint`:

    datasets:                          # rules of one table
      survey_answered:
        drop:
          rating_in_range: rating BETWEEN 1 AND 5
    layers: {silver: ...}              # rules of every table of a layer
    columns: {conversation_id: ...}    # rules of every table that has the column

The folder is deployed with the pipeline and needs nothing but PyYAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent
SECTIONS = ("datasets", "layers", "columns")
ACTIONS = ("warn", "drop", "fail")
FORM = f"expected {'|'.join(SECTIONS)} . owner . {'|'.join(ACTIONS)} . name: SQL text"


class RuleError(ValueError):
    """A rule file cannot be used as it stands; the message names the file and the key."""


class Rule(NamedTuple):
    section: str
    owner: str
    action: str
    name: str
    constraint: str
    key: str
    """Where it is written: file and key."""


def rules(dataset: str, action: str, *, layer: str | None = None, columns: Iterable[str] = (), folder: Path = FOLDER) -> dict[str, str]:
    """The rules of `dataset` with that action ("warn", "drop" or "fail"), with those of its layer and of its columns.

    Raises RuleError if a file is broken, two rules that meet on the dataset share a name, or no rule knows the dataset at all.
    """
    if action not in ACTIONS:
        raise RuleError(f"rules({dataset!r}, {action!r}): the action is one of {', '.join(ACTIONS)}")
    owners = {("datasets", dataset), ("layers", layer), *(("columns", column) for column in columns)}
    met: dict[str, Rule] = {}
    for rule in (rule for rule in all_rules(folder) if (rule.section, rule.owner) in owners):
        if rule.name in met:
            raise RuleError(f"{rule.key}: {dataset} already has a rule of this name, from {met[rule.name].key}")
        met[rule.name] = rule
    if not met:
        raise RuleError(f"{folder.name}/: no file has a rule for {dataset}; add one under datasets.{dataset}")
    return {rule.name: rule.constraint for rule in met.values() if rule.action == action}


def all_rules(folder: Path = FOLDER) -> list[Rule]:
    """Every rule of every file, in the order of the files' names."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml"))
    return [rule for path in files for rule in _rules_of(path, path.stat().st_mtime_ns)]


@lru_cache(maxsize=256)
def _rules_of(path: Path, changed: int) -> list[Rule]:
    """The rules of one file; `changed` makes an edited file be read again."""
    file = f"{path.parent.name}/{path.name}"
    try:
        content = yaml.load(path.read_bytes(), Loader=_Loader)
    except yaml.YAMLError as problem:
        raise RuleError(f"{file}: {problem}") from None
    found = []
    for steps, value in _leaves((), content):
        key = f"{file}: {'.'.join(map(str, steps))}"
        if value is None and len(steps) < 4 and set(steps[:1]) <= set(SECTIONS):
            continue  # a heading with nothing below it
        match steps:
            case (str(section), str(owner), str(action), str(name)) if section in SECTIONS and action in ACTIONS and isinstance(value, str):
                found.append(Rule(section, owner, action, name, value, key))
            case _:
                raise RuleError(f"{key}: {FORM}; got {value!r}")
    return found


def _leaves(steps: tuple[Any, ...], value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not isinstance(value, dict):
        yield steps, value
    else:
        for key, below in value.items():
            yield from _leaves((*steps, key), below)


class _Loader(yaml.SafeLoader):
    """Refuses a key that is written twice: plain YAML would silently forget the first one, and a rule with it."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [str(key.value) for key, _ in node.value]
        for (key, _), name in zip(node.value, keys, strict=True):
            if keys.count(name) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {name!r} is written twice", key.start_mark)
        return super().construct_mapping(node, deep)
