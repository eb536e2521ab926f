"""Whatever a real update has read is compared before the next one is answered without Java: a change of any of it is noticed (IF-4, IF-6).

One update of a project that reads something of each kind. Then the project is changed in many ways; each time the command decides again.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spark.cli.idle_project import FILES, GIVEN, UNREAD, Shop, shop
from tests.spark.cli.installed import NEEDS_LAKELET

pytestmark = [pytest.mark.spark, pytest.mark.long, NEEDS_LAKELET]

Change = Callable[[Shop, int], Any]
"""Changes the project; the number chooses among similar things. Returns a context that undoes it at its end. OSError: it cannot be made."""


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("idle")) as made:
        yield made


# --- changes of files and folders ---------------------------------------------------------------------------------------------------------


def outside(path: Path) -> Path:
    """A new path beside the project, on the same file system."""
    return next(parent for parent in path.parents if (parent / "venv").is_dir()) / f"kept-{uuid.uuid4().hex}"


@contextmanager
def moved_away(path: Path) -> Iterator[None]:
    """A file, a folder or a link is gone."""
    aside = outside(path)
    os.rename(path, aside)
    try:
        yield
    finally:
        os.rename(aside, path)


@contextmanager
def rewritten(file: Path, content: bytes) -> Iterator[None]:
    before, stat = file.read_bytes(), file.stat()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(before)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@contextmanager
def added(path: Path, text: str = "") -> Iterator[None]:
    """A new file."""
    if path.exists():
        raise FileExistsError(path)
    path.write_text(text)
    try:
        yield
    finally:
        path.unlink()


def longer(file: Path) -> Any:
    return rewritten(file, file.read_bytes() + b"\n")


@contextmanager
def same_size_and_time(file: Path) -> Iterator[None]:
    """Another content of the same length, and the time is put back."""
    before, stat = file.read_bytes(), file.stat()
    if not before:
        raise FileNotFoundError("an empty file has no other content")
    with rewritten(file, bytes([before[0] ^ 1]) + before[1:]):
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        yield


@contextmanager
def another_inode(file: Path) -> Iterator[None]:
    stat = file.stat()
    other = outside(file)
    other.write_bytes(file.read_bytes())
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with moved_away(file):
        os.rename(other, file)
        yield
        file.unlink()


@contextmanager
def newer(file: Path) -> Iterator[None]:
    os.utime(file)
    yield


WAYS = (longer, same_size_and_time, another_inode, newer, moved_away)
CONFIGURED = ("databricks.yml", "resources/shop.pipeline.yml", "pyproject.toml")
"""Compared by what they say: `settings_changed` writes something else into them."""
READ = (
    *(name for name in FILES if not name.startswith("releases/") and name not in CONFIGURED),
    "kinds/_delta_log/00000000000000000000.json",
)
READ_FOLDERS = tuple(sorted({str(Path(name).parent) for name in READ} - {"."}))


def file_changed(s: Shop, number: int) -> Any:
    return WAYS[number // len(READ) % len(WAYS)](s.root / READ[number % len(READ)])


def unread_file_changed(s: Shop, number: int) -> Any:
    return WAYS[number // len(UNREAD) % len(WAYS)](s.root / [*UNREAD][number % len(UNREAD)])


def folder_gone(s: Shop, number: int) -> Any:
    return moved_away(s.root / READ_FOLDERS[number % len(READ_FOLDERS)])


NEW_FILES = (
    "landing/north/returns/b.csv",
    "raw/orders/2027.json",
    "raw/orders/2026/b.json",
    "raw/offers/b.txt",
    "expectations/new.yml",
    "expectations/more/new.yml",
    "pipelines/new.py",
    "resources/new.yml",
    "shop_lib/own_prices.py",
    "shop_lib/yaml.py",
    "more/new.py",
    "yaml.py",
    "settings/shapes/b.json",
    "settings/deep/b.json",
    "settings/deep/down/b.json",
    "settings/walked/b.txt",
    "settings/walked/a/b/d.txt",
    "settings/sized/b.txt",
    "settings/absent.ini",
    "flags/on",
    "flags/also_on",
    "kinds/part.parquet",
    "spark-pipeline.yml",
)


def new_file(s: Shop, number: int) -> Any:
    name = NEW_FILES[number % len(NEW_FILES)]
    return added(s.root / name, "resources: {pipelines: {another: {name: another}}}\n" if name.startswith("resources/") else "")


@contextmanager
def relinked(link: Path, target: str) -> Iterator[None]:
    before = os.readlink(link)
    link.unlink()
    link.symlink_to(target)
    try:
        yield
    finally:
        link.unlink()
        link.symlink_to(before)


# --- changes of the process and its environment -------------------------------------------------------------------------------------------


@contextmanager
def variable(s: Shop, name: str, value: str | None) -> Iterator[None]:
    before = s.environ.get(name)
    if value is None:
        s.environ.pop(name, None)
    else:
        s.environ[name] = value
    try:
        yield
    finally:
        s.environ.pop(name, None)
        if before is not None:
            s.environ[name] = before


VARIABLES = (
    ("SHOP_REGION", "south"),  # looked up and not set
    ("SHOP_WEEK", "2"),
    ("SHOP_WEEK", ""),
    ("SHOP_STRICT", ""),
    ("SHOP_ZONE", "2"),  # set
    ("SHOP_ZONE", ""),
    ("SHOP_ZONE", None),
    ("LAKELET_SECRET_SHOP_TOKEN", "other"),
    ("LAKELET_SECRET_SHOP_TOKEN", None),
    ("LAKELET_PARAM_week", "2"),
    ("LAKELET_TARGET", "prod"),
    ("LAKELET_SCHEMA", "sold"),
    ("TZ", "Asia/Tokyo"),
    ("LOGNAME", "somebody"),
    ("PYTHONPATH", "elsewhere"),
    ("JAVA_HOME", None),
    ("JAVA_TOOL_OPTIONS", "-Duser.timezone=Asia/Tokyo"),
    ("SPARK_CONF_DIR", None),
)


def variable_changed(s: Shop, number: int) -> Any:
    return variable(s, *VARIABLES[number % len(VARIABLES)])


def terminal_changed(s: Shop, number: int) -> Any:
    return variable(s, ("COLUMNS", "TERM", "NO_COLOR", "SSH_TTY")[number % 4], "60")


@contextmanager
def attribute(s: Shop, name: str, value: Any) -> Iterator[None]:
    before = getattr(s, name)
    setattr(s, name, value)
    try:
        yield
    finally:
        setattr(s, name, before)


ARGUMENTS = (
    "--param week=2",
    "--param days=31",
    "--param anything=1",
    "--param landing=elsewhere",
    "--table shop.outside.kinds=other_kinds",
    "--table shop.outside.more=kinds",
    "--map /Volumes/main/raw=elsewhere",
    "--map /mnt/more=raw",
    "--target prod",
    "--catalog other",
    "--schema other",
    "--storage other",
    "--master local[1]",
    "--select gold",
    "--full-refresh gold",
    "pipelines/gold.sql",
)


def arguments_changed(s: Shop, number: int) -> Any:
    return attribute(s, "arguments", ARGUMENTS[number % len(ARGUMENTS)].split())


SETTINGS = (
    ("databricks.yml", "default: sales", "default: sold"),
    ("databricks.yml", "name: shop", "name: shops"),
    ("resources/shop.pipeline.yml", 'days: "30"', 'days: "31"'),
    ("resources/shop.pipeline.yml", "word: lost", "word: broken"),
    ("pyproject.toml", 'landing = "landing"', 'landing = "elsewhere"'),
    ("pyproject.toml", '"kinds" }', '"other" }'),
    ("pyproject.toml", '= "raw"', '= "elsewhere"'),
)


def settings_changed(s: Shop, number: int) -> Any:
    if number % (len(SETTINGS) + len(CONFIGURED)) >= len(SETTINGS):
        return moved_away(s.root / CONFIGURED[number % (len(SETTINGS) + len(CONFIGURED)) - len(SETTINGS)])
    name, old, new = SETTINGS[number % (len(SETTINGS) + len(CONFIGURED))]
    text = (s.root / name).read_text()
    if old not in text:
        raise FileNotFoundError(old)
    return rewritten(s.root / name, text.replace(old, new, 1).encode())


def search_path_changed(s: Shop, number: int) -> Any:
    return attribute(s, "search", [f"/more/{number}"])


def called_elsewhere(s: Shop, number: int) -> Any:
    return attribute(s, "folder", s.root / ("pipelines", "docs")[number % 2])


# --- changes of the machine and of the storage --------------------------------------------------------------------------------------------


@contextmanager
def package_changed(s: Shop, number: int) -> Iterator[None]:
    """Another version of a package, one package less, one more."""
    (packages,) = (s.root.parent / "venv").glob("lib/python*/site-packages")
    old = packages / "tool-1.0.dist-info"
    if number % 3 == 0:
        new = packages / f"tool-1.{number + 1}.dist-info"
        old.rename(new)
        yield
        new.rename(old)
    elif number % 3 == 1:
        with moved_away(old):
            yield
    else:
        with added(packages / "another.py"):
            yield


def java_changed(s: Shop, number: int) -> Any:
    """An upgrade in place, and another version behind the same link."""
    if number % 2:
        return relinked(s.root.parent / "java", "java-21")
    return longer(s.root.parent / "java" / "bin" / "java")


def settings_of_spark_changed(s: Shop, number: int) -> Any:
    folder = s.root.parent / "spark-conf"
    if number % 2:
        return added(folder / "hive-site.xml", "<configuration/>")
    return rewritten(folder / "spark-defaults.conf", b"spark.sql.session.timeZone Asia/Tokyo\n")


def release_changed(s: Shop, number: int) -> Any:
    return relinked(s.root / "releases" / "current", "2")


def commit(table: Path) -> Any:
    """A version without rows."""
    newest = max((table / "_delta_log").glob("*.json"))
    text = '{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}\n'
    return added(newest.with_name(f"{int(newest.stem) + 1:020d}.json"), text)


def tables(s: Shop) -> list[Path]:
    return sorted(log.parent for log in (s.storage / "tables").rglob("_delta_log"))


def table_changed(s: Shop, number: int) -> Any:
    places = [*tables(s), s.root / "kinds"]
    table = places[number % len(places)]
    ways = (commit, moved_away, lambda at: moved_away(at / "_delta_log"), lambda at: longer(max((at / "_delta_log").glob("*.json"))))
    return ways[number // len(places) % len(ways)](table)


def state_changed(s: Shop, number: int) -> Any:
    """Checkpoints and known files of Auto Loader: one changed, gone, a new one; all gone."""
    kind = ("checkpoints", "autoloader")[number % 2]
    found = [file for file in sorted((s.storage / kind).rglob("*")) if file.is_file() and "state" not in file.relative_to(s.storage).parts]
    if not found:
        raise FileNotFoundError(kind)
    file = found[number // 8 % len(found)]
    ways = (longer, moved_away, lambda at: added(at.with_name(f"{at.name}-new")), lambda at: moved_away(s.storage / kind))
    return ways[number // 2 % 4](file)


REGISTRY: tuple[Callable[[dict[str, Any]], object], ...] = (
    lambda found: found["last_update"].update(clean=False),
    lambda found: found.update(last_update=None),
    lambda found: found.update(pipeline_id="another"),
    lambda found: next(iter(found["datasets"].values())).update(described="otherwise"),
    lambda found: found["datasets"].popitem(),
    lambda found: found["flows"].clear(),
)


def registry_changed(s: Shop, number: int) -> Any:
    file = s.storage / "system" / "registry.json"
    if number % 8 == 0:
        return moved_away(file)
    if number % 8 == 1:
        return rewritten(file, b"{")
    found = json.loads(file.read_text())
    before = json.dumps(found)
    REGISTRY[number % 8 - 2](found)
    if json.dumps(found) == before:
        raise FileNotFoundError("nothing to change")
    return rewritten(file, json.dumps(found).encode())


def record_gone(s: Shop, number: int) -> Any:
    return moved_away(s.storage / "system" / "idle.json")


@contextmanager
def byte_code_gone(s: Shop, number: int) -> Iterator[None]:
    for folder in [*s.root.rglob("__pycache__")]:
        shutil.rmtree(folder)
    yield


@contextmanager
def nothing(s: Shop, number: int) -> Iterator[None]:
    yield


NOTICED: dict[str, tuple[Change, int]] = {
    "file": (file_changed, len(READ)),
    "folder gone": (folder_gone, len(READ_FOLDERS)),
    "new file": (new_file, len(NEW_FILES)),
    "variable": (variable_changed, len(VARIABLES)),
    "arguments": (arguments_changed, len(ARGUMENTS)),
    "settings": (settings_changed, len(SETTINGS) + len(CONFIGURED)),
    "search path": (search_path_changed, 1),
    "folder": (called_elsewhere, 2),
    "package": (package_changed, 3),
    "Java": (java_changed, 2),
    "settings of Spark": (settings_of_spark_changed, 2),
    "link": (release_changed, 1),
    "table": (table_changed, 12),
    "state": (state_changed, 8),
    "registry": (registry_changed, 8),
    "record": (record_gone, 1),
}
"""Kinds of changes that must be noticed, each with the number of different ones."""
IRRELEVANT: dict[str, tuple[Change, int]] = {
    "nothing": (nothing, 1),
    "unread file": (unread_file_changed, 2 * len(UNREAD)),
    "terminal": (terminal_changed, 4),
    "byte code": (byte_code_gone, 1),
}


ALL = {**NOTICED, **IRRELEVANT}
NOT_ON_DISK = frozenset({"variable", "arguments", "search path", "folder", "nothing", "terminal"})


def decided(s: Shop, changes: list[tuple[str, int]]) -> tuple[str, list[str]]:
    """The decision after some changes, and the kinds of those that could be made. Everything is undone, and counts as unchanged then."""
    made = []
    with ExitStack() as undo:
        for kind, number in changes:
            with suppress(OSError):
                undo.enter_context(ALL[kind][0](s, number))
                made.append(kind)
        found = s.decision()
    if not NOT_ON_DISK.issuperset(made):
        s.sign()
    return found, made


@pytest.mark.in_ci(every=4)
@pytest.mark.parametrize("kind", [*ALL])
def test_each_change_is_noticed_and_what_is_not_read_does_not_count(updated: Shop, kind: str) -> None:
    _, count = ALL[kind]
    wrong = []
    for number in range(count):
        found, made = decided(updated, [(kind, number)])
        if made and (found == GIVEN) is not (kind in IRRELEVANT):
            wrong.append((number, found))
    assert wrong == []
    assert updated.decision() == GIVEN


@settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(st.sampled_from([*ALL]), st.integers(0, 999)), max_size=3))
def test_changes_of_any_kinds_together_are_noticed(updated: Shop, changes: list[tuple[str, int]]) -> None:
    found, made = decided(updated, changes)
    assert (found == GIVEN) is all(kind in IRRELEVANT for kind in made), (found, made)
    assert updated.decision() == GIVEN


def test_the_command_gives_the_answer_without_java(updated: Shop) -> None:
    starts = updated.java.starts
    done = updated.run()
    assert (done.returncode, "Nothing new: no table was touched." in done.stderr) == (0, True), done.stderr
    assert updated.java.starts == starts
    assert updated.decision() == GIVEN
