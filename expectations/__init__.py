"""Rules as data: the YAML files of this folder, handed to the expectation decorators as `{name: constraint}`.

A file holds up to three sections, each `subject: action: name: rule`. A rule is SQL text, or a mapping with more about it:

    datasets:                          # rules of one table
      survey_answered:
        drop:
          rating_in_range:
            constraint: rating BETWEEN 1 AND 5
            tags: [validity]
            description: The survey has five stars.
            owner: quality@example.com
        checks:                        # checks of the whole table, made after an update; only Lakelet makes them
          one_answer_each: {unique: event_id, severity: critical}
    layers: {silver: ...}              # rules of every table of a layer
    columns: {conversation_id: ...}    # rules of every table that has the column

The folder is deployed with the pipeline and needs nothing but PyYAML. `lakelet.config.rule_files` is a link to this file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent
SECTIONS = ("datasets", "layers", "columns")
ACTIONS = ("warn", "drop", "fail")
FIELDS = ("constraint", "tags", "description", "owner")
SEVERITIES = ("critical", "warning", "info")
ABOUT = ("severity", "tags", "description", "owner")
"""What a check may say beside what it checks."""

_BOUNDS = {"at_least": "value", "at_most": "value"}
_STATISTIC = {"column": "text", **_BOUNDS}
CHECKS: Mapping[str, Mapping[str, str]] = {
    "unique": {"columns": "texts"},
    "complete": {"column": "text", "at_least": "share"},
    "rows": {"at_least": "count", "at_most": "count"},
    "fresh": {"column": "text", "within": "duration"},
    "references": {"columns": "texts", "table": "text", "to": "texts"},
    "values": {"column": "text", "in": "values", "at_least": "share"},
    **dict.fromkeys(("min", "max", "mean", "median", "sum", "stddev", "distinct"), _STATISTIC),
    "quantile": {"column": "text", "q": "share", **_BOUNDS},
    "no_rows": {"query": "text"},
}
"""Kinds of table checks, and the form of each of their arguments."""

_OPTIONAL = {("complete", "at_least"), ("values", "at_least"), ("references", "to")}
_ALONE = {"unique": "columns", "complete": "column", "no_rows": "query"}
"""The argument that may be written without its name, as in `unique: event_id`."""

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_SECONDS)})s?")


class RuleError(ValueError):
    """A rule file, or a call of `rules`, cannot be used as it stands.

    Attributes:
        what: what is wrong, without its position.
        file, line: where it is written; "" and 0 for a call.
        nearest: known names that look like the wrong one.
    """

    def __init__(self, what: str, file: str = "", line: int = 0, nearest: Iterable[str] = ()) -> None:
        self.what, self.file, self.line, self.nearest = what, file, line, tuple(nearest)
        hint = f"; did you mean {' or '.join(map(repr, self.nearest))}?" if self.nearest else ""
        super().__init__((f"{file}:{line}: " if file else "") + what + hint)


class Rule(NamedTuple):
    """One row rule. `subject`: the dataset, layer or column that it is written for."""

    section: str
    subject: str
    action: str
    name: str
    constraint: str
    file: str
    line: int
    tags: tuple[str, ...] = ()
    description: str | None = None
    owner: str | None = None

    @property
    def key(self) -> str:
        """Where it is written."""
        return f"{self.file}:{self.line}"


class Check(NamedTuple):
    """One check of a whole table. `kind`: a key of `CHECKS`, whose arguments are `arguments`, durations in seconds."""

    dataset: str
    name: str
    kind: str
    arguments: Mapping[str, Any]
    severity: str
    file: str
    line: int
    tags: tuple[str, ...] = ()
    description: str | None = None
    owner: str | None = None


class RuleFile(NamedTuple):
    """What one file holds, and what is wrong with it."""

    rules: tuple[Rule, ...]
    checks: tuple[Check, ...]
    errors: tuple[RuleError, ...]


def rules(
    dataset: str,
    action: str | None = None,
    *,
    tag: str | None = None,
    layer: str | None = None,
    columns: Iterable[str] = (),
    folder: Path = FOLDER,
) -> dict[str, str]:
    """The rules of `dataset` with that action ("warn", "drop" or "fail"), that tag, or both, with those of its layer and of its columns.

    Raises RuleError if a file is broken, two rules of the dataset share a name, no rule has the tag, or no file knows the dataset.
    """
    if action is None and tag is None:
        raise RuleError(f"rules({dataset!r}): give action= or tag=")
    if action is not None and action not in ACTIONS:
        raise RuleError(f"rules({dataset!r}, {action!r}): the action is one of {', '.join(ACTIONS)}", nearest=_nearest(action, ACTIONS))
    every = all_rules(folder)
    tags = {one for rule in every for one in rule.tags}
    if tag is not None and tag not in tags:
        raise RuleError(f"rules({dataset!r}, tag={tag!r}): no rule has this tag", nearest=_nearest(tag, tags))
    subjects = {("datasets", dataset), ("layers", layer), *(("columns", column) for column in columns)}
    met: dict[str, Rule] = {}
    for rule in (rule for rule in every if (rule.section, rule.subject) in subjects):
        if rule.name in met:
            raise RuleError(f"{dataset} already has a rule {rule.name!r}, from {met[rule.name].key}", rule.file, rule.line)
        met[rule.name] = rule
    if not met:
        _refuse_unknown(dataset, every, folder)
    chosen = (r for r in met.values() if action in (None, r.action) and (tag is None or tag in r.tags))
    return {rule.name: rule.constraint for rule in chosen}


def _refuse_unknown(dataset: str, every: Iterable[Rule], folder: Path) -> None:
    """Raise RuleError for a dataset that has neither rules nor checks."""
    checked = {check.dataset for check in all_checks(folder)}
    known = checked | {rule.subject for rule in every if rule.section == "datasets"}
    if dataset not in checked:
        text = f"{folder.name}/: no file has a rule for {dataset}; add one under datasets.{dataset}"
        raise RuleError(text, nearest=_nearest(dataset, known))


def all_rules(folder: Path = FOLDER) -> list[Rule]:
    """Every row rule of every file, in the order of the files' names. Raises RuleError for the first mistake."""
    return [rule for file in _sound(folder) for rule in file.rules]


