"""Rows on stdout: tables within a width, CSV, what the notes say."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cli.row_output import Form, fitted, form_of, show_rows
from lakelet.inspection.inspector import Rows

NAMES, TYPES = ("id", "name", "note"), ("int", "string", "string")


def rows(number, total=None):
    return Rows(NAMES, iter([{"id": i, "name": f"n{i}", "note": "x" * 50} for i in range(number)]), TYPES, total)


def lines(grid):
    return [" ".join(row) for row in grid.cells]


def test_types_stand_under_the_names_and_nothing_is_cut_without_a_terminal():
    grid = fitted(NAMES, TYPES, [[1, None, "x" * 100]], None)
    assert lines(grid) == ["id name note", "int string string", f"1 NULL {'x' * 100}"]
    assert (grid.right, grid.cut) == ((0,), 0)


def test_long_cells_are_cut_before_columns_are_left_out():
    grid = fitted(NAMES, TYPES, [[1, "abc", "x" * 100]], 40)
    assert grid.cut == 0
    assert grid.cells[2][2] == "x" * 26 + "…"
    narrow = fitted(NAMES, TYPES, [[1, "abc", "x" * 100]], 15)
    assert (lines(narrow), narrow.cut) == (["id name …", "int string …", "1 abc …"], 1)


def test_the_notes_say_what_is_left_out(capsys):
    show_rows(rows(20, total=120), Form.TABLE, None)
    assert capsys.readouterr().err == "20 of 120 rows, more with --limit N\n"
    show_rows(rows(3, total=120), Form.TABLE, 3)
    assert capsys.readouterr().err == "3 of 120 rows\n"
    show_rows(rows(3, total=3), Form.TABLE, None)
    assert capsys.readouterr().err == ""
    show_rows(rows(0, total=0), Form.TABLE, None)
    assert capsys.readouterr().err == "No rows.\n"


def test_csv_tells_null_from_an_empty_text_and_writes_nested_values_as_json(capsys):
    found = [{"a": None, "b": 'say "x"', "c": [1, None]}, {"a": 1, "b": "", "c": True}]
    show_rows(Rows(("a", "b", "c"), iter(found), ("int", "string", "string")), Form.CSV, None)
    assert capsys.readouterr().out == 'a,b,c\n,"say ""x""","[1, null]"\n1,"",true\n'


def test_json_and_a_format_of_another_name_contradict_each_other():
    assert form_of(None, True) is Form.JSON
    assert form_of(Form.CSV, False) is Form.CSV
    with pytest.raises(LakeletError, match="--json and --format csv contradict each other"):
        form_of(Form.CSV, True)
