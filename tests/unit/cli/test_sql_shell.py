"""The shell of `lakelet sql`: where statements end, and what is completed."""

from __future__ import annotations

import os
import re
import sys

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.cli.row_output import Form
from lakelet.cli.sql_shell import COMMANDS, MORE, PROMPT, Completion, ShellSession, statements
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.terminals import Typist


@pytest.fixture
def stored(tmp_path):
    (tmp_path / "tables/orders").mkdir(parents=True)
    write_deltalake(str(tmp_path / "tables/orders"), pa.table({"id": [4711], "amount due": [2], "discount": [23]}))
    dataset = StoredDataset("main.shop.orders", "streaming_table", "tables/orders")
    Storage(tmp_path).save(StorageRegistry(datasets={dataset.name: dataset}))
    return tmp_path


def test_a_statement_ends_with_a_semicolon_and_the_shell_with_exit():
    lines = iter(["select 1", "from t;", "", "exit"])
    asked = []

    def read(prompt):
        asked.append(prompt)
        return next(lines)

    assert list(statements(read)) == ["select 1\nfrom t;"]
    assert asked == [PROMPT, MORE, PROMPT, PROMPT]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["select 1; select 2;", "select 3;"], ["select 1;", "select 2;", "select 3;"]),
        (["select 1; select", "2;"], ["select 1;", "select\n2;"]),
        (["select 1; -- note; or not", "select 2;"], ["select 1;", "select 2;"]),
        (["select 1 -- note;", ";"], ["select 1 -- note;\n;"]),
        (["select 'a;", "b', `c;", "d`;"], ["select 'a;\nb', `c;\nd`;"]),
        (
            ["create temp view v as select 1; select *", "from v; select 2;"],
            ["create temp view v as select 1; select *\nfrom v;", "select 2;"],
        ),
        (["create view v as select 1;", "select 2;"], ["create view v as select 1;", "select 2;"]),
        ([";", "  ;; select 1;"], ["select 1;"]),
        (["select 1; exit;", "select 2;"], ["select 1;"]),
    ],
)
def test_a_semicolon_ends_a_statement_wherever_it_stands_but_in_a_text_name_or_comment(lines, expected):
    left = iter([*lines, "exit"])
    assert list(statements(lambda prompt: next(left))) == expected


def test_ctrl_c_drops_what_was_begun_and_ctrl_d_leaves(capsys):
    found = iter(["select", KeyboardInterrupt(), "select 2;", EOFError()])

    def read(prompt):
        line = next(found)
        if isinstance(line, BaseException):
            raise line
        return line

    assert list(statements(read)) == ["select 2;"]


def test_a_command_is_a_line_that_begins_with_a_dot(capsys):
    left = iter([".mode csv", "select 1", ".5;", ".timer off;", ".exit"])
    assert list(statements(lambda prompt: next(left))) == [".mode csv", "select 1\n.5;", ".timer off;"]


def test_the_mode_says_how_rows_are_written_and_the_timer_how_long_it_took(stored, capsys):
    session = ShellSession(stored, Form.TABLE, None)
    session.do("select id, discount from shop.orders;")
    shown = capsys.readouterr()
    assert shown.out.split() == ["id", "discount", "bigint", "bigint", "4711", "23"]
    assert re.fullmatch(r"[0-9.]+ s\n", shown.err)
    session.do(".mode json")
    session.do(".timer off")
    session.do("select id from shop.orders;")
    assert capsys.readouterr() == ('[{"id": 4711}]\n', "")


def test_rows_go_to_a_file_until_the_output_is_the_terminal_again(stored, tmp_path, capsys):
    session, file = ShellSession(stored, Form.TABLE, None), tmp_path / "rows of today.csv"
    for line in (
        ".timer off",
        ".mode csv",
        f".output '{file}'",
        "select id from shop.orders;",
        "select 1 as one;",
        ".output",
        "select 2 as two;",
    ):
        session.do(line)
    assert file.read_text() == "id\n4711\none\n1\n"
    assert capsys.readouterr() == ("two\n2\n", "")


def test_a_file_gets_all_rows_also_as_a_table(stored, tmp_path, capsys):
    write_deltalake(str(stored / "tables/orders"), pa.table({"id": range(50)}), mode="overwrite", schema_mode="overwrite")
    session, file = ShellSession(stored, Form.TABLE, None), tmp_path / "rows.txt"
    session.do(f".output {file}")
    session.do("select id from shop.orders;")
    session.close()
    assert len(file.read_text().splitlines()) == 52


