"""The log of a change table beside the internal one: what it shows, and who else committed to it (CT-1, CT-2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cdc.changes import HIDDEN
from lakelet.cdc.mirror import MIRRORED, mirror, position
from lakelet.storage.root import INTERNAL


def commit(table: Path, version: int, *actions: Any) -> None:
    folder = table / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    info = {"commitInfo": {"operation": "WRITE"}}
    (folder / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))


def add(name: str, part: str = "rows") -> dict[str, Any]:
    body = {"path": f"{name}.parquet", "partitionValues": {"__lakelet_part": part}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": body}


def shown(target: Path) -> dict[int, list[str]]:
    """Version → files that it added."""
    found = {}
    for file in sorted((target / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        found[int(file.stem)] = [action["add"]["path"] for action in actions if "add" in action]
    return found


@pytest.fixture
def target(tmp_path: Path) -> Path:
    table = tmp_path / "table"
    for version in (0, 1):
        commit(table / INTERNAL, version, add(f"f{version}"), add(f"s{version}", "state"))
    assert mirror(table, HIDDEN) == 1
    return table


def test_each_commit_says_which_internal_version_it_shows(target):
    assert shown(target) == {0: ["_changes/f0.parquet"], 1: ["_changes/f1.parquet"]}
    assert position(target).internal == 1
    assert MIRRORED in (target / "_delta_log" / f"{1:020d}.json").read_text()
    assert mirror(target, HIDDEN) == 1
    assert len(shown(target)) == 2


def test_commits_of_others_are_seen_and_left_alone(target):
    commit(target, 2)
    commit(target, 3, add("theirs"))
    commit(target / INTERNAL, 2, add("f2"))
    before = shown(target)
    now = position(target)
    assert (now.internal, now.public, list(now.foreign)) == (1, 1, [2, 3])
    assert mirror(target, HIDDEN) is None
    assert shown(target) == before


def test_versions_need_not_be_equal_after_that(target):
    commit(target, 2, add("theirs"))
    commit(target, 3, {"txn": {"appId": MIRRORED, "version": 1}})
    commit(target / INTERNAL, 2, add("f2"))
    assert mirror(target, HIDDEN) == 4
    assert shown(target)[4] == ["_changes/f2.parquet"]
    assert list(position(target).foreign) == []


def test_a_log_of_which_no_commit_says_what_it_shows_is_an_error_by_name(target):
    for version in range(2):
        (target / "_delta_log" / f"{version:020d}.json").unlink()
    commit(target, 2)
    with pytest.raises(LakeletError) as caught:
        mirror(target, HIDDEN)
    assert caught.value.code == "CDC_LOG_GAP"
