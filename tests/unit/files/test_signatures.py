"""Signatures change with what they are of, and are made of folders as they come: with links that lead up or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakelet.files.signatures import ABSENT, FOLDER, is_folder, of_file, of_tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, and four links: two to itself, one to a folder beside it that leads back, one to no file."""
    found, beside = tmp_path / "data", tmp_path / "beside"
    (found / "deep").mkdir(parents=True)
    beside.mkdir()
    (found / "deep" / "a.json").write_text("1")
    for link, target in (("up", ".."), ("here", "."), ("beside", "../beside"), ("lost", "lost")):
        os.symlink(target, found / link)
    os.symlink("../data", beside / "back")
    return found


def test_a_folder_whose_links_lead_up_has_a_signature_that_changes_with_its_files(folder: Path) -> None:
    before = of_tree(str(folder))
    assert of_tree(str(folder)) == before
    (folder / "deep" / "b.json").write_text("2")
    assert of_tree(str(folder)) != before


def test_a_file_below_a_link_counts(folder: Path) -> None:
    before = of_tree(str(folder))
    (folder.parent / "beside" / "c.json").write_text("3")
    assert of_tree(str(folder)) != before


def test_a_folder_may_be_very_deep(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 150)
    deep.mkdir(parents=True)
    before = of_tree(str(tmp_path))
    (deep / "a.json").write_text("1")
    assert of_tree(str(tmp_path)) != before


def test_a_link_to_a_folder_that_leads_elsewhere_counts(folder: Path) -> None:
    link = folder / "beside"
    before = of_file(str(link))
    assert (of_file(str(folder)), is_folder(before), is_folder(of_file(str(folder / "deep" / "a.json")))) == (FOLDER, True, False)
    link.unlink()
    os.symlink("deep", link)
    assert is_folder(of_file(str(link)))
    assert of_file(str(link)) not in (before, FOLDER)


def test_names_can_be_left_out_and_what_is_not_there_is_absent(folder: Path) -> None:
    before = of_tree(str(folder), without=("deep", "up", "here", "beside"))
    (folder / "deep" / "b.json").write_text("2")
    assert of_tree(str(folder), without=("deep", "up", "here", "beside")) == before
    assert of_tree(str(folder / "nothing")) == of_file(str(folder / "lost")) == ABSENT
