"""Files of the storage that are empty, cut off or cannot be written (docs/semantics/storage.md, ST-6 to ST-9)."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.cli.main import main
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.files.durable import before, write_atomically
from lakelet.storage.eventlog import writer
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.reading import logged
from lakelet.storage.published_views import PublishedView, load_views, save_views
from lakelet.storage.root import LastUpdate, Storage, StorageRegistry, StoredDataset
from tests.disks import small_disk

__all__ = ["small_disk"]

UPDATE = "00000000-0000-0000-0000-00000000000a"
PIPELINES = {"p": PipelineIdentity("shop", "shop")}
TABLE = StoredDataset("main.default.t", "streaming_table", "tables/main/default/t", owner="p", epoch=1)


def registry(**more) -> StorageRegistry:
    return StorageRegistry("p", datasets={TABLE.name: TABLE}, pipelines=PIPELINES, **more)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """A storage with one table, whose registry was stored twice."""
    made = Storage(tmp_path)
    made.save(registry())
    made.save(registry(last_update=LastUpdate(UPDATE, "2026-01-01T00:00:00", clean=True)))
    table_log(tmp_path)
    return made


def table_log(root: Path, *configurations: dict[str, str]) -> None:
    log = root / TABLE.path / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for version, configuration in enumerate(configurations or [{}]):
        (log / f"{version:020d}.json").write_text(json.dumps({"metaData": {"configuration": configuration}}) + "\n")


DAMAGES: dict[str, Callable[[str], bytes]] = {
    "empty": lambda text: b"",
    "blank": lambda text: b"\0" * len(text),
    "cut": lambda text: text[: len(text) // 2].encode(),
    "no_object": lambda text: b"null",
    "binary": lambda text: b"\xff\xfe" + text.encode(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_registry_is_replaced_by_the_one_before(storage, damage):
    file = storage.registry_file
    file.write_bytes(DAMAGES[damage](file.read_text()))
    opened = Storage(storage.root)
    assert opened.registry() == registry()
    assert str(file) in (opened.recovered or "")
    opened.save(registry())
    assert opened.recovered is None
    assert Storage(storage.root).registry() == registry()
    assert StorageRegistry.from_json(before(file).read_text(), source="kept") == registry(), (
        "what is kept was not replaced by the damaged file"
    )


def test_a_table_that_was_reset_after_the_kept_registry_does_not_go_back_to_old_checkpoints(storage):
    table_log(storage.root, {"lakelet.epoch": "1"}, {"lakelet.epoch": "2"})
    storage.registry_file.write_text("")
    assert Storage(storage.root).registry().datasets[TABLE.name].epoch == 2


@pytest.mark.parametrize("command", [["show"], ["events"]])
def test_without_a_kept_registry_every_command_says_what_to_do(storage, capsys, command):
    storage.registry_file.write_text("")
    before(storage.registry_file).write_text("{")
    assert main([*command, "--storage", str(storage.root)]) == (ExitCode.ENVIRONMENT if command == ["show"] else 0)
    told = capsys.readouterr().err
    if command == ["show"]:
        assert "[STORAGE_DAMAGED]" in told
        assert "it is empty" in told
        assert "from a backup" in told


def test_a_first_update_that_died_with_its_registry_unwritten_leaves_a_storage_that_opens(tmp_path):
    (tmp_path / "system").mkdir()
    (tmp_path / "system/registry.json").write_text("")
    assert Storage(tmp_path).registry() == StorageRegistry()


def test_published_views_that_are_cut_off_are_written_again(storage):
    view = PublishedView("main.default.v", "SELECT 1", "main", "default")
    save_views(storage, [view], owner="p")
    (storage.system / "views.json").write_text('{"main.def')
    assert load_views(storage) == {}
    save_views(storage, [view], owner="p")
    assert list(load_views(storage)) == ["main.default.v"]


def test_published_views_of_another_format_are_refused(storage):
    save_views(storage, [PublishedView("main.default.v", "SELECT 1", "main", "default")], owner="p")
    file = storage.system / "views.json"
    file.write_text(file.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(LakeletError, match=r"FORMAT_UNKNOWN.*views\.json has format 2; this Lakelet reads format 1"):
        load_views(storage)


# ------------------------------------------------------------------------------------------------------------ a disk that takes nothing


def event(number: int) -> Event:
    return Event("notice", "m", Origin("p", "shop", UPDATE), {"notice": {"text": f"{number} " * 2000}})


@pytest.mark.parametrize(("spoil", "told"), [("fill", "no space is left"), ("seal", "it is read-only")])
def test_a_storage_that_cannot_be_written_is_named_keeps_what_it_has_and_goes_on_afterwards(small_disk, spoil, told, capfd):
    storage = Storage(small_disk.folder / "storage")
    storage.save(registry())
    writer.append(storage.events, [event(1)])
    getattr(small_disk, spoil)()

    def lease():
        with storage.lease(UPDATE):
            pass

    written = registry(namespace=storage.registry().namespace, last_update=LastUpdate(UPDATE, "x" * 8192, clean=False))
    for attempt in (lease, lambda: storage.save(written), lambda: writer.append(storage.events, [event(2)] * 100)):
        with pytest.raises(LakeletError, match=told) as caught:
            attempt()
        assert caught.value.code == "STORAGE_FAILED"
        assert caught.value.exit_code == ExitCode.ENVIRONMENT
        assert "run the update again" in (caught.value.todo or "")
    assert Storage(storage.root).registry() == registry()
    assert logged(storage.events, UPDATE).sequence == 0
    assert len(logged(storage.events, UPDATE).ids) == 1
    assert "panicked" not in capfd.readouterr().err

    small_disk.repair()
    lease()
    storage.save(written)
    writer.append(storage.events, [event(3)])
    assert Storage(storage.root).registry() == written
    assert len(logged(storage.events, UPDATE).ids) == 2
    assert not [f for f in storage.root.rglob(".*") if f.is_file()], "temporary files are left"


@pytest.mark.parametrize("kind", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN])
def test_a_disk_that_refuses_a_write_is_named_and_files_stay_as_they_were(storage, monkeypatch, kind):
    writer.append(storage.events, [event(1)])
    stored = storage.registry()

    def refused(handle):
        raise OSError(kind, os.strerror(kind))

    def lease():
        with storage.lease(UPDATE):
            pass

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refused)
        for attempt in (lease, lambda: storage.save(registry()), lambda: writer.append(storage.events, [event(2)])):
            with pytest.raises(LakeletError) as caught:
                attempt()
            assert (caught.value.code, caught.value.exit_code) == ("STORAGE_FAILED", ExitCode.ENVIRONMENT)
    assert Storage(storage.root).registry() == stored
    assert len(logged(storage.events, UPDATE).ids) == 1
    assert not [f for f in storage.root.rglob(".*") if f.is_file()], "temporary files are left"


def test_a_storage_folder_that_does_not_exist_is_an_empty_storage(storage):
    shutil.rmtree(storage.root)
    assert Storage(storage.root).registry() == StorageRegistry()
    storage.save(registry())
    assert Storage(storage.root).registry() == registry()


def test_a_writer_that_meets_a_full_disk_says_so_at_its_end(small_disk):
    log = writer.EventWriter(small_disk.folder / "events", interval=0.01)
    log.start()
    small_disk.fill()
    log.emit(event(1))
    with pytest.raises(LakeletError, match="no space is left"):
        log.close()


def test_a_file_that_is_replaced_was_on_the_disk_before_it_got_its_name(tmp_path, monkeypatch):
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, name=name: (calls.append(name), real(*a))[1])
    write_atomically(tmp_path / "file", "text")
    assert calls == ["fsync", "replace", "fsync"], "the content, then the name, then the folder"
