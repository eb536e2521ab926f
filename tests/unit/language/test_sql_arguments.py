"""Literals and tables in the arguments of table functions, read without a query. No Spark."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.language.sql_text.table_names import CallRef
from lakelet.spark.names.table_functions import FileStateCall, evaluated, state_of


def asked(*texts: str) -> tuple[list[object], list[str]]:
    """The values of expressions, and the queries that they cost."""
    queries: list[str] = []

    class Rows:
        def first(self) -> list[object]:
            return ["from a query"]

    def run(query: str) -> Rows:
        queries.append(query)
        return Rows()

    return list(evaluated(run)(texts)), queries


@pytest.mark.parametrize(
    ("text", "value"),
    [("'a'", "a"), ("-- c\n 12 /* d */", 12), ("- 3", -3), ("false", False), ("MAP('a', 'b,c')", {"a": "b,c"})],
)
def test_plain_literals_cost_no_query(text: str, value: object):
    assert asked(text) == ([value], [])


@pytest.mark.parametrize("text", ["1L", "map('a', 1)", "map('a' 'b')", "a", "'a' || 'b'", "$$a$$", ""])
def test_any_other_expression_is_asked_of_spark(text: str):
    assert asked(text) == (["from a query"], [f"SELECT {text} AS a0"])


@pytest.mark.parametrize("text", ["TABLE(a.b)", "table a.b", "TABLE /* ) */ ( a.b )"])
def test_cloud_files_state_of_a_table(text: str):
    assert state_of(CallRef("cloud_files_state", 0, 1, False, ((None, text),)), lambda _: [None], None) == FileStateCall(table="a.b")


def test_cloud_files_state_of_two_tables_is_refused():
    with pytest.raises(LakeletError) as error:
        state_of(CallRef("cloud_files_state", 0, 1, False, ((None, "TABLE(a, b)"),)), lambda _: [None], None)
    assert error.value.code == "CF_STATE_INCORRECT_SQL_PARAMS"
