"""What a session is spared at its start it has when it is needed. In processes of their own: a session of a test run has done it all."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from lakelet.jvm.frames import without_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
