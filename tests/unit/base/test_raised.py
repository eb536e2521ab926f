"""What is said of an exception in user code: its line with a caret, and names close to the wrong one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.raised import import_remedy, innermost_location, line_of_text, near_names

HAS_COLUMNS = sys.version_info >= (3, 11)
CODE = """\
import math
total = 3

def clean_name(text):
    return text.strip()

def helper():
    return "ü" + clean_names("x")
def local():
    amount = 1
    return amonut
def function():
    return math.flor(1.5)
def method():
    return "a b".splitt()
def module():
    import jsno
def name():
    from collections import OrderedDictt
def keyword():
    return clean_name(txet="x")
def value():
    raise ValueError("no such month")
def key():
    return {}["a"]
def far():
    return (
        clean_name("x")
        .uper()
    )
"""


@pytest.fixture
def raised(tmp_path: Path) -> Callable[[str], Exception]:
    file = tmp_path / "own.py"
    file.write_text(CODE, encoding="utf-8")

    def call(function: str) -> Exception:
        names: dict[str, object] = {"__name__": "own"}
        exec(compile(CODE, str(file), "exec"), names)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each function raises another one
            names[function]()  # type: ignore[operator]
        return caught.value

    return call


NEAR = [
    ("helper", 'return "ü" + clean_names("x")', "clean_names", "clean_name"),
    ("local", "return amonut", "amonut", "amount"),
    ("function", "return math.flor(1.5)", "flor", "floor"),
    ("method", 'return "a b".splitt()', "splitt", "split"),
    ("module", "import jsno", "jsno", "json"),
    ("keyword", 'return clean_name(txet="x")', "txet", "text"),
    ("name", "from collections import OrderedDictt", "OrderedDictt", "OrderedDict"),
]


@pytest.mark.parametrize(("function", "line", "pointed", "near"), NEAR, ids=[case[0] for case in NEAR])
def test_a_misspelled_name_is_pointed_at_and_the_nearest_one_named(raised, function, line, pointed, near):
    error = raised(function)
    where = innermost_location(error)
    text, *caret = where.excerpt()
    assert text == f"{where.line} |     {line}"
    if HAS_COLUMNS:
        assert text[caret[0].index("^") :].startswith(pointed)
    assert near_names(error)[0] == near


@pytest.mark.parametrize("function", ["value", "key"])
def test_an_error_that_is_about_no_name_has_its_line_and_no_suggestion(raised, function):
    error = raised(function)
    assert near_names(error) == ()
    assert innermost_location(error).excerpt()[0].endswith(('raise ValueError("no such month")', '{}["a"]'))


@pytest.mark.skipif(not HAS_COLUMNS, reason="Python 3.10 knows the line of a chain's beginning only")
def test_the_link_of_a_chain_that_is_wrong_is_shown(raised):
    text, caret = innermost_location(raised("far")).excerpt()
    assert text.endswith("        .uper()")
    assert text[caret.index("^") :] == "uper()"


def test_a_missing_module_says_what_to_install(raised):
    assert "'jsno'" in import_remedy(raised("module"))
    assert import_remedy(raised("value")) is None


def test_a_caret_stands_behind_wide_characters_where_a_terminal_shows_the_column():
    wide = Location("a.py", 1, column=12, source='x = "東京" + y')
    assert wide.excerpt() == ['1 | x = "東京" + y', "    " + " " * 13 + "^"]


def test_a_line_without_a_column_is_shown_without_a_caret_and_a_secret_is_not_shown():
    assert Location("a.py", 3, source="x = 1\n").excerpt() == ["3 | x = 1"]
    assert Location("a.py", 3).excerpt() == []
    error = LakeletError("SOURCE_FAILED", "it failed", where=Location("a.py", 3, 5, "x = y"))
    assert str(error).splitlines() == ["[SOURCE_FAILED] it failed", "  a.py, line 3, column 5", "  3 | x = y", "          ^"]


def test_the_line_of_a_name_is_in_the_call_or_the_only_one_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.py"
    lines = [
        'RULES = {"known": "a > 1"}',
        'OTHER = {"twice": 1}',
        "@all({",
        "    'inside': 1,",
        "    'twice': 2,",
        "})",
        "def t():",
        '    "twice"',
    ]
    file.write_text("\n".join(lines))
    where = Location(str(file), 3)
    assert [line_of_text(where, name).line for name in ("inside", "twice", "known", "absent")] == [4, 5, 1, 3]
    assert line_of_text(Location(str(file), 7), "twice").line == 7, "it is there several times, and not in the call"
    assert line_of_text(Location("nowhere.py", 9), "known").line == 9