@pytest.mark.parametrize(
    ("line", "head", "hint"),
    [
        (".moed csv", "[USAGE] the shell has no command .moed", 'Did you mean ".mode"?'),
        (".mode parquet", "[USAGE] .mode takes: table, csv or json: how rows are written", ""),
        (".timer", "[USAGE] .timer takes: on or off: the seconds of each statement", ""),
        (".output /no/such/folder/rows.csv", "[USAGE] /no/such/folder/rows.csv cannot be written", "No such file or directory"),
        (".output 'rows", "[USAGE] .output 'rows: No closing quotation", ""),
    ],
)
def test_a_command_that_is_wrong_says_what_it_takes(stored, line, head, hint):
    with pytest.raises(LakeletError) as problem:
        ShellSession(stored, Form.TABLE, None).do(line)
    lines = problem.value.lines()
    assert lines[0] == head
    assert hint in "".join(lines[1:])


def test_a_file_that_is_there_is_not_written_over(stored, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("kept")
    with pytest.raises(LakeletError, match="cannot be written") as problem:
        ShellSession(stored, Form.TABLE, None).do(f".output {file}")
    assert problem.value.why == "File exists"
    assert file.read_text() == "kept"


def test_help_lists_the_commands(stored, capsys):
    ShellSession(stored, Form.TABLE, None).do(".help")
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == list(COMMANDS)


def test_names_are_completed_with_the_catalog_and_schema_that_are_given(stored, capsys):
    session = ShellSession(stored, Form.CSV, None, Namespace("main", "shop"))
    session.do("select id from orders;")
    session.do("describe orders;")
    assert capsys.readouterr().out == "id\n4711\ncol_name,data_type,comment\nid,bigint,\namount due,bigint,\ndiscount,bigint,\n"
    with pytest.raises(LakeletError) as problem:
        ShellSession(stored, Form.CSV, None, Namespace("other", "shop")).do("select id from orders;")
    assert problem.value.code == "UNKNOWN_TABLE"


def test_tables_columns_and_keywords_are_completed(stored):
    completion = Completion(stored)
    assert completion.words("or") == ["orders", "order", "or"]
    assert completion.words("shop.") == ["shop.orders"]
    assert completion.words("`am") == ["`amount due`"]
    assert completion.words("SEL") == ["SELECT"]
    assert (completion.word("main.", 0), completion.word("main.", 1)) == ("main.shop.orders", None)


def test_a_query_is_answered_on_a_terminal_its_names_completed_by_tab_and_kept_in_the_history(stored, tmp_path):
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "INPUTRC": os.devnull, "TERM": "xterm", "NO_COLOR": "1"}
    shell = Typist(([sys.executable, "-m", "lakelet", "sql", "--storage", str(stored)], environ))

    def answer(keys: str, shown: str) -> list[str]:
        """The lines between a statement, of which `shown` is the last that is on the screen while it is typed, and the next prompt."""
        shell.type(keys)
        shell.read_to(shown)
        shell.type(";\n")
        lines = [line.strip() for line in plain(shell.read_to(PROMPT)).splitlines()[1:-1]]
        return [line for line in lines if not line.startswith("Running the query")]  # drawn after a second, then removed

    shell.read_to(PROMPT)
    shell.type(".timer off\n")
    shell.read_to(PROMPT)
    assert answer("select id from shop.orders", "shop.orders") == ["id", "bigint", "4711"]
    assert answer("select sum(disc\t) as half from shop.ord\t", "shop.orders") == ["half", "bigint", "23"]
    assert answer("select `am\t from shop.orders", "from shop.orders") == ["amount due", "bigint", "2"]
    assert answer("select 1 from oders", "oders") == [
        "[UNKNOWN_TABLE] the storage holds no table oders",
        'Did you mean "main.shop.orders"?',
    ]
    assert answer("select upper(dis) as d from shop.orders", "shop.orders") == [
        "[UNKNOWN_COLUMN] there is no column dis in orders",
        "Columns: id, amount due, discount",
    ]
    shell.type("exit\n")
    shell.read_to("exit")
    assert shell.end() == 0
    history = (tmp_path / "state/lakelet/sql_history").read_text().splitlines()
    assert history[:3] == [".timer off", "select id from shop.orders;", "select sum(discount) as half from shop.orders;"]


def plain(text: str) -> str:
    """What is shown, without control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]", "", text).replace("\r", "")
