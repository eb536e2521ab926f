"""The stubs for editors: equal to the functions behind them, written without harm, understood by pyright and mypy."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet.base import VERSION
from lakelet.cli.main import main
from lakelet.language import api
from lakelet.language.dbutils.injected_names import InjectedNames
from lakelet.language.dbutils.parts import FileSystem, Secrets, Widgets
from lakelet.language.dbutils.tools import Workflow
from lakelet.project.editor import stubs, write_settings
from lakelet.project.editor.mypy_plugin import NAMES
from tests.paths import ROOT

Parameter = tuple[str, str, str]
"""Name, kind and default of a parameter."""

RIGHT = """
import dlt
import pyspark.sql.functions as G
from pyspark import SparkContext, pipelines as dp
from pyspark.sql import DataFrame, functions as F

@dlt.table(name="orders", comment="cleaned", table_properties={"quality": "silver"})
@dlt.expect_or_drop("has_id", "id IS NOT NULL")
def orders() -> DataFrame:
    rows = int(spark.conf.get("rows", "5"))
    display(spark.range(rows))
    return dlt.read_stream("raw").where(F.col("id") > rows)

@dp.materialized_view
def daily() -> DataFrame:
    return spark.read.table("orders").groupBy(G.col("day")).count()

def folder() -> str:
    return dbutils.widgets.get("landing") + dbutils.fs.ls("/Volumes/raw")[0].name

dp.create_auto_cdc_flow(target="customers", source="changes", keys=["id"], sequence_by=F.col("seq"), stored_as_scd_type=2)
found: DataFrame = orders()
contexts: SparkContext = sc
"""
WRONG = """
import dlt
from pyspark import pipelines as dp

@dlt.tabel
def a() -> None: ...

@dp.expect("rule", inv=1)
def b() -> None: ...

