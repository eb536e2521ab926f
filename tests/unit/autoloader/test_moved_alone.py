"""Streams without a project that are moved: files are known as seen from the state (docs/decisions/0081-moved-streams-alone.md)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lakelet.autoloader import AutoLoaderSource
from lakelet.autoloader.standalone import open_alone
from lakelet.base.errors import LakeletError
from tests.autoloading import Program

pytestmark = pytest.mark.filterwarnings("ignore:cloudFiles")


class Alone(Program):
    """A program that runs its stream itself, below `app`: its files in `in`, its state in `state`."""

    def __init__(self, app: Path, options: dict[str, str] | None = None, pattern: str = "") -> None:
        super().__init__(app / "in", app, options or {}, "id INT")
        self.pattern = pattern

    def open(self) -> AutoLoaderSource:
        return open_alone(f"{self.folder}{self.pattern}", {**self.options, "lakelet.state": str(self.root / "state")}, self.schema)

    def ids(self) -> list[int]:
        """What one more start reads."""
        done = len(self.batches)
        self.run()
        return sorted(row["id"] for batch in self.batches[done:] for row in batch)


def started(app: Path, **more: str) -> Alone:
    program = Alone(app, **more)
    program.put("x/a.json", '{"id":1}\n').put("x/b.json", '{"id":22}\n')
    assert program.ids() == [1, 22]
    return program


@pytest.mark.parametrize("pattern", ["", "/*", "/{x,y}/*.json"])
def test_a_folder_that_moves_with_its_state_is_not_read_again(tmp_path: Path, pattern: str) -> None:
    program = started(tmp_path / "app", pattern=pattern)
    for name in ("renamed", "below/app", "app"):  # at last the first path again
        app = tmp_path / name
        app.parent.mkdir(exist_ok=True)
        program.root.rename(app)
        program.folder, program.root = app / "in", app
        assert program.ids() == []
        program.put(f"x/{len(name)}.json", f'{{"id":{len(name)}}}\n')
        assert program.ids() == [len(name)]


def test_a_copy_and_its_original_go_on_apart(tmp_path: Path) -> None:
    program = started(tmp_path / "app")
    shutil.copytree(tmp_path / "app", tmp_path / "copy")  # the sizes are those that were read, the times need not be
    copy = Alone(tmp_path / "copy")
    copy._logged, copy._committed = list(program._logged), program._committed  # the checkpoint of Spark was copied too
    program.put("x/c.json", '{"id":3}\n')
    copy.put("x/c.json", '{"id":4}\n')
    assert (program.ids(), copy.ids()) == ([3], [4])
    assert (program.ids(), copy.ids()) == ([], [])


def test_files_that_are_moved_without_the_state_are_asked_about_and_the_answer_counts(tmp_path: Path) -> None:
    program = started(tmp_path / "app")
    old, new = tmp_path / "app" / "in", tmp_path / "other"
    old.rename(new)
    program.folder = new
    with pytest.raises(LakeletError, match="SOURCE_MOVED") as asked:
        program.run()
    assert "2 of the 2 files" in asked.value.what
    assert f'.option("lakelet.moved", "{old}={new}")' in str(asked.value.todo)
    with pytest.raises(LakeletError, match="SOURCE_MOVED"):
        program.run()

    program.options["lakelet.moved"] = str(new)
    with pytest.raises(LakeletError, match="CF_INVALID_OPTION_VALUE"):
        program.run()
    program.options["lakelet.moved"] = f"{old}={new}"
    assert program.ids() == []
    program.put("x/c.json", '{"id":3}\n')
    assert program.ids() == [3]
    del program.options["lakelet.moved"]
    assert program.ids() == []


def test_other_files_at_the_place_that_was_moved_to_are_asked_about(tmp_path: Path) -> None:
    program = started(tmp_path / "app")
    (tmp_path / "app").rename(tmp_path / "moved")
    program.folder, program.root = tmp_path / "moved" / "in", tmp_path / "moved"
    program.put("x/a.json", '{"id":12345}\n')
    with pytest.raises(LakeletError, match="SOURCE_MOVED") as asked:
        program.run()
    assert "1 of them have the size" in str(asked.value.why)


def test_a_folder_with_files_of_other_names_is_read(tmp_path: Path) -> None:
    program = started(tmp_path / "app")
    program.folder = tmp_path / "second"
    program.put("x/other.json", '{"id":7}\n')
    assert program.ids() == [7]
