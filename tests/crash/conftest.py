"""`killed_at` runs an update in a process that dies on the way; `checked` says whether what the next update left is right."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.failpoints import FAILPOINTS
from lakelet.files.delta_log import TableLog
from tests.crash.deaths import Deaths, remove
from tests.crash.scenario import COLUMNS, FIRST, PIPELINE, Answer, Drop, answer
from tests.crash.victim_processes import die, end, started
from tests.spark.conftest import Project


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.crash)


# ------------------------------------------------------------------------------------------------------------- the scene


class Scene:
    """A project after its first update, put back to that state for every test at the same place; and the files landed so far."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder, self.spark = folder, spark
        self.kept = folder.with_name("after-update-1")
        self._open().write(PIPELINE)
        self.drops: list[Drop] = []
        self.land(FIRST)
        self.project.run()
        shutil.copytree(folder, self.kept)

    def start_after_update_1(self) -> Scene:
        remove(self.folder, self.spark)
        shutil.copytree(self.kept, self.folder)
        self._open().files = [self.folder / "pipeline.py"]
        self.drops = [FIRST]
        self.project._clock += 1000
        return self

    def _open(self) -> Project:
        self.project = Project(self.folder, self.spark)
        return self.project

    def land(self, drop: Drop, *, letters: bool = True) -> None:
        """Put the files of one drop into the landing folder."""
        landed = Drop(drop.orders, drop.letters if letters else {})
        self.drops.append(landed)
        land(self.project, landed)


def land(project: Project, drop: Drop) -> None:
    for folder, files in (("orders", drop.orders), ("letters", drop.letters)):
        for name, records in files.items():
            project.arrive(name, *records, folder=folder)


@pytest.fixture(scope="session")
def _scene(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("crash") / "project", spark)


@pytest.fixture
def scene(_scene: Scene) -> Scene:
    """After the first update on the first drop."""
    return _scene.start_after_update_1()


# ------------------------------------------------------------------------------------------------------------ the victims


class Victims:
    """Processes that will be killed. One is started ahead, because Spark needs some seconds to come up."""

    def __init__(self, folder: Path, upcoming: Sequence[str | None]) -> None:
        self._folder, self._upcoming = folder, list(upcoming)
        self._ahead: tuple[str | None, subprocess.Popen[str]] | None = None
        self.log = (folder.parent / "victims.log").open("w")

    def take(self, failpoint: str | None) -> subprocess.Popen[str]:
        """A process that is ready to run an update and will die at `failpoint`."""
        if self._ahead is None or self._ahead[0] != failpoint:
            self.close()
            self._ahead = (failpoint, self._start(failpoint))
        process = self._ahead[1]
        self._ahead = None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", Path(self.log.name).read_text()[-3000:]
        return process

    def start_next(self) -> None:
        """Begin to start the process of the next test that needs one."""
        if self._upcoming:
            self.start_ahead(self._upcoming[0])

    def start_ahead(self, failpoint: str | None) -> None:
        if self._ahead is None:
            self._ahead = (failpoint, self._start(failpoint))

    def _start(self, failpoint: str | None) -> subprocess.Popen[str]:
        if failpoint in self._upcoming:
            del self._upcoming[: self._upcoming.index(failpoint) + 1]
        return started(self._folder, failpoint, self.log)

    def close(self) -> None:
        if self._ahead is not None:
            end(self._ahead[1])
            self._ahead = None


@pytest.fixture(scope="session")
def victims(_scene: Scene, request: pytest.FixtureRequest) -> Iterator[Victims]:
    upcoming = [item.callspec.params.get("failpoint") for item in request.session.items if hasattr(item, "callspec")]
    found = Victims(_scene.folder, [f for f in upcoming if f])
    yield found
    found.close()
    found.log.close()


@pytest.fixture
def killed_at(victims: Victims) -> Any:
    """Run an update in a process that must die at a failpoint."""

    def run(failpoint: str, **request: Any) -> None:
        assert failpoint.partition("@")[0] in FAILPOINTS
        die(victims.take(failpoint), request, failpoint)
        victims.start_next()

    return run


