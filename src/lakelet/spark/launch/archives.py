"""Java's class-data archive: the loaded classes of a session that has done what updates do, which later starts take over.

One process at a time makes one, and it appears as a whole: what a killed process leaves is never used. Imports neither Spark nor pyspark.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.spark.launch.environment import (
    DELTA_VERSION,
    Jars,
    Java,
    cache_folder,
    ensure_jars,
    output_of,
    require_java,
    spark_home,
    spark_version,
)

RECORD_CLASSES = "LAKELET_RECORD_CLASSES"
"""Variable that names the file into which a Java process writes its archive at its end."""
KEPT_ARCHIVES = 3
_SWITCH = "LAKELET_ARCHIVE"
"""Variable that is `off` where no process may go on after a command."""
_CI = "CI"
"""Variable that GitHub, GitLab and others set: their machines are thrown away before an archive pays for itself."""
_WARM_UP = 2
"""Number of what the warm-up process does and keeps: with another one, earlier archives do not fit any more."""
_NOT_IN_NAMES = r"[^\w.+-]"
_IN_USE_SECONDS = 86_400
_AGAIN_SECONDS = 86_400
"""After so long an archive that could not be made is tried again: the disk may have been full, or the memory."""
_LONGEST_SECONDS = 6 * 3600
"""At the lowest priority the warm-up waits as long as others use the processors."""
_LOCK = ".lock"
_UNFINISHED = ".make-"
_ARCHIVE_TODO = "Nothing is broken: sessions only start slower. Logs of Spark are in the folder logs of the cache."


def archive_path(java: Java, delta: Jars) -> Path:
    """Return where the class-data archive for exactly this Java, this pyspark and these jars lies or would lie.

    The Java virtual machine accepts an archive only with the class path that it was made with, files and their times included, and with
    the archive of Java's own classes below it. The name stands for both, so an archive that no longer fits is not found.
    """
    base = base_archive_path(java)
    facts = [str(_WARM_UP), java.home, java.full_version, *([base.name] if base else [])]
    for jar in [*delta.paths, *sorted((spark_home() / "jars").iterdir())]:
        status = jar.stat()
        facts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    name = f"java-{java.full_version}-spark-{spark_version()}-delta-{DELTA_VERSION}-{digest}.jsa"
    return cache_folder() / "archives" / re.sub(_NOT_IN_NAMES, "_", name)


def base_archive_path(java: Java) -> Path | None:
    """Return where the archive of Java's own classes lies or would lie for a Java that brings none; None for others."""
    if java.has_archive:
        return None
    digest = hashlib.sha256(java.home.encode()).hexdigest()[:12]
    return cache_folder() / "archives" / f"java-{re.sub(_NOT_IN_NAMES, '_', java.full_version)}-{digest}.base"


def note_use(archive: Path) -> None:
    """Record that a session uses the archive now: the most recently used ones are kept."""
    with suppress(OSError):
        os.utime(archive)


def make_archive() -> Path:
    """Make the class-data archive for this Java and these jars in a warm-up process (20 s or so), put it in place, and return its path.

    Waits for another process that makes one, and returns at once where the archive is there by then. The most recently used archives are
    kept, because other environments have their own. Raises ARCHIVE_FAILED with the last output of the process.
    """
    try:
        java, delta = require_java(), ensure_jars()
        target = archive_path(java, delta)
        with _only_maker(target.parent, wait=True):
            if not target.is_file():
                _make(target, java)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LakeletError("ARCHIVE_FAILED", "The class-data archive could not be made", why=str(error), todo=_ARCHIVE_TODO) from error
    return target


def make_missing_archive(archive: Path, java: Java) -> None:
    """Make an archive that no command waits for, unless another process makes one, or `is_wanted` is false. Why it fails is kept."""
    with suppress(OSError), _only_maker(archive.parent) as alone:
        if not alone or not is_wanted(archive):
            return
        try:
            _make(archive, java)
        except (LakeletError, OSError, subprocess.TimeoutExpired) as error:
            failure_file(archive).write_text(str(error), encoding="utf-8")


def in_background() -> bool:
    """Return whether a command may leave a process that makes the archive."""
    if os.environ.get(RECORD_CLASSES) or os.environ.get(_SWITCH, "").lower() == "off":
        return False
    return os.environ.get(_CI, "").lower() in ("", "0", "false")


def is_wanted(archive: Path) -> bool:
    """Return whether to make the archive: it is missing, did not fail lately, and no archive used today would be removed for it."""
    if archive.is_file() or _age_of(failure_file(archive)) < _AGAIN_SECONDS:
        return False
    used = [other for other in archive.parent.glob("*.jsa") if _age_of(other) < _IN_USE_SECONDS]
    return len(used) < KEPT_ARCHIVES


def is_being_made(folder: Path) -> bool:
    """Return whether a process is making an archive in the folder."""
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def failure_file(archive: Path) -> Path:
    """Return the path of the file that holds why the archive could not be made, so that not every command tries it again."""
    return archive.with_suffix(".failed")


def _age_of(file: Path) -> float:
    """Seconds since a file was written or used; infinite where there is none."""
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return float("inf")


@contextmanager
def _only_maker(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Yield whether no other process is making an archive in the folder; `wait` until that is so. The lock ends with this process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _make(target: Path, java: Java) -> None:
    """Make the archive in another folder, and put it in place when it is on the disk. The caller has the lock of `_only_maker`."""
    for unfinished in target.parent.glob(f"{_UNFINISHED}*"):  # of processes that were killed
        shutil.rmtree(unfinished, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=_UNFINISHED) as temporary:
        _make_base_archive(java, Path(temporary))
        made = Path(temporary) / target.name
        command = [sys.executable, "-m", "lakelet.spark.launch.warmup", "--record"]
        environment = {**os.environ, RECORD_CLASSES: str(made)}
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_LONGEST_SECONDS, env=environment
        )
        if done.returncode or not made.is_file():
            why = "\n".join(done.stdout.strip().splitlines()[-3:]) or None
            raise LakeletError("ARCHIVE_FAILED", "The class-data archive could not be made", why=why, todo=_ARCHIVE_TODO)
        _put_in_place(made, target)
    for old in sorted(target.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime)[:-KEPT_ARCHIVES]:
        old.unlink(missing_ok=True)


def _put_in_place(made: Path, target: Path) -> None:
    """Give a complete file its name. Java reads it without a check of its content, so it is on the disk before."""
    with made.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(made, target)


def _make_base_archive(java: Java, work: Path) -> None:
    """Make the archive of Java's own classes where this Java brings none and the cache has none. Raises ARCHIVE_FAILED."""
    base = base_archive_path(java)
    if base is None or base.is_file():
        return
    output = output_of([str(java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={work / base.name}"])
    if not (work / base.name).is_file():
        why = "\n".join(output.strip().splitlines()[-3:]) or None
        raise LakeletError("ARCHIVE_FAILED", "The archive of Java's own classes could not be made", why=why, todo=_ARCHIVE_TODO)
    _put_in_place(work / base.name, base)
