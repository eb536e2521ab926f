"""Projects as processes that died at failpoints leave them: one update is stopped at each point, and its folder copied there.

What is on the disk while every process of the group is stopped is what SIGKILL at that moment leaves. A new Java process per point, which
takes most of a kill's time, is not needed. Tests that kill in earnest: `kill_at`, `killed_at`, `kills.py`.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.victim_processes import stop_at
from tests.spark.conftest import Project


@dataclass(frozen=True)
class Scenario:
    """An update that dies: what happens before it, the points at which it does, and its request (`full_refresh`, `replay` …)."""

    prepare: Callable[[Project], None]
    points: tuple[str, ...]
    request: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Deaths:
    """Runs the update of each scenario once, when it is first asked for."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self._folder, self._spark = folder, spark
        self._kept: dict[Scenario, tuple[Project, Mapping[str, Path]]] = {}

    def left_at(self, scenario: Scenario, point: str) -> Project:
        """The project as the update left it that died at `point`, in the folder that all deaths of the scenario share."""
        if scenario not in self._kept:
            self._kept[scenario] = self._update(scenario)
        project, images = self._kept[scenario]
        remove(project.folder, self._spark)
        shutil.copytree(images[point], project.folder)
        again = copy.copy(project)
        again.files, again.parameters = [*project.files], {**project.parameters}
        return again

    def _update(self, scenario: Scenario) -> tuple[Project, Mapping[str, Path]]:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        project = Project(folder / "project", self._spark)
        scenario.prepare(project)
        return project, stop_at(scenario.points, project.folder, folder / "left", **{key: [*value] for key, value in scenario.request})


def remove(folder: Path, spark: Any) -> None:
    """Remove a project. Threads of Spark write there after an update has ended: once a minute those of state stores, for one."""
    spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    deadline = time.monotonic() + 10
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)
