"""What the parts of a source that did not run may have declared: only such names are no mistake of the sources that read them."""

from __future__ import annotations

import pytest

from lakelet.language.failed_parts import FailedParts, failed_python, failed_sql

DECORATED = """
import dlt
from settings import limit

@dlt.table
def orders():
    return dlt.read("raw")

@dlt.table(name="main.sales.refunds")
def other():
    return 1

dlt.create_streaming_table("events")
dlt.create_auto_cdc_flow(target="customers", source="feed", keys=["id"], sequence_by="at")
print("done")
"""


@pytest.mark.parametrize("broken", ["", "\ndef unfinished(:\n"])
def test_a_python_file_may_declare_the_names_that_its_decorators_and_calls_give(broken):
    lost = FailedParts([failed_python("a.py", DECORATED + broken)])
    assert [name for name in ("orders", "REFUNDS", "sales.refunds", "events", "customers") if not lost.may_declare(name)] == []
    assert [name for name in ("raw", "feed", "order", "main.sales.order") if lost.may_declare(name)] == []
    assert (lost.mentions("main.sales.feed"), lost.mentions("nowhere")) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "for name in names:\n    @dlt.table(name=name)\n    def t():\n        return 1\n",
        'for name in names:\n    @dlt.table(name=f"bronze_{name}")\n    def t():\n        return 1\n',
        "from tables import make\nmake('orders')\n",
        "if spark:\n    make_all()\n",
        "%run ./tables\nx = (\n",
        'dlt.create_streaming_table(f"bronze_{name}")\n',
        "@dlt.table(name=prefix + 'x')\ndef t(:\n",
    ],
)
def test_names_that_are_computed_may_be_any(text):
    assert FailedParts([failed_python("a.py", text)]).may_declare("whatever")


def test_a_statement_of_sql_may_declare_what_it_names_before_its_query():
    lost = FailedParts([failed_sql("a.sql", "CREATE OR REFRESH STREAMIG TABEL sales.orders (id BIGINT) AS SELECT * FROM STREAM raw")])
    assert (lost.may_declare("orders"), lost.may_declare("raw")) == (True, False)
    rest = FailedParts(
        [failed_sql("a.sql", "CREATE VIEW a AS SELECT 'x; CREATE TABLE b AS SELECT 1; CREATE FLOW f AS INSERT INTO c SELECT 2")]
    )
    assert [name for name in "abcd" if not rest.may_declare(name)] == ["d"]
    assert FailedParts([failed_sql("a.sql", "CREATE VIEW ${name} AS SELEC 1")]).may_declare("anything")


def test_an_error_of_a_function_is_excused_where_the_name_stands_in_a_part_that_did_not_run():
    lost = FailedParts([failed_python("a.py", "import missing_package\nfrom settings import limit\nRATE = 3\n")])
    for name, excused in (("limit", True), ("RATE", True), ("missing_package", True), ("F", False)):
        assert lost.excuses("a.py", NameError(name=name)) is excused
    assert not lost.excuses("b.py", NameError(name="limit"))
    assert lost.excuses("a.py", KeyError("settings of the file"))
