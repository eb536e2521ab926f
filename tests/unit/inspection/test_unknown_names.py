"""Names of queries that do not exist are errors at once; what Spark accepts is never refused."""

# ruff: noqa: E501

from __future__ import annotations

import json
import random
import re

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.inspection import inspector
from lakelet.inspection.unknown_names import refuse_unknown_names
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.query_corpus import ANSWERED, FACTS_COLUMNS, LEFT_TO_SPARK, NAMES_OF_SPARK
from tests.query_generator import queries

TABLES = {
    "facts": [
        part.split()[0] for part in re.split(r",(?![^<(]*[>)])", FACTS_COLUMNS.replace("\n", " ")) if re.match(r"\s*\w+ [A-Z]", part)
    ],
    "parts": ["id", "p", "q"],
    "deleted": ["id", "s"],
    "mapped": ["odd name", "t"],
    "grown": ["id", "st", "extra"],
    "empty": ["id", "st"],
    "variants": ["id", "v"],
}


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    root = tmp_path_factory.mktemp("names")
    datasets = {}
    for name, columns in TABLES.items():
        path = f"tables/main/shop/{name}"
        (root / path).mkdir(parents=True)
        write_deltalake(str(root / path), pa.table({column: pa.array([], pa.string()) for column in columns}))
        datasets[f"main.shop.{name}"] = StoredDataset(f"main.shop.{name}", "streaming_table", path)
    datasets["main.shop.later"] = StoredDataset("main.shop.later", "streaming_table", "tables/main/shop/later")
    Storage(root).save(StorageRegistry(namespace=Namespace("main", "shop"), datasets=datasets))
    view = {"name": "main.shop.published", "query": "SELECT count(*) AS n FROM facts", "catalog": "main", "schema": "shop", "owner": None}
    (root / "system/views.json").write_text(json.dumps({"format": 1, "views": {"main.shop.published": view}}))
    return root


def refusal(storage, query):
    """The lines of the error, or None."""
    try:
        refuse_unknown_names(storage, query)
    except LakeletError as problem:
        return problem.lines()
    return None


@pytest.mark.parametrize("query", [*ANSWERED, *LEFT_TO_SPARK, *NAMES_OF_SPARK])
def test_no_query_that_spark_answers_is_refused(storage, query):
    assert refusal(storage, query) is None


def test_no_random_query_is_refused(storage):
    assert [query for query in queries(random.Random(7), 400) if refusal(storage, query)] == []


