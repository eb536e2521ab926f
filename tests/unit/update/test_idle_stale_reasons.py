"""Code that looks at what nothing notes gets no quick answer (IF-5, IF-6)."""

from __future__ import annotations

import pytest

from lakelet.base.terminals import VOLATILE
from lakelet.update.idle.stale_reasons import stale_reasons_of
from tests.paths import ROOT


def found(source: str, **more: frozenset[str]) -> list[str]:
    return [doubt.partition(" ")[2] for doubt in stale_reasons_of(source, "a.py", volatile=VOLATILE, **more)]


@pytest.mark.parametrize(
    "source",
    [
        "import datetime\nx = datetime.date.today()",
        "from datetime import datetime as d\nx = d.now()",
        "import time\nx = time.time()",
        "from uuid import uuid4\nx = uuid4()",
        "import numpy as np\nx = np.random.rand()",
        "import os\nx = os.getpid()",
        "import os\nx = os.access('a', 4)",
        "import sys\nx = sys.argv",
        "import os\nx = os.environ['TERM']",
        "import os\nx = os.environ['_']",
        "from os import getenv\nx = getenv('_')",
        "import pandas as pd\nx = pd.Timestamp('now')",
        "import requests",
        "import duckdb",
        "def f():\n    import polars",
        "import socket",
        "import subprocess",
        "import importlib\nimportlib.import_module('a')",
        "exec('x')",
        "x = getattr(d, name)",
        "x = getattr(d, 'today')()",
        "import pandas as pd\nx = pd.read_parquet('a')",
        "x = spark.sparkContext.textFile('a')",
        "x = spark._jvm.java.lang.System.nanoTime()",
        "x = spark.catalog.listTables()",
        "from delta.tables import DeltaTable\nx = DeltaTable.forPath(spark, 'a')",
        "from os.path import *",
        "class Layout:\n    def text(self):\n        return self.time",
        "class Layout:\n    time: str\n\ndef text(clock):\n    return clock.time()",
        "x = (",
    ],
)
def test_what_cannot_be_compared_is_a_doubt(source: str) -> None:
    assert found(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = '_'.join(['a', 'b'])",
        "import dlt\nfrom pyspark.sql import functions as F\nx = F.now() + F.rand() + F.exists('a', f)",
        "from pyspark.sql.functions import now, rand\nx = now()",
        "import re\nx = re.compile('a')",
        "import os\nx = os.environ['LIMIT']",
        "import json\nx = json.load(open('a'))",
        "from datetime import date\nx = date(2026, 1, 1)",
        "x = getattr(row, 'name', None)",
        "now = rows.select('a')\nx = rows.join(now)",
        "import helpers.money\nfrom . import other",
        "class Layout:\n    time: str\n\n    def text(self):\n        return self.time",
    ],
)
def test_what_is_compared_or_cannot_change_is_none(source: str) -> None:
    assert found(source, known=frozenset({"helpers"})) == []


def test_the_doubt_names_the_line() -> None:
    assert list(stale_reasons_of("\nimport time\n", "a.py")) == ["a.py:2 imports time"]


def test_the_pipelines_of_the_repository_have_none() -> None:
    known = frozenset({"pipelines", "expectations", "layouts"})
    folders = [ROOT / "pipelines", ROOT / "expectations", *ROOT.glob("examples/*/pipelines")]
    files = [*(file for folder in folders for file in sorted(folder.rglob("*.py"))), ROOT / "examples" / "factory" / "layouts.py"]
    assert len({file.parent for file in files}) > 5
    assert [
        doubt for file in files for doubt in stale_reasons_of(file.read_text(encoding="utf-8"), file.name, known=known, volatile=VOLATILE)
    ] == []
