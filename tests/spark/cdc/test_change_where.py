"""The `where` of a change flow: every event must meet it, and it narrows the search for a key's row (CD-14)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lakelet.cdc import where_condition
from lakelet.language.model import ChangeSpec

PEOPLE = """
import dlt
from pyspark.sql import functions as F

@dlt.view
def events():
    reader = spark.readStream.schema("region STRING, id INT, seq INT, name STRING, gone BOOLEAN")
    return reader.json(spark.conf.get("landing"))

dlt.create_streaming_table("people", partition_cols=["region"], table_properties={"delta.enableChangeDataFeed": "true"})
dlt.apply_changes(
    target="people", source="events", keys=["region", "id"], sequence_by="seq", apply_as_deletes="gone",
    except_column_list=["seq", "gone"], stored_as_scd_type=SCD, where=WHERE,
)
"""


def pipeline(where: str, scd: int = 1) -> str:
    return PEOPLE.replace("WHERE", where).replace("SCD", str(scd))


def event(region: str, id: int, seq: int, name: str | None = None, gone: bool = False) -> dict[str, object]:
    return {"region": region, "id": id, "seq": seq, "name": name, "gone": gone}


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("where", ["'seq < 10'", "F.col('seq') < 10"])
def test_an_event_that_does_not_meet_where_fails_the_flow_and_nothing_is_written(project, where):
    p = project(pipeline(where))
    p.arrive("a.json", event("eu", 1, 1, "ann"))
    p.run()
    p.arrive("b.json", event("eu", 1, 5, "anna"), event("eu", 2, 12, "bob"), {"region": "eu", "id": 3, "seq": 9, "name": "cy"})
    (error,) = p.run(expect="FAILED").result.errors
    assert error.code == "CDC_WHERE_NOT_MET"
    assert "1 event(s) do not meet" in error.what
    assert p.rows("people", "id", "name") == [(1, "ann")]


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("scd", [1, 2])
def test_conditions_on_keys_keep_the_files_of_other_rows_from_being_read(project, scd):
    promised = "\"region IN ('eu', 'us') AND seq >= 0\""
    p = project(pipeline("None", scd))
    p.arrive("a.json", event("eu", 1, 1, "ann"), event("us", 1, 1, "uma"), event("eu", 2, 1, "bob"), event("jp", 1, 1, "jun"))
    p.run()
    lost = list(p.path("people").glob("_changes/*/region=jp"))
    for folder in lost:  # 'jp' lies between the regions that come, so their range does not leave it out
        folder.rename(p.folder / f"kept-{folder.parent.name}")
    assert lost

    p.write(pipeline(promised, scd))
    p.arrive("b.json", event("us", 1, 4, "uschi"), event("eu", 1, 4, gone=True), event("eu", 2, 0, "late"))
    p.run()
    for folder in lost:
        (p.folder / f"kept-{folder.parent.name}").rename(folder)
    table = p.spark.read.format("delta").load(str(p.path("people")))
    rows = (table.where("__END_AT IS NULL") if scd == 2 else table).select("region", "id", "name").collect()
    assert sorted(map(tuple, rows)) == [("eu", 2, "bob"), ("jp", 1, "jun"), ("us", 1, "uschi")]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("key.a = 1 AND seq > 0", [1]),
        ("key.b LIKE 'x%' OR `odd.name` = 'us'", [1, 3]),
        ("`ODD.name` IN ('eu', 'jp')", [1, 2]),
        ("exists(array('us', 'jp'), one -> one = `odd.name`)", [2, 3]),
        ("CAST(`odd.name` AS BINARY) = X'7573' AND key.a > 1L", [3]),
        ("key.a BETWEEN 2L AND 3 AND nullif(key.b, 'y') IS NOT NULL", [3]),
        ("seq > 0", None),
        ("key.a > seq", None),
        ("key.a > 10 * rand()", None),
        ("key.a IN (SELECT 1)", None),
        ("struct(key.a) = struct(1) AND key.a < 3", [1, 2]),  # the target's column is a BIGINT: the first part cannot be asked
    ],
)
def test_conditions_on_keys_mean_the_columns_of_the_target_by_their_names(spark, where, found):
    source = spark.createDataFrame([], "key STRUCT<a: INT, b: STRING>, `odd.name` STRING, seq INT")
    rows = [(1, ("x", 1), "eu"), (2, ("y", 2), "jp"), (3, ("z", 3), "us")]
    target = spark.createDataFrame(rows, "row INT, key STRUCT<b: STRING, a: BIGINT>, `odd.name` STRING")
    spec = ChangeSpec(source="events", keys=(("key",), ("odd.name",)), where=where)
    condition = where_condition.of_keys(spec, source, SimpleNamespace(keys=["key", "odd.name"], columns=target.schema), "t")
    assert (condition is None) == (found is None)
    if condition is not None:
        assert [row[0] for row in target.alias("t").where(condition).select("row").orderBy("row").collect()] == found
