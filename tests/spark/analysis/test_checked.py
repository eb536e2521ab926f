"""What `validate`, `plan` and `graph` refuse: functions that raise whatever the data is; those that wait for data bring a sentence."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors, ExitCode
from tests.spark.analysis.marked_mistakes import HEAD, at, marks

ORDERS = (
    HEAD
    + """
    def clean_name(column):
        return F.trim(column)

    @dlt.table
    def orders():
        return spark.createDataFrame([(1, "a", 2.0)], "id INT, name STRING, amount DOUBLE")
"""
)
WRONG = (
    ORDERS
    + """
    @dlt.table
    def raises():
        raise ValueError("no such month")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def helper():
        return dlt.read("orders").select(clean_names("name"))  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def function():
        return dlt.read("orders").select(F.uper("name"))  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def method():
        return dlt.read("orders").slect("name")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def column():
        return dlt.read("orders").select("id", "amonut")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def module():
        import panads  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def name():
        from helpers import cleen  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def routine():
        return spark.sql("SELECT lenght(name) FROM orders")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def dataset():
        return dlt.read("oders")  #! UNKNOWN_DATASET

    @dlt.view
    def view():
        return {}["a"]  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def reads_view():
        return dlt.read("view")

    @dlt.table
    @dlt.expect("positive", "amonut > 0")  #! EXPECTATION_INVALID
    def rule():
        return dlt.read("orders")
"""
)
POINTED = {
    "clean_names(": ("clean_names", "clean_name"),
    "F.uper": ("uper", "upper"),
    ".slect(": ("slect", "select"),
    '"amonut")': ("amonut", "amount"),
    "import panads": ("panads", "pandas"),
    "import cleen": ("cleen", "clean"),
    "lenght(": ("lenght", "length"),
    '"oders"': ("oders", "main.default.orders"),
    "amonut > 0": ("amonut", "amount"),
}
LOOKING = (
    ORDERS
    + """
    @dlt.table
    def looks():
        newest = dlt.read("orders").first()["amount"]
        return dlt.read("orders").where(F.col("amount") == newest)

    @dlt.table
    def of_rdd():
        return spark.range(dlt.read("orders").rdd.map(lambda row: row["id"]).collect()[0])

    @dlt.table
    def no_python_file():
        with open("/nowhere/at/all") as file:
            return spark.range(len(file.read()))

    @dlt.table
    def no_file():
        return spark.read.json("/nowhere/at/all")

    @dlt.table
    def below():
        try:
            return dlt.read("no_file")
        except Exception as problem:
            raise RuntimeError("no file") from problem
"""
)


def test_a_function_that_raises_is_an_error_of_validate_and_plan_with_its_line_and_the_nearest_name(project):
    p = project(WRONG)
    p.helper("def clean(frame):\n    return frame\n", "helpers.py")
    for check in (p.pipeline.check, p.pipeline.plan):
        with pytest.raises(DefinitionErrors) as caught:
            check()
        assert caught.value.exit_code == ExitCode.INVALID
        assert sorted((e.where.line, e.code) for e in caught.value.errors) == sorted((line, code) for _, line, code in marks(p))
    found = {("pipeline.py", e.where.line): e for e in caught.value.errors}
    for mark, (pointed, near) in POINTED.items():
        error = at(found, p, mark)
        text, caret = error.where.excerpt()
        assert text[caret.index("^") :].startswith(pointed), str(error)
        assert error.nearest[0] == near, str(error)


@pytest.mark.long
def test_what_waits_for_rows_or_files_is_told_and_the_update_decides(project):
    p = project(LOOKING)
    checked, plan = p.pipeline.check(), p.pipeline.plan()
    told = {notice.text.split(" ")[0].rsplit(".", 1)[-1]: notice.text for notice in checked.unchecked}
    assert set(told) == {"looks", "of_rdd", "no_python_file", "no_file", "below"}
    assert all("looks at rows" in told[name] for name in ("looks", "of_rdd"))
    assert all("its data is not there yet" in told[name] for name in ("no_python_file", "no_file"))
    assert plan.unchecked == checked.unchecked
    p.run(expect="FAILED")
    assert p.rows("looks", "amount") == [2.0]
