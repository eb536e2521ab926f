"""Checks this machine without starting Spark: can pipelines run here, and what to do where they cannot.

Every check is a function of no arguments in `_CHECKS`; the command line prints what they return.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import find_storage, project_packages
from lakelet.files.stores import StoreKind, stores_of
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env

OLDEST_PYTHON = (3, 10)


@dataclass(frozen=True)
class DoctorCheck:
    """Result of one check.

    Attributes:
        name: what was checked.
        ok: nothing to do here.
        finding: one sentence with the facts, also when all is well.
        remedy: what to type or do; empty when `ok`.
        blocking: pipelines cannot run until it is mended. False: they run, but something is slower or may surprise.
    """

    name: str
    ok: bool
    finding: str
    remedy: str = ""
    blocking: bool = True


def examine() -> list[DoctorCheck]:
    """Return every check in the order of what builds on what. Takes well under a second; starts no Spark and asks no network."""
    checks = [check() for check in _CHECKS]
    return [*checks, *map(check_store, _stores()), *check_project()]


def can_run(checks: list[DoctorCheck]) -> bool:
    """Tell whether pipelines can run: no check failed that blocks."""
    return all(check.ok or not check.blocking for check in checks)


def check_python() -> DoctorCheck:
    """Python's version."""
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    ok = sys.version_info >= OLDEST_PYTHON
    return DoctorCheck("Python", ok, f"{found} ({sys.executable})", "" if ok else f"Make the environment with Python {wanted} or newer.")


def check_java() -> DoctorCheck:
    """Java's presence and version."""
    try:
        java = env.find_java()
    except LakeletError as error:
        return DoctorCheck("Java", False, error.what, error.todo or env.java_remedy())
    ok = java.version >= env.MINIMUM_JAVA
    return DoctorCheck(
        "Java", ok, f"{java.full_version} ({java.executable})", "" if ok else f"Java {env.MINIMUM_JAVA} or newer. {env.java_remedy()}"
    )


def check_pyspark() -> DoctorCheck:
    """pyspark's version, and whether databricks-connect was installed over it."""
    version = _version("pyspark")
    connect = _version("databricks-connect")
    install = f"{sys.executable} -m pip install --force-reinstall --no-deps pyspark=={env.SPARK_VERSION} delta-spark=={env.DELTA_VERSION}"
    if connect is not None:
        uninstall = f"{sys.executable} -m pip uninstall -y databricks-connect"
        finding = f"databricks-connect {connect} is installed; it overwrites pyspark and refuses local sessions"
        return DoctorCheck("pyspark", False, finding, f"Type: {uninstall} && {install}")
    if version is None:
        return DoctorCheck("pyspark", False, "not installed", f"Type: {install}")
    if not version.startswith(f"{env.SPARK_LINE}."):
        finding = f"{version}; Delta {env.DELTA_VERSION} is built for Spark {env.SPARK_LINE}"
        return DoctorCheck("pyspark", False, finding, f"Type: {install}")
    damage = _pyspark_damage(version)
    tested = "" if version in env.TESTED_SPARK else f"; not tested: Lakelet's tests have passed with {' and '.join(env.TESTED_SPARK)}"
    return DoctorCheck("pyspark", not damage, damage or f"{version}{tested}", f"Type: {install}" if damage else "")


def _pyspark_damage(version: str) -> str | None:
    """Return the damage to the files of a pyspark whose metadata are right: another package overwrote them."""
    try:
        home = env.spark_home()
        found = env.spark_version()
    except LakeletError:
        return "its files are missing"
    if found != version:
        return f"its files in {home} are of another version: another package overwrote them"
    if not any((home / "jars").glob("spark-core_*.jar")):
        return f"{home} holds no Spark jars: another package overwrote it"
    return None


def check_delta() -> DoctorCheck:
    """The version of delta-spark: its Python part must be that of the jars."""
    version = _version("delta-spark")
    ok = version == env.DELTA_VERSION
    remedy = f"Type: {sys.executable} -m pip install --no-deps delta-spark=={env.DELTA_VERSION}"
    wanted = "" if ok else f"; Lakelet needs {env.DELTA_VERSION}"
    return DoctorCheck("delta-spark", ok, (version or "not installed") + wanted, "" if ok else remedy)


def check_pandas() -> DoctorCheck:
    """pandas below 3: pyspark's test helpers break on newer ones."""
    version = _version("pandas")
    ok = version is not None and version.split(".")[0].isdigit() and int(version.split(".")[0]) < 3
    finding = version or "not installed"
    remedy = f"Type: {sys.executable} -m pip install 'pandas>=2.2,<3'"
    return DoctorCheck(
        "pandas", ok, finding if ok else f"{finding}; pyspark {env.SPARK_VERSION} needs 2.2 or newer, below 3", "" if ok else remedy
    )


def check_jars() -> DoctorCheck:
    """Delta's two jars, in the cache or the named folder."""
    try:
        found = env.jars()
    except LakeletError as error:
        return DoctorCheck("Delta's jars", False, error.what, error.todo or "")
    return DoctorCheck("Delta's jars", True, f"{' and '.join(path.name for path in found.paths)} in {found.delta_spark.parent}")


