"""Source files as people have them: Databricks notebooks, Jupyter notebooks, plain files. Spark is not needed."""

from __future__ import annotations

import inspect
import json
import textwrap
import traceback
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.config import source_files
from lakelet.language.loader import LoadedSources, loaded
from lakelet.language.notebook import NotebookCell, read_source
from lakelet.language.registry import reading
from lakelet.testing.loading import load_file


class Folder:
    """Source files on disk; `load()` runs them and keeps what they declare."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: list[Path] = []
        self.found: Any = None

    def write(self, name: str, text: str, *, source: bool = True) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        self.files += [file] if source else []
        return file

    def jupyter(self, name: str, *cells: Any, language: str = "python", source: bool = True) -> Path:
        """Write a notebook; a cell is its text, or (type, text)."""
        pairs = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
        content = {
            "cells": [{"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)} for kind, text in pairs],
            "metadata": {"application/vnd.databricks.v1+notebook": {"language": language}},
            "nbformat": 4,
            "nbformat_minor": 0,
        }
        return self.write(name, json.dumps(content), source=source)

    def load(self, **parameters: str) -> LoadedSources:
        with loaded(self.files, import_roots=[self.path], namespace=Namespace(), injected={"spark": None}, parameters=parameters) as found:
            self.found = found
        return found

    def names(self) -> list[str]:
        """Names of the datasets; nothing may be wrong."""
        found = self.load()
        assert [str(error) for error in found.errors] == []
        return [dataset.name.name for dataset in found.definitions.datasets]

    def notices(self) -> list[str]:
        return [f"{notice.where}: {notice.text}" for notice in self.load().notices]

    def error(self) -> LakeletError:
        """The first mistake."""
        return self.load().errors[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


TABLE = "import dlt\n@dlt.table\ndef {0}():\n    return None\n"

NOTEBOOK = """
    # Databricks notebook source
    # MAGIC %md
    # MAGIC # Sales
    # MAGIC import nothing

    # COMMAND ----------

    # DBTITLE 1,Imports
    # MAGIC %pip install -r wanted.txt great-lib==1.2 "other[x]>2"  # noqa: E999
    # MAGIC %load_ext autoreload
    import dlt

    # COMMAND ----------

    # MAGIC %sql
    # MAGIC SELECT 1

    # COMMAND ----------

    # MAGIC %python
    # MAGIC @dlt.table
    # MAGIC def from_magic():
    # MAGIC     return "a line of its own"

    # COMMAND ----------

    @dlt.table
    def plain():
        return 1

    # COMMAND ----------

    # MAGIC %sh ls /

    # COMMAND ----------

    # MAGIC %environment
    # MAGIC "client": "1"
