"""cleanSource and the state of files as data (AL-25 to AL-28; cases D12, D13)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.discovery.files import LocalFiles
from lakelet.autoloader.discovery.listing import Filters, list_files
from lakelet.autoloader.source_options import parse_options
from lakelet.autoloader.state.cleanup_options import DELETE, MOVE, CleanSource, interval_seconds
from lakelet.autoloader.state.file_states import STATES, states
from lakelet.autoloader.state.ledger import SKIPPED, Archive, Ledger
from lakelet.autoloader.state.source_cleanup import CleanupResult, clean_files
from lakelet.base.errors import LakeletError

SECOND = 1_000_000


class Folder:
    """A source folder, its state, and a clock that a test sets."""

    def __init__(self, root: Path) -> None:
        self.root, self.source, self.state, self.target = root, root / "in", str(root / "state"), root / "done"
        self.source.mkdir()
        self.now = 0
        self.ledger = Ledger(self.state, lambda: self.now)
        self.batch = -1

    def ingest(self, *names: str, at: int) -> None:
        """Put files there, plan them as one batch and end the run, all at one moment (seconds)."""
        self.now = at * SECOND
        for name in names:
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_text(name)
        self.batch += 1
        listing = list_files(str(self.source), Filters()).found
        self.ledger.plan(self.batch, self.ledger.unseen(listing, self.batch - 1), discovered=self.now - 5 * SECOND)
        self.ledger.mark_committed(self.batch)

    def clean(self, at: int, mode: str = MOVE, retention: int = 10) -> CleanupResult:
        rule = CleanSource(mode, retention, str(self.target) if mode == MOVE else None)
        return clean_files(str(self.source), self.state, rule, self.batch, lambda: at * SECOND)

    def there(self, folder: Path | None = None) -> list[str]:
        root = folder or self.source
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())

    def state_rows(self) -> list[dict[str, Any]]:
        return states(self.state, f'{{"v":1,"batch":{self.batch}}}').to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def options(tmp_path: Path, **more: str) -> Any:
    return parse_options(
        SourceSpec(str(tmp_path / "in"), {"cloudFiles.format": "json", **{f"cloudFiles.{k}": v for k, v in more.items()}}), {}
    )


def test_d12_files_are_moved_once_their_time_has_passed(folder: Folder) -> None:
    folder.ingest("a.json", "day=1/b.json", at=100)
    folder.ingest("c.json", at=105)
    assert folder.clean(at=109).files == 0
    assert folder.clean(at=110).files == 2
    assert folder.there() == ["c.json"]
    assert folder.there(folder.target) == ["a.json", "day=1/b.json"]
    assert (folder.target / "a.json").read_text() == "a.json"
    assert folder.clean(at=110).files == 0
    assert folder.clean(at=115).files == 1
    first = folder.state_rows()[0]
    assert (first["archive_mode"], first["archive_time"].timestamp()) == (MOVE, 110)
    assert first["move_location"].endswith("/done/a.json")


def test_d12_a_moved_file_is_not_read_again_and_its_path_stays_seen(folder: Folder) -> None:
    folder.ingest("a.json", at=100)
    folder.clean(at=200)
    (folder.source / "a.json").write_text("once more")
    assert len(folder.ledger.unseen(list_files(str(folder.source), Filters()).found, folder.batch)) == 0
    assert folder.clean(at=300).files == 0
    assert folder.there() == ["a.json"]


def test_the_current_mode_decides(folder: Folder) -> None:
    folder.ingest("a.json", at=100)
    folder.ingest("b.json", at=200)
    folder.clean(at=120, mode=MOVE)
    folder.clean(at=220, mode=DELETE)
    assert folder.there() == []
    assert folder.there(folder.target) == ["a.json"]
    assert [row["archive_mode"] for row in folder.state_rows()] == [MOVE, DELETE]


def test_batches_that_are_not_committed_and_files_nobody_read_stay(folder: Folder) -> None:
    (folder.source / "old.json").write_text("before the first start")
    folder.ledger.skip_existing(list_files(str(folder.source), Filters()).found)
    folder.ingest("a.json", at=100)
    (folder.source / "late.json").write_text("planned only")
    folder.ledger.plan(1, folder.ledger.unseen(list_files(str(folder.source), Filters()).found, 0))
    assert folder.clean(at=10_000, mode=DELETE).files == 1
    assert folder.there() == ["late.json", "old.json"]


def test_a_content_that_was_never_read_is_not_removed(folder: Folder) -> None:
    folder.ingest("a.json", "b.json", at=100)
    (folder.source / "a.json").write_text("changed since")
    found = folder.clean(at=200, mode=DELETE)
    assert (found.files, found.changed) == (1, 1)
    assert (folder.source / "a.json").read_text() == "changed since"


@pytest.mark.parametrize("mode", [MOVE, DELETE])
def test_a_run_that_died_between_the_deed_and_the_record_is_made_up_for(folder: Folder, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    folder.ingest("a.json", "b.json", at=100)

    def dies(self: Archive, rows: Sequence[Any]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Archive, "add", dies)
        with pytest.raises(KeyboardInterrupt):
            folder.clean(at=200, mode=mode)
    assert folder.there() == []
    assert [row["archive_mode"] for row in folder.state_rows()] == [None, None]
    folder.clean(at=210, mode=mode)
    assert [(row["archive_mode"], bool(row["move_location"])) for row in folder.state_rows()] == [(mode, mode == MOVE)] * 2


def test_a_copy_that_a_dead_run_left_counts_but_another_file_is_never_overwritten(folder: Folder) -> None:
    folder.ingest("a.json", "b.json", at=100)
    folder.target.mkdir()
    (folder.target / "a.json").write_text("a.json")
    (folder.target / "b.json").write_text("something else")
    found = folder.clean(at=200)
    assert (found.files, found.failed) == (1, 1)
    assert "b.json" in found.problems[0]
    assert folder.there() == ["b.json"]
    assert (folder.target / "b.json").read_text() == "something else"
    (folder.target / "b.json").unlink()
    assert folder.clean(at=201).files == 1


def test_a_file_that_somebody_else_took_away_is_not_looked_for_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.ingest("a.json", at=100)
    (folder.source / "a.json").unlink()
    assert folder.clean(at=200).files == 0
    monkeypatch.setattr(LocalFiles, "status", lambda self, path: pytest.fail("looked for again"))
    folder.clean(at=300)
    assert folder.state_rows()[0]["archive_mode"] is None


def test_a_move_to_another_disk_keeps_content_and_time(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.ingest("a.json", at=100)
    os.utime(folder.source / "a.json", (50, 50))
    rename = os.rename

    def refuses(one: str, other: str) -> None:
        if one.startswith(str(folder.source)):
            raise OSError(18, "Invalid cross-device link")
        rename(one, other)

    monkeypatch.setattr(os, "rename", refuses)
    LocalFiles().move(str(folder.source / "a.json"), str(folder.target / "a.json"))
    assert folder.there() == []
    assert folder.there(folder.target) == ["a.json"]
    assert (folder.target / "a.json").stat().st_mtime == 50


def test_many_records_are_merged_and_none_is_lost(folder: Folder) -> None:
    for number in range(40):
        folder.ingest(f"f{number:02d}", at=100 + number)
        folder.clean(at=111 + number)
    assert [row["archive_mode"] for row in folder.state_rows()] == [MOVE] * 40
    assert len(list((folder.root / "state" / "ledger").glob("archived-*"))) < 35


def test_the_state_of_files_tells_when_each_step_happened(folder: Folder) -> None:
    folder.ledger.plan(SKIPPED + 1, list_files(str(folder.source), Filters()).found)
    folder.batch = 0
    folder.ingest("a b.json", at=100)
    folder.now = 200 * SECOND
    (folder.source / "late.json").write_text("12")
    folder.ledger.plan(2, folder.ledger.unseen(list_files(str(folder.source), Filters()).found, 1))
    table = states(folder.state, '{"v":1,"batch":1}')
    assert table.schema == STATES
    done, late = table.to_pylist()
    assert done["path"] == f"file:{folder.source}/a%20b.json"
    assert done["size"] == 8
    assert [done[name].timestamp() for name in ("discovery_time", "processed_time", "commit_time")] == [95, 100, 100]
    assert abs(done["create_time"].timestamp() - (folder.source / "a b.json").stat().st_mtime) < 0.001
    assert (late["size"], late["commit_time"], late["archive_time"]) == (2, None, None)
    assert len(states(str(folder.root / "nothing"), None)) == 0


def test_a_source_cleans_what_its_options_say(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    keys = {"cleanSource": "move", "cleanSource.retentionDuration": "0 seconds", "cleanSource.moveDestination": str(folder.target)}
    spec = SourceSpec(str(folder.source), {"cloudFiles.format": "json", **{f"cloudFiles.{key}": value for key, value in keys.items()}})
    folder.ingest("a.json", at=100)
    source = AutoLoaderSource.open(spec, state=folder.state)
    assert "no other stream may read this folder" in " ".join(source.notices)
    assert source.clean(None) is None
    found = source.clean('{"v":1,"batch":0}')
    assert found is not None
    assert found.files == 1
    assert folder.there() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14 days", 1209600),
        ("2 weeks", 1209600),
        ("1 month", 31 * 86400),
        ("1 minute", 60),
        ("1 second", 1),
        ("interval 1 day 12 HOURS", 129600),
        ("1 day, 2 minutes and 3 seconds", 86523),
    ],
)
def test_intervals_are_read_as_people_write_them(text: str, expected: int) -> None:
    assert interval_seconds(text) == expected


@pytest.mark.parametrize("text", ["", "days", "5", "5 fortnights", "-1 day", "1 day x"])
def test_other_texts_are_no_intervals(tmp_path: Path, text: str) -> None:
    with pytest.raises(LakeletError, match=r"CF_INVALID_OPTION_VALUE.*retentionDuration must be an interval"):
        options(tmp_path, **{"cleanSource": "DELETE", "cleanSource.retentionDuration": text})


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("CF_INCONSISTENT_OPTIONS.*7 days", {"cleanSource": "DELETE", "cleanSource.retentionDuration": "1 day"}),
        ("CF_INCONSISTENT_OPTIONS.*7 days", {"cleanSource": "DELETE", "cleanSource.retentionDuration": "7 days"}),
        ("CF_INCONSISTENT_OPTIONS.*moveDestination", {"cleanSource": "MOVE"}),
        ("CF_INCONSISTENT_OPTIONS.*under", {"cleanSource": "MOVE", "cleanSource.moveDestination": "{in}/done"}),
        ("CF_INCONSISTENT_OPTIONS.*under", {"cleanSource": "MOVE", "cleanSource.moveDestination": "{in}"}),
        ("CF_CLEAN_SOURCE_ALLOW_OVERWRITES_BOTH_ON", {"cleanSource": "DELETE", "allowOverwrites": "true"}),
        ("CF_INVALID_CLEAN_SOURCE_MODE", {"cleanSource": "DELET"}),
        ("CF_INVALID_OPTION_VALUE.*14 days", {"maxFileAge": "3 days"}),
    ],
)
def test_d13_dangerous_and_contradicting_options_are_refused(tmp_path: Path, code: str, given: dict[str, str]) -> None:
    with pytest.raises(LakeletError, match=code):
        options(tmp_path, **{key: value.replace("{in}", str(tmp_path / "in")) for key, value in given.items()})


def test_options_of_a_cleaning_that_is_off_have_a_notice(tmp_path: Path) -> None:
    found = options(tmp_path, **{"cleanSource.retentionDuration": "1 day"})
    assert found.clean is None
    assert any("retentionDuration" in notice for notice in found.notices)
    assert options(tmp_path, cleanSource="MOVE", **{"cleanSource.moveDestination": str(tmp_path / "inside")}).clean is not None
