"""One random life of a pipeline of views: operations on its inputs, an update, every view compared with its query; and again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable

from lakelet.base import failpoints
from lakelet.plan.refreshes import IssueType
from lakelet.plan.selection import EVERYTHING, Request
from tests.spark.conftest import Project
from tests.view_refreshes import operations
from tests.view_refreshes.operations import APPENDING, CHANGING, OF_CHANGE_TABLES, QUIET, Input, Operation
from tests.view_refreshes.oracle import Answer, Oracle, wrong_rows
from tests.view_refreshes.tables import ACCOUNT_EVENTS, ACCOUNTS, HISTORY, TABLES, ZONES
from tests.view_refreshes.tally import Finding, Tally
from tests.view_refreshes.views import View, chosen, pipeline_texts, reads_accounts, with_inputs

SWITCH = "LAKELET_REFRESH"
FORCED = ("append", "groups", "merge", "windows", "rows", "partitions", "full")
"""Techniques that the switch forces where they are right, by its spelling."""

EVENTS = ("select", "select", "fail", "zone", "definition", "tamper", "upkeep", "reset")
VIEW_POINTS = ("view.files_written", "view.committed", "view.recorded")


@dataclass(frozen=True)
class LifeSpec:
    """What decides a life.

    Attributes:
        seed: all of its chance. Views and operations have chance of their own, so that fewer views see the same operations.
        forced: a technique of `FORCED`, `mixed` for another one in each round, or None.
        appends: only operations that leave all rows where they are.
        views: how many views of the pool that the technique may fit, or which ones.
        events: whether the pipeline itself changes as well: its time zone, definitions, selections of views, failed writes.
    """

    seed: int
    rounds: int = 8
    forced: str | None = None
    appends: bool = False
    views: int | tuple[str, ...] = 25
    events: bool = True


@dataclass
class Life:
    """A life that goes on in the folder of a project."""

    spec: LifeSpec
    project: Project
    tally: Tally
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        seed = self.spec.seed
        self.rng = random.Random(f"{seed} rounds")
        wanted = self.spec.views
        self.views = with_inputs(wanted) if isinstance(wanted, tuple) else chosen(random.Random(f"{seed} views"), wanted, self.spec.forced)
        self.zone = random.Random(f"{seed} zone").choice(ZONES)
        self.spark = self.project.spark
        self.oracle = Oracle(self.spark)
        self.inputs = {
            name: Input(table, self.project.path(name), self.spark, random.Random(f"{seed} {name}"), landing=self.project.landing / name)
            for name, table in TABLES.items()
        }
        self.change_tables = self._change_tables() if reads_accounts(self.views) else {}
        self.tampered: set[str] = set()
        self.wrong: set[str] = set()
        self.settled = False

    def _change_tables(self) -> dict[str, Input]:
        landing = self.project.landing / "accounts"
        chance = random.Random(f"{self.spec.seed} accounts")
        return {
            table.name: Input(table, self.project.path(table.name), self.spark, chance, first, landing=landing, arriving=ACCOUNT_EVENTS)
            for first, table in ((0, ACCOUNTS), (10_000, HISTORY))
        }

    def run(self) -> None:
        """The first computation, then the rounds; what is found goes into the tally."""
        self.begin()
        for number in range(1, self.spec.rounds + 1):
            self._round(number)
        self.tally.lives += 1

    def begin(self) -> None:
        """The pipeline, the first rows, the first computation."""
        self._write()
        for name, one in self.inputs.items():
            self.history.append(f"first: {name}: {operations.arrive(one)}")
        if self.change_tables:
            self.history.append(f"first: accounts: {operations.arrive(self.change_tables['accounts'])}")
        self.refresh(None)

    # -- one round

    def _round(self, number: int) -> None:
        quiet = self.change(number)
        forced = self.rng.choice((None, *FORCED)) if self.spec.forced == "mixed" else self.spec.forced
        event = self._event(number) if self.spec.events else None
        if event == "fail":
            self._fail_once(forced)
        selected = [view.name for view in self._some(number, 0.35)] if event == "select" else []
        reset = ["facts", *(view.name for view in self._some(number, 0.1))] if event == "reset" else []
        if selected or reset:
            self.history.append(f"round {number}: only {selected or '…'}, full refresh of {reset}")
        self.refresh(forced, quiet=quiet and event is None, request=Request(select=tuple(selected), full_refresh=tuple(reset)))
        self.tally.rounds += 1

    def change(self, number: int) -> bool:
        """Do one to three operations; whether all of them leave the rows in their files."""
        quiet = True
        only_quiet = self.rng.random() < 0.08
        for place in range(self.rng.choice((1, 2, 2, 3))):
            one = self.inputs[self.rng.choice(("facts", "others", "dims")) if place else "facts"]
            still = only_quiet or (place and self.rng.random() < 0.3)
            weights: Mapping[Any, int] = QUIET if still else APPENDING if self.spec.appends else CHANGING
            operation = operations.chosen(self.rng, weights)
            if weights is not QUIET and one.rng.random() < _fullness(one):
                operation = operations.delete_rows if not self.spec.appends else operations.insert_one
            self._do(number, one, operation)
            quiet = quiet and weights is QUIET
        for one in self.change_tables.values():
            if one.rng.random() < 0.4:
                self._do(number, one, operations.chosen(one.rng, OF_CHANGE_TABLES))
                quiet = False
        return quiet

    def _do(self, number: int, one: Input, operation: Operation) -> None:
        try:
            told = operation(one)
        except Exception as problem:  # a value that does not fit its column, files that are gone: refused by the engine
            told = f"refused: {str(problem)[:200]}"
            self.tally.refused += 1
        self.history.append(f"round {number}: {one.table.name}: {operation.__name__}: {told}")

    def _event(self, number: int) -> str | None:
        """Something that happens to the pipeline itself, in one round of four."""
        event, told = self.rng.choice(EVENTS) if self.rng.random() < 0.25 else None, ""
        if event == "zone":
            self.zone = told = random.Random(f"{self.spec.seed} zone {number}").choice(ZONES)
        elif event == "definition":
            self.views = [view.changed() if self._coin(number, view, 0.5) else view for view in self.views]
        elif event in ("tamper", "upkeep"):
            told = "; ".join(self._by_hand(view, number, tamper=event == "tamper") for view in self._some(number, 0.15))
        if event in ("zone", "definition"):
            self._write()
        if event:
            self.history.append(f"round {number}: {event} {told}")
        return event

    def _some(self, number: int, share: float) -> list[View]:
        """Some of the stored views: whether one is among them does not depend on which others there are."""
        return [view for view in self.views if not view.temporary and self._coin(number, view, share)]

    def _coin(self, number: int, view: View, share: float) -> bool:
        return random.Random(f"{self.spec.seed} {number} {view.name}").random() < share

    def _by_hand(self, view: View, number: int, *, tamper: bool) -> str:
        """Somebody writes to the table of a view: its rows (then it is wrong until it is computed again), or files alone."""
        table, heads = f"delta.`{self.project.path(view.name)}`", self._coin(-number, view, 0.5)
        if not tamper:
            text = f"OPTIMIZE {table}" if heads else f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        else:
            self.tampered.add(view.name)
            text = f"DELETE FROM {table}" if heads else f"INSERT INTO {table} SELECT * FROM {table} LIMIT 2"
        self.spark.sql(text)
        return text.replace(str(self.project.folder), "")

    def _fail_once(self, forced: str | None) -> None:
        """An update in which the write of one view fails at a point; the next update is the one that is compared."""
        point = f"{self.rng.choice(VIEW_POINTS)}@{self.rng.randrange(1, 6)}"
        self.history.append(f"the write of a view fails at {point}")
        failpoints._hits.clear()
        with environment("LAKELET_FAILPOINT", f"{point}:ENOSPC"), environment(SWITCH, forced):
            self._update(EVERYTHING)
        self.settled = False

    # -- the update, and what is compared

    def _write(self) -> None:
        for name, text in pipeline_texts(self.project.landing, self.views).items():
            self.project.write(text, name)
        self.project.parameters["spark.sql.session.timeZone"] = self.zone

    def _update(self, request: Request) -> Any:
        self.project.events = []
        return self.project.pipeline.run(request, listeners=[self.project.events.append])

    def refresh(self, forced: str | None, *, quiet: bool = False, request: Request = EVERYTHING) -> None:
        """Run an update with a technique forced, and compare. `quiet`: no row has changed since the one before."""
        before = self.versions()
        with environment(SWITCH, forced):
            result = self._update(request)
        inputs = {name: one.rows() for name, one in {**self.inputs, **self.change_tables}.items()}
        stored = [view for view in self.views if not view.temporary]
        answers = self.oracle.answers(inputs, self.views, {view.name: self.project.path(view.name) for view in stored}, zone=self.zone)
        techniques, statuses, counts = chosen_techniques(self.project), self.project.statuses(), _counts(self.project)
        failing = {view.name for view in stored if answers[view.name].fails}
        self._check_errors(result, failing, forced)
        after = self.versions()
        for view in stored:
            name, status = view.name, statuses.get(view.name)
            if status == "COMPLETED":
                self.tampered.discard(name)
            if status not in ("COMPLETED", "IDLE") or name in failing or name in self.tampered or name in self.wrong:
                continue
            technique, reason = techniques.get(name, ("NONE", ""))
            self.tally.count(name, technique, reason)
            kind, told = self._compare(view, answers[name], counts if status == "COMPLETED" else None)
            if not kind and after[name] > before[name] + 1 and not request.full_refresh:
                kind, told = "more than one commit", f"{before[name]} → {after[name]}"
            unknown = IssueType.COMMITS_GONE.value in reason  # what is gone from a log may have changed rows
            if not kind and quiet and self.settled and after[name] != before[name] and not view.always and not unknown:
                kind, told = "a commit without a change", f"{before[name]} → {after[name]}: {reason}"
            if kind:
                self._report(kind, view, technique, forced, told)
        self.settled = not request.select and not failing and result.state == "COMPLETED"

    def _compare(self, view: View, answer: Answer, counts: Mapping[Any, Any] | None) -> tuple[str, str]:
        """What is wrong with a view, and where; empty for nothing."""
        kind, told = wrong_rows(self.spark, self.project.path(view.name), answer)
        if kind or counts is None:
            return kind, told
        found = {(dataset, rule): count for (flow, dataset, rule), count in counts.items() if flow == view.name}
        return ("other counts of rules", f"  wanted {answer.counts}\n  found  {found}") if found != answer.counts else ("", "")

    def _check_errors(self, result: Any, failing: set[str], forced: str | None) -> None:
        """Only views with a broken rule may fail. One that was not computed, because nothing changed, does not."""
        failed = {str(error.dataset).rsplit(".", 1)[-1]: str(error) for error in result.errors}
        for name in {*failed} - failing - self.wrong:
            view = next((view for view in self.views if view.name == name), View(name, ""))
            self._report("failed", view, "?", forced, f"  {failed[name][:3000]}")

    def _report(self, kind: str, view: View, technique: str, forced: str | None, told: str) -> None:
        self.wrong.add(view.name)
        spec = self.spec
        again = f"--seed {spec.seed} --rounds {spec.rounds} --forced {spec.forced} --views {view.name}{' --appends' * spec.appends}"
        lines = [
            told,
            f"forced {forced}, zone {self.zone}; again: python -m tests.view_refreshes {again}",
            view.text,
            str(view.rules or ""),
        ]
        self.tally.found(Finding(kind, view.name, technique, "\n".join([*lines, *(f"  {line}" for line in self.history)])))

    def versions(self) -> dict[str, int]:
        return {view.name: operations.version_of(self.project.path(view.name)) for view in self.views if not view.temporary}


def _fullness(one: Input) -> float:
    """How likely rows are deleted now, so that tables stay small."""
    table = DeltaTable(str(one.path))
    counts = table.get_add_actions(flatten=True)
    rows = sum(counts.column("num_records").to_pylist()) if counts.num_rows else 0
    return 0.8 if rows > operations.MOST_ROWS else 0.0


def chosen_techniques(project: Project) -> dict[str, tuple[str, str]]:
    """The technique that each view was refreshed by, and why."""
    found = {}
    for event in project.events:
        if event.event_type == "planning_information":
            for technique in event.body.get("technique_information", ()):
                if technique["is_chosen"]:
                    name = technique["maintenance_type"].removeprefix("MAINTENANCE_TYPE_")
                    found[str(event.origin.flow_name).rsplit(".", 1)[-1]] = (name, str(event.body.get("reason", "")))
    return found


def _counts(project: Project) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Rows that passed and failed, by flow, dataset and rule, of the last update."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for event in project.events:
        for rule in event.body.get("data_quality", {}).get("expectations", []) if event.event_type == "flow_progress" else []:
            key = (str(event.origin.flow_name).rsplit(".", 1)[-1], rule["dataset"].rsplit(".", 1)[-1], rule["name"])
            passed, failed = found.get(key, (0, 0))
            found[key] = (passed + rule["passed_records"], failed + rule["failed_records"])
    return found


@contextmanager
def environment(name: str, value: str | None) -> Iterator[None]:
    """Set one variable of the environment for a moment; None removes it."""
    before = os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before