"""


def test_a_python_notebook_runs_its_python_cells_and_tells_which_others_it_leaves_out(folder):
    folder.write("sales.py", NOTEBOOK)
    assert folder.names() == ["from_magic", "plain"]
    assert folder.notices() == [
        "sales.py, line 15: %sql: the cell is left out; of this notebook a pipeline executes the Python cells only",
        "sales.py, line 33: %sh: the cell is left out; of this notebook a pipeline executes the Python cells only",
        "sales.py, line 37: %environment: the cell is left out; of this notebook a pipeline executes the Python cells only",
        'sales.py, line 9: %pip install -r wanted.txt great-lib==1.2 "other[x]>2"  # noqa: E999: packages come from this environment;'
        " the notebook asks for great-lib==1.2, other[x]>2",
        "sales.py, line 10: %load_ext: the command is left out",
    ]


def test_cells_of_one_kind_that_are_left_out_are_one_notice(folder):
    folder.write("a.py", "# Databricks notebook source\n# MAGIC %sql a\n# COMMAND ----------\n# MAGIC %sql b\n" + TABLE.format("t"))
    folder.jupyter("b.ipynb", "%sh a", ("markdown", "x"), "%sh b", "%sh c")
    assert [text.partition(";")[0] for text in folder.notices()] == [
        "a.py, line 2: %sql: 2 cells are left out, the others at line 4",
        "b.ipynb, cell 1, line 1: %sh: 3 cells are left out, the others at cell 3, cell 4",
    ]


def test_a_notebook_whose_tables_stand_in_cells_of_another_language_defines_none_and_says_why(folder):
    folder.write("a.py", "# Databricks notebook source\n# MAGIC %sql\n# MAGIC CREATE LIVE TABLE t AS SELECT 1")
    error = folder.error()
    assert error.code == "EMPTY_PIPELINE"
    assert "a.py, line 2: %sql: the cell is left out" in error.why.splitlines()[1]


def test_source_and_place_of_functions_are_those_of_the_notebook(folder):
    folder.write("sales.py", NOTEBOOK)
    places = {d.name.name: str(d.where) for d in folder.load().definitions.datasets}
    assert places == {"from_magic": "sales.py, line 21", "plain": "sales.py, line 27"}
    queries = {flow.name: inspect.unwrap(flow.query) for flow in folder.found.definitions.flows}
    assert 'def from_magic():\n    return "a line of its own"' in inspect.getsource(queries["main.default.from_magic"])


def test_a_jupyter_notebook_runs_its_cells_in_one_module_and_future_imports_hold_for_later_cells(folder):
    folder.jupyter(
        "sales.ipynb",
        ("markdown", "# Sales"),
        "from __future__ import annotations\nimport dlt\nfactor = 2",
        "%md nothing to run",
        "%%sql\nSELECT 1",
        "pip install a\n!ls\n%matplotlib inline\nrest = 7 % factor\ntext = '''\n%pip is text here\n'''",
        "%%sparksql\nSELECT 1",
        "%%time\nmore = 1",
        "@dlt.table\ndef sums(x: Unknown = rest + more):\n    return factor + 1",
    )
    assert folder.names() == ["sums"]
    assert str(folder.found.definitions.datasets[0].where) == "sales.ipynb, cell 8, line 1"
    assert folder.notices() == [
        "sales.ipynb, cell 4, line 1: %sql: the cell is left out; of this notebook a pipeline executes the Python cells only",
        "sales.ipynb, cell 6, line 1: %sparksql: the cell is left out; of this notebook a pipeline executes the Python cells only",
        "sales.ipynb, cell 5, line 1: %pip install a: packages come from this environment; the notebook asks for a",
        "sales.ipynb, cell 5, line 2: !ls: shell commands are left out",
        "sales.ipynb, cell 5, line 3: %matplotlib: the command is left out",
        "sales.ipynb, cell 7, line 1: %time: the command is left out",
    ]
    assert "return factor + 1" in inspect.getsource(inspect.unwrap(folder.found.definitions.flows[0].query))


def test_a_file_that_does_not_compile_or_names_a_wrong_argument_is_shown_with_a_caret(folder):
    folder.write("bad.py", "import dlt\n\n\n@dlt.table\ndef t(:\n    pass\n")
    text, caret = folder.error().where.excerpt()
    assert (text, text[caret.index("^")]) == ("5 | def t(:", ":")


def test_an_error_in_a_cell_is_told_with_cell_and_line_and_its_traceback_shows_the_line(folder):
    folder.jupyter("bad.ipynb", ("markdown", "x"), "a = 1\n\nb = a / 0  # here")
    error = folder.error()
    assert (error.code, str(error.where).partition(", column")[0]) == ("SOURCE_FAILED", "bad.ipynb, cell 2, line 3")
    assert error.where.excerpt()[0] == "3 | b = a / 0  # here"
    function = folder.jupyter("good.ipynb", "import dlt\n@dlt.table\ndef t():\n    return 1 / 0  # in a function")
    folder.files = [function]
    query = folder.load().definitions.flows[0].query
    with pytest.raises(ZeroDivisionError) as caught:
        query()
    assert "return 1 / 0  # in a function" in "".join(traceback.format_tb(caught.value.__traceback__))


@pytest.mark.parametrize(
    ("cell", "line"), [("x = 1\n\n# COMMAND ----------\n\ndef (:\n", 8), ("# MAGIC %python\n# MAGIC x = 1\n# MAGIC def (:\n", 6)]
)
def test_a_syntax_error_in_a_notebook_names_the_line_of_the_file_and_no_cell_runs(folder, cell, line):
    folder.write("bad.py", "# Databricks notebook source\nraise ValueError\n# COMMAND ----------\n" + cell)
    error = folder.error()
    assert (error.code, error.where.line) == ("SOURCE_FAILED", line)
    assert "does not compile" in error.what
    assert error.where.excerpt()[0].endswith("def (:")


def test_run_executes_a_notebook_in_the_module_of_the_one_that_names_it(folder):
    folder.write("shared/names.py", "# Databricks notebook source\nimport dlt\nprefix = 'raw'\ngiven = getArgument('day')\n", source=False)
    folder.jupyter("shared/more.ipynb", "def named(x):\n    return f'{prefix}_{x}_{given}'", source=False)
    folder.write(
        "main.py",
        """
        # Databricks notebook source
        # MAGIC %run ./shared/names $day="monday"

        # COMMAND ----------

        # MAGIC %run "./shared/more"

        # COMMAND ----------

        @dlt.table(name=named("orders"))
        def orders():
            return None
        """,
    )
    assert folder.names() == ["raw_orders_monday"]


def test_a_source_that_another_one_runs_is_not_run_a_second_time(folder):
    folder.write("b_first.py", "# Databricks notebook source\n# MAGIC %run ./c_second\n# COMMAND ----------\nassert shared == 1")
    folder.write("c_second.py", "# Databricks notebook source\nshared = 1\n" + TABLE.format("second"))
    folder.write("d_third.py", "# Databricks notebook source\n# MAGIC %run ./c_second\n# COMMAND ----------\nassert shared == 1")
    assert folder.names() == ["second"]
    assert [text for text in folder.notices() if "source of the pipeline itself" in text] == [
        "b_first.py, line 2: %run ./c_second: the notebook is a source of the pipeline itself; it runs here, and not a second time"
    ]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("%run ./shard/names", "looked in"),
        ("%run /Workspace/Shared/names", "path in a workspace"),
        ("%run ./main", "main.py → main.py"),
        ("%run", None),
    ],
)
def test_run_of_a_notebook_that_is_not_there_or_runs_already_is_refused_with_the_place(folder, command, why):
    folder.write("names.py", "# Databricks notebook source\n", source=False)
    folder.write("main.py", f"# Databricks notebook source\n\n# COMMAND ----------\n\n# MAGIC {command}\n")
    error = folder.error()
    assert (error.code, str(error.where)) == ("NOTEBOOK_NOT_FOUND", "main.py, line 5")
    assert (why or "") in (error.why or "")


def test_run_names_the_notebook_that_was_meant(folder):
    folder.write("names.py", "# Databricks notebook source\n", source=False)
    folder.write("main.py", "# Databricks notebook source\n# MAGIC %run ./nmaes\n")
    assert folder.error().nearest == ("names",)


def test_a_file_of_comments_declares_nothing_and_disturbs_nothing(folder):
    folder.write("a.py", "# import dlt\n# @dlt.table\n")
    folder.write("b.py", "# Databricks notebook source\n# MAGIC %md only words\n")
    folder.write("c.py", "")
    folder.write("d.ipynb", "")
    folder.write("e.py", TABLE.format("one"))
    assert folder.names() == ["one"]


@pytest.mark.parametrize("name", ["notes.txt", "job.scala", "README", "archive.dbc"])
def test_a_file_of_another_kind_is_refused_with_what_is_taken(folder, name):
    folder.write(name, "whatever")
    error = folder.error()
    assert (error.code, str(error.where)) == ("SOURCE_KIND", f"{name}, line 1")
    assert error.todo == "Sources are Python files (.py), SQL files (.sql) and notebooks (.py, .sql, .ipynb)."


def test_notebooks_in_scala_are_refused_whatever_their_extension(folder):
    folder.write("a.py", "// Databricks notebook source\nval x = 1\n")
    folder.jupyter("b.ipynb", "val x = 1", language="scala")
    assert [(e.code, e.what) for e in folder.load().errors] == [("SOURCE_KIND", "the notebook is written in scala")] * 2


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{"cells": [\n{]}', 2, "not valid JSON"),
        ('{"worksheets": []}', 1, "old format"),
        ('{"cells": [{"source": 3}], "nbformat": 4}', 1, "cell 1"),
        ('{"cells": [3], "metadata": [], "nbformat": 4}', 1, "cell 1"),
        ("[]", 1, "no list of cells"),
    ],
)
def test_a_jupyter_file_that_is_none_is_refused_with_its_line(folder, text, line, what):
    folder.write("bad.ipynb", text)
    error = folder.error()
    assert (error.code, error.where.line) == ("SOURCE_FAILED", line)
    assert what in error.what


def cut(folder: Folder, name: str, text: str) -> list[tuple[str, str, int]]:
    """Language, stripped text and line of the cells."""
    cells: tuple[NotebookCell, ...] = read_source(folder.write(name, text)).cells
    return [(cell.language, cell.text.strip(), cell.line) for cell in cells]


SQL_CELLS = """
    -- Databricks notebook source
    -- MAGIC %md
    -- MAGIC CREATE nothing

    -- COMMAND ----------

    -- DBTITLE 1,First
    -- a comment
    CREATE LIVE TABLE a AS SELECT 1

    -- COMMAND ----------

    -- MAGIC %python
    -- MAGIC x = 1

    -- COMMAND ----------

    -- MAGIC %sql SELECT 2
    -- MAGIC FROM b
