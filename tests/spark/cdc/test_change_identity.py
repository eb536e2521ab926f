"""What makes a change table the same table, which columns its sources may not have, what a refusal reaches (CO-6, CO-14, RE-26)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors

TWICE = """
import dlt
from pyspark import pipelines as dp
from pyspark.sql.functions import col, expr

@dlt.view
def feed():
    return spark.readStream.schema("shop INT, `item no` STRING, seq INT, known INT, price INT, note STRING").json(spark.conf.get("landing"))

@dlt.view
def stock():
    files = spark.read.schema("shop INT, `item no` STRING, price INT, note STRING").json(spark.conf.get("landing"))
    return files.dropDuplicates(["shop", "item no"])

mapped = {"delta.columnMapping.mode": "name"}
for name in ("latest", "history", "beliefs", "partial", "copied"):
    dlt.create_streaming_table(name, table_properties=mapped)
"""
FIRST = """
dlt.apply_changes(target="latest", source="feed", keys=["shop", "`item no`"], sequence_by="seq", column_list=["shop", "`item no`", "price"])
dlt.apply_changes(target="history", source="feed", keys=["shop", "`item no`"], sequence_by="seq", stored_as_scd_type=2,
                  except_column_list=["seq", "known"], track_history_column_list=["price", "note"])
dp.create_auto_cdc_flow(target="beliefs", source="feed", keys=["shop", "`item no`"], sequence_by="seq", system_sequence_by="known",
                        stored_as_scd_type="bitemporal", except_column_list=["seq", "known"])
dlt.apply_changes(target="partial", source="feed", keys=["shop", "`item no`"], sequence_by="seq", stored_as_scd_type=1,
                  ignore_null_updates_column_list=["price", "note"])
dlt.apply_changes_from_snapshot(target="copied", source="stock", keys=["shop", "`item no`"], stored_as_scd_type=1)
"""
SECOND = """
dlt.apply_changes(target="latest", source="feed", keys=[col("`Item No`"), "SHOP"], sequence_by=col("seq"),
                  column_list=["PRICE", "`item no`", "shop"])
dlt.apply_changes(target="history", source="feed", keys=["`item no`", "shop"], sequence_by=expr("seq"), stored_as_scd_type="2",
                  except_column_list=["KNOWN", col("seq")], track_history_column_list=["NOTE", "`price`"])
dp.create_auto_cdc_flow(target="beliefs", source="feed", keys=["`ITEM NO`", "`shop`"], sequence_by="SEQ", system_sequence_by=col("known"),
                        stored_as_scd_type="bitemporal", except_column_list=["known", "seq"])
dlt.apply_changes(target="partial", source="feed", keys=["`item no`", "shop"], sequence_by="seq", stored_as_scd_type=1,
                  ignore_null_updates_column_list=["note", "PRICE"])
dlt.apply_changes_from_snapshot(target="copied", source="stock", keys=["`item no`", "Shop"], stored_as_scd_type=1)
"""


def price(seq, price, item="a b", note="n"):
    return {"shop": 1, "item no": item, "seq": seq, "known": seq, "price": price, "note": note}


@pytest.mark.slow
def test_the_same_keys_and_lists_in_another_order_or_spelling_are_the_same_table(project):
    p = project(TWICE + FIRST)
    p.arrive("1.json", price(1, 10), price(2, 20, item="c"))
    p.run()
    versions = p.versions()
    p.write(TWICE + SECOND).run()
    assert {name: p.versions()[name] for name in ("latest", "history", "beliefs", "partial")} == {
        name: versions[name] for name in ("latest", "history", "beliefs", "partial")
    }
    p.arrive("1.json", price(3, 30))
    p.arrive("2.json", price(3, 30), {**price(4, None), "note": "m"})
    p.run()
    assert p.rows("latest") == [(1, "a b", None), (1, "c", 20)]
    assert p.rows("partial", "shop", "item no", "price", "note") == [(1, "a b", 30, "m"), (1, "c", 20, "n")]
    versions = [(1, "a b", 10, "n", 1, 3), (1, "a b", 30, "n", 3, 4), (1, "a b", None, "m", 4, None), (1, "c", 20, "n", 2, None)]
    assert sorted(p.rows("history"), key=lambda row: (row[1], row[4])) == versions
    assert len(p.rows("beliefs")) == 6
    assert {row[:2] for row in p.rows("copied")} == {(1, "a b")}
    p.write(TWICE + FIRST).run()
    assert p.rows("latest") == [(1, "a b", None), (1, "c", 20)]


RESERVED = """
import dlt
from pyspark import pipelines as dp

def files(columns):
    return spark.readStream.schema("id INT, seq INT, known INT, " + columns).json(spark.conf.get("landing"))

def declared(target, columns, **more):
    dlt.view(lambda: files(columns), name=f"of_{target}")
    dlt.create_streaming_table(target)
    dp.create_auto_cdc_flow(target=target, source=f"of_{target}", **{"keys": ["id"], "sequence_by": "seq", **more})

declared("one", "__START_AT STRING", stored_as_scd_type=1)
declared("two", "__end_at STRING", stored_as_scd_type=2)
declared("listed", "__START_AT STRING", column_list=["id"])
declared("left_out", "__Start_At STRING, __END_AT STRING", except_column_list=["__START_AT", "__END_AT"])
declared("beliefs", "__system_end_at INT", stored_as_scd_type="bitemporal", system_sequence_by="known")
declared("ours", "__lakelet_seq INT")
declared("first_copy", "__END_AT STRING", once=True)
declared("sound", "__SYSTEM_START_AT INT, START_AT INT, __row INT, __now INT, __count INT", stored_as_scd_type=2)

