"""What publishing does with real Delta tables in a catalog that is a dictionary (PB-1 to PB-7)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base.errors import LakeletError
from lakelet.files.paths import any_path
from lakelet.language.model import Kind
from lakelet.storage.base_storage import BaseStorage, save_base
from lakelet.storage.catalogs.client import CatalogAddress, CatalogEntry
from lakelet.storage.catalogs.hive import hive_type
from lakelet.storage.catalogs.published_tables import PublishedTable
from lakelet.storage.catalogs.publishing import publish, publish_stored
from lakelet.storage.root import Storage, StoredDataset


@dataclass
class Entries:
    """A catalog. `refusing`: names that it refuses; `away`: it does not answer."""

    entries: dict[str, CatalogEntry] = field(default_factory=dict)
    refusing: set[str] = field(default_factory=set)
    away: bool = False
    connections: int = 0

    def entry(self, table: PublishedTable) -> CatalogEntry:
        columns = tuple((column.name, str(column.type), column.comment) for column in table.columns)
        return CatalogEntry(f"{table.name.schema}.{table.name.name}".lower(), str(table.location), columns, table.comment, table.owner)

    def find(self, name: str) -> CatalogEntry | None:
        return self.entries.get(name)

    def create(self, table: PublishedTable) -> None:
        entry = self.entry(table)
        if entry.name in self.refusing:
            raise LakeletError("PUBLISH_FAILED", "the catalog refused the table")
        self.entries[entry.name] = entry

    def update(self, table: PublishedTable) -> None:
        self.create(table)

    def remove(self, name: str) -> None:
        if name in self.refusing:
            raise LakeletError("PUBLISH_FAILED", "the catalog refused the table")
        del self.entries[name]

    @contextmanager
    def connect(self) -> Iterator[Entries]:
        if self.away:
            raise LakeletError("CATALOG_UNREACHABLE", "the catalog does not answer")
        self.connections += 1
        yield self


class Stored:
    """A storage with tables, and a catalog."""

    def __init__(self, folder: Path) -> None:
        self.storage, self.catalog = Storage(any_path(folder)), Entries()

    def table(self, name: str, *, rows: int = 1, columns: str = "id", comment: str = "", **stored: object) -> Stored:
        """Add a table, or write it again with other columns."""
        path = f"tables/{name.replace('.', '/')}"
        data = pa.table({column: list(range(rows)) for column in columns.split()})
        write_deltalake(str(self.storage.root / path), data, mode="overwrite", schema_mode="overwrite", description=comment)
        self.storage.remember(StoredDataset(name, Kind.STREAMING_TABLE, path, **{"owner": "me", **stored}))  # type: ignore[arg-type]
        return self

    def change(self, name: str, **changes: object) -> None:
        self.storage.remember(replace(self.storage.registry().datasets[name], **changes))  # type: ignore[arg-type]

    def publish(self, *owners: str, every: bool = False, remove_all: bool = False) -> list[tuple[str, str]]:
        address = CatalogAddress("hive", "thrift://here:9083", self.catalog.connect)
        found = publish(self.storage, address, owners=owners or None, every=every, remove_all=remove_all)
        return [(result.name, result.error.code if result.error else result.action.value) for result in found]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


def test_only_tables_that_the_code_defines_and_that_are_written_are_published(stored: Stored) -> None:
    stored.table("main.sales.orders").table("main.sales.hidden", private=True).table("main.sales.old", active=False)
    stored.table("main.sales.held", quarantine_of="main.sales.orders").table("main.sales.sent")
    stored.change("main.sales.sent", kind=Kind.SINK)
    stored.storage.remember(StoredDataset("main.sales.new", Kind.MATERIALIZED_VIEW, "tables/main/sales/new", owner="me"))
    assert stored.publish() == [("main.sales.orders", "created")]
    assert stored.catalog.entries["sales.orders"].owner == "me"


def test_what_did_not_change_is_not_asked_about_unless_every_table_is(stored: Stored) -> None:
    stored.table("main.sales.orders", comment="One row for each order")
    assert stored.publish() == [("main.sales.orders", "created")]
    assert (stored.publish(), stored.catalog.connections) == ([], 1)
    record = stored.storage.system / "published.json"
    before = record.stat().st_mtime_ns
    assert stored.publish(every=True) == [("main.sales.orders", "unchanged")]
    assert record.stat().st_mtime_ns == before  # an update with nothing to do compares it
    stored.catalog.entries.clear()
    assert (stored.publish(), stored.publish(every=True)) == ([], [("main.sales.orders", "created")])


def test_new_rows_are_no_change_and_new_columns_and_comments_are(stored: Stored) -> None:
    stored.table("main.sales.orders").publish()
    stored.table("main.sales.orders", rows=5)
    assert stored.publish() == []
    stored.table("main.sales.orders", columns="id number")
    assert stored.publish() == [("main.sales.orders", "updated")]
    assert [name for name, _, _ in stored.catalog.entries["sales.orders"].columns] == ["id", "number"]


@pytest.mark.parametrize("owner", [None, "another"])
def test_what_somebody_else_registered_stays_until_it_is_gone(stored: Stored, owner: str | None) -> None:
    theirs = CatalogEntry("sales.orders", "/theirs", (), "", owner)
    stored.catalog.entries["sales.orders"] = theirs
    stored.table("main.sales.orders").table("main.sales.totals")
    assert stored.publish() == [("main.sales.orders", "PUBLISH_REFUSED"), ("main.sales.totals", "created")]
    assert stored.publish() == [("main.sales.orders", "PUBLISH_REFUSED")]
    stored.change("main.sales.orders", active=False)
    assert (stored.publish(), stored.catalog.entries["sales.orders"]) == ([], theirs)
    stored.change("main.sales.orders", active=True)
    del stored.catalog.entries["sales.orders"]
    assert stored.publish() == [("main.sales.orders", "created")]


def test_a_dataset_that_is_gone_is_removed_unless_its_entry_is_anothers_now(stored: Stored) -> None:
    stored.table("main.sales.orders").table("main.sales.totals").publish()
    for name in ("main.sales.orders", "main.sales.totals"):
        stored.change(name, active=False)
    theirs = stored.catalog.entries["sales.totals"] = replace(stored.catalog.entries["sales.totals"], owner="another")
    assert stored.publish() == [("main.sales.orders", "removed")]
    assert stored.catalog.entries == {"sales.totals": theirs}
    assert stored.publish(every=True) == []


def test_a_table_that_another_pipeline_takes_over_gets_its_owner(stored: Stored) -> None:
    stored.table("main.sales.orders").publish("me")
    stored.change("main.sales.orders", owner="new")
    assert stored.publish("new", "me") == [("main.sales.orders", "updated")]
    assert stored.catalog.entries["sales.orders"].owner == "new"


def test_an_update_leaves_the_tables_of_other_pipelines_alone(stored: Stored) -> None:
    stored.table("main.sales.orders").table("main.sales.theirs", owner="other").publish()
    stored.change("main.sales.theirs", active=False)
    assert stored.publish("me") == []
    assert stored.publish("other") == [("main.sales.theirs", "removed")]


def test_of_two_tables_with_one_name_the_first_has_it_also_when_the_second_goes(stored: Stored) -> None:
    stored.table("a.sales.t").table("b.sales.t")
    assert stored.publish() == [("a.sales.t", "created"), ("b.sales.t", "PUBLISH_REFUSED")]
    stored.change("b.sales.t", active=False)
    assert stored.publish() == []
    assert stored.catalog.entries["sales.t"].location.endswith("/a/sales/t")


def test_a_table_that_has_its_name_keeps_it_when_another_comes_before_it(stored: Stored) -> None:
    stored.table("b.sales.t").publish()
    stored.table("a.sales.t")
    assert stored.publish() == [("a.sales.t", "PUBLISH_REFUSED")]
    assert stored.publish(every=True) == [("a.sales.t", "PUBLISH_REFUSED"), ("b.sales.t", "unchanged")]
    assert stored.catalog.entries["sales.t"].location.endswith("/b/sales/t")


def test_a_table_that_was_taken_over_and_refused_is_tried_again(stored: Stored) -> None:
    stored.table("main.sales.orders").publish("me")
    stored.change("main.sales.orders", owner="new")
    stored.catalog.refusing = {"sales.orders"}
    assert stored.publish("new", "me") == [("main.sales.orders", "PUBLISH_FAILED")]
    stored.catalog.refusing = set()
    assert stored.publish("new", "me") == [("main.sales.orders", "updated")]


def test_a_copy_of_a_storage_takes_no_names_and_a_storage_that_moved_does(tmp_path: Path) -> None:
    first = Stored(tmp_path / "a storage").table("main.sales.orders").table("main.sales.totals")
    assert [action for _, action in first.publish()] == ["created", "created"]
    shutil.copytree(tmp_path / "a storage", tmp_path / "copy")
    copy = Stored(tmp_path / "copy")
    copy.catalog = first.catalog
    before = dict(first.catalog.entries)
    copy.change("main.sales.totals", active=False)
    assert copy.publish() == [("main.sales.orders", "PUBLISH_REFUSED")]
    assert (copy.publish(remove_all=True), first.catalog.entries) == ([], before)
    (tmp_path / "a storage").rename(tmp_path / "moved")
    moved = Stored(tmp_path / "moved")
    moved.catalog = first.catalog
    assert moved.publish() == [("main.sales.orders", "updated"), ("main.sales.totals", "updated")]


def test_an_environment_is_not_published_by_its_folder(stored: Stored, tmp_path: Path) -> None:
    stored.table("main.sales.orders")
    environment = Storage(any_path(tmp_path / "environments" / "try"))
    save_base(environment.root, BaseStorage(str(tmp_path), "2026-01-01", None, {}))
    with pytest.raises(LakeletError, match="lakelet env promote try"):
        publish_stored(environment.root, {"hive": "thrift://127.0.0.1:1"}, pytest.fail)
    assert stored.catalog.entries == {}


@pytest.mark.parametrize("address", ["thrift://a..b:9083", "thrift://127.0.0.1:99999", "http://a..b", "http://127.0.0.1:99999"])
def test_an_address_of_no_machine_is_a_catalog_that_does_not_answer(stored: Stored, address: str) -> None:
    kind = "hive" if address.startswith("thrift") else "uc"
    _, errors = publish_stored(stored.table("main.sales.orders").storage.root, {kind: address}, pytest.fail)
    assert [error.code for error in errors] == ["CATALOG_UNREACHABLE"]


def test_a_table_that_is_refused_is_tried_again_and_the_others_go_on(stored: Stored) -> None:
    stored.table("main.sales.orders").table("main.sales.totals")
    stored.catalog.refusing = {"sales.orders"}
    assert stored.publish() == [("main.sales.orders", "PUBLISH_FAILED"), ("main.sales.totals", "created")]
    stored.catalog.refusing = set()
    assert stored.publish() == [("main.sales.orders", "created")]
    stored.catalog.refusing = {"sales.orders"}
    stored.change("main.sales.orders", active=False)
    assert stored.publish() == [("main.sales.orders", "PUBLISH_FAILED")]
    stored.catalog.refusing = set()
    assert stored.publish() == [("main.sales.orders", "removed")]


def test_a_catalog_that_does_not_answer_gets_everything_later(stored: Stored) -> None:
    stored.table("main.sales.orders")
    stored.catalog.away = True
    with pytest.raises(LakeletError, match="CATALOG_UNREACHABLE"):
        stored.publish()
    stored.catalog.away = False
    assert stored.publish() == [("main.sales.orders", "created")]


def test_all_that_was_published_can_be_removed(stored: Stored) -> None:
    stored.table("main.sales.orders").table("main.sales.totals").publish()
    assert stored.publish(remove_all=True) == [("main.sales.orders", "removed"), ("main.sales.totals", "removed")]
    assert stored.catalog.entries == {}
    assert (stored.publish(remove_all=True), stored.publish()[0]) == ([], ("main.sales.orders", "created"))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("long", "bigint"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("timestamp_ntz", "timestamp"),
        ("variant", "string"),
        ({"type": "array", "elementType": "integer", "containsNull": True}, "array<int>"),
        ({"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}, "string"),
        ({"type": "struct", "fields": [{"name": "a", "type": "date"}, {"name": "b", "type": "short"}]}, "struct<a:date,b:smallint>"),
        ({"type": "struct", "fields": [{"name": "a b", "type": "date"}]}, "string"),
    ],
)
def test_types_are_those_of_hive_or_string(kind: object, expected: str) -> None:
    assert hive_type(kind) == expected
