"""Commands outside of dataset functions: the paths and tables that they name, in the words of Spark. No Spark."""

from __future__ import annotations

import pytest

from lakelet.language.sql_text import commands
from lakelet.language.sql_text.commands import ListingStatement
from lakelet.spark.names import paths
from lakelet.spark.patches.created_tables import with_target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE a LOCATION '/mnt/x'", "CREATE TABLE a LOCATION '/here/mnt/x'"),
        ('create table a location /* c */ "/mnt/it\'s"', "create table a location /* c */ '/here/mnt/it\\'s'"),
        ("CREATE TABLE a COMMENT 'LOCATION \\'/mnt/x\\'' -- LOCATION '/mnt/x'", None),
        ("SELECT location FROM a", None),
    ],
)
def test_only_the_string_behind_location_is_a_path(monkeypatch, text: str, expected: str | None):
    monkeypatch.setattr(paths, "located", lambda path, writing: f"/here{path}")
    assert paths.with_local_locations(text) == (expected or text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE a.b AS SELECT * FROM a.b", "CREATE TABLE new_a.b AS SELECT * FROM a.b"),
        ("-- INSERT INTO c\nINSERT INTO TABLE `a b` VALUES (1)", "-- INSERT INTO c\nINSERT INTO TABLE old_`a b` VALUES (1)"),
        ("SELECT 'INSERT INTO a'", "SELECT 'INSERT INTO a'"),
    ],
)
def test_the_table_of_a_command_gets_the_name_that_spark_has(text: str, expected: str):
    assert with_target(text, lambda name, creating: f"{'new' if creating else 'old'}_{name}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW TABLES", ListingStatement("TABLES")),
        ("show tables in `a-b`.c", ListingStatement("TABLES", "`a-b`.c")),
        ("/* all */ SHOW TABLES FROM c LIKE 'x*|y';", ListingStatement("TABLES", "c", "x*|y")),
        ("SHOW TABLES 'x*'", ListingStatement("TABLES", "", "x*")),
        ("SHOW DATABASES IN main", ListingStatement("SCHEMAS", "main")),
        ("SHOW CATALOGS LIKE 'm*'", ListingStatement("CATALOGS", "", "m*")),
        ("SHOW TABLES IN", None),
        ("SHOW TABLES IN a LIKE x", None),
        ("SHOW TABLE EXTENDED LIKE 'x'", None),
        ("SELECT 'SHOW TABLES'", None),
    ],
)
def test_what_a_statement_lists(text: str, expected: ListingStatement | None):
    assert commands.shown(text) == expected
