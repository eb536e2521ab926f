"""A process works on one pipeline at a time, and pyspark is as before when it is done."""

from __future__ import annotations

import builtins
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet

SOURCE = """
import builtins, dlt

builtins.while_loading()

@dlt.table
def numbers():
    return spark.range(3)
"""


@pytest.fixture
def errors(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Codes of the errors that a second pipeline raised in another thread while the first one was loaded."""
    (tmp_path / "first.py").write_text(SOURCE)
    (tmp_path / "second.py").write_text("import dlt\n\n@dlt.table\ndef others():\n    return spark.range(1)\n")
    found: list[str] = []

    def second() -> None:
        try:
            lakelet.load(tmp_path / "second.py", storage=tmp_path / "two", spark=spark).run()
        except lakelet.StateError as error:
            found.append(error.code)

    def while_loading() -> None:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    monkeypatch.setattr(builtins, "while_loading", while_loading, raising=False)
    return found


def test_a_second_pipeline_in_another_thread_is_refused_and_the_first_one_completes(errors: list[str], tmp_path: Path, spark: Any) -> None:
    before = {name: SparkSession.__dict__[name] for name in ("table", "sql")}
    result = lakelet.load(tmp_path / "first.py", storage=tmp_path / "one", spark=spark).run()
    assert (result.state, errors) == ("COMPLETED", ["PROCESS_BUSY"])
    assert {name: SparkSession.__dict__[name] for name in before} == before
    assert lakelet.load(tmp_path / "second.py", storage=tmp_path / "two", spark=spark).run().state == "COMPLETED"
