"""Folders that are removed while somebody else removes what is in them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lakelet.files.paths import remove_tree


def test_a_folder_that_several_remove_at_the_same_time_is_gone_after_each(tmp_path: Path) -> None:
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        for part in range(4):
            (folder / str(part)).mkdir(parents=True)
            for number in range(100):
                (folder / str(part) / str(number)).touch()

        def removed(folder: Path) -> bool:
            remove_tree(folder)
            return not folder.exists()

        with ThreadPoolExecutor(3) as threads:
            assert all(threads.map(removed, [folder] * 3))


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "never")
