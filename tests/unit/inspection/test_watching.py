"""Which datasets a saved file changes: those whose definition is another one, or all of a file whose other code is another one."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.names import Namespace
from lakelet.config.update_config import PipelineConfig
from lakelet.inspection.pipeline_watch import PipelineWatch, changed, pieces, watched_files, watched_folders

FILE = "/shop/pipeline.py"
TEXT = """\
import dlt
LIMIT = 3

@dlt.table
def a():
    return 1

def clean(rows):
    return rows

@dlt.table(
    name="b",
)
@dlt.expect("known", "id > 0")
def b():
    return clean(2)

for name in ("c", "d"):

    @dlt.table(name=name)
    def f():
        return 3

dlt.create_streaming_table("e")
dlt.apply_changes("e", "a", keys=["id"])
"""


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def places_of(text: str) -> dict[str, list[tuple[str, int]]]:
    """Where Lakelet finds the definitions of such a text."""
    found = {"a": ["@dlt.table\n"], "b": ["@dlt.table(\n"], "c": ["@dlt.table(name"], "d": ["@dlt.table(name"], "e": ["dlt.cr", "dlt.app"]}
    return {key: [(FILE, line_of(text, part)) for part in parts] for key, parts in found.items()}


PLACES = places_of(TEXT)
ALL = ["a", "b", "c", "d", "e"]


def after(text: str, before: str = TEXT, more: dict[str, list[tuple[str, int]]] | None = None) -> list[str]:
    """The datasets that count as changed once `text` is saved. `more`: definitions that only `text` has."""
    places = {**places_of(text), **(more or {})}
    return changed(pieces(places_of(before), {FILE: before}), pieces(places, {FILE: text}), places, [FILE])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return 1", "return 7", ["a"]),
        ("clean(2)", "clean(7)", ["b"]),
        ("def b():\n    return", "def b():\n    x = 5\n    return", ["b"]),
        ("id > 0", "id > 1", ["b"]),
        ("return 3", "return 7", ["c", "d"]),
        ('keys=["id"]', 'keys=["no"]', ["e"]),
        ("LIMIT = 3", "LIMIT = 4", ALL),
        ("return rows", "return rows + 1", ALL),  # any of them may call it
        ('("c", "d")', '("d", "c")', ALL),
        ("import dlt", "import dlt\n# MAGIC %run ./more", ALL),
        ("import dlt", "import dlt  # Delta Live Tables\n# of the shop", ALL),  # no definition is another one: all of the file is meant
    ],
)
def test_the_changed_definition_is_found(old: str, new: str, expected: list[str]) -> None:
    assert after(TEXT.replace(old, new)) == expected


def test_comments_above_move_nothing() -> None:
    assert after("# a comment\n\n" + TEXT) == ALL
    assert after("# a comment\n\n" + TEXT.replace("clean(2)", "clean(7)")) == ["b"]


def test_a_new_definition_is_a_change() -> None:
    text = TEXT + "\n@dlt.table\ndef g():\n    return 3\n"
    assert after(text, more={"g": [(FILE, line_of(text, "def g") - 1)]}) == ["g"]


SQL_CELL = "\n# COMMAND ----------\n\n# MAGIC %sql\n# MAGIC CREATE LIVE TABLE s AS SELECT 1\n"


@pytest.mark.parametrize(("more", "expected"), [("\nthis is no Python\n", ["a"]), (SQL_CELL, ["a"])])
def test_where_statements_cannot_be_told_apart_the_text_up_to_the_next_definition_counts(more: str, expected: list[str]) -> None:
    before, in_cell = TEXT + more, {"s": [(FILE, line_of(TEXT + SQL_CELL, "# MAGIC CREATE"))]} if more == SQL_CELL else {}
    places = {**places_of(before), **in_cell}
    text = before.replace("return rows", "return None")
    assert changed(pieces(places, {FILE: before}), pieces(places, {FILE: text}), places, [FILE]) == expected


def test_a_flow_elsewhere_belongs_to_its_dataset() -> None:
    places = {"a": [(FILE, 4), ("/shop/more.py", 1)]}
    before = pieces(places, {FILE: TEXT, "/shop/more.py": "x = 1"})
    assert changed(before, pieces(places, {FILE: TEXT, "/shop/more.py": "x = 2"}), places, ["/shop/more.py"]) == ["a"]


def test_a_helper_changes_no_definition() -> None:
    before = pieces(PLACES, {FILE: TEXT})
    assert changed(before, before, PLACES, ["/shop/helper.py"]) == []


def config_of(root: Path) -> PipelineConfig:
    return PipelineConfig("shop", "p", root, (root / "pipeline.py",), (root,), Namespace(), {}, root / "kept")


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
    config = config_of(tmp_path)
    found = watched_files(config)
    expected = {"pipeline.py", "lib/helper.py", "expectations/a.yml", "databricks.yml", "q.sql"}
    assert {str(Path(path).relative_to(tmp_path)) for path in found} == expected
    (tmp_path / "lib" / "helper.py").write_text("x")
    assert watched_files(config) != found
    assert watched_files(replace(config, storage=tmp_path / ".lakelet")).keys() > found.keys()
    folders = {str(Path(folder).relative_to(tmp_path)) for folder in watched_folders(config)}
    assert folders == {".", "lib", "expectations"}


class Ended(Exception): ...


class Looks(PipelineWatch):
    """Notes what it finds changed instead of analysing it, until there is a file `end.py`."""

    looks = 0
    found: tuple[str, ...] = ()

    def begin(self) -> None:
        self._config = self.configure()
        self._seen = watched_files(self._config)

    def look(self) -> bool:
        self.looks += 1
        before, self._seen = self._seen, watched_files(self._config)
        names = {Path(path).name for path in {*self._seen, *before} if self._seen.get(path) != before.get(path)}
        self.found += tuple(sorted(names))
        if "end.py" in names:
            raise Ended
        return bool(names)


def test_a_change_is_reported_by_the_system_and_also_found_in_new_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.inspection.pipeline_watch.ANYWAY_MS", 3_600_000)
    (tmp_path / "pipeline.py").write_text("a")
    watch = Looks(lambda: config_of(tmp_path), lambda _: None, 5)
    watch.begin()
    (tmp_path / "before.py").write_text("saved before it goes on")

    helper = tmp_path / "new" / "deep" / "helper.py"
    looks_while_nothing_changed: list[int] = []

    def edit() -> None:
        for count, change in enumerate(
            (
                lambda: (tmp_path / "pipeline.py").write_text("b"),
                lambda: (helper.parent.mkdir(parents=True), helper.write_text("a")),
                lambda: helper.write_text("another"),
                lambda: shutil.rmtree(tmp_path / "new"),
                lambda: (tmp_path / "end.py").write_text(""),
            ),
            start=1,
        ):
            wait_until(lambda n=count: len(watch.found) == n)
            time.sleep(0.2)  # the folders are watched again
            before = watch.looks
            time.sleep(0.1)
            looks_while_nothing_changed.append(watch.looks - before)
            change()

    editor = threading.Thread(target=edit)
    editor.start()
    with pytest.raises(Ended):
        watch.go_on()
    editor.join()
    assert watch.found == ("before.py", "pipeline.py", "helper.py", "helper.py", "helper.py", "end.py")
    assert set(looks_while_nothing_changed) == {0}


def wait_until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what() and time.monotonic() < end:
        time.sleep(0.005)
    assert what()
