"""examples/factory run continuously, and killed in a later round or a pause: the next update leaves the tables that the files say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.cli.main import main
from tests.crash.deaths import remove
from tests.crash.victim_processes import ask, copy_where_stopped, end
from tests.factory_example import FactoryExample

AT_FIRST = 6
"""Drops that the first round reads: one batch for each of three factories, then five views."""
IN_A_ROUND = ("ledger.planned@2", "batch.committed@5", "view.committed@7")
IN_A_PAUSE = ("upkeep.compacted", "upkeep.checkpointed")
BEFORE_COMPACTION_IS_COMMITTED, KILLED = "before compaction is committed", "killed while a round writes"
SECONDS = 400


class Continuous:
    """A continuous update of the example in a process of its own, and the files that land for it."""

    def __init__(self, folder: Path, failpoint: str) -> None:
        self.example = FactoryExample(folder / "factory")
        self.drops = 0
        self.land(AT_FIRST)
        self._told = folder / "victim.log"
        self._give_up = time.monotonic() + SECONDS
        with self._told.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lakelet", "run", "--continuous"],
                cwd=self.example.folder,
                env={**os.environ, "LAKELET_FAILPOINT": failpoint},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Continuous:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process)

    def land(self, count: int = 2) -> None:
        """Files of some more drops land."""
        self.example.drop(self.drops, count)
        self.drops += count
        self._wanted = self.example.expected()

    def has_caught_up(self) -> bool:
        return self.example.has_caught_up(self._wanted)

    def wait_until(self, happened: Callable[[], bool], what: str) -> None:
        while not happened():
            if self.process.poll() is not None or time.monotonic() > self._give_up:
                raise AssertionError(f"{what}: not while the process lived, nor within {SECONDS} s\n{self._told.read_text()[-2000:]}")
            time.sleep(0.02)


def raw(example: FactoryExample) -> DeltaTable:
    return DeltaTable(str(example.place("movements_raw")))


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> tuple[FactoryExample, Mapping[str, Path]]:
    """The example, and copies of its folder as a continuous update leaves it that dies after its first round.

    One update is stopped at each point, goes on and is killed in the end.
    """
    folder = tmp_path_factory.mktemp("continuous")
    asked, images = folder / "asked", folder / "left"
    with Continuous(folder, f"STOP:{asked}") as update:
        example = update.example
        update.wait_until(update.has_caught_up, "the first delivery is in all tables")
        found = {**ask([*IN_A_ROUND, *IN_A_PAUSE], asked, images), KILLED: images / "killed"}

        def all_copied() -> bool:
            copy_where_stopped(update.process.pid, asked, example.folder, images)
            waited_for = any(asked.iterdir())
            if waited_for and update.has_caught_up():
                update.land()
            return not waited_for

        update.wait_until(all_copied, "all points are reached")
        update.wait_until(update.has_caught_up, "all deliveries are in all tables")
        version = raw(example).version()
        update.land()
        update.wait_until(lambda: raw(example).version() > version, "a batch of one more delivery is committed")
    shutil.copytree(example.folder, found[KILLED])
    return example, {**found, BEFORE_COMPACTION_IS_COMMITTED: found["upkeep.compacted"]}


@pytest.mark.in_ci("batch.committed@5", *IN_A_PAUSE)
@pytest.mark.parametrize("moment", [*IN_A_ROUND, KILLED, *IN_A_PAUSE, BEFORE_COMPACTION_IS_COMMITTED])
def test_a_continuous_update_that_died_after_its_first_round_is_finished_by_the_next_update(
    moment: str, dead: tuple[FactoryExample, Mapping[str, Path]], monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    example, images = dead
    remove(example.folder, spark)
    shutil.copytree(images[moment], example.folder)
    if moment == BEFORE_COMPACTION_IS_COMMITTED:
        take_back_compaction(example)
    if moment in (*IN_A_ROUND, KILLED):
        assert not example.has_caught_up(example.expected())
    example.drop(40)
    monkeypatch.chdir(example.folder)
    assert main(["run"]) == 0
    example.check()


def take_back_compaction(example: FactoryExample) -> None:
    """Leave the files of a compaction that no commit names, as a process does that dies before that."""
    assert raw(example).history(1)[0]["operation"] == "OPTIMIZE"
    for file in (example.place("movements_raw") / "_delta_log").glob(f"*{raw(example).version():020}.*"):
        file.unlink()
