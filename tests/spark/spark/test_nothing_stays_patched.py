"""pyspark and Delta are as before after an update, after tests of single files, and after Auto Loader was used alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.errors.utils import is_debugging_enabled
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from lakelet.autoloader import register
from lakelet.base.errors import LakeletError
from lakelet.spark.patches.all_patches import SETS

GOOD = """
import dlt

@dlt.table
def numbers():
    return spark.range(3)
"""
BROKEN = GOOD + "\n@dlt.table\ndef wrong():\n    return spark.table('no_such_table')\n"
RAISING = GOOD + "\nraise RuntimeError('at the top level')\n"


@pytest.fixture
def unchanged(spark: Any) -> Callable[[], None]:
    """Checks that every attribute of the table is the object that it was."""
    is_debugging_enabled()  # pyspark looks up one of its own settings the first time

    def attributes() -> dict[str, Any]:
        return {str(patch): vars(patch.owned_by()).get(patch.name) for patches in SETS.values() for patch in patches}

    before = attributes()

    def check() -> None:
        after = attributes()
        assert [name for name in before if after[name] is not before[name]] == []

    return check


def test_an_update_replaces_methods_and_puts_them_back(project: Any, unchanged: Any) -> None:
    made = project(GOOD + "\nassert 'lakelet/spark/patches' in spark.sql.__code__.co_filename\n")
    before = SparkSession._instantiatedSession
    made.run()
    unchanged()
    assert SparkSession._instantiatedSession is before


@pytest.mark.parametrize(("source", "code"), [(BROKEN, "UNKNOWN_DATASET"), (RAISING, "SOURCE_FAILED")], ids=["analysis", "loading"])
def test_an_update_that_is_refused_leaves_nothing_replaced(source: str, code: str, project: Any, unchanged: Any) -> None:
    errors = project(source).refused()
    assert [error.code for error in errors] == [code]
    unchanged()


def test_a_flow_that_fails_leaves_nothing_replaced(project: Any, unchanged: Any) -> None:
    project(GOOD + "\n@dlt.table\ndef fails():\n    return spark.range(3).selectExpr('raise_error(\"no\") AS x')\n").run(expect="FAILED")
    unchanged()


def test_what_user_code_registers_during_an_update_ends_with_it(project: Any, unchanged: Any) -> None:
    project("from lakelet.autoloader import register\nregister(spark)\n" + GOOD).run()
    unchanged()


def test_functions_of_a_tested_file_leave_nothing_replaced(spark: Any, load_pipeline: Any, tmp_path: Path, unchanged: Any) -> None:
    (tmp_path / "one.py").write_text(
        "import dlt\n\n@dlt.table\ndef one():\n    return dlt.read('input')\n\n@dlt.table\ndef two():\n    1 / 0\n"
    )
    found = load_pipeline(tmp_path / "one.py", inputs={"input": spark.range(2)})
    assert found["one"]().count() == 2
    unchanged()
    with pytest.raises(ZeroDivisionError):
        found["two"]()
    unchanged()
    (tmp_path / "broken.py").write_text("import dlt\n1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        load_pipeline(tmp_path / "broken.py")
    unchanged()


def test_auto_loader_alone_leaves_nothing_replaced_when_its_registrations_are_closed(spark: Any, unchanged: Any) -> None:
    own = DataStreamReader.load
    with register(spark) as outer:
        with pytest.raises(LakeletError, match="CF_INCORRECT_BATCH_USAGE"), register(spark):
            spark.read.format("cloudFiles").load("/nowhere")
        assert DataStreamReader.load is not own
        outer.close()
        assert DataStreamReader.load is own
    unchanged()


def test_an_application_with_auto_loader_of_its_own_can_run_an_update(spark: Any, project: Any, unchanged: Any) -> None:
    with register(spark):
        project(GOOD).run()
        with pytest.raises(LakeletError, match="CF_INCORRECT_BATCH_USAGE"):
            spark.read.format("cloudFiles").load("/nowhere")
    unchanged()
    assert DeltaTable.forName.__qualname__ == "DeltaTable.forName"
