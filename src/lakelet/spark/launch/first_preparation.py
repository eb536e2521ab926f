"""Prepares the first start on a machine, or in a new environment: fetches Delta's jars, makes the class-data archive.

Both are in the cache afterwards, and later starts only check that they exist. Imports neither Spark nor pyspark.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.jvm.sessions import active_context
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env

_ARCHIVE_TIME = "up to a minute"
"""Duration of making the archive: 20 s where nothing else runs, a minute on two busy cores."""
_IN_USE_SECONDS = 86_400


@dataclass(frozen=True)
class StartStep:
    """Progress of one step of the first start. `done`, `total`: bytes, None where unknown; `ended`: it is complete."""

    what: str
    done: int | None = None
    total: int | None = None
    ended: bool = False


Report = Callable[[StartStep], None]


def prepare(report: Report) -> None:
    """Make this machine ready for a session, and report each step that takes time. Returns at once where nothing is missing.

    Raises JAVA_MISSING or JARS_MISSING. An archive that cannot be made is not an error: sessions start some seconds slower.
    """
    if _session_is_running():
        return
    java, delta = env.require_java(), _fetched_jars(report)
    archive = archives.archive_path(java, delta)
    if archive.is_file() or os.environ.get(archives.RECORD_CLASSES):
        return
    try:
        with _only_maker(archive.parent) as alone:
            if alone and _has_room(archive):
                _make_archive(archive, report)
    except OSError:
        return


def _session_is_running() -> bool:
    return "pyspark" in sys.modules and active_context() is not None


def _fetched_jars(report: Report) -> env.Jars:
    try:
        return env.jars()
    except LakeletError:
        if os.environ.get("LAKELET_JARS"):
            raise
    step = StartStep("Fetching Delta's jars", 0, env.JAR_BYTES)
    report(step)
    found = env.fetch_jars(lambda size: report(StartStep(step.what, min(size, env.JAR_BYTES), env.JAR_BYTES)))
    report(StartStep(step.what, env.JAR_BYTES, env.JAR_BYTES, ended=True))
    return found


def _make_archive(archive: Path, report: Report) -> None:
    what = f"Preparing Spark for quick starts, once ({_ARCHIVE_TIME})"
    report(StartStep(what))
    try:
        with env.meanwhile(lambda: report(StartStep(what)), every=1.0):
            archives.make_archive()
    except LakeletError as error:
        _failure_marker(archive).write_text(str(error), encoding="utf-8")
    report(StartStep(what, ended=True))


def _failure_marker(archive: Path) -> Path:
    """Return the path of the file that records that the archive could not be made, so that not every start tries it again."""
    return archive.with_suffix(".failed")


def _has_room(archive: Path) -> bool:
    """Return whether to make the archive: it did not fail before, and no archive used today would be removed for it."""
    now = time.time()
    used = [other for other in archive.parent.glob("*.jsa") if now - other.stat().st_mtime < _IN_USE_SECONDS]
    return len(used) < archives.KEPT_ARCHIVES and not _failure_marker(archive).exists()


@contextmanager
def _only_maker(folder: Path) -> Iterator[bool]:
    """Yield whether no other process is making an archive in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
