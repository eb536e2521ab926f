"""`lakelet.transforms` is usable as a copied folder, and as a package that was installed without its dependencies."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from tests.paths import ROOT


def test_the_copied_folder_needs_pyspark_and_nothing_of_lakelet(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "lakelet" / "transforms", tmp_path / "steps", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys, steps; print(steps.flatten(separator='.')); print({'lakelet', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["flatten(separator='.', levels=None, on_collision='error')", "set()"]


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({names!r}))
from lakelet.transforms import flatten
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.sql("SELECT struct(1 AS a, struct(2 AS b) AS c) AS s").transform(flatten()).collect())
"""


@pytest.mark.spark
@pytest.mark.long
def test_a_package_without_its_dependencies_flattens_on_the_pyspark_that_is_there(tmp_path: Path) -> None:
    needed = {re.split(r"[^\w-]", text)[0] for text in requires("lakelet") or () if "extra ==" not in text} - {"pyspark"}
    names = {
        module for module, owners in packages_distributions().items() if needed & {owner.lower().replace("_", "-") for owner in owners}
    }
    assert {"delta", "deltalake", "pandas", "pyarrow", "google", "yaml"} <= names
    done = subprocess.run([sys.executable, "-c", WITHOUT.format(names=names)], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[Row(s_a=1, s_c_b=2)]"], done.stderr
