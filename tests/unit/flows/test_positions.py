"""What a flow can have left to do, told from logs alone."""

from __future__ import annotations

import json

from lakelet.files.delta_log import TableLog, streams_from_log
from lakelet.flows.checkpoints import read_checkpoint
from lakelet.flows.stream_decisions import physical_filter, table_position


def commit(folder, version, *actions):
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / f"{version:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))


def add(kind, **more):
    return {"add": {"path": "x", "partitionValues": {"kind": kind}, "dataChange": True, **more}}


def offset(version, index=-1):
    return json.dumps({"reservoirVersion": version, "index": index, "isStartingVersion": False})


def test_a_flow_waits_only_for_files_that_can_match(tmp_path):
    commit(tmp_path, 0, {"metaData": {}}, add("a"))
    commit(tmp_path, 1, add("b"))
    log = TableLog(tmp_path)
    wanted = {"kind": frozenset({"a"})}
    idle, examined = table_position("t", log, offset(1), wanted, -1)
    assert (idle.pending, examined) == (False, 1)
    busy, _ = table_position("t", log, offset(0), wanted, -1)
    assert busy.pending is True
    again, examined = table_position("t", log, offset(1), wanted, 1)
    assert (again.pending, again.text, examined) == (False, "t has no new version", 1)


def test_what_cannot_be_told_counts_as_waiting(tmp_path):
    commit(tmp_path, 0, add("a"))
    commit(tmp_path, 2, add("a"))
    log = TableLog(tmp_path)
    assert table_position("t", log, offset(1), {}, -1)[0].pending is True  # version 1 was cleaned up
    assert table_position("t", log, offset(0, index=3), {}, -1)[0].pending is True  # stopped inside a version
    assert table_position("t", TableLog(tmp_path / "none"), offset(0), {}, -1)[0].pending is True


def test_commits_without_data_are_nothing_new_and_removed_data_is(tmp_path):
    commit(tmp_path, 0, add("a"))
    commit(tmp_path, 1, {"metaData": {}})
    commit(tmp_path, 2, add("a", dataChange=False), {"remove": {"path": "x", "dataChange": False}})
    log = TableLog(tmp_path)
    assert table_position("t", log, offset(1), {}, -1)[0].pending is False
    assert log.data_version(0) == 0
    commit(tmp_path, 3, {"remove": {"path": "x", "dataChange": True}})
    assert table_position("t", TableLog(tmp_path), offset(1), {}, -1)[0].pending is True
    assert TableLog(tmp_path).data_version(0) == 3


def test_a_stream_starts_from_the_log_only_while_that_is_whole_and_append_only(tmp_path):
    commit(tmp_path, 0, {"metaData": {}}, add("a"))
    commit(tmp_path, 1, add("a"))
    assert streams_from_log(TableLog(tmp_path))
    commit(tmp_path, 2, add("a", dataChange=False), {"remove": {"path": "x", "dataChange": False}})
    assert not streams_from_log(TableLog(tmp_path)), "files that OPTIMIZE put together may be gone"
    commit(tmp_path, 2, {"metaData": {}}, add("a"))
    assert not streams_from_log(TableLog(tmp_path))


def test_commits_that_put_rows_into_other_files_settle_nothing_new(tmp_path):
    commit(tmp_path, 0, {"metaData": {}}, add("a"))
    commit(tmp_path, 1, add("a", dataChange=False), {"remove": {"path": "x", "dataChange": False}})
    assert TableLog(tmp_path).content_version(0) == 0
    commit(tmp_path, 2, {"metaData": {}})
    assert TableLog(tmp_path).content_version(1) == 2
    commit(tmp_path, 3, add("b"))
    assert TableLog(tmp_path).content_version(2) == 3


def test_mapped_columns_are_looked_up_under_their_physical_names():
    columns = json.dumps({"fields": [{"name": "Kind", "metadata": {"delta.columnMapping.physicalName": "col-1"}}]})
    assert physical_filter({"kind": frozenset("a")}, columns) == {"col-1": frozenset("a")}
    assert physical_filter({"kind": frozenset("a")}, None) == {"kind": frozenset("a")}


def test_a_checkpoint_tells_its_offsets_and_whether_the_last_batch_was_completed(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "commits").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n" + offset(1) + "\n-")
    (tmp_path / "offsets" / ".1.tmp").write_text("half")
    found = read_checkpoint(tmp_path)
    assert (found.planned, found.unfinished, found.offsets[1]) == (0, True, None)
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    assert not read_checkpoint(tmp_path).unfinished
    assert read_checkpoint(tmp_path / "none").planned == -1


def test_another_table_under_the_same_name_counts_as_waiting_whatever_its_versions_are(tmp_path):
    commit(tmp_path, 0, {"metaData": {"id": "new"}}, add("a"))
    same = json.dumps({"reservoirVersion": 1, "index": -1, "reservoirId": "new"})
    assert table_position("t", TableLog(tmp_path), same, {}, -1)[0].pending is False
    other = json.dumps({"reservoirVersion": 9, "index": -1, "reservoirId": "old"})
    found, examined = table_position("t", TableLog(tmp_path), other, {}, 9)
    assert (found.pending, found.text, examined) == (True, "t is not the table it has read so far", -1)


def test_a_stream_of_changes_is_through_when_its_offset_is_at_the_last_file_of_change_data(tmp_path):
    commit(tmp_path, 0, {"metaData": {}}, add("a"))
    commit(tmp_path, 1, add("a"), {"remove": {"path": "x"}}, {"cdc": {"path": "y"}}, {"cdc": {"path": "z"}})
    commit(tmp_path, 2, add("a", dataChange=False), {"remove": {"path": "x", "dataChange": False}})

    def looked(version, index, *, feed=True):
        position, examined = table_position("t", TableLog(tmp_path), offset(version, index), {}, -1, feed=feed)
        return position.pending, examined

    assert looked(1, 0) == (True, -1)
    assert looked(1, 1) == (False, 2)
    assert looked(1, 1, feed=False) == (True, -1)  # this one reads other files
    commit(tmp_path, 3, add("a"), add("a"))
    assert (looked(1, 1)[0], looked(3, 1)[0], looked(4, -1)[0]) == (True, True, False)
