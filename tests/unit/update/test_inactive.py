"""Tables without a definition: who ceases, who comes back, what a drop leaves when it is interrupted."""

from __future__ import annotations

import pytest

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.language.model import Kind
from lakelet.plan.graph import Graph, GraphNode
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from lakelet.update import resets


def node(name, kind=Kind.STREAMING_TABLE, external=()):
    return GraphNode(TableName("c", "s", name), kind, (), external, (), (), (), Location("p.py", 1))


def stored(name, **more):
    return StoredDataset(f"c.s.{name}", more.pop("kind", "streaming_table"), f"tables/c/s/{name}", **more)


def registry(*datasets):
    return {d.name: d for d in datasets}


DROP = {"Pipelines.DropInactiveTables": "TRUE"}


def test_definitions_that_go_and_come_back_are_told_once():
    before = registry(stored("a"), stored("b"), stored("c", active=False), stored("d", active=False), stored("v"))
    found = resets.compare_activity(before, Graph((node("a"), node("c"), node("v", Kind.VIEW))), {})
    assert {d.name: d.active for d in found.datasets.values()} == {
        "c.s.a": True, "c.s.b": False, "c.s.c": True, "c.s.d": False, "c.s.v": False,
    }  # fmt: skip
    assert (found.ceased, found.back, found.drop) == (("c.s.b", "c.s.v"), ("c.s.c",), ())
    assert [level for _, _, level in resets.activity_notices(found)] == ["WARN", "WARN", "INFO"]


def test_what_is_read_by_name_and_what_a_sink_wrote_is_not_dropped():
    before = registry(stored("read"), stored("unread"), stored("sent", kind="sink"))
    found = resets.compare_activity(before, Graph((node("a", external=("C.s.Read", "elsewhere")),)), DROP)
    assert found.drop == ("c.s.unread",)


def test_a_quarantine_that_was_switched_off_is_dropped_with_its_dataset_only():
    own = [stored(f"{name}_quarantine", quarantine_of=f"c.s.{name}") for name in ("on", "off", "gone")]
    before = registry(*(stored(name) for name in ("on", "off", "gone")), *own)
    graph, kept = Graph((node("on"), node("off"))), frozenset({"c.s.on_quarantine"})
    found = resets.compare_activity(before, graph, {}, quarantines=kept)
    assert (found.ceased, found.drop) == (("c.s.gone", "c.s.off_quarantine", "c.s.gone_quarantine"), ())
    texts = {name: text for name, text, _ in resets.activity_notices(found)}
    assert texts["c.s.off_quarantine"].startswith("c.s.off_quarantine: no rows are kept there any more")
    found = resets.compare_activity(before, graph, DROP, quarantines=kept)
    assert found.drop == ("c.s.gone", "c.s.gone_quarantine")


def test_a_drop_that_was_interrupted_is_finished_by_the_next_one_and_never_gives_old_rows_back(tmp_path, monkeypatch):
    storage = Storage(tmp_path)
    entry = stored("t", epoch=3, columns="{}")
    storage.save(StorageRegistry(datasets=registry(entry, stored("other"))))
    folders = [tmp_path / entry.path, *storage.flow_folders(TableName("c", "s", "t"))]
    for folder in folders:
        (folder / "deep").mkdir(parents=True)
    remove = resets.remove_tree
    calls = []

    def dies(folder):
        calls.append(folder)
        if len(calls) == 2:
            raise KeyboardInterrupt
        remove(folder)

    monkeypatch.setattr(resets, "remove_tree", dies)
    with pytest.raises(KeyboardInterrupt):
        resets.drop_inactive(storage, storage.registry(), ["c.s.t"])
    left = Storage(tmp_path).registry().datasets["c.s.t"]
    assert (left.epoch, left.columns) == (4, None)

    monkeypatch.setattr(resets, "remove_tree", remove)
    kept = resets.drop_inactive(storage, storage.reload(), ["c.s.t"])
    assert list(kept.datasets) == list(Storage(tmp_path).registry().datasets) == ["c.s.other"]
    assert not any(folder.exists() for folder in folders)