def given(latest):
    return None if latest else (spark.createDataFrame([(1, "x")], "id int, __START_AT string"), 1)

def later(latest):
    found = {None: ("id int, v string", 1), 1: ("id int, __END_AT string", 2)}
    return (spark.createDataFrame([(1, "x")], found[latest][0]), found[latest][1]) if latest in found else None

dlt.view(lambda: spark.range(1).selectExpr("id", "1 AS __END_AT"), name="copy")
for target, source in (("periodic", "copy"), ("given", given), ("later", later)):
    dlt.create_streaming_table(target)
    dlt.apply_changes_from_snapshot(target=target, source=source, keys=["id"], stored_as_scd_type=1)

dlt.table(lambda: spark.range(2), name="other")
dlt.table(lambda: dlt.read("one"), name="reader")
"""
SQL = """
CREATE STREAMING TABLE in_sql;
CREATE FLOW f AS AUTO CDC INTO in_sql FROM STREAM(of_one) KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (__START_AT) STORED AS SCD TYPE 1;
"""
REFUSED = ("one", "two", "listed", "left_out", "beliefs", "ours", "first_copy", "periodic", "given", "in_sql")


@pytest.mark.slow
def test_a_source_with_a_reserved_column_is_refused_by_name_and_alone(project):
    p = project(RESERVED).write(SQL, "flows.sql")
    p.arrive("1.json", {"id": 1, "seq": 1, "known": 1, "START_AT": 5, "__row": 6, "__now": 7, "__count": 8})
    with pytest.raises(DefinitionErrors) as found:
        p.pipeline.check()
    assert sorted(str(e.dataset).rsplit(".", 1)[-1] for e in found.value.errors) == sorted(REFUSED)
    p.run(expect="FAILED")
    assert p.errors() == dict.fromkeys((*REFUSED, "later"), "CDC_RESERVED_COLUMN")
    errors = {str(e.dataset).rsplit(".", 1)[-1]: e for e in p.result.errors}
    named = {
        "one": "'__START_AT'",
        "two": "'__end_at'",
        "left_out": "'__Start_At', '__END_AT'",
        "beliefs": "'__system_end_at'",
        "ours": "'__lakelet_seq'",
    }
    assert {name: text in errors[name].what for name, text in named.items()} == dict.fromkeys(named, True)
    assert (errors["in_sql"].where.file.endswith("flows.sql"), errors["in_sql"].where.line) == (True, 3)
    assert [p.statuses()[name] for name in ("other", "reader", "sound")] == ["COMPLETED", "SKIPPED", "COMPLETED"]
    assert p.rows("sound", "id", "START_AT", "__row", "__now", "__count", "__START_AT") == [(1, 5, 6, 7, 8, 1)]
    assert p.rows("later", "id", "v") == [(1, "x")]
    assert not any(p.path(name).exists() for name in REFUSED)


MADE = """
import dlt

def landed():
    return spark.readStream.schema("id INT, name STRING, seq INT").json(spark.conf.get("landing"))

dlt.view(landed, name="feed")
dlt.create_streaming_table("keyed")
dlt.apply_changes(target="keyed", source="feed", keys=["id"], sequence_by="seq")
dlt.table(lambda: dlt.read_stream("feed").select("id"), name="typed")
dlt.table(lambda: dlt.read("keyed").select("id"), name="kind")
dlt.table(lambda: dlt.read("keyed").groupBy().count(), name="of_keyed")
dlt.table(lambda: dlt.read_stream("typed"), name="of_typed")
dlt.table(lambda: dlt.read_stream("feed").select("name"), name="other")
"""
OTHER = (
    MADE.replace('keys=["id"]', 'keys=["id", "name"]')
    .replace('dlt.read_stream("feed").select("id")', """dlt.read_stream("feed").selectExpr("DATE'2024-01-01' AS id")""")
    .replace('dlt.read("keyed").select("id")', 'dlt.read_stream("feed").select("id")')
)


@pytest.mark.long
def test_what_does_not_fit_a_stored_table_is_refused_with_what_reads_it_and_nothing_else(project):
    p = project(MADE)
    p.arrive("1.json", {"id": 1, "name": "a", "seq": 1})
    p.run()
    p.write(OTHER)
    p.arrive("2.json", {"id": 1, "name": "b", "seq": 2})
    p.run(expect="FAILED")
    assert p.errors() == {"keyed": "CDC_STATE_CHANGED", "typed": "SCHEMA_INCOMPATIBLE", "kind": "KIND_CHANGED"}
    assert p.statuses() == {
        **dict.fromkeys(("keyed", "typed", "kind"), "FAILED"),
        **dict.fromkeys(("of_keyed", "of_typed"), "SKIPPED"),
        "other": "COMPLETED",
    }
    assert (p.rows("other"), p.rows("keyed", "name"), p.rows("typed")) == (["a", "b"], ["a"], [1])
    with pytest.raises(DefinitionErrors) as found:
        p.pipeline.check()
    assert {e.code for e in found.value.errors} == {"CDC_STATE_CHANGED", "SCHEMA_INCOMPATIBLE", "KIND_CHANGED"}
    p.run(select=["other"])
    p.write(MADE).run()
    assert (p.rows("other"), p.rows("keyed", "name"), p.rows("typed"), p.rows("of_typed")) == (["a", "b"], ["b"], [1, 1], [1, 1])
    p.write(OTHER).run(full_refresh=["keyed", "typed", "kind", "of_typed"])
    assert p.rows("keyed", "name") == ["a", "b"]