def all_checks(folder: Path = FOLDER) -> list[Check]:
    """Every table check of every file, in the order of the files' names. Raises RuleError for the first mistake."""
    return [check for file in _sound(folder) for check in file.checks]


def rule_files(folder: Path) -> list[Path]:
    """The YAML files of the folder by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml")) if folder.is_dir() else []


def read_rule_file(path: Path) -> RuleFile:
    """The content of one file, with all mistakes in it."""
    return _read(path, path.stat().st_mtime_ns)


def _sound(folder: Path) -> Iterator[RuleFile]:
    for path in rule_files(folder):
        found = read_rule_file(path)
        if found.errors:
            raise found.errors[0]
        yield found


@lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> RuleFile:
    """The content of one file; `changed` makes an edited file be read again."""
    reader = _Reader(f"{path.parent.name}/{path.name}", path.read_bytes())
    try:
        reader.read()
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        reader.errors.append(RuleError(f"not YAML: {problem.problem or problem}", reader.file, line))
    except yaml.YAMLError as problem:
        reader.errors.append(RuleError(f"not YAML: {problem}", reader.file, 1))
    return RuleFile(tuple(reader.rules), tuple(reader.checks), tuple(reader.errors))


class _Wrong(Exception):
    """A value does not have its form; says which one it should have."""


class _Reader:
    """Walks the nodes of one file, so that each mistake has its line."""

    def __init__(self, file: str, content: bytes) -> None:
        self.file = file
        self.rules: list[Rule] = []
        self.checks: list[Check] = []
        self.errors: list[RuleError] = []
        self._content = content
        self._merged: set[int] = set()

    def read(self) -> None:
        self._yaml = yaml.SafeLoader(self._content)
        root = self._yaml.get_single_node()
        for section, subjects, _ in self._items(root, "the file", SECTIONS, "section"):
            for subject, actions, _ in self._items(subjects, section):
                words = (*ACTIONS, "checks") if section == "datasets" else ACTIONS
                for action, named, _ in self._items(actions, f"{section}.{subject}", words, "action"):
                    for name, value, line in self._items(named, f"{section}.{subject}.{action}"):
                        self._add((section, subject, action, name), value, line)

    def _add(self, steps: tuple[str, str, str, str], value: yaml.Node, line: int) -> None:
        try:
            if steps[2] == "checks":
                self.checks.append(self._check(steps[1], steps[3], value, line))
            else:
                self.rules.append(self._rule(steps, value, line))
        except _Wrong as problem:
            self._wrong(f"{'.'.join(steps)}: {problem}", value)

    def _rule(self, steps: tuple[str, str, str, str], value: yaml.Node, line: int) -> Rule:
        if not isinstance(value, yaml.MappingNode):
            return Rule(*steps, self._text(value, "SQL text, or a mapping with constraint"), self.file, line)
        given = {key: node for key, node, _ in self._items(value, ".".join(steps), FIELDS, "key")}
        if "constraint" not in given:
            raise _Wrong("has no constraint")
        return Rule(*steps, self._text(given["constraint"], "SQL text"), self.file, line, *self._about(given))

    def _check(self, dataset: str, name: str, value: yaml.Node, line: int) -> Check:
        path = f"datasets.{dataset}.checks.{name}"
        given = {key: node for key, node, _ in self._items(value, path, (*CHECKS, *ABOUT), "check")}
        kinds = [key for key in given if key in CHECKS]
        if len(kinds) != 1:
            raise _Wrong(f"needs one of {', '.join(CHECKS)}" + (f"; got {' and '.join(kinds)}" if kinds else ""))
        severity = self._text(given["severity"], "text") if "severity" in given else "warning"
        if severity not in SEVERITIES:
            self._wrong(f"{path}: unknown severity {severity!r}", given["severity"], _nearest(severity, SEVERITIES), SEVERITIES)
        arguments = self._arguments(kinds[0], given[kinds[0]], path)
        return Check(dataset, name, kinds[0], arguments, severity, self.file, line, *self._about(given))

    def _arguments(self, kind: str, node: yaml.Node, path: str) -> Mapping[str, Any]:
        forms = CHECKS[kind]
        if isinstance(node, yaml.MappingNode):
            given = self._items(node, f"{path}.{kind}", tuple(forms), "argument")
            found = {key: _formed(key, forms[key], self._value(one)) for key, one, _ in given}
        elif kind == "rows":
            number = _formed("rows", "count", self._value(node))
            found = {"at_least": number, "at_most": number}
        elif kind in _ALONE:
            found = {_ALONE[kind]: _formed(kind, forms[_ALONE[kind]], self._value(node))}
        else:
            raise _Wrong(f"{kind} needs {', '.join(forms)}")
        bounds = [key for key in forms if key in _BOUNDS and forms[key] != "share"]
        missing = [k for k in forms if k not in found and k not in bounds and (kind, k) not in _OPTIONAL]
        if missing or (bounds and not any(key in found for key in bounds)):
            raise _Wrong(f"{kind} needs {', '.join(missing) or ' or '.join(bounds)}")
        return found

    def _about(self, given: Mapping[str, yaml.Node]) -> tuple[tuple[str, ...], str | None, str | None]:
        """Tags, description and owner."""
        tags = _formed("tags", "texts", self._value(given["tags"])) if "tags" in given else ()
        description, owner = (self._text(given[k], "text") if k in given else None for k in ("description", "owner"))
        return tuple(tags), description, owner

    def _items(
        self, node: yaml.Node | None, path: str, words: Collection[str] = (), what: str = "name"
    ) -> list[tuple[str, yaml.Node, int]]:
        """Key, value and line of each entry of a mapping; a heading with nothing below it has none. `words`: the keys that it may have."""
        if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
            return []
        if not isinstance(node, yaml.MappingNode):
            self._wrong(f"{path}: expected {', '.join(words) if words else f'a {what}'}, each with its own entry", node, got=True)
            return []
        self._merge(node, path)
        found: dict[str, tuple[str, yaml.Node, int]] = {}
        for key, value in node.value:  # merged ones first, so that the mapping's own win
            text, line = str(key.value), key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith((":str", ":int", ":float")):
                self._wrong(f"{path}: YAML does not read {text!r} as a name; put it in quotes", key)
            elif words and text not in words:
                self._wrong(f"{path}: unknown {what} {text!r}", key, _nearest(text, words), words)
            else:
                found[text] = (text, value, line)
        return list(found.values())

    def _merge(self, node: yaml.MappingNode, path: str) -> None:
        """Refuse a key that is written twice, of which plain YAML would forget the first, and take `<<` over."""
        if id(node) in self._merged:
            return
        self._merged.add(id(node))
        first: dict[str, int] = {}
        for key, _ in node.value:
            text, line = str(key.value), key.start_mark.line + 1
            if first.setdefault(text, line) != line and text != "<<":
                self._wrong(f"{path}: key {text!r} is written twice, first in line {first[text]}", key)
        self._yaml.flatten_mapping(node)

    def _wrong(self, text: str, node: yaml.Node, nearest: Iterable[str] = (), words: Collection[str] = (), *, got: bool = False) -> None:
        known = f" (known: {', '.join(words)})" if words and not nearest else ""
        value = f"; got {self._value(node)!r}" if got else ""
        self.errors.append(RuleError(text + value + known, self.file, node.start_mark.line + 1, nearest))

    def _value(self, node: yaml.Node) -> Any:
        return self._yaml.construct_object(node, deep=True)

    def _text(self, node: yaml.Node, form: str) -> str:
        value = self._value(node)
        if not isinstance(value, str) or not value.strip():
            raise _Wrong(f"expected {form}, got {value!r}")
        return value


def _formed(key: str, form: str, value: Any) -> Any:
    """The value in its form: texts and values as tuples, a duration in seconds. Raises _Wrong."""
    several = value if isinstance(value, list) else [value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match form:
        case "text" if isinstance(value, str) and value.strip():
            return value
        case "texts" if several and all(isinstance(one, str) and one.strip() for one in several):
            return tuple(several)
        case "values" if isinstance(value, list) and value:
            return tuple(value)
        case "value" if value is not None and not isinstance(value, list | dict | bool):
            return value
        case "count" if isinstance(value, int) and number and value >= 0:
            return value
        case "share" if number and isinstance(value, int | float) and 0 <= value <= 1:
            return value
        case "duration" if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
            return float(match[1]) * _SECONDS[match[2]]
    raise _Wrong(f"{key}: expected {_FORMS[form]}, got {value!r}")


_FORMS = {
    "text": "text",
    "texts": "a name or a list of names",
    "values": "a list of values",
    "value": "a number, text or date",
    "count": "a number of rows",
    "share": "a number from 0 to 1",
    "duration": "a duration such as 6 hours or 2 days",
}


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name.lower(), list(known), n=2, cutoff=0.6)
