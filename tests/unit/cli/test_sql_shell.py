"""The shell of `lakelet sql`: where statements end, and what is completed."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.cli.sql_shell import MORE, PROMPT, Completion, statements
from lakelet.storage.root import Registry, Storage, StoredDataset


@pytest.fixture
def stored(tmp_path):
    (tmp_path / "tables/orders").mkdir(parents=True)
    write_deltalake(str(tmp_path / "tables/orders"), pa.table({"id": [1], "amount due": [2]}))
    dataset = StoredDataset("main.shop.orders", "streaming_table", "tables/orders")
    Storage(tmp_path).save(Registry(datasets={dataset.name: dataset}))
    return tmp_path


def test_a_statement_ends_with_a_semicolon_and_the_shell_with_exit():
    lines = iter(["select 1", "from t;", "", "exit"])
    asked = []

    def read(prompt):
        asked.append(prompt)
        return next(lines)

    assert list(statements(read)) == ["select 1\nfrom t;"]
    assert asked == [PROMPT, MORE, PROMPT, PROMPT]


def test_ctrl_c_drops_what_was_begun_and_ctrl_d_leaves(capsys):
    found = iter(["select", KeyboardInterrupt(), "select 2;", EOFError()])

    def read(prompt):
        line = next(found)
        if isinstance(line, BaseException):
            raise line
        return line

    assert list(statements(read)) == ["select 2;"]


def test_tables_columns_and_keywords_are_completed(stored):
    completion = Completion(stored)
    assert completion.words("or") == ["orders", "order", "or"]
    assert completion.words("shop.") == ["shop.orders"]
    assert completion.words("`am") == ["`amount due`"]
    assert completion.words("SEL") == ["SELECT"]
    assert (completion.word("main.", 0), completion.word("main.", 1)) == ("main.shop.orders", None)


def test_a_query_is_answered_on_a_terminal_and_kept_in_the_history(stored, tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["XDG_STATE_HOME"] = str(tmp_path / "state")
        os.execv(sys.executable, [sys.executable, "-m", "lakelet.cli.main", "sql", "--storage", str(stored)])
    shown, ends = b"", time.monotonic() + 60
    for waited, typed in ((PROMPT, b"select id from shop.orders;\n"), ("1", b""), (PROMPT, b"exit\n"), ("exit", b"")):
        while waited.encode() not in shown and time.monotonic() < ends:
            if select.select([terminal], [], [], 1.0)[0]:
                shown += os.read(terminal, 65536)
        os.write(terminal, typed)
        shown = shown.partition(waited.encode())[2]
    os.waitpid(pid, 0)
    assert "select id from shop.orders;" in (tmp_path / "state/lakelet/sql_history").read_text()