@pytest.fixture(scope="session")
def deaths(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Deaths:
    return Deaths(tmp_path_factory.mktemp("deaths"), spark)


# ---------------------------------------------------------------------------------------------------------------- judging


def metrics_events(project: Project) -> list[Mapping[str, Any]]:
    """Events of the log that carry the counts of one commit to a table; what went to sinks is in no commit of ours."""
    rows = project.logged(event_type="flow_progress")
    events = [r for r in rows if not {"num_output_rows", "num_upserted_rows"}.isdisjoint(r["details"]["flow_progress"].get("metrics", {}))]
    return [r for r in events if not r["origin"].get("sink_name")]


def measured(project: Project) -> Mapping[str, tuple[int, int]]:
    """(passed, failed) per rule, summed over the whole event log."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in metrics_events(project):
        for e in row["details"]["flow_progress"].get("data_quality", {}).get("expectations", []):
            sums[e["name"]][0] += e["passed_records"]
            sums[e["name"]][1] += e["failed_records"]
    return {name: (passed, failed) for name, (passed, failed) in sums.items()}


def check_tables(project: Project, wanted: Answer) -> None:
    assert {name: project.rows(name, *_present(project, name)) for name in COLUMNS} == {
        name: _narrowed(wanted.rows[name], COLUMNS[name], _present(project, name)) for name in COLUMNS
    }


def _present(project: Project, name: str) -> Sequence[str]:
    have = project.table(name).column_names
    return [c for c in COLUMNS[name] if c in have]


def _narrowed(rows: Sequence[tuple[Any, ...]], columns: Sequence[str], present: Sequence[str]) -> list[tuple[Any, ...]]:
    """Without the columns that no record has brought yet."""
    absent = [i for i, c in enumerate(columns) if c not in present]
    assert all(row[i] is None for row in rows for i in absent)
    return sorted((tuple(v for i, v in enumerate(row) if i not in absent) for row in rows), key=repr)


def check_log(project: Project) -> None:
    """Every commit's counts are in the log exactly once; ids are unique; every update has one end."""
    rows = project.logged()
    assert [i for i, n in Counter(r["id"] for r in rows).items() if n > 1] == []
    committed = []
    for stored in project.storage.registry().datasets.values():
        log = TableLog(project.storage.root / stored.path)
        for version in range(log.version() + 1):
            commit = log.commit(version)
            assert commit is not None
            committed += [(commit.user_metadata or {}).get("lakelet")]
    facts = {f["event_id"]: f for f in committed if f}
    assert sorted(facts) == sorted(r["id"] for r in metrics_events(project))
    batches = Counter((f["flow"], f["batch_id"], f["event_id"]) for f in facts.values())
    assert all(n == 1 for n in batches.values())
    ends: dict[str, list[str]] = defaultdict(list)
    for r in project.logged(event_type="update_progress"):
        if (state := r["details"]["update_progress"]["state"]) in ("COMPLETED", "FAILED", "CANCELED"):
            ends[r["origin"]["update_id"]].append(state)
    assert {u: e for u, e in ends.items() if len(e) != 1} == {}
    assert set(ends) == {r["origin"]["update_id"] for r in rows}


def check_warnings(project: Project, wanted: Answer) -> None:
    """Rows that did not fit or came too late were told about once, and so were new columns."""
    late = [r["details"]["late_records"] for r in project.logged(event_type="late_records")]
    assert sum(w["dropped_by_watermark"] for w in late) == wanted.late
    sources = [r["details"]["source_records"] for r in project.logged(event_type="source_records")]
    assert (sum(s["rescued"] for s in sources), sum(s["corrupt"] for s in sources)) == (wanted.rescued, wanted.corrupt)
    changes = [r["details"]["schema_change"] for r in project.logged(event_type="schema_change")]
    found = sorted((c["flow_name"].rsplit(".")[-1], c["schema_version_after"]) for c in changes)
    assert found == sorted(_schema_versions(project))


def _schema_versions(project: Project) -> list[tuple[str, int]]:
    """(flow, version) of every version of a schema log that evolution made."""
    folder = project.storage.root / "autoloader"
    return [(f.parts[-5].rsplit(".")[-1], int(f.name)) for f in folder.rglob("_schemas/*") if f.name.isdigit() and f.name != "0"]


def check_idle(project: Project) -> None:
    """One more update finds nothing to do."""
    before = project.versions()
    project.run()
    assert [s.reason for s in project.result.steps if s.strategy.value != "skip"] == []
    assert project.versions() == before
    kept = sorted(f.name for f in project.storage.system.iterdir() if not f.name.startswith("."))
    assert kept == ["definitions.json", "events", "registry-before.json", "registry.json"]


def check_all(project: Project, drops: Sequence[Drop]) -> None:
    wanted = answer(drops)
    check_tables(project, wanted)
    check_log(project)
    check_warnings(project, wanted)
    check_idle(project)
    check_log(project)
