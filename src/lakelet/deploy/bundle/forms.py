"""Forms of values in bundle files, and the walk that checks a tree against one and gives it as JSON values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.base.errors import nearest_names
from lakelet.config.yaml_tree import ConfigNode, Problems, plain

_OPEN = re.compile(r"\$\{[^}]+\}")


@dataclass(frozen=True)
class TextForm:
    """A text; numbers and switches count as what is written. `check` returns what is wrong with one, or None."""

    choices: tuple[str, ...] = ()
    any_case: bool = False
    check: Callable[[str], str | None] | None = None


@dataclass(frozen=True)
class IntegerForm:
    """A whole number, at least `least`."""

    least: int | None = None


@dataclass(frozen=True)
class SwitchForm:
    """true or false."""


@dataclass(frozen=True)
class AnyForm:
    """A value that is passed on as it is."""


@dataclass(frozen=True)
class ListForm:
    """A list."""

    of: Form


@dataclass(frozen=True)
class NamedForm:
    """A mapping with keys of the user's choice."""

    of: Form


@dataclass(frozen=True)
class RecordForm:
    """A mapping with known keys.

    Attributes:
        what: the thing that has them, in a sentence: `a pipeline`.
        fields: the form of each.
        required: those that must be there.
        one_of: groups of keys of which exactly one must be there; `at_most_one`: of which no two may be.
    """

    what: str
    fields: Mapping[str, Form]
    required: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    at_most_one: tuple[tuple[str, ...], ...] = ()


Form = TextForm | IntegerForm | SwitchForm | AnyForm | ListForm | NamedForm | RecordForm

TEXT, INTEGER, SWITCH, ANYTHING = TextForm(), IntegerForm(), SwitchForm(), AnyForm()
TEXTS, TEXT_BY_NAME = ListForm(TEXT), NamedForm(TEXT)


def choice(*words: str, any_case: bool = False) -> TextForm:
    """One of these words."""
    return TextForm(words, any_case)


def fields(form: Form, names: str) -> dict[str, Form]:
    """Fields of one form: their names in one string."""
    return dict.fromkeys(names.split(), form)


def texts(names: str) -> dict[str, Form]:
    """Fields of texts."""
    return fields(TEXT, names)


def switches(names: str) -> dict[str, Form]:
    """Fields of switches."""
    return fields(SWITCH, names)


def checked(node: ConfigNode, form: Form, what: str, problems: Problems) -> Any:
    """The tree as JSON values of the form, without what is null. What does not fit is noted and given as it is.

    A reference that is still open fits everywhere. `what`: the value in a sentence: `libraries`.
    """
    if isinstance(node.value, str) and _OPEN.search(node.value):
        return node.value
    return _CHECKS[type(form)](node, form, what, problems)


def _checked_text(node: ConfigNode, form: TextForm, what: str, problems: Problems) -> Any:
    if isinstance(node.value, (dict, list)):
        problems.bad(node, f"{what} must be a text, not {_kind_of_value(node)}")
        return plain(node)
    text = node.text.lower() if isinstance(node.value, bool) else node.text
    if form.choices:
        words = {word.lower(): word for word in form.choices} if form.any_case else {word: word for word in form.choices}
        if (text.lower() if form.any_case else text) not in words:
            known = ", ".join(form.choices) if len(form.choices) <= 12 else None
            near = nearest_names(text, form.choices)
            problems.bad(node, f"{what} cannot be {text!r}", nearest=near, todo=f"One of {known}." if known and not near else None)
        elif form.any_case:
            text = words[text.lower()]
    wrong = form.check(text) if form.check else None
    if wrong:
        problems.bad(node, f"{what} {text!r} {wrong}")
    return text


def _checked_integer(node: ConfigNode, form: IntegerForm, what: str, problems: Problems) -> Any:
    value = node.value
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        problems.bad(node, f"{what} must be a whole number, not {_kind_of_value(node)}")
        return plain(node)
    if form.least is not None and value < form.least:
        problems.bad(node, f"{what} must be at least {form.least}, not {value}")
    return value


def _checked_switch(node: ConfigNode, form: SwitchForm, what: str, problems: Problems) -> Any:
    value = {"true": True, "false": False}.get(str(node.value).strip().lower()) if isinstance(node.value, (str, bool)) else None
    if value is None:
        problems.bad(node, f"{what} must be true or false, not {_kind_of_value(node)}")
        return plain(node)
    return value


def _checked_any(node: ConfigNode, form: AnyForm, what: str, problems: Problems) -> Any:
    return plain(node)


def _checked_list(node: ConfigNode, form: ListForm, what: str, problems: Problems) -> Any:
    if not isinstance(node.value, list):
        problems.bad(node, f"{what} must be a list, not {_kind_of_value(node)}", todo="Write each item after a dash: - …")
        return plain(node)
    return [checked(item, form.of, f"an item of {what}", problems) for item in node.value if item.value is not None]


def _checked_named(node: ConfigNode, form: NamedForm, what: str, problems: Problems) -> Any:
    if not isinstance(node.value, dict):
        problems.bad(node, f"{what} must be a mapping of keys to values, not {_kind_of_value(node)}")
        return plain(node)
    return {key: checked(child, form.of, f"{key} of {what}", problems) for key, child in node.value.items() if child.value is not None}


def _checked_record(node: ConfigNode, form: RecordForm, what: str, problems: Problems) -> Any:
    if not isinstance(node.value, dict):
        problems.bad(node, f"{what} must be a mapping with keys such as {', '.join(list(form.fields)[:3])}, not {_kind_of_value(node)}")
        return plain(node)
    given = {key: child for key, child in node.value.items() if child.value is not None}
    for key, child in node.value.items():
        if key not in form.fields:
            problems.bad(child, f"{form.what} has no key {key!r}", nearest=nearest_names(key, form.fields))
    for key in form.required:
        if key not in given:
            problems.bad(node, f"{form.what} needs {key!r}")
    for group in form.one_of:
        here = [key for key in group if key in given]
        if len(here) != 1:
            problems.bad(node, f"{form.what} needs one of {', '.join(group)}" + (f", not {' and '.join(here)}" if here else ""))
    for group in form.at_most_one:
        here = [key for key in group if key in given]
        if len(here) > 1:
            problems.bad(given[here[1]], f"{form.what} cannot have {' and '.join(here)}", todo="Keep one of them.")
    return {key: checked(child, form.fields[key], key, problems) for key, child in given.items() if key in form.fields}


def _kind_of_value(node: ConfigNode) -> str:
    match node.value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "empty"
        case _:
            return json.dumps(node.text, ensure_ascii=False) if isinstance(node.value, str) else node.text


_CHECKS: dict[type, Callable[[ConfigNode, Any, str, Problems], Any]] = {
    TextForm: _checked_text,
    IntegerForm: _checked_integer,
    SwitchForm: _checked_switch,
    AnyForm: _checked_any,
    ListForm: _checked_list,
    NamedForm: _checked_named,
    RecordForm: _checked_record,
}
