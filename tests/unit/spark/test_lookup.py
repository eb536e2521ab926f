"""What a name means: one order of places, in functions of datasets and outside of them. No Spark session."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base.errors import Location
from lakelet.base.names import Namespace, TableName
from lakelet.config.named_tables import NamedTable
from lakelet.language.model import Dataset, Kind
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.lookup import NameTarget, ResolvedName, resolve_name
from lakelet.spark.names.outside import Outside, OutsideTables, StorageTables, using
from lakelet.storage.root import Storage

OWN = Namespace("main", "shop")
HERE = Location("orders.py", 1)


def name(text: str) -> TableName:
    return OWN.resolve(text)


def dataset(text: str, kind: Kind = Kind.MATERIALIZED_VIEW, **more: Any) -> Dataset:
    return Dataset(name(text), kind, HERE, **more)


@dataclass
class Names:
    """Names that a place knows; `everywhere` is known to all of them."""

    own: tuple[Dataset, ...] = ()
    quarantines: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    views: tuple[str, ...] = field(default=())

    def catalog(self, folder: str) -> Catalog:
        own = {one.name.key: one for one in self.own}
        quarantines = frozenset(name(one).key for one in self.quarantines)
        return Catalog(OWN, own, {}, {name(one).key: folder for one in self.stored}, quarantines=quarantines)


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_deltalake(str(tmp_path / "table"), pa.table({"id": [1]}))
    return str(tmp_path / "table")


@pytest.fixture
def asked(table: str, tmp_path: Path) -> Any:
    def ask(names: Names, text: str, *, inside: bool = True, streaming: bool = False) -> ResolvedName:
        tables = OutsideTables({name(one).key: NamedTable(name(one), one, table) for one in names.outside})
        stored = StorageTables(OWN, {name(one).key: table for one in names.stored}, storage=cast("Storage", tmp_path))
        catalog = names.catalog(table) if inside else None
        with using(Outside(tables=tables, stored=stored)):
            return resolve_name(text.split("."), catalog, streaming=streaming, hidden=lambda view: view in names.views)

    return ask


EVERYWHERE = ("everywhere", "information_schema.tables")


def test_the_places_of_a_function_are_asked_in_their_order(asked: Any) -> None:
    names = Names((dataset("everywhere"),), EVERYWHERE[:1], EVERYWHERE, EVERYWHERE)
    places = []
    for left in ("own", "quarantines", "outside", "stored", ""):
        places.append(asked(names, "everywhere").place)
        setattr(names, left or "views", ())
    assert places == [NameTarget.DATASET, NameTarget.QUARANTINE, NameTarget.OUTSIDE, NameTarget.STORED, NameTarget.SPARK]


def test_a_relation_of_information_schema_comes_after_tables_that_have_its_name(asked: Any) -> None:
    names, found = Names(outside=EVERYWHERE, stored=EVERYWHERE), []
    for inside in (True, False):
        names.outside = names.stored = EVERYWHERE
        for left in ("outside", "stored", "views"):
            found.append(asked(names, "information_schema.tables", inside=inside).place)
            setattr(names, left, ())
    assert found == [NameTarget.OUTSIDE, NameTarget.STORED, NameTarget.INFORMATION] * 2


def test_outside_of_functions_a_view_of_the_session_hides_a_stored_table_of_its_bare_name(asked: Any) -> None:
    names = Names(stored=("orders",), views=("orders",))
    asked_for = ("orders", "shop.orders", "main.shop.orders")
    assert [asked(names, text, inside=False).place for text in asked_for] == [NameTarget.SPARK, NameTarget.STORED, NameTarget.STORED]
    assert asked(names, "orders").place is NameTarget.STORED
    assert asked(names, "shop.orders", inside=False, streaming=True).place is NameTarget.SPARK


def test_a_sink_that_has_the_name_of_a_stored_table_means_the_table(asked: Any) -> None:
    sink = dataset("orders", Kind.SINK, sink=object())
    assert asked(Names((sink,)), "orders").place is NameTarget.DATASET
    assert asked(Names((sink,), stored=("orders",)), "orders").place is NameTarget.STORED


def test_live_means_a_dataset_of_the_pipeline_or_nothing_in_a_function(asked: Any) -> None:
    names = Names((dataset("clean"),), outside=("orders",), stored=("orders",))
    assert asked(names, "LIVE.clean") == ResolvedName(NameTarget.DATASET, name("clean"), names.own[0])
    assert asked(names, "live.orders").place is NameTarget.NO_DATASET
    assert asked(names, "live.orders", inside=False).place is NameTarget.OUTSIDE


def test_a_temporary_view_has_no_schema_and_a_name_of_four_parts_is_none(asked: Any) -> None:
    names = Names((dataset("recent", Kind.VIEW),))
    assert [asked(names, text).place for text in ("recent", "shop.recent", "a.b.c.d")] == [
        NameTarget.DATASET,
        NameTarget.SPARK,
        NameTarget.SPARK,
    ]
    assert asked(names, "a.b.c.d").name is None
