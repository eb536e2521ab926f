"""What a session is spared at its start it has when it is needed. In processes of their own: a session of a test run has done it all."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lakelet
from lakelet.jvm.frames import without_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENCODERS = """
import json, re, sys
from pathlib import Path
from lakelet.jvm.delta_encoders import give_encoders, keep_encoders
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


def test_an_update_gives_delta_the_encoders_that_were_offered(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelet.jvm import delta_encoders

    asked: list[Path] = []
    given = threading.Event()

    def give(context: Any, file: Path) -> bool:
        asked.append(file)
        given.set()
        return False

    monkeypatch.setattr(delta_encoders, "give_encoders", give)
    (tmp_path / "encoders").touch()
    delta_encoders.offer_encoders(spark.sparkContext, tmp_path / "absent")
    delta_encoders.offer_encoders(spark.sparkContext, tmp_path / "encoders")
    (tmp_path / "code.sql").write_text("CREATE OR REFRESH MATERIALIZED VIEW v AS SELECT 1 AS a")
    for _ in range(2):
        lakelet.load(tmp_path / "code.sql", storage=tmp_path / "storage", spark=spark).run()
    assert given.wait(timeout=30)
    assert asked == [tmp_path / "encoders"]


def test_a_file_that_holds_no_encoders_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    from lakelet.jvm.delta_encoders import give_encoders

    (tmp_path / "encoders").write_bytes(b"\xac\xed\x00\x05and then nothing")
    assert not give_encoders(spark.sparkContext, tmp_path / "encoders")
    assert not give_encoders(spark.sparkContext, tmp_path / "absent")
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 3


GONE = """
import os
from lakelet.spark.launch.session import start_session
spark = start_session(input_bytes=0)
child = os.fork()
if child == 0:
    import pyspark.ml
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert spark.range(2).count() == 2
java = spark.sparkContext._gateway.proc
java.kill()
java.wait()
import pyspark.ml
print("imported", flush=True)
os._exit(0)
"""


@pytest.mark.long
def test_pyspark_ml_is_imported_also_where_java_is_gone_and_in_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", GONE], capture_output=True, text=True, timeout=300)
    assert (done.stderr, done.stdout) == ("", "imported\n")


@pytest.mark.slow
@pytest.mark.parametrize("imported", ["before", "after"])
def test_the_functions_of_pyspark_ml_are_there_whenever_it_is_imported(imported: str) -> None:
    assert printed(ML, imported) == [str(imported == "before"), "[1.0, 2.0]"]


def test_a_frame_without_rows_has_the_columns_of_the_frame_and_their_metadata(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a, 'x' AS b, named_struct('c', 2.5) AS s, CAST(NULL AS VARIANT) AS v")
    frame = frame.withMetadata("b", {"comment": "what it is"})
    empty = without_rows(frame)
    assert empty.schema == frame.schema
    assert empty.schema["b"].metadata == {"comment": "what it is"}
    assert empty.count() == 0
