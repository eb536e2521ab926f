"""Rows on stdout: tables within a width, CSV, what the notes say."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from rich.cells import cell_len

from lakelet.base.errors import LakeletError
from lakelet.base.text import aligned, cut
from lakelet.cli.row_output import Form, fitted, form_of, show_rows
from lakelet.inspection.inspector import TableRows

NAMES, TYPES = ("id", "name", "note"), ("int", "string", "string")


def rows(number, total=None):
    return TableRows(NAMES, iter([{"id": i, "name": f"n{i}", "note": "x" * 50} for i in range(number)]), TYPES, total)


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


WIDE = "東京都新宿区西新宿二丁目八番一号"


@pytest.mark.parametrize("value", [WIDE * 3, "ｶﾞ" * 60, "e\u0301" * 90, "한국어 " * 20, "🙂" * 50])
def test_a_table_with_wide_or_combining_characters_stays_within_the_terminal(value):
    grid = fitted(("id", "都市"), ("int", "string"), [[1, value], [22, "x"]], 40)
    found = aligned(grid.cells[1:], header=grid.cells[0], right=grid.right)
    assert 38 <= max(map(cell_len, found)) <= 40
    assert grid.cells[2][1].endswith("…")


def test_columns_beside_wide_characters_line_up():
    found = aligned([("東京", "1", "a"), ("Rio", "22", "b"), ("e\u0301te\u0301", "3", "c")], header=("city", "rows", ""), right=(1,))
    assert found == ["city  rows", "東京     1  a", "Rio     22  b", "e\u0301te\u0301      3  c"]


@pytest.mark.parametrize("text", [WIDE, "é" * 20, "e\u0301" * 20, "a" + WIDE, "schema." + WIDE + ".table"])
@pytest.mark.parametrize("width", [5, 6, 11, 12])
def test_a_cut_text_keeps_its_ends_and_takes_at_most_the_width(text, width):
    found = cut(text, width)
    assert width - 2 <= cell_len(found) <= width
    begin, end = found.split("…")
    assert text.startswith(begin)
    assert text.endswith(end)
    assert unicodedata.combining(end[0]) == 0


def test_the_notes_say_what_is_left_out(capsys):
    show_rows(rows(20, total=120), Form.TABLE, None)
    assert capsys.readouterr().err == "20 of 120 rows, more with --limit N\n"
    show_rows(rows(3, total=120), Form.TABLE, 3)
    assert capsys.readouterr().err == "3 of 120 rows\n"
    show_rows(rows(3, total=3), Form.TABLE, None)
    assert capsys.readouterr().err == ""
    show_rows(rows(0, total=0), Form.TABLE, None)
    assert capsys.readouterr().err == "No rows.\n"
    show_rows(replace(rows(20), more=True), Form.TABLE, None)
    assert capsys.readouterr().err == "20 of more than 20 rows, more with --limit N\n"
    show_rows(replace(rows(3), more=True), Form.TABLE, 3)
    assert capsys.readouterr().err == "3 of more than 3 rows\n"


def test_rows_that_nobody_counted_are_not_said_to_be_all(capsys):
    show_rows(rows(20), Form.TABLE, None)
    assert capsys.readouterr().err == "The first 20 rows, more with --limit N\n"
    show_rows(rows(3), Form.TABLE, 3)
    assert capsys.readouterr().err == "The first 3 rows, there may be more\n"
    show_rows(rows(2), Form.TABLE, 3)
    assert capsys.readouterr().err == ""


def test_csv_tells_null_from_an_empty_text_and_writes_nested_values_as_json(capsys):
    found = [{"a": None, "b": 'say "x"', "c": [1, None]}, {"a": 1, "b": "", "c": True}]
    show_rows(TableRows(("a", "b", "c"), iter(found), ("int", "string", "string")), Form.CSV, None)
    assert capsys.readouterr().out == 'a,b,c\n,"say ""x""","[1, null]"\n1,"",true\n'


def test_json_and_a_format_of_another_name_contradict_each_other():
    assert form_of(None, True) is Form.JSON
    assert form_of(Form.CSV, False) is Form.CSV
    with pytest.raises(LakeletError, match="--json and --format csv contradict each other"):
        form_of(Form.CSV, True)
