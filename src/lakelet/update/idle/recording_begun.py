"""Begins the record of an idle update, before anything is loaded. Imports nothing of Spark."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from lakelet.base.masters import is_local
from lakelet.config.rule_files import FOLDER as RULES
from lakelet.config.update_config import PipelineConfig
from lakelet.files.reads import Reads
from lakelet.files.scratch import process_folder
from lakelet.spark.launch.environment import cache_folder, configuration_folders, spark_home
from lakelet.update.idle import facts
from lakelet.update.idle.facts import Fact, FactKind, Here

_START_TICKS = 19  # in /proc/self/stat after the name of the program: field 22
_CLOCK_TICK = 0.02  # seconds; the clocks of processes and of file systems move in steps of a hundredth
_PSUTIL_IS_OFF = 1.5  # seconds at most


@dataclass(frozen=True)
class Recording:
    """Recording of one update, from the start of its process on.

    Args:
        here: this process and machine.
        start: the facts about the process, as they were before anything was loaded.
        moment: when the process started, in seconds since 1970.
        reads: what loading and analysis read.
    """

    here: Here
    start: tuple[Fact, ...]
    moment: float
    reads: Reads

    @classmethod
    def begin(cls, config: PipelineConfig) -> Recording | None:
        """Begin in a process that has not loaded anything.

        Return None for a storage that can have no record, and where a signature cannot be taken, as in a working folder that is gone: the
        update itself does not depend on that.
        """
        if not isinstance(config.storage, Path):
            return None
        here = Here(config, os.urandom(16), dict(os.environ))
        own = (os.path.abspath(config.storage), str(cache_folder()))
        trees = [(FactKind.TREE, tree) for tree in _declared_trees(config)]
        folders = [(FactKind.NAMES, folder) for folder in _import_folders(config)]
        try:
            start = (*facts.of_process(here), *facts.looked_up(here, [*trees, *folders]))
        except facts.UNKNOWN:
            return None
        temporary = str(process_folder())
        return cls(here, start, process_start(), Reads(own, (temporary, os.path.realpath(temporary))))


def process_start() -> float:
    """When this process started, in seconds since 1970, or a few hundredths of a second before.

    psutil counts from the second in which the machine was started, so that its time may be a second too early: files that were written
    just before a first update would be taken for changed ones. Linux gives the age of a process by a clock that is still readable.
    """
    given = psutil.Process().create_time()
    try:
        ticks = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[_START_TICKS]
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):  # not Linux
        return given
    exact = time.time() - age - _CLOCK_TICK
    return exact if abs(exact - given) < _PSUTIL_IS_OFF else min(exact, given)


def _declared_trees(config: PipelineConfig) -> Iterator[str]:
    """Yield the folders of tables from outside, the folder of rules, and those from which Java reads settings."""
    yield os.path.abspath(config.root / RULES)
    yield from map(os.path.abspath, configuration_folders(local=is_local(config.master)))
    yield str(spark_home() / "conf")
    yield from (os.path.abspath(table.path) for table in config.tables.values())


def _import_folders(config: PipelineConfig) -> Iterator[str]:
    """Yield the folders in which code finds modules: Python may have listed them before the first file is loaded."""
    yield from (os.path.abspath(folder) for folder in (*config.import_roots, *(file.parent for file in config.files)))
    yield from (os.path.abspath(entry) for entry in sys.path)


__all__ = ["Recording", "process_start"]
