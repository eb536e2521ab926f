"""Java's class-data archive: the loaded classes of a session that has done what updates do, which later starts take over.

Imports neither Spark nor pyspark.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.spark.launch.environment import (
    DELTA_VERSION,
    SPARK_VERSION,
    Jars,
    Java,
    cache_folder,
    ensure_jars,
    output_of,
    require_java,
    spark_home,
)

RECORD_CLASSES = "LAKELET_RECORD_CLASSES"
"""Variable that names the file into which a Java process writes its archive at its end."""
KEPT_ARCHIVES = 3
_WARM_UP = 2
"""Number of what the warm-up process does and keeps: with another one, earlier archives do not fit any more."""
_NOT_IN_NAMES = r"[^\w.+-]"
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
    name = f"java-{java.full_version}-spark-{SPARK_VERSION}-delta-{DELTA_VERSION}-{digest}.jsa"
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

    The most recently used archives are kept, because other environments have their own.
    Raises ARCHIVE_FAILED with the last output of the process.
    """
    try:
        java, delta = require_java(), ensure_jars()
        target = archive_path(java, delta)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".make-") as temporary:
            _make_base_archive(java, Path(temporary))
            made = Path(temporary) / target.name
            command = [sys.executable, "-m", "lakelet.spark.launch.warmup", "--record"]
            environment = {**os.environ, RECORD_CLASSES: str(made)}
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, env=environment)
            if done.returncode or not made.is_file():
                why = "\n".join(done.stdout.strip().splitlines()[-3:]) or None
                raise LakeletError("ARCHIVE_FAILED", "The class-data archive could not be made", why=why, todo=_ARCHIVE_TODO)
            os.replace(made, target)
        for old in sorted(target.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime)[:-KEPT_ARCHIVES]:
            old.unlink(missing_ok=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LakeletError("ARCHIVE_FAILED", "The class-data archive could not be made", why=str(error), todo=_ARCHIVE_TODO) from error
    return target


def _make_base_archive(java: Java, work: Path) -> None:
    """Make the archive of Java's own classes where this Java brings none and the cache has none. Raises ARCHIVE_FAILED."""
    base = base_archive_path(java)
    if base is None or base.is_file():
        return
    output = output_of([str(java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={work / base.name}"])
    if not (work / base.name).is_file():
        why = "\n".join(output.strip().splitlines()[-3:]) or None
        raise LakeletError("ARCHIVE_FAILED", "The archive of Java's own classes could not be made", why=why, todo=_ARCHIVE_TODO)
    os.replace(work / base.name, base)
