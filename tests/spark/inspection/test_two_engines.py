"""DuckDB and Spark give the same for every query that DuckDB answers: values, types, names of columns, order."""

from __future__ import annotations

import json
import random
import re
import time

import pyarrow as pa
import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.inspection import inspector
from lakelet.inspection.duckdb.values import NotSame
from lakelet.inspection.json_values import arrow_type_text
from lakelet.inspection.spark_queries import spark_rows
from lakelet.inspection.unknown_names import refuse_unknown_names
from lakelet.language.sql_text.tokens import plain_tokens
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.query_corpus import ANSWERED, FACTS, FACTS_COLUMNS, LEFT_TO_SPARK, NAMES_OF_SPARK, REFUSED
from tests.query_generator import queries

pytestmark = [pytest.mark.spark, pytest.mark.long]

DELETIONS, MAPPING = "delta.enableDeletionVectors = true", "delta.columnMapping.mode = 'name'"


@pytest.fixture(scope="module")
def storage(spark, tmp_path_factory):
    """A storage with tables of every kind that looking meets."""
    root = tmp_path_factory.mktemp("two-engines")
    tables = {
        "facts": (FACTS_COLUMNS, "", [FACTS]),
        "parts": ("id INT, p STRING, q DATE", "PARTITIONED BY (p, q)", ["(1, 'x y', DATE'2026-01-01'), (2, NULL, NULL), (9, 'ä', NULL)"]),
        "deleted": ("id INT, s STRING", f"TBLPROPERTIES ({DELETIONS})", ["(1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)"]),
        "mapped": ("`odd name` INT, t TIMESTAMP", f"TBLPROPERTIES ({MAPPING})", ["(1, TIMESTAMP'2026-01-01 00:00:00Z'), (2, NULL)"]),
        "grown": ("id INT, st STRUCT<x: INT>", "", ["(1, named_struct('x', 1)), (2, NULL)"]),
        "empty": ("id INT, st STRUCT<x: TIMESTAMP>", "", []),
        "variants": ("id INT, v VARIANT", "", ["(1, parse_json('{}'))"]),
    }
    datasets = {}
    for name, (columns, clauses, inserts) in tables.items():
        path = f"tables/main/shop/{name}"
        datasets[f"main.shop.{name}"] = StoredDataset(f"main.shop.{name}", "streaming_table", path)
        spark.sql(f"CREATE TABLE delta.`{root}/{path}` ({columns}) USING delta {clauses}")
        for rows in inserts:
            spark.sql(f"INSERT INTO delta.`{root}/{path}` SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    spark.sql(f"DELETE FROM delta.`{root}/tables/main/shop/deleted` WHERE id = 2")
    grown = f"delta.`{root}/tables/main/shop/grown`"
    spark.sql(f"ALTER TABLE {grown} ADD COLUMNS (extra STRING, st.y INT)")
    spark.sql(f"INSERT INTO {grown} SELECT /*+ COALESCE(1) */ * FROM VALUES (3, named_struct('x', 3, 'y', 4), 'new')")
    Storage(root).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets=datasets))
    view = {"name": "main.shop.published", "query": "SELECT count(*) AS n FROM facts", "catalog": "main", "schema": "shop", "owner": None}
    (root / "system/views.json").write_text(json.dumps({"format": 1, "views": {"main.shop.published": view}}))
    return root


