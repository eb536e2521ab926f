"""What pyspark's import takes, in processes of their own: this one has imported everything."""

from __future__ import annotations

import subprocess
import sys

IMPORTED = """
import sys
if sys.argv[1] == "absent":
    sys.modules["pandas"] = None  # an import of it fails
from lakelet.spark.launch.quick_start import import_pyspark
import_pyspark()
from pyspark.testing.utils import have_pandas
print(have_pandas, sys.modules.get("pandas") is not None)
from pyspark.sql.pandas.utils import require_minimum_pandas_version
require_minimum_pandas_version()
print("imported", "pandas" in sys.modules)
"""


def printed(word: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", IMPORTED, word], capture_output=True, text=True, timeout=120)


def test_pyspark_is_imported_without_pandas_and_knows_that_it_is_there() -> None:
    assert printed("there").stdout.splitlines() == ["True False", "imported True"]


def test_pyspark_without_pandas_knows_that_it_is_not_there() -> None:
    found = printed("absent")
    assert found.stdout.splitlines() == ["False False"]
    assert "PACKAGE_NOT_INSTALLED" in found.stderr


LEFT = """
import sys
from lakelet.spark.launch.quick_start import leave_pandas
leave_pandas()
import pyarrow as pa
print(pa.array([1, None], pa.int64()).null_count, "pandas" in sys.modules)
import pandas
print(pa.array(pandas.Series([1.5, float("nan")])).null_count, pa.table({"a": [1]}).to_pandas()["a"].tolist())
"""


def test_pyarrow_makes_arrays_without_pandas_and_knows_its_objects_once_it_is_imported() -> None:
    found = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=120)
    assert (found.stderr, found.stdout.splitlines()) == ("", ["1 False", "1 [1]"])