dp.create_streaming_table(nam="x")
dbutils.fs.lst("/")
dsplay(1)
"""


def stub(path: str) -> dict[str, ast.stmt]:
    """What a stub defines, by name; of overloads the last."""
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse(stubs()[path]).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            found[ast.unparse(statement.targets[0])] = found[statement.value.id]
    return found


def parameters(function: ast.FunctionDef) -> list[Parameter]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = ["", *[""] * (len(positional) - len(given.defaults)), *map(ast.unparse, given.defaults)][1:]
    keywords = [(a.arg, "KEYWORD_ONLY", ast.unparse(d) if d else "") for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [(a.arg, "POSITIONAL_OR_KEYWORD", d) for a, d in zip(positional, defaults, strict=True)] + keywords


def parameters_of(function: Any) -> list[Parameter]:
    named = [p for p in inspect.signature(function).parameters.values() if p.kind.name in ("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY")]
    return [(p.name, p.kind.name, "" if p.default is p.empty else repr(p.default)) for p in named]


def test_the_stubs_have_the_names_signatures_and_defaults_of_the_functions_and_a_docstring_each() -> None:
    for names, functions in ((stub("pyspark/pipelines/__init__.pyi"), api.DP), (stub("dlt/__init__.pyi"), api.DLT)):
        assert {n for n, s in names.items() if isinstance(s, ast.FunctionDef)} == set(functions)
        for name, function in functions.items():
            declared = names[name]
            assert isinstance(declared, ast.FunctionDef)
            wanted = [(p, kind, default.replace('"', "'")) for p, kind, default in parameters(declared)]
            assert (name, wanted) == (name, parameters_of(function))
            assert ast.get_docstring(declared), name


@pytest.mark.parametrize("function", {**api.DLT, **api.DP}.values(), ids={**api.DLT, **api.DP})
def test_the_docstring_of_a_public_function_says_what_each_argument_is_or_where_that_is_said(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    arguments = parameters_of(function)
    told = all(re.search(rf"^    {name}: ", text, re.MULTILINE) for name, _, _ in arguments)
    assert told or re.search(r"rguments?( and errors)? (are|is) those of|ith its arguments", text), text
    untyped = [one.name for one in inspect.signature(function).parameters.values() if one.annotation == "Any"]
    assert set(untyped) <= {"import_checkpoint"}


def test_the_stub_of_dbutils_has_the_methods_of_its_parts() -> None:
    classes = stub("pyspark/dbutils.pyi")
    for name, real in (("FileSystem", FileSystem), ("Widgets", Widgets), ("Secrets", Secrets), ("Notebook", Workflow)):
        declared = {s.name: s for s in classes[name].body if isinstance(s, ast.FunctionDef)}  # type: ignore[attr-defined]
        public = {n for n in dir(real) if not n.startswith("_")}
        assert set(declared) == public
        for method in public - {"help", "entry_point"}:
            assert [p[:1] for p in parameters(declared[method])] == [p[:1] for p in parameters_of(getattr(real, method))], method


def test_the_names_without_an_import_are_those_of_the_stub_and_of_the_plugin() -> None:
    tree = ast.parse(stubs()["__builtins__.pyi"]).body
    declared = {s.name for s in tree if isinstance(s, ast.FunctionDef)} | {
        ast.unparse(s.target) for s in tree if isinstance(s, ast.AnnAssign)
    }
    assert declared == set(NAMES)
    context = type("Session", (), {"sparkContext": 1, "sql": print, "table": print})()
    assert set(InjectedNames({"spark": context}, note=print).frame(Path("a.py")).module.__dict__) >= declared


def test_settings_are_written_once_and_leave_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    theirs = tmp_path / "typings" / "dlt" / "__init__.pyi"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("# theirs\n")
    written = {str(f.relative_to(tmp_path)) for f in write_settings(tmp_path)}
    assert written == {
        *("pyproject.toml", "typings/__builtins__.pyi", "typings/pyspark/__init__.pyi", "typings/pyspark/dbutils.pyi"),
        "typings/pyspark/pipelines/__init__.pyi",
    }
    assert theirs.read_text() == "# theirs\n"
    assert '[tool.mypy]\nmypy_path = "typings"' in (tmp_path / "pyproject.toml").read_text()
    assert write_settings(tmp_path) == []
    old = tmp_path / "typings" / "__builtins__.pyi"
    old.write_text(old.read_text().replace(VERSION, "0.0.1") + "x: int\n")
    assert write_settings(tmp_path) == [old]
    theirs.unlink()
    assert main(["init", "--editor", str(tmp_path)]) == 0
    assert "Wrote types for the editor" in capsys.readouterr().err
    assert theirs.exists()
    assert main(["init", "--editor", "--report", str(tmp_path)]) == 2
    assert main(["init", "--editor", str(tmp_path / "nothing")]) == 2


def test_tables_of_a_project_are_left_alone(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.mypy]\nstrict = true\n")
    (tmp_path / "pyrightconfig.json").write_text("{}")
    assert project not in write_settings(tmp_path)
    project.write_text("no toml [")
    assert project not in write_settings(tmp_path)


def test_a_project_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, project = tmp_path / "shared.toml", tmp_path / "pyproject.toml"
    real.write_text('[project]\nname = "shop"\n')
    project.symlink_to(real)

    def die(source: object, target: object) -> None:
        raise KeyboardInterrupt

    before = real.read_text()
    write_settings(tmp_path)
    project.write_text(before)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            write_settings(tmp_path)
    assert real.read_text() == before
    write_settings(tmp_path)
    assert project.is_symlink()
    assert "[tool.mypy]" in real.read_text()


@pytest.mark.long
def test_pyright_finds_nothing_in_our_pipelines_and_every_mistake_in_a_wrong_one(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright", reason="basedpyright is not installed (dependency group dev)")
    write_settings(tmp_path)
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    ours = [ROOT / "pipelines", ROOT / "expectations", *ROOT.glob("examples/*/pipelines"), ROOT / "examples" / "alerts"]
    settings = {
        "include": [str(tmp_path), *map(str, ours)],
        "extraPaths": [str(ROOT), *(str(folder.parent) for folder in ours)],
        "typeCheckingMode": "standard",
        "reportMissingModuleSource": "none",
        "reportWildcardImportFromLibrary": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    line = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path), "--pythonpath", sys.executable]
    found = json.loads(subprocess.run(line, capture_output=True, text=True, cwd=tmp_path).stdout)
    told = [(Path(d["file"]).name, d["range"]["start"]["line"], d["message"].splitlines()[0]) for d in found["generalDiagnostics"]]
    assert [t for t in told if t[0] != "wrong.py"] == []
    assert [line for _, line, _ in sorted(told)] == [4, 7, 10, 10, 11, 12], told
    assert found["summary"]["filesAnalyzed"] > 15


@pytest.mark.slow
def test_mypy_finds_nothing_in_a_right_pipeline_and_every_mistake_in_a_wrong_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    write_settings(tmp_path)
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    line = [sys.executable, "-m", "mypy", "--no-color-output", "right.py", "wrong.py"]
    told = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path).stdout.splitlines()
    assert [line.split(": error:")[0] for line in told if ": error:" in line] == [f"wrong.py:{at}" for at in (5, 8, 11, 12, 13)], told
