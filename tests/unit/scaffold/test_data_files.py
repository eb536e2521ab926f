"""`lakelet init` in a folder without code: it leads to a pipeline of the data files, or says what to type. No Spark."""

from __future__ import annotations

import ast
import gzip
from pathlib import Path

import pytest

from lakelet.cli.main import main
from lakelet.config.update_config import load_config
from lakelet.scaffold import data_sets

FILES = {
    "customers.csv": "id,name\n1,Ada\n",
    "orders-2026-03-01.csv": "id;amount\n1;2,5\n",
    "orders-2026-03-02.csv": "id;amount\n2;2,5\n",
    "readings.csv": "1,2.5\n2,3.5\n",
    "settings.json": '{\n  "a": 1\n}\n',
    "clicks/a.json": '{"a": 1}\n{"a": 2}\n',
    "clicks/more/b.json": '[{"a": 1}]',
    "package.json": "{}",
    ".hidden/x.csv": "a\n1\n",
    "notes.txt": "nothing",
}


def described(folder: Path) -> dict[str, tuple[str, str | None, dict[str, str]]]:
    return {one.name: (str(one.folder), one.pattern, dict(one.options)) for one in data_sets(folder)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_files_of_one_feed_are_one_set_with_the_options_that_their_beginning_asks_for(folder: Path) -> None:
    put(folder, FILES)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(b"a|b\n1|2\n"))
    assert described(folder) == {
        "clicks": ("clicks", "*.json", {}),
        "customers": (".", "{customers.csv,customers*[0-9TZ].csv}", {"header": "true"}),
        "more": ("clicks/more", None, {"multiLine": "true"}),
        "orders": (".", "orders*[0-9TZ].csv", {"header": "true", "sep": ";"}),
        "packed": (".", "{packed.csv.gz,packed*[0-9TZ].csv.gz}", {"header": "true", "sep": "|"}),
        "readings": (".", "{readings.csv,readings*[0-9TZ].csv}", {"header": "false"}),
        "settings": (".", "{settings.json,settings*[0-9TZ].json}", {"multiLine": "true"}),
    }


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        (["a.csv", "a-1.csv", "a-2.csv"], {"a": "{a.csv,a*[0-9TZ].csv}"}),
        (["a-1.csv", "a-2.csv", "a_b.csv"], {"a": "a*[0-9TZ].csv", "a_b": "{a_b.csv,a_b*[0-9TZ].csv}"}),
        (["a-1.csv", "a-2.csv", "a_b-1.csv"], {"a": "{a-1.csv,a-2.csv}", "a_b": "a_b*[0-9TZ].csv"}),
        (["a-1.csv", "a-2.csv.gz"], {"a": "{a*[0-9TZ].csv,a*[0-9TZ].csv.gz}"}),
    ],
)
def test_no_file_belongs_to_two_sets(names: list[str], patterns: dict[str, str], folder: Path) -> None:
    put(folder, dict.fromkeys(names, "x\n1\n"))
    assert {name: pattern for name, (_, pattern, _) in described(folder).items()} == patterns


def test_a_folder_of_data_files_becomes_a_pipeline_that_reads_them_where_they_lie(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, FILES)
    assert main(["init"]) == 0
    assert "lakelet run" in capsys.readouterr().err
    config = load_config(())
    assert {file.stem for file in config.files} == {one.name for one in data_sets(folder)}
    assert config.parameters["landing"] == "."
    for file in config.files:
        ast.parse(file.read_text(encoding="utf-8"))
    assert main(["init"]) == 0
    assert "databricks.yml is there already" in capsys.readouterr().err


def test_a_project_file_of_others_is_left_alone_and_the_command_says_what_it_would_have_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, {"a.csv": "x\n1\n", "pyproject.toml": "[project]\nname = 'mine'\n"})
    assert main(["init"]) == 0
    assert "run --param landing=." in capsys.readouterr().err
    assert (folder / "pyproject.toml").read_text().startswith("[project]\nname = 'mine'\n")


@pytest.mark.parametrize(
    ("files", "options", "told"),
    [
        ({}, [], "lakelet new project ."),
        ({"explore.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'}, [], "lakelet new project NAME"),
        ({"a.csv": "x\n1\n"}, ["--report"], "makes a pipeline of the data files in it: a"),
    ],
)
def test_a_folder_with_nothing_to_run_leads_on_by_a_sentence(
    files: dict[str, str], options: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, files)
    assert main(["init", *options]) == 2
    printed = capsys.readouterr().err
    assert "[NO_SOURCES]" in printed
    assert told in printed
    assert {path.name for path in folder.iterdir()} == set(files)


def test_the_beginning_of_a_file_is_enough_where_its_first_line_is_long_or_its_archive_is_cut_off(folder: Path) -> None:
    record = '{"id": 1, "text": "' + "é" * 100_000 + '"}\n'
    put(folder, {"long.json": record * 2, "document.json": '{\n  "id": 1\n}'})
    (folder / "cut.json.gz").write_bytes(gzip.compress(record.encode())[:200])
    (folder / "damaged.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:12] + b"damaged")
    options = {name: found[2] for name, found in described(folder).items()}
    assert options == {"long": {}, "document": {"multiLine": "true"}, "cut": {}, "damaged": {"header": "true"}}
