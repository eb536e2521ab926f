"""Prepares a machine, or a new environment, for Spark: Delta's jars before the first start, the class-data archive after the first command.

Both are in the cache afterwards, and later commands only check that they exist. Imports neither Spark nor pyspark.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.jvm.sessions import active_context
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env

_LOWEST = 19


@dataclass(frozen=True)
class StartStep:
    """Progress of one step of the first start. `done`, `total`: bytes, None where unknown. `ended`: it is complete. `part`: of a file."""

    what: str
    done: int | None = None
    total: int | None = None
    ended: bool = False
    part: str = ""


Report = Callable[[StartStep], None]


def prepare(report: Report, packages: Sequence[str] = ()) -> None:
    """Fetch Delta's jars, and those of the packages, where they are missing, and report how far it is.

    Raises JAVA_MISSING or JARS_MISSING.
    """
    if not _session_is_running():
        env.require_java()
        fetch_missing_jars(report)
        fetch_missing_packages(report, packages)


def _session_is_running() -> bool:
    return "pyspark" in sys.modules and active_context() is not None


def fetch_missing_jars(report: Report) -> None:
    """Fetch Delta's jars where they are missing, and report how far it is. Raises JARS_MISSING; JAVA_MISSING where it has to fetch."""
    try:
        env.jars()
        return
    except LakeletError:
        if os.environ.get("LAKELET_JARS"):
            raise
    _fetch(report, "Delta's jars", env.JAR_BYTES, env.fetch_jars)


def fetch_missing_packages(report: Report, packages: Sequence[str]) -> None:
    """Fetch the jars of packages where they are missing, and report how far it is. Raises as `fetch_missing_jars`."""
    for package in (env.PACKAGES[name] for name in packages):
        try:
            env.package_jars(package)
        except LakeletError:
            if os.environ.get("LAKELET_JARS"):
                raise
            _fetch(report, package.what, package.bytes, partial(env.fetch_package, package))


def _fetch(report: Report, what: str, size: int, fetch: Callable[[env.Fetched], object]) -> None:
    """Report the beginning, each jar that arrives, and the end."""
    text = f"Fetching {what}"
    report(StartStep(text, 0, size))
    fetch(lambda name, done: report(StartStep(text, min(done, size), size, part=name)))
    report(StartStep(text, size, size, ended=True))


# --- the archive -------------------------------------------------------------------------------------------------------------------------


def make_archive(report: Report) -> None:
    """Make the class-data archive where it is missing, while the caller waits. Raises ARCHIVE_FAILED, JAVA_MISSING or JARS_MISSING."""
    prepare(report)
    step = StartStep("Making the class-data archive, once (up to a minute)")
    report(step)
    with env.meanwhile(lambda: report(step), every=1.0):
        archives.make_archive()
    report(StartStep(step.what, ended=True))


def start_archive() -> bool:
    """Start a process of the lowest priority that makes the class-data archive, where that is missing; return whether it was started.

    Nobody waits for it, and it goes on when this process and its terminal have ended. Where it is killed, the next command starts another.
    """
    if not archives.in_background():
        return False
    try:
        archive = archives.archive_path(env.find_java(), env.jars())
        archive.parent.mkdir(parents=True, exist_ok=True)
        if not archives.is_wanted(archive) or archives.is_being_made(archive.parent):
            return False
        subprocess.Popen(
            [sys.executable, "-m", "lakelet.spark.launch.warmup", "--background"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=archive.parent,  # in the folder of the command other modules could have the names of Python's
            start_new_session=True,
        )
    except (LakeletError, OSError):
        return False
    return True


def make_archive_in_background() -> None:
    """Make the missing archive in this process, which is started for nothing else, while nobody else uses the processors and the disk."""
    _give_way()
    java = env.require_java()
    archives.make_missing_archive(archives.archive_path(java, env.jars()), java)


def _give_way() -> None:
    """Give this process and all that it starts the lowest priority that the system has. Where memory ends, Linux ends it first."""
    import psutil

    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _LOWEST)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError, AttributeError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    # Linux may give each session the same part of the processors, whatever the priority of its processes; this one has its own.
    session = {"autogroup": _LOWEST} if os.getsid(0) == os.getpid() else {}
    for file, value in {**session, "oom_score_adj": 1000}.items():
        with suppress(OSError):
            Path("/proc/self", file).write_text(str(value))
