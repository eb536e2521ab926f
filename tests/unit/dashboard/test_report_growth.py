"""A report reads and writes what is new since the one before, and is the same as one that reads everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakelet.dashboard.page import KEPT, write_report
from lakelet.files.delta_rs import open_table
from lakelet.storage.eventlog import table as log_table
from lakelet.storage.eventlog.fold import AT_ONCE, HistoryBuilder, reduce_events
from lakelet.storage.eventlog.writer import append
from lakelet.storage.root import Storage
from tests.event_logs import many
from tests.event_samples import RULES, Log


class Project:
    """A storage of which reports are written, and the same storage for reports that know nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.storage, self.log, self._said = folder, folder / "storage", Log(), 0

    @property
    def events(self) -> Path:
        return Storage(self.storage).events

    def run(self, update: str, *, ends: bool = True, inputs: tuple[str, ...] = ()) -> None:
        """The events of an update, or of its first part, in one commit."""
        log = self.log
        log.add(update, "create_update", {"cause": "USER_ACTION"})
        for name in ("orders", "sums"):
            log.add(update, "dataset_definition", {"dataset_type": "STREAMING_TABLE", "expectations": RULES}, dataset=f"main.shop.{name}")
        read = ["main.shop.orders", *inputs]
        body = {"output_dataset": "main.shop.sums", "input_datasets": read, "flow_type": "APPEND"}
        log.add(update, "flow_definition", body, dataset="main.shop.sums", flow="sums")
        log.flow(update, "orders", "QUEUED")
        log.flow(update, "sums", "QUEUED")
        log.measured(update, "orders", 10 + len(log.events), 1, 9, 1)
        if ends:
            self.end(update)
        else:
            self.commit()

    def end(self, update: str) -> None:
        """The rest of the events of an update, in a commit."""
        self.log.flow(update, "orders", "COMPLETED")
        self.log.flow(update, "sums", "COMPLETED")
        self.log.add(update, "update_progress", {"state": "COMPLETED"})
        self.commit()

    def commit(self) -> None:
        append(self.events, self.log.events[self._said :])
        self._said = len(self.log.events)

    def report(self) -> dict[str, str]:
        """The documents of the report, which goes on from the one before."""
        return self._documents("report")

    def whole_report(self) -> dict[str, str]:
        """The documents of a report that knows nothing of an earlier one."""
        kept = self.storage / "system" / KEPT
        before = kept.read_text()
        kept.unlink()
        found = self._documents(f"whole-{self._said}")
        kept.write_text(before)
        return found

    def _documents(self, name: str) -> dict[str, str]:
        folder = self.folder / name
        write_report(self.storage, self.folder, folder)
        found = {file.stem: file.read_text() for file in (folder / "data").glob("*.js")}
        overview = json.loads(found["overview"].removeprefix('lakelet("overview",').removesuffix(");\n"))
        return {**found, "overview": json.dumps({**overview, "generated": 0})}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def remove_data_files(events: Path) -> int:
    files = list(events.glob("*.parquet"))
    for file in files:
        file.unlink()
    return len(files)


def test_EL26_a_report_opens_no_file_of_the_event_log_that_an_earlier_one_has_read(project):
    for number in range(60):
        project.run(f"u{number}")
    project.report()
    assert remove_data_files(project.events) == 60
    project.run("last")
    shown = project.report()
    assert len([name for name in shown if name.startswith("update-")]) == 61
    assert '"rows":' in shown["update-60"]
    assert remove_data_files(project.events) == 1


@pytest.mark.parametrize("compacted", [False, True])
def test_EL26_a_report_that_goes_on_is_the_same_as_one_that_reads_everything(project, compacted, monkeypatch):
    monkeypatch.setattr(log_table, "SMALL_FILES", 5)
    for number in range(3):
        project.run(f"u{number}")
    project.report()
    project.run("a")
    project.run("b")
    if compacted:
        assert log_table.compact(project.events)
    project.run("c", inputs=("main.shop.customers",))
    assert project.report() == project.whole_report()
    assert project.report() == project.whole_report(), "nothing is new"


def test_EL26_an_update_that_was_running_is_read_from_its_first_event(project):
    project.run("u0")
    project.report()
    project.run("slow", ends=False)
    assert '"RUNNING"' not in project.report()["update-0"]
    project.run("quick")
    first = project.report()
    assert '"ended_at":null' not in first["update-0"]
    project.end("slow")
    assert project.report() == project.whole_report() != first


def test_EL26_a_report_reads_everything_where_commits_are_gone(project):
    project.run("u0")
    project.report()
    project.run("u1")
    open_table(project.events).create_checkpoint()
    for commit in (project.events / "_delta_log").glob("*.json"):
        commit.unlink()
    assert project.report() == project.whole_report()


def test_EL27_documents_of_ended_updates_are_taken_over_as_files_until_what_they_name_changes(project):
    def files() -> dict[str, int]:
        return {file.stem: file.stat().st_ino for file in (project.folder / "report" / "data").glob("update*.js")}

    for number in range(101):
        project.run(f"u{number:03d}")
    project.report()
    before = files()
    project.run("u101")
    assert project.report() == project.whole_report()
    after = files()
    assert {name for name in after if after[name] != before.get(name)} == {"update-101", "updates-1"}
    (project.folder / "report" / "data" / "update-7.js").write_text("half of it")
    assert project.report() == project.whole_report()
    after = files()
    project.run("u102", inputs=("main.shop.customers",))  # sums waited for another dataset, as the page sees it
    assert project.report() == project.whole_report()
    assert not set(files().values()) & set(after.values())


def test_EL27_updates_keep_their_numbers_until_a_hundred_leave_the_history_together():
    rows = many(1, 240).rows
    whole = reduce_events(rows)
    known = {update.id: update for update in whole.updates}

    def numbered(count: int) -> list[int]:
        first = dict(list(known.items())[:count])
        shown = HistoryBuilder(first, limit=100).history().updates
        assert [update.number for update in shown] == list(range(len(shown)))
        return [whole.updates.index(known[shown[0].id]), len(shown)]

    assert [numbered(count) for count in (100, 101, 100 + AT_ONCE - 1, 100 + AT_ONCE, 240)] == [
        [0, 100],
        [0, 101],
        [0, 199],
        [100, 100],
        [100, 140],
    ]
