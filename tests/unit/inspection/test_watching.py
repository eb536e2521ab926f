"""Which datasets a saved file changes: from one definition to the next belongs to the first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.names import Namespace
from lakelet.config.update_config import PipelineConfig
from lakelet.inspection.watching import changed, pieces, watched_files

FILE = "/shop/pipeline.py"
TEXT = """\
import dlt
LIMIT = 3

@dlt.table
def a():
    return 1

@dlt.table
def b():
    return 2
"""
PLACES = {"a": [(FILE, 4)], "b": [(FILE, 8)]}


def after(text: str, places: dict[str, list[tuple[str, int]]] = PLACES) -> list[str]:
    """The datasets that count as changed once `text` is saved."""
    return changed(pieces(PLACES, {FILE: TEXT}), pieces(places, {FILE: text}), places, [FILE])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return 1", "return 7", ["a"]),
        ("return 2", "return 7", ["b"]),
        ("def b():\n    return 2", "def b():\n    x = 5\n    return x", ["b"]),
        ("LIMIT = 3", "LIMIT = 4", ["a", "b"]),
    ],
)
def test_the_changed_definition_is_found(old: str, new: str, expected: list[str]) -> None:
    assert after(TEXT.replace(old, new)) == expected


def test_lines_above_move_nothing() -> None:
    moved = {"a": [(FILE, 5)], "b": [(FILE, 9)]}
    assert after("# a comment\n" + TEXT, moved) == ["a", "b"]  # no definition is another one: all of the file is meant
    edited = TEXT.replace("return 2", "return 7")
    assert after("# a comment\n" + edited, moved) == ["b"]


def test_a_new_definition_is_a_change() -> None:
    places = {**PLACES, "c": [(FILE, 12)]}
    assert after(TEXT + "\n@dlt.table\ndef c():\n    return 3\n", places) == ["c"]


def test_a_flow_elsewhere_belongs_to_its_dataset() -> None:
    places = {"a": [(FILE, 4), ("/shop/more.py", 1)]}
    before = pieces(places, {FILE: TEXT, "/shop/more.py": "x = 1"})
    assert changed(before, pieces(places, {FILE: TEXT, "/shop/more.py": "x = 2"}), places, ["/shop/more.py"]) == ["a"]


def test_a_helper_changes_no_definition() -> None:
    before = pieces(PLACES, {FILE: TEXT})
    assert changed(before, before, PLACES, ["/shop/helper.py"]) == []


def test_sources_rules_and_settings_are_watched(tmp_path: Path) -> None:
    for name in (
        "pipeline.py",
        "lib/helper.py",
        "expectations/a.yml",
        "databricks.yml",
        "q.sql",
        ".git/x.py",
        "lib/__pycache__/h.py",
        "data.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "registry.json").write_text("{}")
    config = PipelineConfig("shop", "p", tmp_path, (tmp_path / "pipeline.py",), (tmp_path,), Namespace(), {}, tmp_path / "kept")
    found = watched_files(config)
    expected = {"pipeline.py", "lib/helper.py", "expectations/a.yml", "databricks.yml", "q.sql"}
    assert {str(Path(path).relative_to(tmp_path)) for path in found} == expected
    (tmp_path / "lib" / "helper.py").write_text("x")
    assert watched_files(config) != found
    assert watched_files(replace(config, storage=tmp_path / ".lakelet")).keys() > found.keys()
