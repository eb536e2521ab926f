"""Kill the process at any moment, again and again."""

from __future__ import annotations

import json
import random
import subprocess
from contextlib import suppress

from tests.crash.conftest import check_all, end, measured
from tests.crash.scenario import answer, later_drop

KILLS = 5
LONGEST = 8.0  # seconds; an update in a new process takes about that long here


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
