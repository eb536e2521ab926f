"""Change flows that do not fit their source are refused before anything runs, each with its code (CD-11)."""

from __future__ import annotations

import pytest

HEAD = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def numbers():
        return spark.range(3)

    @dlt.view
    def feed():
        schema = "id INT, name STRING, seq INT, op STRING, cols ARRAY<STRING>, tags MAP<STRING, INT>, p STRUCT<city: STRING, zip: STRING>"
        return spark.readStream.schema(schema).json(spark.conf.get("landing"))

"""


def pipeline(arguments: str, schema: str | None = None) -> str:
    return f"""
    dlt.create_streaming_table("people", schema={schema!r})
    given = {{"keys": ["id"], "sequence_by": "seq", "except_column_list": ["tags", "cols"]}} | dict({arguments})
    dlt.create_auto_cdc_flow("people", "feed", **given)
"""


REFUSED = {
    "keys=['idd']": ("CDC_UNKNOWN_COLUMN", "id"),
    "keys=['tags'], except_column_list=[]": ("CDC_KEY_TYPE", None),
    "sequence_by='sequ'": ("CDC_UNKNOWN_COLUMN", "seq"),
    "sequence_by=F.struct('seq', 'opp')": ("CDC_UNKNOWN_COLUMN", "op"),
    "sequence_by='tags'": ("CDC_SEQUENCE_TYPE", None),
    "sequence_by=F.struct('seq', 'tags')": ("CDC_SEQUENCE_TYPE", None),
    "sequence_by='seq +'": ("QUERY_FAILED_ANALYSIS", None),
    "apply_as_deletes='opp = 1'": ("CDC_UNKNOWN_COLUMN", "op"),
    "apply_as_deletes='op'": ("CDC_CONDITION_TYPE", None),
    "apply_as_truncates=F.col('seq')": ("CDC_CONDITION_TYPE", None),
    "column_list=['id', 'nam'], except_column_list=None": ("CDC_UNKNOWN_COLUMN", "name"),
    "except_column_list=['opp']": ("CDC_UNKNOWN_COLUMN", "op"),
    "stored_as_scd_type=2, track_history_column_list=['nam']": ("CDC_UNKNOWN_COLUMN", "name"),
    "stored_as_scd_type=2, track_history_except_column_list=['nam']": ("CDC_UNKNOWN_COLUMN", "name"),
    "ignore_null_updates_column_list=['p.town']": ("CDC_UNKNOWN_COLUMN", None),
    "ignore_null_updates_except_column_list=['nam']": ("CDC_UNKNOWN_COLUMN", "name"),
    "columns_to_update='coll'": ("CDC_UNKNOWN_COLUMN", "cols"),
    "columns_to_update='name'": ("ARGUMENT_INVALID", None),
}


@pytest.mark.long
def test_every_argument_is_held_against_the_columns_of_the_source(project):
    p = project(HEAD)
    for number, arguments in enumerate(REFUSED):
        p.write(HEAD + pipeline(arguments).replace("people", f"people_{number}"), "pipeline.py")
        (error,) = p.refused()
        assert (error.code, error.dataset, error.where.file.endswith("pipeline.py")) == (
            REFUSED[arguments][0],
            f"main.default.people_{number}",
            True,
        ), arguments
        if REFUSED[arguments][1]:
            assert REFUSED[arguments][1] in error.nearest, arguments


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ("id INT, name STRING, seq INT, op STRING, p STRUCT<city: STRING, zip: STRING>", "SCHEMA_MISMATCH"),
        ("id INT, name STRING, seq INT, op STRING, p STRUCT<city: STRING, zip: STRING>, __START_AT INT", "SCHEMA_MISMATCH"),
        (
            "id INT, name STRING, seq INT, op STRING, p STRUCT<city: STRING, zip: STRING>, __START_AT STRING, __END_AT STRING",
            "SCHEMA_MISMATCH",
        ),
    ],
)
def test_a_declared_schema_has_start_and_end_of_the_sequences_type(project, schema, code):
    p = project(HEAD + pipeline("stored_as_scd_type=2", schema))
    (error,) = p.refused()
    assert (error.code, "__START_AT" in str(error) or "__END_AT" in str(error)) == (code, True)


def test_lists_may_name_columns_that_are_left_out_and_expressions_use_them(project):
    p = project(
        HEAD
        + pipeline(
            "stored_as_scd_type=2, except_column_list=['NAME', 'tags', 'cols', 'seq'], track_history_except_column_list=['name', 'OP'],"
            " ignore_null_updates_column_list=['name', 'p.CITY'], sequence_by=F.struct('seq', 'name'), apply_as_deletes='name IS NULL'",
            "id INT, op STRING, p STRUCT<city: STRING, zip: STRING>,"
            " __START_AT STRUCT<seq: INT, name: STRING>, __END_AT STRUCT<seq: INT, name: STRING>",
        )
    )
    p.run()
    assert p.rows("numbers") == [0, 1, 2]
    assert p.table("people").column_names == ["id", "op", "p", "__START_AT", "__END_AT"]


@pytest.mark.slow
def test_clustering_of_a_change_table_is_noticed_to_have_no_effect(project):
    p = project(HEAD + pipeline("{}").replace("schema=None", 'cluster_by=["id"]'))
    p.arrive("a.json", {"id": 1, "name": "ann", "seq": 1})
    p.run()
    told = [row["details"]["notice"]["text"] for row in p.logged(event_type="notice")]
    assert [text for text in told if "cluster_by has no effect on a change table" in text]
    assert p.rows("people", "id", "name") == [(1, "ann")]
