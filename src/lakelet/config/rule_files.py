"""Rule files of a project, `expectations/*.yml`: texts in, rules and checks with file and line out, and every mistake as a coded error.

The decorators get rules from the project's own `expectations/__init__.py`, which is deployed and knows neither lines nor Lakelet. What it
refuses, and what it does not look at, is judged here whenever a pipeline is loaded, and by `lakelet rules`. The form of a file is in
docs/reference/rules.md. Rules that code applies are matched with those of files in `quality/applied_rules.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lakelet.base.errors import DefinitionErrors, LakeletError, Location, nearest_names

FOLDER = "expectations"
"""The folder of rule files, in the project's own."""
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


class _Mistake(NamedTuple):
    what: str
    line: int
    nearest: tuple[str, ...] = ()


class RuleFile(NamedTuple):
    """What one file holds, and what is wrong with it."""

    file: str
    rules: tuple[Rule, ...]
    checks: tuple[Check, ...]
    mistakes: tuple[_Mistake, ...]

    @property
    def errors(self) -> tuple[LakeletError, ...]:
        """RULE_FILE_INVALID for each mistake, with its line."""
        return tuple(
            LakeletError("RULE_FILE_INVALID", one.what, where=Location(self.file, one.line), nearest=one.nearest) for one in self.mistakes
        )


def folder_above(start: Path) -> Path:
    """The folder of rule files of the project that `start` lies in; that of `start` itself where none is there."""
    return next((f / FOLDER for f in (start, *start.parents) if (f / FOLDER).is_dir()), start / FOLDER)


def read_all(folder: Path) -> tuple[list[Rule], list[Check]]:
    """All rules and checks of the folder, in the order of the files' names. Raises DefinitionErrors with every error of every file."""
    found = [read_rule_file(path) for path in rule_files(folder)]
    errors = [error for file in found for error in file.errors]
    if errors:
        raise DefinitionErrors(errors)
    return [rule for file in found for rule in file.rules], [check for file in found for check in file.checks]


def rule_files(folder: Path) -> list[Path]:
    """The YAML files of the folder by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml")) if folder.is_dir() else []


def read_rule_file(path: Path) -> RuleFile:
    """The content of one file, with all mistakes in it."""
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> RuleFile:
    """The content of one file; `changed` makes an edited file be read again."""
    reader = _Reader(f"{path.parent.name}/{path.name}", path.read_bytes())
    try:
        reader.read()
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        reader.mistakes.append(_Mistake(f"not YAML: {problem.problem or problem}", line))
    except yaml.YAMLError as problem:
        reader.mistakes.append(_Mistake(f"not YAML: {problem}", 1))
    return RuleFile(reader.file, tuple(reader.rules), tuple(reader.checks), tuple(reader.mistakes))


class _Wrong(Exception):
    """A value does not have its form; says which one it should have."""


class _Reader:
    """Walks the nodes of one file, so that each mistake has its line."""

    def __init__(self, file: str, content: bytes) -> None:
        self.file = file
        self.rules: list[Rule] = []
        self.checks: list[Check] = []
        self.mistakes: list[_Mistake] = []
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
            self._wrong(f"{path}: unknown severity {severity!r}", given["severity"], nearest_names(severity, SEVERITIES), SEVERITIES)
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
                self._wrong(f"{path}: unknown {what} {text!r}", key, nearest_names(text, words), words)
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
        self.mistakes.append(_Mistake(text + value + known, node.start_mark.line + 1, tuple(nearest)))

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