UNKNOWN = [
    ("SELECT nope FROM facts", "[UNKNOWN_COLUMN] there is no column nope in facts", "Columns: id, k, small, s, word, d, price, t and 10 more"),
    ("SELECT wrod, upper(s) FROM facts", "[UNKNOWN_COLUMN] there is no column wrod in facts", 'Did you mean "word"?'),
    ("SELECT x.wrod FROM facts x", "[UNKNOWN_COLUMN] there is no column x.wrod in x", 'Did you mean "word"?'),
    ("SELECT id FROM facts WHERE upper(wrod) = 'X'", "[UNKNOWN_COLUMN] there is no column wrod in facts", 'Did you mean "word"?'),
    ("SELECT id FROM facts ORDER BY pricee", "[UNKNOWN_COLUMN] there is no column pricee in facts", 'Did you mean "price"?'),
    ("SELECT id FROM facts f JOIN parts y ON f.id = y.idd", "[UNKNOWN_COLUMN] there is no column y.idd in y", 'Did you mean "id"?'),
    ("WITH a AS (SELECT id AS number FROM facts) SELECT numbre FROM a", "[UNKNOWN_COLUMN] there is no column numbre in a", 'Did you mean "number"?'),
    ("SELECT total FROM (SELECT id AS totals FROM facts)", "[UNKNOWN_COLUMN] there is no column total in the query", 'Did you mean "totals"?'),
    ("SELECT id FROM parts WHERE EXISTS (SELECT 1 FROM facts WHERE pp = 1)", "[UNKNOWN_COLUMN] there is no column pp in facts", None),
    ("SELECT upper(s) FROM fatcs", "[UNKNOWN_TABLE] the storage holds no table fatcs", 'Did you mean "main.shop.facts"'),
    ("SELECT upper(s) FROM facts WHERE id IN (SELECT id FROM prats)", "[UNKNOWN_TABLE] the storage holds no table prats", 'Did you mean "main.shop.parts"'),
    ("SELECT upper(s) FROM later", "[UNKNOWN_TABLE] main.shop.later is known but was not written yet", "lakelet run"),
    ("SELECT datasett FROM updates_of", "[UNKNOWN_TABLE] the storage holds no table updates_of", 'Did you mean "updates"?'),
    ("SELECT upper(stat) FROM updates", "[UNKNOWN_COLUMN] there is no column stat in updates", 'Did you mean "state"?'),
    ("SELECT id FROM facts UNION SELECT id FROM parts ORDER BY idd", "[UNKNOWN_COLUMN] there is no column idd in the query", 'Did you mean "id"?'),
    ("SELECT p FROM facts JOIN parts USING (idd)", "[UNKNOWN_COLUMN] there is no column idd in facts", 'Did you mean "id"?'),
    ("SELECT p FROM facts JOIN parts USING (small)", "[UNKNOWN_COLUMN] there is no column small in parts", "Columns: id, p, q"),
    ("SELECT fcts.* FROM facts", "[UNKNOWN_COLUMN] there is no table and no column fcts in the query, for fcts.*", 'Did you mean "facts"?'),
    ("SELECT wrod FROM facts TABLESAMPLE (5 ROWS)", "[UNKNOWN_COLUMN] there is no column wrod in facts", 'Did you mean "word"?'),
    ("SELECT wrod, x FROM facts LATERAL VIEW explode(ar) e AS x", "[UNKNOWN_COLUMN] there is no column wrod in facts or e", 'Did you mean "word"?'),
    ("SELECT w FROM (SELECT wrod, id FROM facts) PIVOT (sum(id) AS n FOR word IN ('x' AS w))", "[UNKNOWN_COLUMN] there is no column wrod in facts", 'Did you mean "word"?'),
    ("SELECT date_add(dya, 1) AS d FROM facts", "[UNKNOWN_COLUMN] there is no column dya in facts", 'Did you mean "day"?'),
    ("SELECT extract(YEAR FROM dya) AS d FROM facts", "[UNKNOWN_COLUMN] there is no column dya in facts", 'Did you mean "day"?'),
    (r"SELECT id FROM facts WHERE s RLIKE '\\d+\'' AND wrod = 1", "[UNKNOWN_COLUMN] there is no column wrod in facts", 'Did you mean "word"?'),
    ("SELECT /*+ BROADCAST(parts) */ wrod FROM facts JOIN parts USING (id)", "[UNKNOWN_COLUMN] there is no column wrod in facts or parts", 'Did you mean "word"?'),
    ("USE SCHEMA shop; SELECT wrod FROM facts", "[UNKNOWN_COLUMN] there is no column wrod in facts", 'Did you mean "word"?'),
    ("USE SCHEMA shop; SELECT id FROM other.facts", "[UNKNOWN_TABLE] the storage holds no table other.facts", 'Did you mean "main.shop.facts"'),
    ("SELECT table_nam FROM information_schema.tables", "[UNKNOWN_COLUMN] there is no column table_nam in tables", 'Did you mean "table_name" or'),
    ("SELCT * FROM facts", "[SQL_FAILED] only queries are allowed here", 'Did you mean "SELECT"?'),
    ("DELETE FROM facts", "[SQL_FAILED] only queries are allowed here", 'For example: lakelet sql "SELECT * FROM …"'),
]  # fmt: skip


@pytest.mark.parametrize(("query", "head", "hint"), UNKNOWN)
def test_a_name_that_does_not_exist_is_an_error_in_two_lines(storage, query, head, hint):
    lines = refusal(storage, query)
    assert lines is not None
    assert (lines[0], len(lines)) == (head, 2)
    if hint is not None:
        assert lines[1].strip().startswith(hint)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT id,\n  wrod\nFROM facts", ["the query, line 2, column 3", "2 |   wrod", "      ^"]),
        (
            "USE SCHEMA shop;\nSELECT id, wrod AS w FROM facts",
            ["the query, line 2, column 12", "2 | SELECT id, wrod AS w FROM facts", "               ^"],
        ),
        ("SELECT id FROM facts\nWHERE s RLIKE '\\\\d' AND facts.wrod = 1", ["the query, line 2, column 25"]),
    ],
)
def test_the_error_of_a_text_of_several_lines_has_the_place_of_the_name(storage, query, place):
    lines = [line.removeprefix("  ") for line in refusal(storage, query)]
    assert lines[1 : 1 + len(place)] == place


def test_an_error_about_a_query_that_lakelet_wrote_has_no_place(storage):
    with pytest.raises(LakeletError) as problem:
        inspector.read_rows(storage, "facts", selection=inspector.RowSelection(where="id > 1\nAND wrod = 2"))
    assert problem.value.lines() == ["[UNKNOWN_COLUMN] there is no column wrod in facts", '  Did you mean "word"?']


def test_the_error_comes_without_a_session(storage):
    notes = []
    with pytest.raises(LakeletError) as problem:
        inspector.run_sql(storage, "SELECT upper(wrod) AS w FROM facts", note=notes.append)
    assert (problem.value.code, notes) == ("UNKNOWN_COLUMN", [])


def test_names_are_completed_by_the_namespace_that_is_given(storage):
    with pytest.raises(LakeletError) as problem:
        refuse_unknown_names(storage, "SELECT upper(s) FROM facts", Namespace("other", "shop"))
    assert problem.value.code == "UNKNOWN_TABLE"
    refuse_unknown_names(storage, "SELECT upper(s) FROM shop.facts", Namespace("main", "else"))
