"""Tables in Unity Catalog over HTTP: a double of its open server, Delta tables in, read by name with REST and delta-rs (PB-10 to PB-12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import ArrayType, PrimitiveType

from lakelet.base.errors import LakeletError
from lakelet.files.paths import any_path
from lakelet.language.model import Kind
from lakelet.storage.catalogs.publishing import catalogs, publish, publish_stored
from lakelet.storage.catalogs.unity import TOKEN, unity_catalog
from lakelet.storage.root import Storage, StoredDataset
from tests.unity import UnityServer, unity_server


def no_spark() -> None:
    raise AssertionError("no session is needed")


@pytest.fixture
def unity() -> Iterator[UnityServer]:
    with unity_server() as running:
        yield running


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """A storage with the table main.sales.orders, in a folder whose name has a blank."""
    made = Storage(any_path(tmp_path / "a storage"))
    place = str(made.root / "tables/main/sales/orders")
    columns = [
        Field("id", PrimitiveType("long"), nullable=False, metadata={"comment": "of the shop"}),
        Field("price", PrimitiveType("decimal(10,2)")),
        Field("tags", ArrayType(PrimitiveType("string"), contains_null=True)),
    ]
    DeltaTable.create(place, Schema(columns), description="One row for each order")
    made.remember(StoredDataset("main.sales.orders", Kind.STREAMING_TABLE, "tables/main/sales/orders", owner="me"))
    return made


def published(storage: Storage, unity: UnityServer, *, every: bool = False) -> list[tuple[str, str]]:
    (catalog,) = catalogs({"uc": unity.address}, no_spark)  # type: ignore[arg-type]
    found = publish(storage, catalog, every=every)
    return [(result.name, result.error.code if result.error else result.action.value) for result in found]


def test_a_table_has_its_three_part_name_columns_comments_owner_and_location(storage: Storage, unity: UnityServer) -> None:
    assert published(storage, unity) == [("main.sales.orders", "created")]
    table = unity.tables["main.sales.orders"]
    assert (table["table_type"], table["data_source_format"], table["comment"]) == ("EXTERNAL", "DELTA", "One row for each order")
    assert table["properties"] == {"lakelet.pipeline_id": "me"}
    assert [(c["name"], c["type_text"], c["type_name"], c["nullable"], c.get("comment")) for c in table["columns"]] == [
        ("id", "bigint", "LONG", False, "of the shop"),
        ("price", "decimal(10,2)", "DECIMAL", True, None),
        ("tags", "array<string>", "ARRAY", True, None),
    ]
    assert (table["columns"][1]["type_precision"], table["columns"][1]["type_scale"]) == (10, 2)
    assert json.loads(table["columns"][0]["type_json"]) == {"name": "id", "type": "long", "nullable": False, "metadata": {}}


def test_delta_rs_reads_the_table_that_the_server_finds_by_name(storage: Storage, unity: UnityServer) -> None:
    place = str(storage.root / "tables/main/sales/orders")
    rows = pa.table({"id": pa.array([7], pa.int64()), "price": pa.array([None], pa.decimal128(10, 2)), "tags": [["new"]]})
    write_deltalake(place, rows, mode="append")
    published(storage, unity)
    with urlopen(f"{unity.address}/api/2.1/unity-catalog/tables/main.sales.orders") as answer:
        found = json.load(answer)
    assert DeltaTable(found["storage_location"]).to_pyarrow_table().to_pylist() == [{"id": 7, "price": None, "tags": ["new"]}]


def test_publishing_again_changes_nothing_and_a_new_column_is_registered(storage: Storage, unity: UnityServer) -> None:
    published(storage, unity)
    before = dict(unity.tables)
    assert (published(storage, unity), published(storage, unity, every=True)) == ([], [("main.sales.orders", "unchanged")])
    assert unity.tables == before
    DeltaTable(str(storage.root / "tables/main/sales/orders")).alter.add_columns([Field("note", PrimitiveType("string"))])
    assert published(storage, unity) == [("main.sales.orders", "updated")]
    assert [column["name"] for column in unity.tables["main.sales.orders"]["columns"]] == ["id", "price", "tags", "note"]


def test_a_table_whose_new_form_is_refused_keeps_the_one_that_it_had(storage: Storage, unity: UnityServer) -> None:
    published(storage, unity)
    before = unity.tables["main.sales.orders"]
    unity.refused = "INT"
    place = str(storage.at("tables/main/sales/orders"))
    DeltaTable(place).alter.add_columns([Field("discount", PrimitiveType("integer"))])
    assert published(storage, unity) == [("main.sales.orders", "PUBLISH_FAILED")]
    kept = unity.tables["main.sales.orders"]
    assert sorted(c["name"] for c in kept["columns"]) == ["id", "price", "tags"]
    assert (kept["properties"], kept["comment"]) == (before["properties"], before["comment"])
    unity.refused = None
    assert published(storage, unity) == [("main.sales.orders", "updated")]


def test_a_table_of_somebody_else_stays(storage: Storage, unity: UnityServer) -> None:
    published(storage, unity)
    theirs = unity.tables["main.sales.orders"] = {**unity.tables["main.sales.orders"], "properties": {}}
    assert published(storage, unity, every=True) == [("main.sales.orders", "PUBLISH_REFUSED")]
    assert unity.tables["main.sales.orders"] == theirs


def test_what_was_published_is_removed_and_its_files_stay(storage: Storage, unity: UnityServer) -> None:
    published(storage, unity)
    found, errors = publish_stored(storage.root, {"uc": unity.address}, no_spark, remove_all=True)  # type: ignore[arg-type]
    assert ([result.action.value for result in found], errors, unity.tables) == (["removed"], [], {})
    assert DeltaTable(str(storage.root / "tables/main/sales/orders")).version() == 0


def test_a_catalog_that_does_not_answer_does_not_stop_the_other_one(storage: Storage, unity: UnityServer) -> None:
    both = {"hive": "thrift://127.0.0.1:1", "uc": unity.address}
    found, errors = publish_stored(storage.root, both, no_spark)  # type: ignore[arg-type]
    assert [error.code for error in errors] == ["CATALOG_UNREACHABLE"]
    assert [(result.catalog, result.action.value) for result in found] == [("uc", "created")]


SECRET = "uc-token-8d1f2c"


def test_a_token_goes_to_the_server_and_nowhere_else(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with unity_server(SECRET) as unity, unity_server() as another:
        monkeypatch.setenv(TOKEN, SECRET)
        assert published(storage, unity) == [("main.sales.orders", "created")]
        unity.redirect = f"{another.address}/api/2.1/unity-catalog/catalogs"
        with pytest.raises(LakeletError, match="CATALOG_UNREACHABLE"):
            published(storage, unity, every=True)
        assert another.headers == {}
    assert not [file for file in storage.root.rglob("*") if file.is_file() and SECRET in file.read_text(errors="replace")]


def test_a_proxy_does_not_get_the_token_for_a_server_on_this_machine(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with unity_server(SECRET) as unity, unity_server(SECRET) as proxy:
        monkeypatch.setenv(TOKEN, SECRET)
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.delenv("no_proxy", raising=False)
        assert published(storage, unity) == [("main.sales.orders", "created")]
        assert (proxy.headers, list(unity.tables)) == ({}, ["main.sales.orders"])


def test_a_token_that_the_server_repeats_is_not_in_the_error(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with unity_server("another") as unity:
        monkeypatch.setenv(TOKEN, SECRET)
        with pytest.raises(LakeletError, match="CATALOG_UNREACHABLE") as refused:
            published(storage, unity)
    assert "UNAUTHENTICATED" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_token_is_not_sent_without_encryption_to_another_machine() -> None:
    with pytest.raises(LakeletError, match="use https"), unity_catalog("http://unity.example:8080", environ={TOKEN: SECRET}):
        pass
