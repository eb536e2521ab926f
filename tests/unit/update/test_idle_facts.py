"""Whatever an idle update depends on is compared: each kind of change is noticed, and nothing else is (IF-3, IF-4)."""

from __future__ import annotations

import getpass
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lakelet.base.names import Namespace
from lakelet.config.update_config import PipelineConfig
from lakelet.storage.root import LastUpdate, Storage, StorageRegistry
from lakelet.update.idle.facts import Fact, FactKind, Here, looked_up, of_process, unchanged
from lakelet.update.idle.recording_begun import Recording


@dataclass
class Project:
    """A project folder as an update leaves it, with the environment of a process. `facts`: what was recorded of it."""

    root: Path
    config: PipelineConfig
    environ: dict[str, str]
    facts: tuple[Fact, ...] = ()

    def here(self) -> Here:
        return Here(self.config, b"key", dict(self.environ))

    def changed(self) -> FactKind | None:
        found = unchanged(self.facts, self.here())
        return found.kind if found else None


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "shop"
    for name in (
        "pipeline.py",
        "lib/helper.py",
        "settings/limits.txt",
        "landing/2026/a.json",
        "outside/part.csv",
        "expectations/orders.yml",
    ):
        write(root / name, name)
    write(root / "packages/tool-1.0.dist-info/METADATA", "tool")
    storage = Storage(root / ".lakelet")
    for version in range(3):
        write(storage.root / f"tables/main/shop/orders/_delta_log/{version:020d}.json", f"{version}")
    write(storage.root / "checkpoints/main/shop/orders/orders/0/offsets/0", "v1")
    write(storage.root / "checkpoints/main/shop/orders/orders/0/state/0/1.delta", "rows")
    write(storage.root / "autoloader/main/shop/orders/orders/0/0/ledger/0.parquet", "files")
    storage.save(StorageRegistry(pipeline_id="p", last_update=LastUpdate("1", "2026-01-01", clean=True)))
    config = PipelineConfig(
        "shop", "p", root, (root / "pipeline.py",), (root,), Namespace(), {"landing": "a", "password": "secret"}, storage.root
    )
    made = Project(root, config, {"HOME": "/home/jo", "LIMIT": "3", "TERM": "xterm"})
    things = [
        *((FactKind.FILE, str(root / name)) for name in ("pipeline.py", "lib/helper.py", "settings/limits.txt", "settings/absent.txt")),
        (FactKind.NAMES, str(root / "lib")),
        (FactKind.NAMES, str(root / "packages")),
        (FactKind.ENTRIES, str(root / "settings")),
        *((FactKind.TREE, str(root / name)) for name in ("landing", "outside", "expectations", "absent")),
        (FactKind.LOG, str(storage.root / "tables/main/shop/orders")),
        (FactKind.LOG, str(storage.root / "tables/main/shop/orders/_changes")),
        (FactKind.STATE, "checkpoints"),
        (FactKind.STATE, "autoloader"),
        (FactKind.REGISTRY, ""),
    ]
    made.facts = (*of_process(made.here()), *looked_up(made.here(), things))
    return made


def same_size_and_time(project: Project) -> None:
    """The content of a file becomes another one of the same length, and its time is put back."""
    file = project.root / "pipeline.py"
    before = file.stat()
    file.write_text("pipeline.PY")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_inode(project: Project) -> None:
    file = project.root / "lib/helper.py"
    before = file.stat()
    other = write(project.root / "other", file.read_text())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, file)


def made_again(project: Project) -> None:
    """A table with as many versions as before."""
    log = project.root / ".lakelet/tables/main/shop/orders/_delta_log"
    shutil.rmtree(log)
    for version in range(3):
        write(log / f"{version:020d}.json", f"{version}")


def registered(project: Project, **changes: object) -> None:
    storage = Storage(project.config.storage)
    storage.save(replace(storage.registry(), **changes))  # type: ignore[arg-type]


def config(project: Project, **changes: object) -> None:
    project.config = replace(project.config, **changes)  # type: ignore[arg-type]


def storage_file(name: str, text: str) -> Callable[[Project], object]:
    return lambda project: write(project.root / ".lakelet" / name, text)


