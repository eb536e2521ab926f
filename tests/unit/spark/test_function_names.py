"""Names that code of older versions imports with all others from `pyspark.sql.functions`. No Spark session."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions

from lakelet.base.patching import patched_with
from lakelet.spark.patches.all_patches import SETS
from lakelet.spark.patches.function_exports import OLDER_NAMES

ALL = "from pyspark.sql.functions import *"


def _imported() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(ALL, names)
    return names


@pytest.mark.parametrize("name", ["an update", "lakelet.testing", "the process in which lakelet init loads source files"])
def test_an_import_of_all_functions_gives_the_older_names_too(name: str) -> None:
    of_functions = [patch for patch in SETS[name] if str(patch) == "pyspark.sql.functions.__all__"]
    with patched_with(of_functions, None):
        found = _imported()
    assert set(OLDER_NAMES) <= set(found)
    assert found["countDistinct"] is functions.countDistinct
    assert {"random", "uuid", "chr"}.isdisjoint(set(found) - {"__builtins__"})  # pyspark leaves out what Python calls so
    assert "countDistinct" not in _imported()