"""


@pytest.mark.parametrize("name", ["a.sql", "named_wrongly.py"])
def test_an_sql_notebook_is_cut_into_its_statements_whatever_its_extension(folder, name):
    assert cut(folder, name, SQL_CELLS) == [
        ("md", "CREATE nothing", 2),
        ("sql", "-- DBTITLE 1,First\n-- a comment\nCREATE LIVE TABLE a AS SELECT 1", 6),
        ("python", "x = 1", 13),
        ("sql", "SELECT 2\nFROM b", 18),
    ]
    assert read_source(folder.path / name).language == "sql"


def test_a_plain_sql_file_is_one_cell_unless_it_has_separators(folder):
    assert cut(folder, "plain.sql", "SELECT 1;\nSELECT 2") == [("sql", "SELECT 1;\nSELECT 2", 1)]
    assert cut(folder, "cells.sql", "SELECT 1\n-- COMMAND ----------\nSELECT 2") == [("sql", "SELECT 1", 1), ("sql", "SELECT 2", 3)]


def test_a_plain_python_file_has_no_cells_even_with_separators(folder):
    assert len(cut(folder, "plain.py", "x = 1\n# COMMAND ----------\n# MAGIC %run ./y\n")) == 1


def test_byte_order_mark_line_ends_and_declared_encoding_are_understood(folder):
    file = folder.write("a.py", "")
    file.write_bytes(b"\xef\xbb\xbf# Databricks notebook source\r\n# COMMAND ----------\r\nx = '\xc3\xa9'\r\n")
    latin = folder.write("b.py", "")
    latin.write_bytes(b"# -*- coding: latin-1 -*-\nassert '\xe9' == chr(233)\n" + TABLE.format("t").encode())
    assert [cell.text for cell in read_source(file).cells] == ["# Databricks notebook source", "x = 'é'\n"]
    assert folder.names() == ["t"]


def test_notebooks_are_found_in_a_folder_and_hidden_files_are_not(folder):
    folder.write("a/one.py", "# Databricks notebook source\n# MAGIC %run ./setup\n# COMMAND ----------\n@dlt.table\ndef t(): ...\n")
    folder.write("a/setup.py", "# Databricks notebook source\nx = 1\n")
    folder.write("b/two.sql", SQL_CELLS)
    folder.jupyter("c/three.ipynb", "import dlt")
    folder.jupyter("c/words.ipynb", ("markdown", "words"))
    folder.write("c/.ipynb_checkpoints/three.ipynb", (folder.path / "c/three.ipynb").read_text())
    folder.write("b/.hidden.sql", SQL_CELLS)
    folder.write("d/commented.sql", "-- CREATE MATERIALIZED VIEW x AS SELECT 1\n")
    folder.write("e/other_name.py", "import databricks.pipelines as pipes\n@pipes.table\ndef u(): ...\n")
    found = [str(file.relative_to(folder.path)) for file in source_files.in_folder(folder.path)]
    assert found == ["a/one.py", "b/two.sql", "c/three.ipynb", "d/commented.sql", "e/other_name.py"]


def test_a_source_file_uses_dlt_without_an_import(folder):
    folder.write("a.py", "# no import\ndlt.create_streaming_table('customers')\n@dlt.append_flow(target='customers')\ndef sold(): ...\n")
    folder.write("b.py", TABLE.format("orders"))
    assert folder.names() == ["customers", "orders"]


def test_files_that_call_dlt_while_they_load_are_found_in_a_folder_and_others_are_not(folder):
    folder.write("a.py", "dlt.create_streaming_table('a')\n")
    folder.write("b.py", "for name in 'xy':\n    dlt.apply_changes(target=name)\n")
    folder.write("c.py", "sink = dlt.create_sink('c', 'delta', {})\n")
    folder.write("d.py", "def later():\n    dlt.create_streaming_table('other')\n")
    folder.write("e.py", '"""An example:\n\ndlt.create_streaming_table(1)\n"""\n')
    folder.write("f.py", "from other import dlt\ndlt.create_streaming_table('f')\n")
    folder.write("g.py", "dlt = make()\ndlt.create_streaming_table('g')\n")
    assert [file.name for file in source_files.in_folder(folder.path)] == ["a.py", "b.py", "c.py"]


@pytest.mark.parametrize(
    ("source", "helper", "todo"),
    [
        ("import helper\n", "dlt.create_streaming_table('t')\n", "In a helper module: import dlt"),
        ("@dp.table\ndef t(): ...\n", "", "Write in the file: from pyspark import pipelines as dp"),
    ],
)
def test_where_the_language_must_be_imported_the_error_says_how(folder, source, helper, todo):
    folder.write("helper.py", helper, source=False)
    folder.write("a.py", source)
    error = folder.error()
    assert (error.code, error.nearest, error.todo) == ("SOURCE_FAILED", (), todo)


def test_the_fixture_of_unit_tests_takes_notebooks_too(folder):
    file = folder.jupyter(
        "sales.ipynb", "import dlt\ndef plain():\n    return getArgument('day')", "@dlt.table\ndef t():\n    return plain()"
    )
    found = load_file(file, spark=None, conf={"day": "monday"})
    assert (found.module.plain(), list(found.functions)) == ("monday", ["t"])
    folder.write("totals.sql", "-- Databricks notebook source\n-- MAGIC %md x\n-- COMMAND ----------\nCREATE LIVE TABLE a AS SELECT 1\n")
    assert list(load_file(folder.path / "totals.sql", spark=None).datasets) == ["a"]


def test_sql_in_notebooks_is_declared_and_its_mistakes_are_told_with_cell_and_line(folder):
    folder.jupyter("good.ipynb", ("markdown", "x"), "SET level = gold", "CREATE LIVE TABLE ${level}_a AS SELECT 1", language="sql")
    folder.write("b.sql", SQL_CELLS.partition("    -- MAGIC %sql")[0] + "    CREATE MATERIALIZED VIEW b AS SELECT 2\n")
    assert folder.names() == ["gold_a", "a", "b"]
    assert [str(d.where).split(", column")[0] for d in folder.found.definitions.datasets] == [
        "good.ipynb, cell 3, line 1",
        "b.sql, line 9",
        "b.sql, line 18",
    ]
    folder.jupyter("bad.ipynb", "CREATE LIVE TABLE c AS SELECT 1", "-- words\nCREATE LIVE TABEL d AS SELECT 1", language="sql")
    assert str(folder.error().where) == "bad.ipynb, cell 2, line 2, column 13"


def test_a_notebook_may_wait_outside_of_functions_and_a_plain_file_may_not(folder):
    cells = (
        "import dlt, asyncio\nasync def name_of(x):\n    await asyncio.sleep(0)\n    return x\ntask = name_of('later')\n",
        "%pip install something\nname = await name_of('waited')\nother = await task\n",
        "@dlt.table(name=name + '_' + other)\ndef query():\n    return spark.range(1)\n",
    )
    folder.jupyter("n.ipynb", *cells)
    assert folder.names() == ["waited_later"]
    folder.write("plain.py", "import asyncio\nawait asyncio.sleep(0)\n")
    assert [(error.code, error.where.line) for error in folder.load().errors] == [("SOURCE_FAILED", 2)]


def test_notices_of_a_datasets_function_go_to_whoever_reads_for_its_flow(folder):
    folder.write("a.py", "import dlt\ndisplay(1)\n@dlt.table\ndef a():\n    display(2)\n    display(3)\n")

    class Reader:
        def __init__(self) -> None:
            self.notices: list[Any] = []

    reader: Any = Reader()
    with loaded(folder.files, import_roots=[folder.path], namespace=Namespace(), injected={"spark": None}) as found, reading(reader):
        found.definitions.flows[0].query()
    assert [str(notice.where).rpartition("/")[2] for notice in found.notices] == ["a.py, line 2"]
    assert [notice.where.line for notice in reader.notices] == [5, 6]
