"""Rules as data: the YAML files of this folder, handed to the expectation decorators as `{name: constraint}`.

    datasets:                          # rules of one table
      orders:
        drop:
          has_id: id IS NOT NULL       # SQL text, or a mapping with more about the rule
          paid: {constraint: amount >= 0, tags: [money]}
    layers: {silver: ...}              # rules of every table of a layer
    columns: {order_id: ...}           # rules of every table that has the column

The folder is deployed with the pipeline and needs nothing but PyYAML. `lakelet validate` names every mistake in it, with file and line.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent
ACTIONS = ("warn", "drop", "fail")
WORDS = {"datasets": (*ACTIONS, "checks"), "layers": ACTIONS, "columns": ACTIONS}  # checks are no rules: only Lakelet makes them


class Rule(NamedTuple):
    """One entry of a file. `subject`: the dataset, layer or column that it is written for."""

    file: str
    section: str
    subject: str
    action: str
    name: str
    constraint: str
    tags: tuple[str, ...] = ()


class RuleError(ValueError):
    """A rule file, or a call of `rules`, cannot be used as it stands. `rule`: the one that it is about."""

    def __init__(self, what: str, wrong: object = "", known: Iterable[str] = (), rule: Rule | None = None) -> None:
        self.what, self.nearest, self.rule = what, get_close_matches(str(wrong), list(known), n=2), rule
        super().__init__(what + (f"; did you mean {' or '.join(map(repr, self.nearest))}?" if self.nearest else ""))


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
    every = all_rules(folder)
    tags = {one for rule in every for one in rule.tags}
    known = {entry.subject for entry in _entries(folder) if entry.section == "datasets"}
    if action is None and tag is None:
        raise RuleError(f"rules({dataset!r}): give action= or tag=")
    if action not in (None, *ACTIONS):
        raise RuleError(f"rules({dataset!r}, {action!r}): the action is one of {', '.join(ACTIONS)}", action, ACTIONS)
    if tag not in (None, *tags):
        raise RuleError(f"rules({dataset!r}, tag={tag!r}): no rule has this tag", tag, tags)
    subjects = {("datasets", dataset), ("layers", layer), *(("columns", column) for column in columns)}
    met: dict[str, Rule] = {}
    for rule in every:
        if (rule.section, rule.subject) in subjects and met.setdefault(rule.name, rule) is not rule:
            raise RuleError(f"{rule.file}: {dataset} already has a rule {rule.name!r}, from {met[rule.name].file}", rule=rule)
    if not met and dataset not in known:
        raise RuleError(f"{folder.name}/: no file has a rule for {dataset}; add one under datasets.{dataset}", dataset, known)
    return {rule.name: rule.constraint for rule in met.values() if action in (None, rule.action) and (tag is None or tag in rule.tags)}


def all_rules(folder: Path = FOLDER) -> list[Rule]:
    """Every rule of every file, in the order of the files' names. Raises RuleError."""
    return [entry for entry in _entries(folder) if entry.action in ACTIONS]


def _entries(folder: Path) -> list[Rule]:
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yml", ".yaml"))
    return [entry for path in files for entry in _read(path, path.stat().st_mtime_ns)]


@cache
def _read(path: Path, changed: int) -> list[Rule]:
    """The entries of one file; `changed` makes an edited file be read again."""
    file, found = f"{path.parent.name}/{path.name}", []
    try:
        content = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as problem:
        raise RuleError(f"{file}: not YAML: {problem}") from None
    for section, subjects in _items(content, file, WORDS):
        for subject, actions in _items(subjects, f"{file}: {section}"):
            for action, named in _items(actions, f"{file}: {section}.{subject}", WORDS[section]):
                for name, value in _items(named, f"{file}: {section}.{subject}.{action}"):
                    about = value if isinstance(value, dict) else {"constraint": value}
                    text, tags = about.get("constraint", ""), about.get("tags") or ()
                    if action in ACTIONS and (not isinstance(text, str) or not text):
                        raise RuleError(f"{file}: {section}.{subject}.{action}.{name}: expected SQL text, got {text!r}")
                    found.append(Rule(file, section, subject, action, name, text, (tags,) if isinstance(tags, str) else tuple(tags)))
    return found


def _items(value: Any, where: str, words: Iterable[str] = ()) -> Iterable[tuple[str, Any]]:
    """The entries of a mapping; a heading with nothing below it has none. `words`: the keys that it may have, any by default."""
    if not isinstance(value or {}, dict):
        raise RuleError(f"{where}: expected {', '.join(words) or 'names'}, each with its own entry; got {value!r}")
    for key in value or {} if words else {}:
        if key not in words:
            raise RuleError(f"{where}: unknown {key!r} (known: {', '.join(words)})", key, words)
    return {str(key): one for key, one in (value or {}).items()}.items()
