"""Which replay of a quarantine an update may have to finish (QU-25), from as few commits as there are since the newest batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lakelet.files.delta_log import TableLog
from lakelet.files.paths import LOG
from lakelet.flows.replays import last_release
from lakelet.storage.delta import quarantine

BATCH = {quarantine.KEY: {"app_id": "f/batches", "version": 1, "at": 1, "update_id": "u", "flow": "f", "rows": 1}}
RELEASE = {"update_id": "r", "judged": 2, "released": 1, "rules": []}


def log_of(folder: Path, *commits: dict[str, Any] | None) -> TableLog:
    """A log whose oldest commit cannot be read, and then these; None for a commit of others."""
    folder.joinpath(LOG, f"{0:020d}.json").mkdir(parents=True)
    for number, said in enumerate(commits, 1):
        info = {"commitInfo": {"operation": "WRITE", **({"userMetadata": json.dumps(said)} if said else {})}}
        folder.joinpath(LOG, f"{number:020d}.json").write_text(json.dumps(info) + "\n")
    return TableLog(folder)


def test_QU25_a_replay_is_found_also_after_others_changed_held_rows(tmp_path):
    assert last_release(log_of(tmp_path, BATCH, {"lakelet_replay": RELEASE}, None)) == RELEASE


def test_QU25_an_update_that_has_written_since_has_finished_the_replay_and_older_commits_are_not_read(tmp_path):
    assert last_release(log_of(tmp_path / "a", {"lakelet_replay": RELEASE}, BATCH, None)) is None
    assert last_release(log_of(tmp_path / "b", BATCH)) is None
