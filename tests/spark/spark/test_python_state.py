"""State of Python functions on streams: what pyspark's worker gets wrong and Lakelet's mends (docs/semantics/language.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.spark.launch.forks import PLAIN_PYTHON

SEEN = """
    import dlt
    import pandas as pd

    def remember(key, batches, state):
        names, Counts = state.get if state.exists else ([], {})
        for batch in batches:
            names = [*names, *batch["name"]]
            Counts = {**Counts, **batch.groupby("name").size().to_dict()}
        state.update((names, Counts))
        yield pd.DataFrame({"kind": [key[0]], "names": [",".join(sorted(names))], "total": [sum(Counts.values())]})

    @dlt.table
    def seen():
        events = spark.readStream.schema("kind STRING, name STRING").json(spark.conf.get("landing"))
        return events.groupBy("kind").applyInPandasWithState(
            remember, "kind STRING, names STRING, total LONG", "names ARRAY<STRING>, Counts MAP<STRING, BIGINT>", "append", "NoTimeout"
        )
"""


@pytest.mark.long
def test_arrays_and_maps_in_the_state_of_a_python_function_survive_updates(project):
    p = project(SEEN)
    p.arrive("1.json", {"kind": "a", "name": "x"}, {"kind": "a", "name": "y"})
    p.run()
    p.arrive("2.json", {"kind": "a", "name": "z"})

    p.run()

    assert p.rows("seen", "kind", "names", "total") == [("a", "x,y", 2), ("a", "x,y,z", 3)]


@pytest.mark.slow
def test_the_same_without_the_fork_server(tmp_path):
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.json").write_text('{"kind": "a", "name": "x"}\n')
    (tmp_path / "p.py").write_text("\n".join(line[4:] for line in SEEN.splitlines()))
    lakelet = str(Path(sys.executable).with_name("lakelet"))

    def ran(*command: str) -> str:
        done = subprocess.run(
            [lakelet, *command], cwd=tmp_path, env={**os.environ, PLAIN_PYTHON: "1"}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran("run", "p.py", "--param", "landing=landing")

    assert json.loads(ran("show", "seen", "--json")) == [{"kind": "a", "names": "x", "total": 1}]
