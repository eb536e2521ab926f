"""A search for source files stays in its project, ends at once where there is none, and survives what it finds. No Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cli.main import main
from lakelet.config.source_files import FolderWalk
from lakelet.config.update_config import load_config

SQL = "CREATE MATERIALIZED VIEW {0} AS SELECT 1 AS n"


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that holds a project, and source files of nobody."""
    folder = tmp_path / "home"
    written(
        folder, **{"work/shop/databricks.yml": "bundle: {name: shop}\n", "work/shop/a.sql": SQL.format("a"), "old/b.sql": SQL.format("b")}
    )
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("command", ["run", "validate", "plan", "init", "test"])
def test_a_command_in_the_home_folder_says_at_once_that_it_is_no_project(home, command, capsys):
    assert main([command]) == 2
    said = capsys.readouterr().err
    assert f"[NO_SOURCES] {home} is not a project" in said
    assert "lakelet new project NAME" in said


@pytest.mark.parametrize("folder", ["/", "/tmp"])
def test_the_root_and_the_temporary_folder_are_not_searched(folder, monkeypatch):
    entered: list[str] = []
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda top: (entered.append(one[0]) or one for one in walk(top)))
    assert not [file for file in FolderWalk(Path(folder)).files((".sql",)) if file.parent != Path(folder)]
    assert entered == [folder]


def test_files_that_lie_in_the_home_folder_itself_are_sources(home):
    written(home, **{"mine.sql": SQL.format("mine")})
    assert load_config([], cwd=home, environ={}).files == (home / "mine.sql",)


def test_a_settings_file_of_python_in_the_home_folder_makes_no_project_of_it(home):
    written(home, **{"pyproject.toml": "[tool.ruff]\nline-length = 100\n", "some/c.sql": SQL.format("c")})
    assert load_config([], cwd=home / "some", environ={}).root == home / "some"
    written(home, **{"pyproject.toml": "[tool.lakelet]\nschema = 'x'\n"})
    assert load_config([], cwd=home / "some", environ={}).root == home


def test_projects_further_down_are_left_to_themselves_and_named(tmp_path):
    written(tmp_path, **{"one/databricks.yml": "bundle: {name: one}\n", "one/a.sql": SQL.format("a")})
    written(tmp_path, **{"two/spark-pipeline.yml": "name: two\nlibraries: []\n", "two/b.sql": SQL.format("b")})
    written(tmp_path, **{"three/pyproject.toml": "[tool.lakelet]\nschema = 'x'\n", "three/c.sql": SQL.format("c")})
    with pytest.raises(LakeletError) as error:
        load_config([], cwd=tmp_path, environ={})
    assert "Projects below it: one, three, two" in str(error.value)
    written(
        tmp_path, **{"own/d.sql": SQL.format("d"), "own/lib/pyproject.toml": "[project]\nname = 'lib'\n", "own/lib/e.sql": SQL.format("e")}
    )
    assert [file.name for file in load_config([], cwd=tmp_path, environ={}).files] == ["d.sql", "e.sql"]


def test_a_large_tree_that_is_no_project_is_not_searched_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("lakelet.config.project_sources.MOST_FILES", 50)
    for number in range(12):
        written(tmp_path, **{f"f{number}/{name}.txt": "" for name in "abcde"})
    with pytest.raises(LakeletError, match="too large to search: it holds more than 50 files") as error:
        load_config([], cwd=tmp_path, environ={})
    assert "lakelet new project NAME" in str(error.value)
    written(tmp_path, **{"pyproject.toml": "[project]\nname = 'x'\n", "z.sql": SQL.format("z")})
    assert [file.name for file in load_config([], cwd=tmp_path, environ={}).files] == ["z.sql"]


def test_loops_broken_links_and_folders_that_vanish_or_cannot_be_read_are_passed_over(tmp_path, monkeypatch):
    written(tmp_path, **{"a/one.sql": SQL.format("one"), "b/two.sql": SQL.format("two"), "gone/x.sql": SQL.format("x")})
    (tmp_path / "a/loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a/nowhere.sql").symlink_to(tmp_path / "nothing.sql")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    listing = os.scandir

    def scandir(path):
        if Path(path).name == "gone":
            raise FileNotFoundError(path)
        if Path(path).name == "closed":
            raise PermissionError(path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [file.name for file in load_config([], cwd=tmp_path, environ={}).files] == ["one.sql", "two.sql"]
    closed.chmod(0o700)


@pytest.mark.parametrize("pattern", ["pipelines/silver/*.sql", "pipelines/{gold}/*.sql", "nowhere/**/*.sql"])
def test_a_glob_that_matches_nothing_says_what_it_means_and_where_such_files_lie(tmp_path, pattern, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, **{"pipelines/bronze/a.sql": SQL.format("a"), "pipelines/bronze/b.sql": SQL.format("b"), "lib/c.py": ""})
    with pytest.raises(LakeletError) as by_hand:
        load_config([pattern.replace("{gold}", "g?ld")], cwd=tmp_path, environ={})
    assert f"looked for {tmp_path}/{pattern.replace('{gold}', 'g?ld')}" in str(by_hand.value)
    assert "*.sql lie in pipelines/bronze/ (2 files)" in str(by_hand.value)


def test_a_bundle_whose_glob_matches_nothing_shows_the_glob_with_its_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bundle = "bundle: {name: shop}\nvariables: {layer: {default: silver}}\n"
    bundle += 'resources: {pipelines: {p: {libraries: [{glob: {include: "src/${var.layer}/**"}}]}}}\n'
    written(tmp_path, **{"databricks.yml": bundle, "src/gold/a.sql": SQL.format("a")})
    with pytest.raises(LakeletError) as error:
        load_config([], cwd=tmp_path, environ={})
    assert f"looked for {tmp_path}/src/silver/**" in str(error.value)
    assert "src/gold/ (1 file)" in str(error.value)
