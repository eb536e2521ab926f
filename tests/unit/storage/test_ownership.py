"""Who owns a table: which pipeline is which from one update to the next, and what is refused (docs/semantics/storage.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.config.update_config import load_config
from lakelet.language.model import Dataset, Kind
from lakelet.storage.ownership import claimed, recognised, refused
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

ID, OTHER = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("import dlt\n")
    return folder


def load(*sources: str, cwd: Path, storage: Path | None = None):
    return load_config(sources, cwd=cwd, environ={}, storage=str(storage) if storage else None)


def identity(*sources: str, cwd: Path, storage: Path | None = None) -> PipelineIdentity:
    found = load(*sources, cwd=cwd, storage=storage).identity
    assert found is not None
    return found


def table(name: str, owner: str | None = None, *, kind: Kind = Kind.STREAMING_TABLE, active: bool = True) -> StoredDataset:
    return StoredDataset(f"main.default.{name}", kind.value, f"tables/main/default/{name}", owner=owner, active=active)


def registry(*tables: StoredDataset, pipelines: dict[str, PipelineIdentity] | None = None, last: str = "") -> StorageRegistry:
    return StorageRegistry(last, datasets={t.name: t for t in tables}, pipelines=pipelines or {})


def defined(name: str, kind: Kind = Kind.STREAMING_TABLE) -> Dataset:
    return Dataset(TableName("main", "default", name), kind, Location("b.py", 3))


# ------------------------------------------------------------------------------------------------------- the same pipeline or another


BUNDLE = """\
bundle:
  name: shop