def check_store(kind: StoreKind) -> DoctorCheck:
    """What a kind of store needs: jars and keys, or a package of Python; asked for only where the storage lies there."""
    name = f"storage on {kind.name}"
    if kind.jars is None:
        return _check_client(name, kind)
    package = env.STORE_PACKAGES[kind.jars]
    try:
        found = env.package_jars(package)
    except LakeletError as error:
        finding = f"{error.what}; the first run fetches them ({package.megabytes})"
        return DoctorCheck(name, False, finding, error.todo or "", blocking=bool(os.environ.get("LAKELET_JARS")))
    if not os.environ.get(kind.keys[0]):
        finding = f"its jars are there; {kind.keys[0]} is not set, so only this machine's own role can open it"
        return DoctorCheck(name, False, finding, f"Set {' and '.join(kind.keys)}, unless the machine has a role.", blocking=False)
    jars = f"{len(found)} jar{'s' if len(found) > 1 else ''} in {found[0].parent}"
    return DoctorCheck(name, True, f"{jars}; {kind.settings.of(os.environ)}")


def _check_client(name: str, kind: StoreKind) -> DoctorCheck:
    """The package of Python with which a store is read whose jars Spark brings."""
    client = kind.package or ""
    version = _version(client)
    if version is None:
        remedy = f"Type: {sys.executable} -m pip install {client}"
        return DoctorCheck(name, False, f"the Python package {client} is not installed", remedy)
    return DoctorCheck(name, True, f"{client} {version}; {kind.settings.of(os.environ)}")


def check_package(name: str) -> DoctorCheck:
    """The jars of a package that the project's setting `packages` names."""
    package = env.PACKAGES[name]
    try:
        found = env.package_jars(package)
    except LakeletError as error:
        finding = f"{error.what}; the first run fetches them ({package.megabytes})"
        return DoctorCheck(f"package {name}", False, finding, error.todo or "", blocking=bool(os.environ.get("LAKELET_JARS")))
    return DoctorCheck(f"package {name}", True, f"{len(found)} jars in {found[0].parent}")


def check_project() -> list[DoctorCheck]:
    """The packages that the current project names, or its settings where they cannot be read."""
    try:
        return [check_package(name) for name in project_packages(Path.cwd())]
    except LakeletError as error:
        return [DoctorCheck("settings", False, f"{error.what} ({error.where})" if error.where else error.what, error.todo or str(error))]


def named_packages() -> tuple[str, ...]:
    """What the setting `packages` of the current project names."""
    try:
        return project_packages(Path.cwd())
    except LakeletError:
        return ()  # see `check_project`


def _stores() -> tuple[StoreKind, ...]:
    try:
        return stores_of(find_storage())
    except LakeletError:
        return ()  # settings that cannot be read are reported by every other command


def check_archive() -> DoctorCheck:
    """The class-data archive; without it, or with one for another Java, sessions start slower."""
    name = "class-data archive"
    remedy = "Type: lakelet doctor --archive (takes up to a minute, once)"
    try:
        archive = archives.archive_path(env.find_java(), env.jars())
    except (LakeletError, OSError):
        return DoctorCheck(name, False, "none: it needs Java and the jars first", remedy, blocking=False)
    if archive.is_file():
        return DoctorCheck(name, True, str(archive))
    if archives.is_being_made(archive.parent):
        finding = "a process in the background is making one: until it is there, sessions start some seconds slower"
        return DoctorCheck(name, False, finding, blocking=False)
    return DoctorCheck(name, False, f"{_archive_absence(archive)}: sessions start some seconds slower", remedy, blocking=False)


def _archive_absence(archive: Path) -> str:
    """Why there is no archive."""
    with suppress(OSError):
        return f"it could not be made ({archives.failure_file(archive).read_text(encoding='utf-8').splitlines()[0]})"
    others = any(archive.parent.glob("*.jsa"))
    missing = "the present ones are for another Java, pyspark or set of jars" if others else "none yet"
    return f"{missing}; the next command that starts Spark leaves a process that makes it" if archives.in_background() else missing


def check_foreign_dlt() -> DoctorCheck:
    """Another owner of the import name dlt."""
    name = "import name dlt"
    for distribution, owner in (("databricks-dlt", "Databricks' stub"), ("dlt", "dltHub's dlt")):
        version = _version(distribution)
        if version is not None:
            finding = f"{owner} ({distribution} {version}) is installed: outside of an update, `import dlt` gets that one"
            return DoctorCheck(
                name, False, finding, f"If you do not need it: {sys.executable} -m pip uninstall -y {distribution}", blocking=False
            )
    spec = PathFinder.find_spec("dlt")
    if spec is not None:
        where = spec.origin or next(iter(spec.submodule_search_locations or ()), "an unknown place")
        finding = f"a module dlt lies at {where}: outside of an update, `import dlt` gets that one"
        return DoctorCheck(name, False, finding, "Rename it, or keep its folder off the Python path.", blocking=False)
    return DoctorCheck(name, True, "free; Lakelet puts its own in place while an update runs")


def check_cache() -> DoctorCheck:
    """Whether the cache folder can be written: without it every start looks for Java again and nothing can be fetched."""
    folder = env.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return DoctorCheck(
            "cache folder", False, f"{folder}: {error.strerror}", "Set LAKELET_CACHE to a folder that you can write.", blocking=False
        )
    return DoctorCheck("cache folder", True, str(folder))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


_CHECKS: tuple[Callable[[], DoctorCheck], ...] = (
    check_python,
    check_java,
    check_pyspark,
    check_delta,
    check_pandas,
    check_cache,
    check_jars,
    check_archive,
    check_foreign_dlt,
)
