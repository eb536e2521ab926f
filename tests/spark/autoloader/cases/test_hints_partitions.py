"""Cases H01–H06 and P01–P05: schema hints, and columns from folder names."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa

from autoloading import INFER, both, parquet, rescued

from .conftest import Make

HINTS = "cloudFiles.schemaHints"


@both
def test_H01_hints_for_columns_fields_maps_and_absent_columns(make: Make) -> None:
    one = make({**INFER, HINTS: "date DATE, u.dob DATE, po MAP<STRING,STRING>, time TIMESTAMP"})
    one.put("a.json", '{"date":"2024-01-02","u":{"id":"1","dob":"2000-02-03"},"po":{"k":"v"}}\n').run()
    assert one.types() == {
        "date": "date", "u": "struct<dob:date,id:string>", "po": "map<string,string>", "time": "timestamp", "_rescued_data": "string",
    }  # fmt: skip
    assert one.last() == {
        "date": date(2024, 1, 2), "u": {"dob": date(2000, 2, 3), "id": "1"}, "po": {"k": "v"}, "time": None, "_rescued_data": None,
    }  # fmt: skip


def test_H02_hints_for_arrays_and_fields_of_their_elements(make: Make) -> None:
    one = make({**INFER, HINTS: "p ARRAY<INT>, us.element.id INT"}).put("a.json", '{"p":["1"],"us":[{"id":"1","n":"x"}]}\n').run()
    assert one.types() == {"p": "array<int>", "us": "array<struct<id:int,n:string>>", "_rescued_data": "string"}
    assert one.last()["us"][0]["n"] == "x"


def test_H03_a_hinted_column_arrives_without_stopping_the_stream(make: Make) -> None:
    one = make({HINTS: "later STRING"}).put("a.json", '{"id":1}\n').run()
    assert one.rows("id", "later") == [("1", None)]
    one.put("b.json", '{"id":2,"later":"y"}\n').run()
    assert (one.rows("id", "later"), one.log(), one.changes) == ([("1", None), ("2", "y")], 0, [])


def test_H04_a_value_that_does_not_fit_the_hint_is_rescued(make: Make) -> None:
    one = make({HINTS: "id BIGINT"}).put("a.json", '{"id":"abc","v":"1"}\n').run()
    assert (one.types()["id"], one.types()["v"]) == ("bigint", "string")
    assert (one.last()["id"], one.last()["v"], rescued(one.last()["_rescued_data"], "a.json")) == (None, "1", {"id": "abc"})


def test_H05_hints_beside_an_explicit_schema_are_ignored(make: Make) -> None:
    one = make({HINTS: "id STRING"}, "id INT").put("a.json", '{"id":1}\n').run()
    assert (one.types(), one.rows()) == ({"id": "int"}, [{"id": 1}])


def test_H06_a_parquet_file_narrower_than_the_hint_is_rescued(make: Make) -> None:
    one = make({"cloudFiles.format": "parquet", HINTS: "a BIGINT"}).put("p.parquet", parquet(a=pa.array([1], pa.int32()))).run()
    assert one.types() == {"a": "bigint", "_rescued_data": "string"}
    assert (one.last()["a"], rescued(one.last()["_rescued_data"], "p.parquet")) == (None, {"a": 1})


def test_P01_folder_names_are_typed_columns(make: Make) -> None:
    one = make(INFER).put("event=click/date=2021-04-01/f.json", '{"id":1}\n').run()
    assert one.types() == {"id": "bigint", "event": "string", "date": "date", "_rescued_data": "string"}
    assert one.rows("id", "event", "date", "_rescued_data") == [(1, "click", date(2021, 4, 1), None)]


def test_P02_a_new_folder_level_is_no_new_column(make: Make) -> None:
    one = make(INFER).put("event=click/date=2021-04-01/f.json", '{"id":1}\n').run()
    one.put("event=click/date=2021-04-01/hour=01/g.json", '{"id":2}\n').run()
    assert "hour" not in one.types()
    assert (one.log(), one.rows("id", "event", "date")) == (0, [(1, "click", date(2021, 4, 1)), (2, "click", date(2021, 4, 1))])
    assert "hour" not in one.last()


def test_P03_listed_folder_columns_of_uneven_folders(make: Make) -> None:
    one = make({"cloudFiles.format": "csv", "cloudFiles.partitionColumns": "year,month,day"})
    one.put("year=2022/week=1/f1.csv", "id\n1\n").put("year=2022/month=2/day=3/f2.csv", "id\n1\n").run()
    assert set(one.types()) == {"id", "year", "month", "day", "_rescued_data"}

    def as_text(value: Any) -> str | None:
        return None if value is None else str(value)

    found = [tuple(map(as_text, row)) for row in one.rows("id", "year", "month", "day")]
    assert sorted(found, key=repr) == [("1", "2022", "2", "3"), ("1", "2022", None, None)]


def test_P04_the_value_in_the_path_wins_over_the_one_in_the_file(make: Make) -> None:
    one = make(INFER).put("k=2/f.json", '{"a":8,"k":99}\n').run()
    assert (one.types(), one.rows("a", "k")) == ({"a": "bigint", "k": "int", "_rescued_data": "string"}, [(8, 2)])
    two = make({**INFER, "cloudFiles.partitionColumns": ""}).put("k=2/f.json", '{"a":8,"k":99}\n').run()
    assert two.rows("a", "k") == [(8, 99)]


def test_P05_folders_of_mixed_shape_give_no_column_and_no_error(make: Make) -> None:
    one = make().put("x=1/f.json", '{"a":1}\n').put("plain/g.json", '{"a":1}\n').run()
    assert (set(one.types()), one.rows("a")) == ({"a", "_rescued_data"}, ["1", "1"])
