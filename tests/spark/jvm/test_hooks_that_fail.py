"""Where Spark, Delta or Hadoop has not what a quicker way needs, the public way gives the same."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from lakelet.jvm import delta, frames, hadoop, java_sources, later_checkpoint, local_files, sessions, streams
from lakelet.jvm.errors import Py4JError
from lakelet.storage.delta.deferred_upkeep import DEFERRED
from lakelet.storage.delta.transaction import Transaction


def gone(*_: Any) -> Any:
    raise Py4JError("it is not there")


class Lacking:
    """An object of Java without some of its methods."""

    def __init__(self, java: Any, *names: str) -> None:
        self._java, self._names = java, names

    def __getattr__(self, name: str) -> Any:
        return gone if name in self._names else getattr(self._java, name)


def test_all_settings_are_read_one_by_one(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sessions.all_settings(spark)
    monkeypatch.setattr(sessions, "java_class", gone)
    assert sessions.all_settings(spark) == found
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_the_text_of_the_settings_differs_where_they_do(spark: Any) -> None:
    session = spark.newSession()
    lacking: Any = SimpleNamespace(_jvm=spark._jvm, _jsparkSession=Lacking(sessions.java_session(session), "sessionState"))
    before = sessions.settings_text(lacking)
    assert sessions.settings_text(lacking) == before
    session.conf.set("lakelet.test", "1")
    assert sessions.settings_text(lacking) != before


def test_a_frame_without_rows_is_made_of_its_columns(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.sql("SELECT 1 AS a, named_struct('b', 'x') AS s")
    monkeypatch.setattr(frames, "java_class", gone)
    assert (frames.without_rows(frame).schema, frames.without_rows(frame).count()) == (frame.schema, 0)


@pytest.mark.parametrize("missing", ["singleton", "class"])
def test_commits_of_a_continuous_update_are_those_of_delta(
    spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    path = tmp_path / "numbers"
    spark.range(0).write.format("delta").option("delta.autoOptimize.autoCompact", "true").save(str(path))
    if missing == "singleton":
        monkeypatch.setattr(delta, "singleton", gone)
    else:
        monkeypatch.setattr(later_checkpoint, "compiled", gone)
        later_checkpoint._function.cache_clear()
    try:
        with DEFERRED.on():
            transaction = Transaction(spark, path)
            transaction.commit(transaction.write(spark.range(3)), user_metadata={})
    finally:
        later_checkpoint._function.cache_clear()
    assert spark.read.format("delta").load(str(path)).count() == 3


def test_hadoop_keeps_its_settings_and_its_file_system(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    before = context._jsc.hadoopConfiguration().get("fs.file.impl")
    monkeypatch.setattr(hadoop, "java_class", gone)
    hadoop.forget_servers(context)
    hadoop.write_no_checksum_files(context)
    monkeypatch.setattr(local_files, "_NAME", "another.Name")
    monkeypatch.setattr(local_files, "compiled", gone)
    local_files.use_quick_local_files(context)
    assert context._jsc.hadoopConfiguration().get("fs.file.impl") == before
    assert spark.range(3).count() == 3


def test_a_gateway_that_keeps_functions_elsewhere_keeps_them(spark: Any) -> None:
    streams.release(SimpleNamespace(sparkContext=SimpleNamespace()), print)  # type: ignore[arg-type]


def test_a_class_that_cannot_be_compiled_is_an_error_of_java(spark: Any) -> None:
    with pytest.raises(Py4JError):
        java_sources.compiled(spark.sparkContext, "public class Broken { int a = ; }")


FIRST = """
import json
from lakelet.jvm import first_session
from lakelet.jvm.errors import Py4JError

def gone(*_):
    raise Py4JError("it is not there")

first_session.singleton = gone
from lakelet.spark.launch.session import start_session
spark = start_session(input_bytes=0)
from pyspark.ml.functions import array_to_vector, vector_to_array
rows = spark.createDataFrame([([1.0, 2.0],)], "v array<double>")
print(json.dumps(rows.select(vector_to_array(array_to_vector("v")).alias("v")).first()["v"]))
"""


@pytest.mark.long
def test_the_first_session_is_that_of_pyspark() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=300)
    assert (done.stderr, json.loads(done.stdout)) == ("", [1.0, 2.0])
