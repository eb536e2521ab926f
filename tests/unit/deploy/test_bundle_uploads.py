"""Which files a deployment uploads: `sync`, `.gitignore`, notebooks, hashes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelet.config.yaml_tree import Problems
from lakelet.deploy.bundle.uploads import is_notebook, synced_files
from tests.unit.deploy.bundles import Folder

BUNDLE = "bundle: {name: shop}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return (
        Folder(tmp_path / "shop").put({"src/a.sql": "SELECT 1", "src/deep/b.txt": "b", "notes.md": "n", "build/c.whl": "c"}).bundle(BUNDLE)
    )


def uploaded(folder: Folder) -> list[str]:
    return [file.path for file in folder.state().files]


def test_everything_is_uploaded_but_what_a_checkout_never_means(folder: Folder) -> None:
    folder.put(
        {
            ".git/config": "",
            ".lakelet/tables/x": "",
            ".databricks/x": "",
            "src/__pycache__/a.pyc": "",
            ".venv/pyvenv.cfg": "",
            ".venv/x": "",
        }
    )
    assert uploaded(folder) == ["build/c.whl", "databricks.yml", "notes.md", "src/a.sql", "src/deep/b.txt"]


def test_gitignore_files_hold_from_the_top_of_the_repository_downwards(folder: Folder) -> None:
    (folder.root.parent / ".git").mkdir()
    (folder.root.parent / ".gitignore").write_text("*.md\n/shop/build/\n")
    folder.put({".gitignore": "*.txt\n", "src/deep/.gitignore": "!b.txt\n", "src/c.txt": "c"})
    assert uploaded(folder) == [".gitignore", "databricks.yml", "src/a.sql", "src/deep/.gitignore", "src/deep/b.txt"]


def test_what_a_folder_holds_is_ignored_and_not_the_folder(folder: Folder) -> None:
    folder.put({".gitignore": "src/**\n!*.sql\n"})
    assert uploaded(folder) == [".gitignore", "build/c.whl", "databricks.yml", "notes.md", "src/a.sql"]


def test_sync_takes_paths_adds_what_is_ignored_and_leaves_out(folder: Folder) -> None:
    folder.put({".gitignore": "build/\n", "src/old/d.sql": "SELECT 2"})
    folder.bundle(BUNDLE + "sync:\n  paths: [src]\n  include: ['build/*.whl']\n  exclude: [src/old, '*.txt']\n")
    assert uploaded(folder) == ["build/c.whl", "src/a.sql"]


def test_a_path_of_sync_inside_an_ignored_folder_has_no_files(folder: Folder) -> None:
    folder.put({".gitignore": "build/\n!build/deep\n", "build/deep/d.sql": "SELECT 2"})
    folder.bundle(BUNDLE + "sync: {paths: [src, build/deep]}\n")
    assert uploaded(folder) == ["src/a.sql", "src/deep/b.txt"]


def test_a_target_adds_to_sync(folder: Folder) -> None:
    folder.bundle(BUNDLE + "sync: {exclude: [notes.md]}\ntargets: {dev: {sync: {exclude: [build]}}}\n")
    assert uploaded(folder) == ["databricks.yml", "src/a.sql", "src/deep/b.txt"]


def test_a_path_outside_of_the_bundle_moves_the_folder_that_is_deployed(folder: Folder) -> None:
    (folder.root.parent / "shared").mkdir()
    (folder.root.parent / "shared" / "d.py").write_text("D = 1\n")
    folder.bundle(
        BUNDLE + "sync: {paths: [../shared, src]}\nresources: {pipelines: {p: {root_path: ., libraries: [{file: {path: src/a.sql}}]}}}\n"
    )
    assert uploaded(folder) == ["shared/d.py", "shop/src/a.sql", "shop/src/deep/b.txt"]
    settings = folder.resource("pipelines.p").settings
    files = folder.state().workspace.file_path
    assert settings["libraries"] == [{"file": {"path": f"{files}/shop/src/a.sql"}}]
    assert settings["root_path"] == f"{files}/shop"


def test_a_path_that_is_no_folder_is_refused(folder: Folder) -> None:
    assert folder.bundle(BUNDLE + "sync: {paths: [srx]}\n").mistakes() == [
        "CONFIG_INVALID databricks.yml, line 2: sync.paths names srx, which is not a folder → src"
    ]


def test_files_have_their_hash_and_size_and_say_whether_they_are_notebooks(folder: Folder) -> None:
    notebook = "# Databricks notebook source\r\nprint('ü')\n"
    folder.put({"src/n.py": notebook, "src/j.ipynb": '{"cells": []}'})
    files = {file.path: file for file in folder.state().files}
    content = (folder.root / "src/n.py").read_bytes()
    assert (files["src/n.py"].sha256, files["src/n.py"].size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert {path for path, file in files.items() if is_notebook(file.local)} == {"src/n.py", "src/j.ipynb"}
    assert all(file.local.read_bytes() for file in files.values())


def test_linked_folders_are_not_followed_and_linked_files_are(folder: Folder) -> None:
    os.symlink(folder.root / "src", folder.root / "again")
    os.symlink(folder.root / "notes.md", folder.root / "src" / "linked.md")
    assert [path for path in uploaded(folder) if "again" in path or "linked" in path] == ["src/linked.md"]


PARTS = st.sampled_from(["a", "b", "c.txt", "d.py", "build"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PATTERNS = st.sampled_from(
    [
        "a",
        "/a",
        "a/",
        "*.txt",
        "!c.txt",
        "!*.py",
        "build/*",
        "!build/d.py",
        "a/**",
        "**/b",
        "b/c.txt",
        "/*",
        "!/a",
        "!a/",
        "[ab]",
        "# x",
        "",
    ]
)


@pytest.mark.skipif(shutil.which("git") is None, reason="Git is the judge")
@pytest.mark.long
@settings(max_examples=60, deadline=None)
@example({"a/a/b"}, {"": ["a", "!/a"]})
@example({"a/a/a"}, {"": ["a/**", "!a/"]})
@given(
    st.sets(PATHS, min_size=1, max_size=8), st.dictionaries(st.sampled_from(["", "a/", "a/b/"]), st.lists(PATTERNS, max_size=4), max_size=3)
)
def test_the_files_are_those_that_git_would_add(paths: set[str], ignored: dict[str, list[str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path, text in [*dict.fromkeys(paths, "x").items(), *((f"{at}.gitignore", "\n".join(lines)) for at, lines in ignored.items())]:
            file = root / path
            if any(part.is_file() for part in file.parents) or file.is_dir():
                continue  # a file has the folder's name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        subprocess.run(["git", "init", "-q", name], check=True)
        listed = subprocess.run(
            ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-co", "--exclude-standard"],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        )
        found = synced_files(root, None, Problems()).files
        assert [file.relative_to(root).as_posix() for file in found] == sorted(listed.stdout.split(), key=lambda one: Path(one))
