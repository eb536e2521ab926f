"""The beginning of a record of an idle update, before anything is loaded: imports nothing of Spark, which starts meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from lakelet.config.update_config import PipelineConfig
from lakelet.files.reads import Reads
from lakelet.quality.files import FOLDER as RULES
from lakelet.spark.launch.environment import cache_folder
from lakelet.update.idle import facts
from lakelet.update.idle.facts import Fact, Here, Kind


@dataclass(frozen=True)
class Recording:
    """What is recorded of one update, from the start of its process on.

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

        Returns None for a storage that can have no record, and where the machine does not say what it depends on: a folder that cannot be
        listed, a user without a name. The update does not depend on that.
        """
        if not isinstance(config.storage, Path):
            return None
        here = Here(config, os.urandom(16), dict(os.environ))
        own = (os.path.abspath(config.storage), str(cache_folder()))
        trees = [(Kind.TREE, tree) for tree in _declared_trees(config)]
        folders = [(Kind.NAMES, folder) for folder in _import_folders(config)]
        try:
            start = (*facts.of_process(here), *facts.looked_up(here, [*trees, *folders]))
        except facts.UNKNOWN:
            return None
        return cls(here, start, psutil.Process().create_time(), Reads(own))


def _declared_trees(config: PipelineConfig) -> Iterator[str]:
    """Tables from outside, and the folder of rules."""
    yield os.path.abspath(config.root / RULES)
    yield from (os.path.abspath(table.path) for table in config.tables.values())


def _import_folders(config: PipelineConfig) -> Iterator[str]:
    """Folders in which code finds modules. Python may have listed them before it loads any."""
    yield from (os.path.abspath(folder) for folder in (*config.import_roots, *(file.parent for file in config.files)))
    yield from (os.path.abspath(entry) for entry in sys.path)


__all__ = ["Recording"]
