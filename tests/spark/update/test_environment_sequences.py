"""Random changes of code and data, runs, environments, promotions and drops: the main storage is as after runs without environments."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lakelet.storage.environments import drop_environment, environment_names, environment_root, find_environment
from tests.crash.environment_steps import NAME, PIPELINE, TABLES, promote, run_environment
from tests.spark.conftest import Project

SILVER = ("* 1)", "* 10)", "+ 1)", "* 0)")
GOLD = ("F.sum", "F.max", "F.count")


class Sequence:
    """One project with environments, and its twin, in which everything is run at once."""

    def __init__(self, seed: int, made: Callable[..., Project], folder: Path) -> None:
        self.random, self.seed, self.number = random.Random(seed), seed, 0
        self.project = made(PIPELINE)
        self.twin = Project(folder / "twin", self.project.spark)
        self.project.parameters["landing"] = self.twin.parameters["landing"] = str(self.project.landing)
        self.code = PIPELINE
        self.root = environment_root(self.project.storage.root, NAME)
        self.change_code(SILVER[0], GOLD[0])

    def change_code(self, silver: str, gold: str) -> None:
        self.code = PIPELINE.replace("* 1)", silver).replace("F.sum", gold)
        for one in (self.project, self.twin):
            one.write(self.code)

    def arrive(self) -> None:
        self.number += 1
        rows = [{"id": self.random.randrange(4), "amount": self.random.randrange(20)} for _ in range(self.random.randrange(1, 4))]
        self.project.arrive(f"{self.number}.json", *rows)

    def main_run(self, *select: str) -> None:
        self.project.run(select=select)
        self.twin.run(select=select)
        self.compare()

    def promotion(self) -> None:
        found = [one.name for one in promote(self.project, self.root)]
        if found:
            self.twin.run(select=tuple(found))
        self.compare()
        if self.random.random() < 0.7:
            self.drop()

    def drop(self) -> None:
        self.without_writing(lambda: drop_environment(find_environment(self.project.storage.root, NAME)))

    def environment_run(self) -> None:
        everything = self.random.random() < 0.5
        if environment_names(self.project.storage.root) and self.has_gone_on():
            self.drop()
        self.without_writing(lambda: run_environment(self.project, self.root, *(("bronze+",) if everything else ())))

    def has_gone_on(self) -> bool:
        base = find_environment(self.project.storage.root, NAME).base
        assert base is not None
        return any(map(base.has_moved, base.versions))

    def without_writing(self, action: Callable[[], Any]) -> None:
        before = self.tree()
        action()
        assert self.tree() == before

    def tree(self) -> dict[str, str]:
        return {n: sha256(c).hexdigest() for n, c in self.project.snapshot().items() if not n.startswith("environments/")}

    def compare(self) -> None:
        for name in TABLES:
            assert self.project.rows(name) == self.twin.rows(name), f"seed {self.seed}: {name}"

    def step(self) -> None:
        begun = bool(environment_names(self.project.storage.root))
        choices: list[tuple[Callable[[], Any], float]] = [
            (self.arrive, 3),
            (lambda: self.change_code(self.random.choice(SILVER), self.random.choice(GOLD)), 2),
            (self.environment_run, 4),
            (self.promotion, 3 if begun else 0),
            (self.drop, 0.3 if begun else 0),
            (self.main_run, 0.7),
        ]
        self.random.choices([action for action, _ in choices], [weight for _, weight in choices])[0]()


@pytest.mark.long
@pytest.mark.in_ci(every=100)
@pytest.mark.parametrize("seed", range(100))
def test_environments_leave_the_main_storage_as_runs_without_them(seed: int, project: Callable[..., Project], tmp_path: Path) -> None:
    sequence = Sequence(seed, project, tmp_path)
    sequence.arrive()
    sequence.main_run()
    for _ in range(10):
        sequence.step()
    sequence.arrive()
    sequence.main_run()
    shutil.rmtree(sequence.root, ignore_errors=True)
    sequence.compare()
