"""The event log as a table: appended to, compacted, read below folders of any name (docs/semantics/storage.md, ST-10, ST-11)."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.files.delta_rs import open_table
from lakelet.files.paths import any_path, names_in
from lakelet.files.stores import delta_options
from lakelet.inspection.inspector import list_tables, read_rows
from lakelet.storage.eventlog import table as log_table
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.reading import logged, progress_of, read_events
from lakelet.storage.eventlog.writer import SCHEMA, EventWriter, append, event_row
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

UPDATE = "00000000-0000-0000-0000-00000000000a"
HOSTILE = ["größe", "gr%C3%B6%C3%9Fe", "a b", "a%20b", "a%b", "a[b]", "a\\b", "a\nb", "a?b#c", "a{b}*", 'it\'s "q"', "😀", "ü%C3"]


def event(number: int) -> Event:
    return Event("notice", f"m{number}", Origin("p", "shop", UPDATE), {"notice": {"text": "t"}}, sequence=number)


def numbers(path: Path) -> list[int]:
    return sorted(e["sequence"] for e in read_events(path.parent.parent, every=True))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return Storage(tmp_path).events


def test_a_log_that_delta_rs_made_goes_on(events):
    events.mkdir(parents=True)
    write_deltalake(str(events), pa.Table.from_pylist([event_row(event(1))], schema=SCHEMA))
    append(events, [event(2)])
    assert numbers(events) == [1, 2]
    assert pa.schema(DeltaTable(str(events)).schema().to_arrow()).names == SCHEMA.names


def test_two_writers_at_once_take_turns(events, monkeypatch):
    append(events, [event(1)])
    first = TableLog(events).version()
    (events / "_delta_log" / f"{first + 1:020d}.json").write_bytes((events / "_delta_log" / f"{first:020d}.json").read_bytes()[:0])

    class Behind(TableLog):
        def version(self):
            return first  # what a writer saw before the other one's commit

    monkeypatch.setattr(log_table, "TableLog", Behind)
    append(events, [event(2)])
    assert TableLog(events).version() == first + 2


def check_compaction(events, compact):
    """Fill a log with small files; the end of an update makes one of them, which readers that are open do not notice."""
    for number in range(log_table.SMALL_FILES - 1):
        append(events, [event(number)])
    reader = open_table(events)
    writer = EventWriter(events)
    writer.start()
    writer.emit(event(99))
    writer.close()
    assert len(open_table(events).file_uris()) == 1
    assert any(name.endswith(".checkpoint.parquet") for name in names_in(events / "_delta_log"))
    assert reader.to_pyarrow_table().num_rows == log_table.SMALL_FILES - 1
    append(events, [event(100)])
    assert open_table(events).to_pyarrow_table().num_rows == log_table.SMALL_FILES + 1
    assert logged(events, UPDATE).sequence == 100
    assert not compact(events), "nothing to do any more"


@pytest.mark.parametrize("folder", ["plain", "a%20b/a[b]/a\\b/a\nb"])
def test_many_small_files_become_one_at_the_end_of_an_update_and_open_readers_go_on(tmp_path, folder):
    check_compaction(Storage(tmp_path / folder).events, log_table.compact)


@pytest.mark.long
def test_many_small_files_on_an_object_store_become_one_at_the_end_of_an_update(s3):
    check_compaction(any_path(s3.uri("events")), log_table.compact)


@pytest.mark.parametrize("failpoint", ["events.compacted", "events.compaction_committed"])
def test_a_process_that_dies_while_it_compacts_leaves_every_event_once(events, failpoint):
    for number in range(log_table.SMALL_FILES):
        append(events, [event(number)])
    program = f"from pathlib import Path; from lakelet.storage.eventlog import table; table.compact(Path({str(events)!r}))"
    environment = {**os.environ, "LAKELET_FAILPOINT": failpoint}
    died = subprocess.run([sys.executable, "-c", program], env=environment, start_new_session=True, check=False)
    assert died.returncode == -signal.SIGKILL
    assert numbers(events) == list(range(log_table.SMALL_FILES))
    append(events, [event(100)])
    log_table.compact(events)
    assert numbers(events) == [*range(log_table.SMALL_FILES), 100]


@pytest.fixture
def remote_events(s3):
    """A log of many small files on an object store that keeps files of no version for no time."""
    path = any_path(s3.uri("events"))
    rows = pa.Table.from_pylist([event_row(event(0))], schema=SCHEMA)
    short = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    write_deltalake(str(path), rows, configuration=short, storage_options=delta_options(path))
    for number in range(1, log_table.SMALL_FILES):
        append(path, [event(number)])
    return path


def remote_numbers(path):
    return sorted(row["sequence"]["data_plane_id"]["seq_no"] for row in open_table(path).to_pyarrow_table().to_pylist())


@pytest.mark.long
def test_a_process_that_dies_while_it_compacts_a_log_on_an_object_store_leaves_every_event_once(remote_events):
    program = "import sys; from lakelet.files.paths import any_path; from lakelet.storage.eventlog import table\n"
    program += "table.compact(any_path(sys.argv[1]))"
    environment = {**os.environ, "LAKELET_FAILPOINT": "events.compaction_committed"}
    died = subprocess.run([sys.executable, "-c", program, str(remote_events)], env=environment, start_new_session=True, check=False)
    assert died.returncode == -signal.SIGKILL
    assert len(open_table(remote_events).file_uris()) == 1
    append(remote_events, [event(100)])
    assert remote_numbers(remote_events) == [*range(log_table.SMALL_FILES), 100]


@pytest.mark.long
def test_files_of_a_compaction_on_an_object_store_that_was_not_committed_are_removed(remote_events, monkeypatch):
    monkeypatch.setattr(log_table, "KEPT_SECONDS", 0)
    half = remote_events / "part-00000-half.snappy.parquet"
    half.write_whole("half of a file")
    assert remote_numbers(remote_events) == list(range(log_table.SMALL_FILES))
    assert log_table.compact(remote_events)
    assert remote_numbers(remote_events) == list(range(log_table.SMALL_FILES))
    assert len([name for name in names_in(remote_events) if name.endswith(".parquet")]) == 1


def test_files_that_no_reader_can_need_are_removed_a_week_later(events):
    for number in range(log_table.SMALL_FILES):
        append(events, [event(number)])
    old = time.time() - 8 * 24 * 3600
    for file in events.glob("*.parquet"):
        os.utime(file, (old, old))
    assert log_table.compact(events)
    assert len(list(events.glob("*.parquet"))) == log_table.SMALL_FILES + 1, "they were in the last version until now"
    for number in range(log_table.SMALL_FILES):
        append(events, [event(1000 + number)])
    assert log_table.compact(events)
    assert len(list(events.glob("*.parquet"))) == 1 + log_table.SMALL_FILES + 1
    assert len(numbers(events)) == 2 * log_table.SMALL_FILES


@pytest.mark.parametrize("name", HOSTILE)
def test_tables_and_events_are_read_below_folders_of_any_name(tmp_path, name):
    """delta-rs reads `%20` as a blank, panics at `[` and refuses a line end, in paths and URIs alike."""
    storage = Storage(tmp_path / name)
    path = f"tables/main/default/{'x' if chr(10) in name else name}"
    made = tmp_path / "made"
    write_deltalake(str(made), pa.table({"id": [1, 2], "p": ["a", "b%20["]}), partition_by=["p"])
    (storage.root / path).parent.mkdir(parents=True)
    made.rename(storage.root / path)
    storage.save(StorageRegistry(datasets={"main.default.t": StoredDataset("main.default.t", "streaming_table", path)}))
    for number in (1, 2):
        append(storage.events, [event(number)])
    assert numbers(storage.events) == [1, 2]
    assert progress_of(storage.events, UPDATE).state.has_ended is False
    (table,) = list_tables(storage.root)
    assert (table.rows, table.version) == (2, 0)
    assert sorted(row["p"] for row in read_rows(storage.root, "t").rows) == ["a", "b%20["]


def idle_update(number: int) -> list[Event]:
    """The events of an update of ten datasets that finds nothing to do."""
    update = str(uuid.UUID(int=number))
    origin = Origin("p", "shop", update, "main.shop.orders", "main.shop.orders")
    body = {"status": "IDLE", "schema_json": "x" * 400}
    return [Event("flow_progress", "idle", origin, {"flow_progress": body}, sequence=n) for n in range(20)]


def measured_update(events: Path, number: int) -> tuple[int, int, int]:
    """What an idle update does to write its events: bytes written, reads, bytes read."""
    process = psutil.Process()
    before = process.io_counters()
    writer = EventWriter(events, interval=60)
    writer.start()
    for one in idle_update(number):
        writer.emit(one)
    writer.close()
    after = process.io_counters()
    return after.write_chars - before.write_chars, after.read_count - before.read_count, after.read_chars - before.read_chars


@pytest.mark.long
@pytest.mark.skipif(not hasattr(psutil.Process, "io_counters"), reason="this system does not count what a process reads")
def test_the_500th_idle_update_writes_what_the_5th_does_and_reads_what_the_first_ones_behind_a_checkpoint_do(events):
    """Those in between are appended without a look at the log each time; it is compacted as often as at their ends."""
    early, first, last, live = range(1, 11), range(51, 61), range(492, 502), []
    rows = pa.Table.from_pylist([event_row(one) for one in idle_update(0)], schema=SCHEMA)
    found = {}
    for number in range(502):
        if number in (*early, *first, *last):
            found[number] = measured_update(events, number)
            live.append(len(open_table(events).file_uris()))
        else:
            log_table.append(events, rows)
            if number % (log_table.SMALL_FILES - 1) == 0:
                log_table.compact(events)
    assert max(live) <= log_table.SMALL_FILES

    def typical(numbers):
        return [statistics.median(found[number][kind] for number in numbers) for kind in range(3)]

    (written, _, _), (_, reads, read), now = typical(early), typical(first), typical(last)
    assert now[0] <= 1.5 * written
    assert now[1] <= 1.5 * reads
    assert now[2] <= 1.5 * read
    assert logged(events, str(uuid.UUID(int=last[-1]))).sequence == 20


@pytest.mark.long
def test_commits_before_a_checkpoint_are_removed_after_a_week(events):
    for number in range(2 * log_table.SMALL_FILES):
        append(events, [event(number)])
        log_table.compact(events)
        for commit in (events / "_delta_log").glob("*.json"):
            os.utime(commit, (1_700_000_000, 1_700_000_000))
    assert len(list((events / "_delta_log").glob("*.json"))) <= log_table.SMALL_FILES + 5
    assert numbers(events) == list(range(2 * log_table.SMALL_FILES))


def test_a_file_in_the_place_of_the_log_is_an_error_with_a_code(events):
    events.parent.mkdir(parents=True)
    events.write_text("no table")
    with pytest.raises(LakeletError, match="event log") as error:
        read_events(events.parent.parent)
    assert error.value.code == "EVENT_LOG_FAILED"


def test_a_state_that_only_a_newer_lakelet_knows_is_kept_as_text(events):
    origin = Origin("p", "shop", UPDATE, "main.shop.orders", "main.shop.orders")
    flow = Event("flow_progress", "", origin, {"flow_progress": {"status": "HIBERNATING"}}, sequence=1)
    append(events, [flow, Event("update_progress", "", origin, {"update_progress": {"state": "MELTING"}}, sequence=2)])
    found = progress_of(events, UPDATE)
    assert (found.state.has_ended, found.excluded, found.unfinished) == (False, frozenset(), ("main.shop.orders",))
    assert [(run.dataset, run.flow, run.status) for run in found.runs] == [("main.shop.orders", "main.shop.orders", "RUNNING")]
    assert logged(events, UPDATE).ended is False
    assert [e["details"]["update_progress"]["state"] for e in read_events(events.parent.parent, event_type="update_progress")] == [
        "MELTING"
    ]
