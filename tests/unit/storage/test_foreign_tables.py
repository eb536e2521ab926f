"""What catalogs say of tables of others: which is asked, what is refused, what is in no error (PB-14 to PB-17). No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName
from lakelet.jvm.metastore import HiveTable
from lakelet.storage.catalogs.client import CatalogAddress, ForeignTable, unreachable
from lakelet.storage.catalogs.foreign_tables import ForeignTables
from lakelet.storage.catalogs.hive import HiveCatalog
from lakelet.storage.catalogs.publishing import catalogs
from lakelet.storage.catalogs.unity import TOKEN
from tests.unity import unity_server

ORDERS = TableName("main", "Sales", "Orders")
SECRET = "a-secret-token-of-mine"


def delta(location: str = "/lake/orders", *, owner: str | None = None) -> ForeignTable:
    return ForeignTable("sales.orders", location, "delta", (), owner)


class Answers:
    """A catalog with one answer for all names; `asked` has those it was asked for."""

    def __init__(self, answer: ForeignTable | LakeletError | None) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def foreign(self, name: TableName) -> ForeignTable | None:
        self.asked.append(name.name)
        if isinstance(self.answer, LakeletError):
            raise self.answer
        return self.answer

    @contextmanager
    def connect(self) -> Iterator[Any]:
        yield self


PLACE = Location("a.py", 3)


def tables(*answers: Answers, kinds: str = "hive uc") -> ForeignTables:
    named = zip(answers, kinds.split(), strict=False)
    return ForeignTables([CatalogAddress(kind, "at:1", answer.connect) for answer, kind in named], {"me"})


def test_the_first_catalog_that_has_the_table_is_asked_once_for_each_name() -> None:
    nothing, has, never = Answers(None), Answers(delta("file:/lake/orders")), Answers(delta("/elsewhere"))
    found = tables(nothing, has, never, kinds="uc hive uc")
    for _ in range(2):
        table = found.find(ORDERS)
        assert table is not None
        assert (table.given, table.path, table.format, table.catalog) == (
            "main.Sales.Orders",
            "/lake/orders",
            "delta",
            "the Hive metastore at:1",
        )
    assert (nothing.asked, has.asked, never.asked) == (["Orders"], ["Orders"], [])


def test_an_entry_of_the_pipeline_itself_is_as_none() -> None:
    assert tables(Answers(delta(owner="me"))).find(ORDERS) is None
    assert tables(Answers(delta(owner="another"))).find(ORDERS) is not None
    found = tables(Answers(delta(owner="me")), Answers(delta("/theirs"))).find(ORDERS)
    assert found is not None
    assert found.path == "/theirs"


def test_no_catalog_is_asked_for_what_the_pipeline_defines_and_for_what_is_a_name_in_none() -> None:
    has = Answers(delta())
    found = tables(has)
    assert found.define({ORDERS.key: PLACE}) == []
    names = [ORDERS, TableName("main", "sales", "a b"), TableName("main", "sales", "a.b"), TableName("main", "delta", "/lake/orders")]
    assert [found.find(name) for name in names] == [None] * 4
    assert has.asked == []


def test_a_table_that_was_read_before_the_pipeline_defined_its_name_is_reported() -> None:
    found = tables(Answers(delta()))
    found.find(ORDERS)
    (error,) = found.define({ORDERS.key: PLACE, "main.sales.other": Location("b.py", 1)})
    assert (error.code, error.where) == ("CATALOG_TABLE_REFUSED", PLACE)
    assert "reads main.Sales.Orders from" in error.what
    assert found.known(ORDERS.key) is None


def test_a_catalog_that_does_not_answer_is_not_asked_again_for_the_next_name() -> None:
    away = Answers(unreachable("the Hive metastore at:1", "nothing listens"))
    found = tables(away)
    for name in (ORDERS, TableName("main", "sales", "others")):
        with pytest.raises(LakeletError, match="CATALOG_UNREACHABLE") as problem:
            found.find(name)
        assert f"the query reads {name}, and the Hive metastore at:1 does not answer" in problem.value.what
        assert problem.value.why == "nothing listens"
    assert away.asked == ["Orders"]


@pytest.mark.parametrize(
    "location",
    ["s3://me:sesame@bucket/t", "s3://sesame@bucket/t", "https://host/t?sig=sesame", "abfss://c:sesame@a.dfs.core.windows.net/t"],
)
def test_a_location_with_a_key_in_it_is_refused_without_being_shown(location: str) -> None:
    with pytest.raises(LakeletError, match="CATALOG_TABLE_REFUSED") as problem:
        tables(Answers(delta(location))).find(ORDERS)
    assert "sesame" not in str(problem.value)


def test_what_a_catalog_refuses_to_say_is_an_error_with_its_reason() -> None:
    refuses = Answers(LakeletError("PUBLISH_FAILED", "Unity Catalog refused the table", why="403 PERMISSION_DENIED: no USE SCHEMA"))
    with pytest.raises(LakeletError, match="CATALOG_TABLE_REFUSED") as problem:
        tables(refuses, kinds="uc").find(ORDERS)
    assert problem.value.why == "403 PERMISSION_DENIED: no USE SCHEMA"


def test_a_token_is_in_no_error_of_a_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    with unity_server("another") as unity:
        found = ForeignTables(catalogs({"uc": unity.address}, lambda: None))  # type: ignore[arg-type,return-value]
        with pytest.raises(LakeletError, match="CATALOG_UNREACHABLE") as problem:
            found.find(ORDERS)
    assert "UNAUTHENTICATED" in str(problem.value)
    assert SECRET not in str(problem.value)


HIVE = "org.apache.hadoop.hive.ql.io"
SPARK = "spark.sql.sources"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"properties": {f"{SPARK}.provider": "DELTA"}}, ("delta", "file:/one", ())),
        ({"properties": {f"{SPARK}.provider": "delta"}, "path": "file:/two"}, ("delta", "file:/two", ())),
        ({"input_format": f"{HIVE}.parquet.MapredParquetInputFormat", "partitions": ("day",)}, ("parquet", "file:/one", ("day",))),
        (
            {"properties": {f"{SPARK}.provider": "parquet", f"{SPARK}.schema.partCol.0": "day"}},
            ("parquet", "file:/one", ("day",)),
        ),
        (
            {"input_format": f"{HIVE}.orc.OrcInputFormat", "properties": {"transactional": "true"}},
            ("transactional table of Hive", "file:/one", ()),
        ),
        ({"input_format": f"{HIVE}.SymlinkTextInputFormat"}, ("SymlinkTextInputFormat", "file:/one", ())),
        ({"kind": "VIRTUAL_VIEW"}, ("view", "file:/one", ())),
        ({"kind": "MATERIALIZED_VIEW"}, ("materialized view", "file:/one", ())),
    ],
)
def test_what_a_metastore_says_of_a_table_for_a_reader(more: dict[str, Any], says: tuple[str, str, tuple[str, ...]]) -> None:
    class Connection:
        def table(self, database: str, name: str) -> HiveTable:
            return HiveTable(database, name, "file:/one", (), **{"properties": {}, **more})

    found = HiveCatalog(Connection(), "thrift://one:1").foreign(ORDERS)  # type: ignore[arg-type]
    assert found == ForeignTable("sales.orders", says[1], says[0], says[2], None)


def test_a_location_may_be_plain_text_or_a_uri(tmp_path: Any) -> None:
    (tmp_path / "a table").mkdir()
    (tmp_path / "100%25").mkdir()
    located: Callable[[str], str | None] = lambda location: getattr(tables(Answers(delta(location))).find(ORDERS), "path", None)  # noqa: E731
    assert located(f"file:{tmp_path}/a table") == located((tmp_path / "a table").as_uri()) == f"{tmp_path}/a table"
    assert located(f"file:{tmp_path}/100%25/") == f"{tmp_path}/100%25"