def shown(table):
    """Names, types and rows in a form that compares NaN and both zeros, and days that Python's calendar does not have."""
    kinds = [arrow_type_text(kind) for kind in table.schema.types]
    numbers = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}
    columns = [
        column.cast(numbers[kind]).to_pylist() if kind in numbers else column.to_pylist()
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    return table.schema.names, kinds, [repr(row) for row in zip(*columns, strict=True)]


def by_spark(spark, storage, query):
    return shown(spark_rows(spark, storage, query))


def assert_same(spark, storage, query):
    names, types, rows = shown(inspector.duck_table(storage, query))
    spark_names, spark_types, spark_found = by_spark(spark, storage, query)
    assert (names, types) == (spark_names, spark_types)
    if " ORDER BY " in query.rpartition(")")[2] or "LIMIT" in query:
        assert rows == spark_found
    assert sorted(rows) == sorted(spark_found)


@pytest.mark.in_ci(every=4)
@pytest.mark.parametrize("query", ANSWERED)
def test_duckdb_answers_and_gives_what_spark_gives(spark, storage, query):
    assert_same(spark, storage, query)


@pytest.mark.parametrize("query", [query for query in ANSWERED if re.search(r"\bt\b|TIMESTAMP|DATE|day", query)])
def test_the_time_zone_of_the_machine_changes_nothing(storage, query, monkeypatch):
    in_utc = shown(inspector.duck_table(storage, query))
    monkeypatch.setenv("TZ", "America/St_Johns")
    time.tzset()
    try:
        found = shown(inspector.duck_table(storage, query))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (found[:2], sorted(found[2])) == (in_utc[:2], sorted(in_utc[2]))


def test_a_session_in_another_time_zone_gives_the_same_instants_and_reads_clocks_in_its_own_zone(spark, storage):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        assert_same(spark, storage, "SELECT id, t, n, day, st FROM facts ORDER BY id")
        assert_same(spark, storage, "SELECT k, max(t) AS latest FROM facts GROUP BY k")
        hours = inspector.run_sql(storage, "SELECT hour(t) AS h, hour(n) AS written FROM facts WHERE id = 1", spark=spark)
        assert list(hours.rows) == [{"h": 4, "written": 8}]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    hours = inspector.run_sql(storage, "SELECT hour(t) AS h, hour(n) AS written FROM facts WHERE id = 1")
    assert list(hours.rows) == [{"h": 8, "written": 8}]


@pytest.mark.in_ci(every=3)
@pytest.mark.parametrize("query", LEFT_TO_SPARK)
def test_what_duckdb_does_not_say_the_same_way_is_left_to_spark(spark, storage, query):
    with pytest.raises(NotSame) as reason:
        inspector.duck_table(storage, query)
    assert str(reason.value)
    assert inspector.run_sql(storage, query, spark=spark).total is not None


@pytest.mark.in_ci(every=8)
@pytest.mark.parametrize("query", NAMES_OF_SPARK)
def test_spark_answers_queries_whose_names_are_no_plain_columns(spark, storage, query):
    refuse_unknown_names(storage, query)
    assert inspector.run_sql(storage, query, spark=spark).columns


def misspelt(rng, query):
    """The query with one of its words changed, or replaced by another of them."""
    words = [token for token in plain_tokens(query) if token.is_name]
    one, other = rng.choice(words), rng.choice(words)
    new = other.value if rng.random() < 0.5 else one.value + rng.choice(["x", "_1", "s"])
    return query[: one.start] + new + query[one.stop :]


def refusal_of_spark(spark, storage, query):
    """The error of Spark; None where it answers the query."""
    try:
        inspector.run_sql(storage, query, spark=spark)
    except LakeletError as problem:
        return problem
    return None


def refusals(spark, storage, rng, number):
    """Misspell one name of each of so many queries; return the errors of those that are refused without Spark, and Spark's, with the query.

    Half of the queries come from the corpus, half are generated.
    """
    corpus, made = [*ANSWERED, *LEFT_TO_SPARK, *NAMES_OF_SPARK], list(queries(rng, number // 2))
    for source in [*made, *(rng.choice(corpus) for _ in range(number - len(made)))]:
        query = misspelt(rng, source)
        try:
            refuse_unknown_names(storage, query)
        except LakeletError as quick:
            yield quick, refusal_of_spark(spark, storage, query), query


@pytest.mark.in_ci("few")
@pytest.mark.parametrize(("seed", "number", "fewest"), [(39, 60, 15), (38, 1200, 250)], ids=["few", "many"])
def test_what_is_refused_without_spark_spark_refuses_for_the_same_name(spark, storage, seed, number, fewest):
    """Spark may find another fault of the query first: a changed keyword is one of syntax. It never finds none."""
    same, named = 0, 0
    for quick, spark_error, query in refusals(spark, storage, random.Random(seed), number):
        assert spark_error is not None, query
        assert type(spark_error) is type(quick), query
        if quick.code != "SQL_FAILED":
            named += 1
            same += (spark_error.code, spark_error.what.split(" in ")[0]) == (quick.code, quick.what.split(" in ")[0])
    assert named >= fewest
    assert same >= 0.9 * named


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT wrod FROM facts", "UNKNOWN_COLUMN"),
        ("SELECT x.wrod FROM facts x", "UNKNOWN_COLUMN"),
        ("SELECT p FROM facts JOIN parts USING (small)", "UNKNOWN_COLUMN"),
        ("SELECT fcts.* FROM facts", "UNKNOWN_COLUMN"),
        ("SELECT id,\n  wrod\nFROM facts", "UNKNOWN_COLUMN"),
        ("SELECT id FROM fatcs", "UNKNOWN_TABLE"),
    ],
)
def test_spark_names_the_same_column_with_the_same_code_nearest_name_and_place(spark, storage, query, code):
    with pytest.raises(LakeletError) as quick:
        refuse_unknown_names(storage, query)
    found = refusal_of_spark(spark, storage, query)
    assert found.code == quick.value.code == code
    assert (found.what.split(" in ")[0], found.where) == (quick.value.what.split(" in ")[0], quick.value.where)
    assert found.nearest == quick.value.nearest


def test_a_note_says_that_spark_answers_and_why(spark, storage):
    notes = []
    found = inspector.run_sql(storage, "SELECT id FROM facts WHERE s RLIKE 'a.*' ORDER BY id", note=notes.append)
    assert [row["id"] for row in found.rows] == [1, 2, 3, 5]
    assert notes == ["Spark answers this query (regexplike in an expression); starting it ..."]


def test_spark_reads_one_row_more_than_are_shown_which_says_that_there_are_more(spark, storage):
    query = "SELECT id FROM facts ORDER BY id DESC"
    (total,) = (row["n"] for row in inspector.run_sql(storage, "SELECT count(*) AS n FROM facts", spark=spark).rows)
    assert spark_rows(spark, storage, query, limit=2).num_rows == 3
    ids = [row["id"] for row in inspector.run_sql(storage, query, spark=spark).rows]
    found = inspector.run_sql(storage, query, limit=2, spark=spark)
    assert ([row["id"] for row in found.rows], found.total, found.more) == (ids[:2], None, True)
    found = inspector.run_sql(storage, query, limit=total, spark=spark)
    assert ([row["id"] for row in found.rows], found.total, found.more) == (ids, total, False)


@pytest.mark.in_ci(every=3)
@pytest.mark.parametrize("query", REFUSED)
def test_what_spark_refuses_duckdb_does_not_answer(spark, storage, query):
    with pytest.raises(NotSame):
        inspector.duck_table(storage, query)
    with pytest.raises(LakeletError):
        inspector.run_sql(storage, query, spark=spark)


@pytest.mark.in_ci(every=6)
@pytest.mark.parametrize(("seed", "fewest"), [*enumerate((8, 6, 9, 9, 6, 9))])
def test_generated_queries_give_the_same_wherever_duckdb_answers(spark, storage, seed, fewest):
    """Expressions over all types, in bulk: each query has many columns, so that Spark plans few queries. `fewest` of 12 are answered."""
    answered = 0
    for query in queries(random.Random(seed), 12):
        try:
            inspector.duck_table(storage, query)
        except NotSame:
            continue
        answered += 1
        assert_same(spark, storage, query)
    assert answered >= fewest
