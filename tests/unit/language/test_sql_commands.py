"""Commands of SQL and the tables that they name. No Spark."""

from __future__ import annotations

import pytest

from lakelet.language.sql_text import commands


@pytest.mark.parametrize(
    ("text", "verb", "name"),
    [
        ("CREATE TABLE a.b (id INT)", "CREATE TABLE", "a.b"),
        ("-- it's\ncreate or replace /* ( */ table if not exists `a b`.c AS SELECT 1", "CREATE OR REPLACE TABLE IF NOT EXISTS", "`a b`.c"),
        ("INSERT INTO a SELECT 1", "INSERT INTO", "a"),
        ("insert overwrite table a.b VALUES (1)", "INSERT OVERWRITE TABLE", "a.b"),
        ("MERGE WITH SCHEMA EVOLUTION INTO a USING b", "MERGE WITH SCHEMA EVOLUTION INTO", "a"),
        ("DROP TABLE IF EXISTS a . b", "DROP TABLE IF EXISTS", "a . b"),
        ("UPDATE delta.`/x/y` SET a = 1", "UPDATE", "delta.`/x/y`"),
        ("DESCRIBE HISTORY a", "DESCRIBE HISTORY", "a"),
        ("DESC detail", "DESC", "detail"),
        ("SHOW COLUMNS IN a", "SHOW COLUMNS IN", "a"),
    ],
)
def test_a_command_is_its_words_and_the_name_behind_them(text: str, verb: str, name: str):
    found = commands.command(text)
    assert found is not None
    assert (found.verb, found.name, text[found.start : found.stop]) == (verb, name, name)


@pytest.mark.parametrize("text", ["SELECT 1", "CREATE VIEW a AS SELECT 1", "INSERT 'INTO' a", "CREATE TABLE", "DROP TABLE 'a'", "", "'"])
def test_other_texts_are_no_command(text: str):
    assert commands.command(text) is None


def test_only_what_writes_a_definition_creates():
    made = [commands.command(text) for text in ("CREATE TABLE a (b INT)", "REPLACE TABLE a (b INT)", "INSERT INTO a SELECT 1")]
    assert [found is not None and found.creates for found in made] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("USE a.b", ("", "a.b")),
        ("use catalog `a`;", ("CATALOG", "`a`")),
        ("USE /* c */ SCHEMA a", ("SCHEMA", "a")),
        ("USE schema", ("", "schema")),
        ("USE a b", None),
        ("SELECT 1", None),
    ],
)
def test_use_names_a_catalog_or_schema(text: str, found: tuple[str, str] | None):
    assert commands.use(text) == found


def test_containers_and_views_are_told_by_their_first_words():
    assert [commands.container(text) for text in ("CREATE SCHEMA IF NOT EXISTS a", "create volume a", "CREATE TABLE schema (a INT)")] == [
        "SCHEMA",
        "VOLUME",
        None,
    ]
    views = ("CREATE OR REPLACE GLOBAL TEMPORARY VIEW a AS SELECT 1", "create view a AS SELECT 1", "CREATE TABLE a AS SELECT 'VIEW'")
    assert [commands.makes_view(text) for text in views] == [True, True, False]