CHANGES: dict[str, tuple[FactKind, Callable[[Project], object]]] = {
    "source file": (FactKind.FILE, lambda p: write(p.root / "pipeline.py", "x = 1")),
    "source file, same size and time": (FactKind.FILE, same_size_and_time),
    "source file gone": (FactKind.FILE, lambda p: (p.root / "pipeline.py").unlink()),
    "another source file": (FactKind.CONFIGURATION, lambda p: config(p, files=(*p.config.files, p.root / "b.py"))),
    "helper module replaced": (FactKind.FILE, another_inode),
    "module that hides another": (FactKind.NAMES, lambda p: write(p.root / "lib/yaml.py", "")),
    "package in another version": (
        FactKind.NAMES,
        lambda p: (p.root / "packages/tool-1.0.dist-info").rename(p.root / "packages/tool-1.1.dist-info"),
    ),
    "file opened while loading": (FactKind.FILE, lambda p: write(p.root / "settings/limits.txt", "4")),
    "file that was not there": (FactKind.FILE, lambda p: write(p.root / "settings/absent.txt", "")),
    "file in a listed folder": (FactKind.ENTRIES, lambda p: write(p.root / "settings/more.txt", "")),
    "parameter": (FactKind.CONFIGURATION, lambda p: config(p, parameters={"landing": "b", "password": "secret"})),
    "secret parameter": (FactKind.CONFIGURATION, lambda p: config(p, parameters={"landing": "a", "password": "other"})),
    "deployment target": (FactKind.CONFIGURATION, lambda p: config(p, target="prod")),
    "schema": (FactKind.CONFIGURATION, lambda p: config(p, namespace=Namespace("main", "other"))),
    "master": (FactKind.CONFIGURATION, lambda p: config(p, master="local[1]")),
    "variable": (FactKind.VARIABLE, lambda p: p.environ.update(LIMIT="4")),
    "another variable": (FactKind.VARIABLES, lambda p: p.environ.update(LAKELET_SECRET_A_B="x")),
    "variable gone": (FactKind.VARIABLES, lambda p: p.environ.pop("LIMIT")),
    "new file to load": (FactKind.TREE, lambda p: write(p.root / "landing/2026/b.json", "")),
    "longer file to load": (FactKind.TREE, lambda p: write(p.root / "landing/2026/a.json", "longer than it was")),
    "file to load gone": (FactKind.TREE, lambda p: (p.root / "landing/2026/a.json").unlink()),
    "folder to load gone": (FactKind.TREE, lambda p: shutil.rmtree(p.root / "landing")),
    "table from outside": (FactKind.TREE, lambda p: write(p.root / "outside/part2.csv", "1")),
    "rule file": (FactKind.TREE, lambda p: write(p.root / "expectations/orders.yml", "rules: []")),
    "folder that was not there": (FactKind.TREE, lambda p: (p.root / "absent").mkdir()),
    "version of a table": (FactKind.LOG, storage_file(f"tables/main/shop/orders/_delta_log/{3:020d}.json", "3")),
    "table made again": (FactKind.LOG, made_again),
    "table gone": (FactKind.LOG, lambda p: shutil.rmtree(p.root / ".lakelet/tables")),
    "state of a change table": (FactKind.LOG, storage_file(f"tables/main/shop/orders/_changes/_delta_log/{0:020d}.json", "")),
    "checkpoint": (FactKind.STATE, storage_file("checkpoints/main/shop/orders/orders/0/offsets/1", "v1")),
    "checkpoint gone": (FactKind.STATE, lambda p: shutil.rmtree(p.root / ".lakelet/checkpoints")),
    "known files": (FactKind.STATE, storage_file("autoloader/main/shop/orders/orders/0/0/ledger/1.parquet", "")),
    "registry": (FactKind.REGISTRY, lambda p: registered(p, pipeline_id="q")),
    "update that failed": (FactKind.REGISTRY, lambda p: registered(p, last_update=LastUpdate("2", "2026-01-02", clean=False))),
    "damaged registry": (FactKind.REGISTRY, storage_file("system/registry.json", "{")),
}


def test_nothing_changed(project: Project) -> None:
    assert project.changed() is None


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(project: Project, name: str) -> None:
    kind, change = CHANGES[name]
    change(project)
    assert project.changed() is kind


def test_some_changes_at_once_are_noticed(project: Project, tmp_path: Path) -> None:
    chance = random.Random(15)
    for number in range(50):
        folder = shutil.copytree(project.root, tmp_path / f"copy{number}", copy_function=shutil.copy2)
        copied = replace(project, root=folder, environ=dict(project.environ))
        copied.config = replace(project.config, root=folder, storage=folder / ".lakelet", files=(folder / "pipeline.py",))
        moved = [(fact.kind, fact.name.replace(str(project.root), str(folder))) for fact in project.facts]
        copied.facts = looked_up(copied.here(), moved)
        assert copied.changed() is None
        chosen = [CHANGES[name][1] for name in chance.sample(sorted(CHANGES), chance.randint(1, 3)) if "gone" not in name]
        for change in chosen:
            change(copied)
        assert (copied.changed() is not None) is bool(chosen)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.environ.update(TERM="dumb", COLUMNS="80"),
        lambda p: write(p.root / ".lakelet/checkpoints/main/shop/orders/orders/0/state/0/2.delta", ""),
        lambda p: registered(p, last_update=LastUpdate("2", "2026-01-02", clean=True)),
        lambda p: write(p.root / "lib/__pycache__/helper.pyc", ""),
        lambda p: write(p.root / "expectations/__pycache__/rules.pyc", ""),
        lambda p: write(p.root / "README.md", "not read"),
    ],
    ids=["terminal", "state store", "next idle update", "byte code", "byte code beside other files", "file that was not read"],
)
def test_what_does_not_count_is_no_change(project: Project, change: Callable[[Project], object]) -> None:
    change(project)
    assert project.changed() is None


@pytest.mark.parametrize("name", ["interpreter", "search path", "folder", "user", "Java"])
def test_another_process_is_noticed(project: Project, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if name == "interpreter":
        monkeypatch.setattr(sys, "executable", "/usr/bin/other")
    elif name == "search path":
        monkeypatch.setattr(sys, "path", [*sys.path, "/more"])
    elif name == "folder":
        monkeypatch.chdir(tmp_path)
    elif name == "Java":
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    else:
        monkeypatch.setenv("LOGNAME", "somebody")
    assert unchanged(project.facts, project.here()) == replace_name(FactKind.PROCESS, name)


def replace_name(kind: FactKind, name: str) -> object:
    from lakelet.update.idle.facts import Reason

    return Reason(kind, name)


def test_values_of_variables_and_parameters_are_not_stored(project: Project) -> None:
    stored = json.dumps([[fact.kind, fact.name, fact.value] for fact in project.facts])
    assert "secret" not in stored
    assert "/home/jo" not in stored


@pytest.mark.parametrize("missing", ["user", "folder"])
def test_an_update_goes_on_where_the_machine_does_not_say_what_it_depends_on(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    assert Recording.begin(project.config) is not None
    if missing == "user":  # a container whose user id has no name
        monkeypatch.setattr(getpass, "getuser", lambda: {}["1234"])
    else:
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
    assert Recording.begin(project.config) is None
