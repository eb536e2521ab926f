"""What a session is spared at its start it has when it is needed. In processes of their own: a session of a test run has done it all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelet.spark.catalyst import without_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENCODERS = """
import json, re, sys
from pathlib import Path
from lakelet.spark.launch.delta_encoders import give_encoders, keep_encoders
from lakelet.spark.launch.session import start_session
spark = start_session(input_bytes=0)
context, file = spark.sparkContext, Path(sys.argv[2])
given = give_encoders(context, file) if sys.argv[1] == "given" else keep_encoders(context, file)
java = context._jvm

def instance(owner, name):
    return getattr(getattr(owner, name), "MODULE$")

def reflects():
    field = java.java.lang.Class.forName("scala.reflect.runtime.package$").getDeclaredField("bitmap$0")
    field.setAccessible(True)
    return bool(field.get(None))

def shown(encoder):
    parts = [encoder.schema().json(), *(encoder_part.toString() for encoder_part in (encoder.objSerializer(), encoder.objDeserializer()))]
    return [re.sub(r"#\\d+|\\d+(?=, )|lambdavariable\\([^)]*\\)", "", part) for part in parts]

delta = java.org.apache.spark.sql.delta
kept = instance(delta.implicits, "package$")
actions = instance(delta.actions, "Action$")
found = {
    "add": shown(kept.addFileEncoder()), "single": shown(kept.singleActionEncoder()),
    "log": actions.logSchema().json(), "added": actions.addFileSchema().json(),
}
print(json.dumps([given, reflects(), found]))
"""
ML = """
import sys
from lakelet.spark.launch.session import start_session
if sys.argv[1] == "before":
    import pyspark.ml
spark = start_session(input_bytes=0)
print("pyspark.ml" in sys.modules)
from pyspark.ml.functions import array_to_vector, vector_to_array
rows = spark.createDataFrame([([1.0, 2.0],)], "v array<double>")
print(rows.select(vector_to_array(array_to_vector("v")).alias("v")).first()["v"])
"""
BEGUN = """
import sys
from lakelet.spark.launch import session
session.begin_session(app_name="begun", input_bytes=0)
(wanted, launch, java), = session._begun
session.begin_session(app_name="again", input_bytes=0)
assert len(session._begun) == 1
spark = session.start_session(app_name=sys.argv[1], input_bytes=0)
print(spark.sparkContext._gateway.proc.pid == java.process.pid, java.process.poll() is None, spark.range(2).count())
"""
UNUSED = """
import time
from lakelet.spark.launch import session
session.begin_session(app_name="begun", input_bytes=0)
print(session._begun[0][2].process.pid)
"""


def printed(script: str, *arguments: Any) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.long
def test_delta_has_the_encoders_that_it_derives_without_deriving_them(tmp_path: Path) -> None:
    derived = json.loads(printed(ENCODERS, "derived", tmp_path / "encoders")[0])
    given = json.loads(printed(ENCODERS, "given", tmp_path / "encoders")[0])
    assert (derived[:2], given[:2]) == ([None, True], [True, False])
    assert given[2] == derived[2]


def test_a_file_that_holds_no_encoders_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    from lakelet.spark.launch.delta_encoders import give_encoders

    (tmp_path / "encoders").write_bytes(b"\xac\xed\x00\x05and then nothing")
    assert not give_encoders(spark.sparkContext, tmp_path / "encoders")
    assert not give_encoders(spark.sparkContext, tmp_path / "absent")
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 3


@pytest.mark.long
@pytest.mark.parametrize("imported", ["before", "after"])
def test_the_functions_of_pyspark_ml_are_there_whenever_it_is_imported(imported: str) -> None:
    assert printed(ML, imported) == [str(imported == "before"), "[1.0, 2.0]"]


@pytest.mark.long
def test_a_session_takes_the_java_process_that_was_begun_for_it() -> None:
    assert printed(BEGUN, "begun") == ["True True 2"]


@pytest.mark.long
def test_a_java_process_that_was_begun_for_another_session_ends() -> None:
    assert printed(BEGUN, "other") == ["False False 2"]


def test_a_java_process_that_was_begun_in_vain_ends_with_its_process() -> None:
    (process,) = printed(UNUSED)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


def test_nothing_is_begun_where_something_would_be_fetched_or_made_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path))
    script = "from lakelet.spark.launch import session; session.begin_session(app_name='a', input_bytes=0); print(session._begun)"
    monkeypatch.setenv("LAKELET_JARS", str(tmp_path))
    assert printed(script) == ["[]"]
    monkeypatch.delenv("LAKELET_JARS")
    (tmp_path / "jars").symlink_to(Path(os.environ.get("HOME", "/")) / ".cache" / "lakelet" / "jars")
    assert printed(script) == ["[]"]


def test_a_frame_without_rows_has_the_columns_of_the_frame_and_their_metadata(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a, 'x' AS b, named_struct('c', 2.5) AS s, CAST(NULL AS VARIANT) AS v")
    frame = frame.withMetadata("b", {"comment": "what it is"})
    empty = without_rows(frame)
    assert empty.schema == frame.schema
    assert empty.schema["b"].metadata == {"comment": "what it is"}
    assert empty.count() == 0
