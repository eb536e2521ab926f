"""Where streams stand, from the files of their checkpoints (MT-7)."""

from __future__ import annotations

import json
from pathlib import Path

from lakelet.maintenance.needed_files import StreamPosition, stream_positions


def checkpoint(checkpoints: Path, generation: str = "1") -> Path:
    """The folder of one flow's checkpoint, with the folders that Spark makes first."""
    folder = checkpoints / "main" / "default" / "t" / "f" / generation
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    return folder


def offset(version: int) -> str:
    return "\n".join(("v1", "{}", json.dumps({"reservoirId": "id", "reservoirVersion": version, "isStartingVersion": False})))


def test_a_process_killed_while_its_first_batch_was_written_leaves_no_position(tmp_path):
    (checkpoint(tmp_path) / "offsets" / ".0.6a1b2c3d-0000-4000-8000-000000000000.tmp").write_text("v1")
    assert stream_positions(tmp_path) == []


def test_a_file_that_a_killed_process_left_changes_no_position(tmp_path):
    used = checkpoint(tmp_path)
    (used / "offsets" / "0").write_text(offset(3))
    (used / "commits" / "0").write_text("v1")
    (used / "offsets" / ".1.6a1b2c3d-0000-4000-8000-000000000000.tmp").write_text("v1")
    assert stream_positions(tmp_path) == [StreamPosition("t/f", "id", 3, snapshot=False)]


def test_a_stream_that_completed_no_batch_has_all_rows_to_read(tmp_path):
    (checkpoint(tmp_path) / "offsets" / "0").write_text(offset(3))
    assert stream_positions(tmp_path) == [StreamPosition("t/f", "id", 0, snapshot=True)]
