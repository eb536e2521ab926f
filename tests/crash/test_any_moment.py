"""Kill the process at any moment, again and again."""

from __future__ import annotations

import json
import os
import random
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Victims, check_all, measured
from tests.crash.kills import Kills, Twins
from tests.crash.scenario import answer, later_drop
from tests.crash.victim_processes import end

KILLS = 5
LONGEST = 8.0  # seconds; an update in a new process takes about that long here


@pytest.mark.slow
def test_five_kills_in_a_row_lose_nothing_and_double_nothing(scene, victims):
    chance = random.Random(20260301)
    for number in range(1, KILLS + 1):
        scene.land(later_drop(number))
        process = victims.take(None)
        victims.start_ahead(None)
        process.stdin.write(json.dumps({}) + "\n")
        process.stdin.flush()
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.5, LONGEST))
        end(process)
    victims.close()
    scene.project.run()
    counted, wanted = dict(measured(scene.project)), dict(answer(scene.drops).quality)
    counted.pop("kind_known"), wanted.pop("kind_known")  # `totals` is judged at each refresh: how many there were, nobody can say
    assert counted == wanted
    check_all(scene.project, scene.drops)


def _killed(folder: Path, spark: Any, kills: int, seed: int) -> None:
    print(f"seed {seed}, LAKELET_KILL_SEED={seed} repeats the chances")
    twins = Twins(folder, spark, seed)
    victims = Victims(twins.killed.folder, [])
    try:
        for line in Kills(twins, victims).run(kills):
            print(f"seed {seed}: {line}", flush=True)
    finally:
        victims.close()
        victims.log.close()


def _seed() -> int:
    return int(os.environ.get("LAKELET_KILL_SEED") or random.SystemRandom().randrange(10**6))


@pytest.mark.slow
def test_a_pipeline_killed_five_times_holds_and_counts_what_its_undisturbed_twin_does(tmp_path, spark):
    _killed(tmp_path, spark, 5, _seed())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_a_pipeline_killed_two_hundred_times_holds_and_counts_what_its_undisturbed_twin_does(part, tmp_path, spark):
    _killed(tmp_path, spark, 25, _seed() + part)