resources:
  pipelines:
    bronze:
      name: shop bronze ${bundle.target}
      libraries: [{glob: {include: bronze/*}}]
    gold:
      name: shop gold
      libraries: [{glob: {include: gold/*}}]
"""


def test_pipelines_of_one_bundle_differ_by_their_keys_and_stay_the_same_wherever_the_checkout_lies(tmp_path):
    for checkout in ("one", "two"):
        write(tmp_path / checkout, "bronze/a.py", "bronze/b.py", "gold/c.py")
        (tmp_path / checkout / "databricks.yml").write_text(BUNDLE)
    bronze, gold = (identity(key, cwd=tmp_path / "one") for key in ("bronze", "gold"))
    assert not bronze.is_same(gold)
    assert bronze.is_same(identity("bronze", cwd=tmp_path / "two"))
    assert bronze.is_same(identity("bronze/a.py", cwd=tmp_path / "one"))
    assert load("bronze/a.py", cwd=tmp_path / "one").partial
    assert not load("bronze/a.py", "bronze/b.py", cwd=tmp_path / "one").partial


def test_single_files_are_pipelines_of_their_own(tmp_path):
    write(tmp_path, "a.py", "b.py", "deep/a.py")
    a, b, deep = (identity(name, cwd=tmp_path) for name in ("a.py", "b.py", "deep/a.py"))
    assert not a.is_same(b)
    assert not a.is_same(deep), "the same name in two folders"
    assert identity("a.py", cwd=tmp_path / "deep", storage=tmp_path / ".lakelet").is_same(deep), "named from another folder"


def test_a_file_and_its_folder_are_the_same_pipeline(tmp_path):
    write(tmp_path, "p/a.py", "p/b.py")
    alone, folder = identity("p/a.py", cwd=tmp_path), identity("p", cwd=tmp_path)
    assert alone.is_same(folder)
    assert folder.is_same(alone)
    assert alone.is_part_of(folder)
    assert not folder.is_part_of(alone)
    (tmp_path / "p/b.py").unlink()
    assert not identity("p", cwd=tmp_path).is_part_of(folder), "a file is gone: the whole folder is smaller now"


def test_a_moved_or_copied_project_is_the_same_pipeline(tmp_path):
    before = identity("a.py", cwd=write(tmp_path / "old", "a.py"))
    apart = identity("a.py", cwd=tmp_path / "old", storage=tmp_path / "far" / "storage")
    copied = identity("a.py", cwd=write(tmp_path / "copy" / "deep", "a.py"))
    assert before.is_same(copied), "the storage was copied along"
    other = identity("a.py", cwd=tmp_path / "copy" / "deep", storage=tmp_path / "far" / "storage")
    assert not apart.is_same(other), "two files that both exist"
    (tmp_path / "old" / "a.py").unlink()
    assert apart.is_same(other), "the recorded file is gone from where it was"


def test_a_renamed_project_whose_storage_lies_elsewhere_is_the_same_pipeline(tmp_path):
    storage = tmp_path / "far" / "storage"
    before = identity(cwd=write(tmp_path / "old", "a.py", "deep/b.py"), storage=storage)
    copied = identity(cwd=write(tmp_path / "copy", "a.py", "deep/b.py"), storage=storage)
    other = identity(cwd=write(tmp_path / "other", "a.py"), storage=storage)
    assert before.name != copied.name
    assert not before.is_same(copied), "both exist"
    (tmp_path / "old").rename(tmp_path / "gone")
    assert before.is_same(copied), "only one of them does"
    assert not before.is_same(other), "its files are others"


def test_a_bundle_that_is_added_to_a_project_goes_on_with_its_tables(tmp_path):
    write(tmp_path, "bronze/a.py", "gold/c.py")
    before = identity("bronze", cwd=tmp_path)
    (tmp_path / "databricks.yml").write_text(BUNDLE)
    assert before.is_same(identity("bronze", cwd=tmp_path))
    assert not before.is_same(identity("gold", cwd=tmp_path))


# ------------------------------------------------------------------------------------------------------------------ tables and owners


def files(name: str, *, root: str = "/gone") -> PipelineIdentity:
    return PipelineIdentity(name, root=root, beside="..", files=(f"{name}.py",))


def test_a_table_of_another_pipeline_is_refused_by_name_with_a_way_out():
    known = registry(table("raw", ID), table("sent", ID, kind=Kind.SINK), pipelines={ID: files("a")})
    owner = recognised(known, files("b"), OTHER)
    (error,) = refused(known, owner, [defined("raw"), defined("fresh"), defined("sent"), defined("sent", Kind.SINK)])
    assert error.code == "TABLE_OWNED"
    assert error.dataset == "main.default.raw"
    assert "'a' (/gone/a.py)" in error.what
    assert "'b' (/gone/b.py)" in error.what
    assert "--take-over a" in (error.todo or "")
    assert str(error.where) == "b.py, line 3"
    assert refused(known, owner, [defined("raw", Kind.VIEW)]) == [], "a view inside of the pipeline stores nothing"
    assert refused(known, recognised(known, files("a"), OTHER), [defined("raw")]) == []


def test_a_renamed_file_takes_its_tables_over_and_may_say_so_again():
    known = registry(table("raw", ID), pipelines={ID: files("a")})
    owner = recognised(known, files("b"), OTHER, ["a"])
    assert refused(known, owner, [defined("raw")]) == []
    after = claimed(known, owner, ["main.default.raw"])
    assert after.datasets["main.default.raw"].owner == OTHER
    assert list(after.pipelines) == [OTHER]
    again = recognised(after, files("b"), ID, ["a"])
    assert again.id == OTHER
    assert [e.code for e in refused(after, recognised(after, files("a"), ID), [defined("raw")])] == ["TABLE_OWNED"]
    with pytest.raises(LakeletError, match="no other pipeline of that name") as caught:
        recognised(after, files("c"), ID, ["bb"])
    assert caught.value.code == "USAGE"
    assert caught.value.nearest == ("b",)


def test_a_table_without_an_owner_belongs_to_the_first_pipeline_that_defines_it():
    old = registry(table("raw"), table("elsewhere", active=False))
    assert refused(old, recognised(old, files("b"), OTHER), [defined("raw")]) == []
    after = claimed(old, recognised(old, files("a"), ID), ["main.default.raw"])
    assert {key.rsplit(".")[-1]: d.owner for key, d in after.datasets.items()} == {"raw": ID, "elsewhere": None}
    other = recognised(after, files("b"), OTHER)
    assert [e.dataset for e in refused(after, other, [defined("raw"), defined("elsewhere")])] == ["main.default.raw"]
    assert claimed(after, other, ["main.default.elsewhere"]).datasets["main.default.elsewhere"].owner == OTHER


def test_two_pipelines_of_one_name_have_two_ids_and_each_keeps_its_own():
    first = claimed(registry(), recognised(registry(), files("a", root="/x"), ID), [])
    second = replace(files("a", root="/x/deep"), beside="../deep")
    # Neither file exists, so a name alone would make them one: the second is recorded beside a first that does.
    known = replace(first, pipelines={ID: PipelineIdentity("a", root=str(Path(__file__).parent), files=(Path(__file__).name,))})
    owner = recognised(known, second, ID)
    assert owner.id != ID
    assert recognised(claimed(known, owner, []), second, ID).id == owner.id


def test_a_part_of_a_pipeline_does_not_shrink_what_is_recorded_of_it(tmp_path):
    write(tmp_path, "p/a.py", "p/b.py")
    whole = claimed(registry(), recognised(registry(), identity("p", cwd=tmp_path), ID), [])
    part = recognised(whole, identity("p/a.py", cwd=tmp_path), ID)
    assert part.partial
    assert claimed(whole, part, []).pipelines == whole.pipelines


def test_the_registry_keeps_pipelines_and_owners():
    known = registry(
        table("raw", ID), pipelines={ID: files("a"), OTHER: PipelineIdentity("gold", "shop", "/shop", "..", formerly=("old",))}
    )
    assert StorageRegistry.from_json(known.to_json(), source="here") == known


def test_flows_of_one_name_into_two_tables_do_not_share_what_is_known_of_them(tmp_path):
    """Two pipelines: a reset of the checkpoint in one must not make the other read its sources again."""
    storage = Storage(tmp_path)
    storage.save(registry(table("a"), table("b")))
    for target in ("main.default.a", "main.default.b"):
        storage.note_flow(replace(storage.registry().flow(target, "load"), resets=1))
    storage.note_flow(replace(storage.registry().flow("main.default.a", "load"), resets=2))
    assert storage.reset_id("main.default.a", "Load") == "0r2"
    assert storage.reset_id("main.default.b", "load") == "0r1"
    storage.save(storage.registry())
    assert Storage(tmp_path).reset_id("main.default.a", "load") == "0r2"
