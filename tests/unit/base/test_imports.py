"""Acting on imports, with modules of the test's own."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet.base.imports import after_import, unless_imported

NAME = "a_module_of_this_test"


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module that nobody has imported yet."""
    (tmp_path / f"{NAME}.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop(NAME, None)


def test_the_action_follows_the_import_and_finds_the_module_complete() -> None:
    found: list[int] = []
    after_import(NAME, lambda: found.append(sys.modules[NAME].VALUE))
    assert found == []
    assert importlib.import_module(NAME).VALUE == 1
    assert found == [1]


def test_the_action_is_called_once_however_often_the_module_is_imported() -> None:
    found: list[str] = []
    after_import(NAME, lambda: found.append("imported"))
    importlib.import_module(NAME)
    importlib.reload(sys.modules[NAME])
    assert found == ["imported"]


def test_a_look_for_the_module_is_no_import() -> None:
    found: list[str] = []
    after_import(NAME, lambda: found.append("imported"))
    assert importlib.util.find_spec(NAME) is not None
    assert found == []
    importlib.import_module(NAME)
    assert found == ["imported"]


def test_a_module_that_is_there_already_counts_as_imported() -> None:
    importlib.import_module(NAME)
    found: list[str] = []
    after_import(NAME, lambda: found.append("there"))
    assert found == ["there"]


def test_a_module_that_cannot_be_found_is_missing_as_ever() -> None:
    after_import("no_such_module_anywhere", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        importlib.import_module("no_such_module_anywhere")


def test_a_later_action_takes_the_place_of_one_that_waits() -> None:
    found: list[str] = []
    after_import(NAME, lambda: found.append("first"))
    after_import(NAME, lambda: found.append("second"))
    importlib.import_module(NAME)
    assert found == ["second"]


def test_the_list_of_finders_is_never_shortened_while_other_threads_go_through_it() -> None:
    with unless_imported(NAME):
        during = list(sys.meta_path)
    after_import(NAME, lambda: None)
    importlib.import_module(NAME)
    assert sys.meta_path == during


def test_a_module_is_absent_in_the_block_for_this_thread_alone() -> None:
    found: list[int] = []
    with unless_imported(NAME):
        with pytest.raises(ModuleNotFoundError, match="not to be imported here"):
            importlib.import_module(NAME)
        thread = threading.Thread(target=lambda: found.append(importlib.import_module(NAME).VALUE))
        thread.start()
        thread.join()
        assert importlib.import_module(NAME).VALUE == 1  # the other thread has imported it
    assert found == [1]


def test_after_the_block_the_module_is_found_again() -> None:
    with unless_imported(NAME), pytest.raises(ModuleNotFoundError):
        importlib.import_module(NAME)
    assert importlib.import_module(NAME).VALUE == 1
