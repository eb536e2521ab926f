"""Which pipelines get no record of an idle update (IF-7)."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace as Some
from typing import Any

import pytest

from lakelet.analysis.plan_facts import NO_STREAM, StreamPlan
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.language.model import Kind
from lakelet.plan.decisions import Strategy
from lakelet.update.idle import recording


def doubts(
    *,
    stream: StreamPlan = NO_STREAM,
    changes: Any = None,
    options: dict[str, str] | None = None,
    path: str = "/landing",
    strategy: Strategy = Strategy.SKIP,
    columns: str = "c",
    described: str = "d",
    hooks: tuple[Any, ...] = (),
    sink: Any = None,
    failures: dict[str, Any] | None = None,
    tables: dict[str, Any] | None = None,
) -> list[str]:
    """The doubts about a pipeline of one streaming table, as an update leaves it."""
    specs = (SourceSpec(path, options or {}),)
    task: Any = Some(
        name="orders",
        target="main.shop.orders",
        dataset=Some(sink=sink),
        dataset_kind=Kind.STREAMING_TABLE,
        analyzed=Some(schema=Some(json=lambda: "c")),
        declared=Some(changes=changes),
        flow=Some(stream=stream, sources=specs),
        description=lambda: "d",
    )
    stored = {"main.shop.orders": Some(described=described, columns=columns)}
    opened: Any = Some(
        loaded=Some(definitions=Some(hooks=hooks), errors=()),
        checks={},
        config=Some(tables=tables or {}),
        analysis=Some(failures=failures or {}),
        storage=Some(registry=lambda: Some(datasets=stored)),
    )
    progress: Any = Some(steps={"orders": Some(strategy=strategy)})
    return list(recording._of_pipeline(opened, [task], progress))


def test_a_table_that_files_fill_is_none() -> None:
    assert doubts() == []
    assert doubts(strategy=Strategy.STREAM) == []
    assert doubts(options={"cloudFiles.cleanSource": "OFF", "cloudFiles.format": "json"}) == []


DOUBTS: dict[str, dict[str, Any]] = {
    "a hook": {"hooks": (print,)},
    "a failure of analysis": {"failures": {"main.shop.orders": ValueError()}},
    "data without a version": {"stream": replace(NO_STREAM, unversioned="it reads data that carries no version")},
    "a stream with state": {"stream": replace(NO_STREAM, processor=True)},
    "snapshots from a function": {"changes": Some(snapshots=lambda version: None)},
    "cleanSource": {"options": {"cloudFiles.cleanSource": "MOVE"}},
    "maxFileAge": {"options": {"cloudFiles.maxFileAge": "90 days"}},
    "a schema location": {"options": {"cloudFiles.schemaLocation": "/shared/schemas"}},
    "a sink of files": {"sink": Some(format="lakelet.export")},
    "an object store": {"path": "s3a://bucket/landing"},
    "a table in an object store": {"tables": {"main.shop.kinds": Some(path="s3a://bucket/kinds", given="kinds")}},
    "a new description": {"described": "otherwise"},
    "new columns": {"strategy": Strategy.STREAM, "columns": "more"},
}


@pytest.mark.parametrize("about", DOUBTS.values(), ids=DOUBTS)
def test_what_time_or_spark_alone_can_tell_is_a_doubt(about: dict[str, Any]) -> None:
    assert doubts(**about)


def test_the_start_of_a_process_is_known_to_hundredths_of_a_second() -> None:
    """Files that are written just before a first update have not changed since it began."""
    code = "from lakelet.update.idle.recording_begun import process_start; print(process_start())"
    before = time.time()
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert before - 0.1 < float(said) < time.time()
