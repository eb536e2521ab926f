"""Starts the Java process behind a session directly, and connects pyspark to it.

Used by `session` only. The way of pyspark itself goes through two shell scripts, a Python process and a Java process that merely prints
the command line. Composing that line here saves them, lets Python's imports overlap with the start of Java, and keeps what Java writes
off the user's terminal. The line is the one that Spark's launcher prints (`tests/spark/spark/test_session.py` compares them).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lakelet.base.errors import LakeletError
from lakelet.base.masters import is_local
from lakelet.files.scratch import scratch_folder
from lakelet.jvm.processes import Gateway, gateway
from lakelet.spark.launch.archives import RECORD_CLASSES, archive_path, base_archive_path
from lakelet.spark.launch.environment import VECTOR_MODULE, Jars, Java, cache_folder, configuration_folders, spark_home

# From this much input on, what the full compiler gains outweighs what it costs (measured: docs/decisions/0001-start-up.md).
FULL_COMPILER_BYTES = 250 * 1024 * 1024
START_TIMEOUT_SECONDS = 120
_RECORDING_TIMEOUT_SECONDS = 3600
"""A Java process that is recorded may have the lowest priority on a busy machine."""
KEPT_LOGS = 10
_NICE = 10
"""Beside others a thread of this priority gets a tenth of a processor."""

DEBUG = "LAKELET_DEBUG"

_OPENED = (
    *(f"java.base/{p}" for p in ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util")),
    *(f"java.base/{p}" for p in ("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs")),
    *(f"java.base/{p}" for p in ("sun.security.action", "sun.util.calendar")),
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    f"--add-modules={VECTOR_MODULE}",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)


@dataclass(frozen=True)
class JavaProcess:
    """A Java process that is starting: it writes its port and secret into `connection` when it is ready."""

    process: subprocess.Popen[bytes]
    connection: Path
    log: Path | None


def tuning_options(java: Java, delta: Jars, input_bytes: int | None, *, lasts: bool = False) -> list[str]:
    """Return the options of the Java virtual machine that make this run quick.

    `input_bytes` is what the run will read, None when nobody knows: a small or unknown input gets the first compiler tier, which starts
    fast, a large one the full compiler. A process that `lasts` gets it too, in threads that are all there from the start
    (`compile_in_pauses`). The class-data archive is used when one fits this Java and these jars.
    """
    small = input_bytes is None or input_bytes < FULL_COMPILER_BYTES
    options = ["-XX:+UseSerialGC", "-Xms768m", "-Xmn320m"] if small else ["-XX:+UseParallelGC"]
    if lasts:
        options.append("-XX:-UseDynamicNumberOfCompilerThreads")
    elif small:
        # Without tiers Java reserves 48 MB for compiled code; a run fills that, and from then on everything is interpreted.
        # A run is over before most of Spark's code has run as often as a method is interpreted by default.
        options += ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:CompileThresholdScaling=0.4"]
    # The first collection of class metadata would be a full one in the middle of the start.
    options += ["-XX:MetaspaceSize=256m", "-Xss4m", f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"]
    recorded, base = os.environ.get(RECORD_CLASSES), base_archive_path(java)
    if recorded:
        return [*options, *([f"-XX:SharedArchiveFile={base}"] if base else []), f"-XX:ArchiveClassesAtExit={recorded}"]
    archives = [*([base] if base else []), archive_path(java, delta)]
    if not all(archive.is_file() for archive in archives):
        return options
    return [*options, f"-XX:SharedArchiveFile={os.pathsep.join(map(str, archives))}", "-Xlog:disable", "-Xlog:all=error:stderr"]


def java_command(java: Java, delta: Jars, options: Sequence[str], settings: Mapping[str, str], more: Sequence[Path] = ()) -> list[str]:
    """Return the command line of Spark's driver process: this Java, Spark's jars after Delta's two, the options, the settings.

    `more`: further jars and folders. They come last: the class-data archive fits a class path that begins with its own.
    """
    spark = spark_home()
    folders = configuration_folders(local=is_local(settings["spark.master"]))
    class_path = [delta.class_path, *folders, str(spark / "jars" / "*"), *map(str, more)]
    own = shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    submitted = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    memory = f"-Xmx{settings['spark.driver.memory']}"
    modules = [option for option in MODULE_OPTIONS if java.has_vector or VECTOR_MODULE not in option]
    return [
        str(java.executable), "-cp", os.pathsep.join(class_path), memory, *options, *own, *modules,
        "org.apache.spark.deploy.SparkSubmit", *submitted, "pyspark-shell",
    ]  # fmt: skip


def start_java(command: Sequence[str], *, loopback: bool, lasts: bool = False) -> JavaProcess:
    """Start Spark's Java process and return at once; `connect` waits for it. It ends by itself when this process ends.

    `lasts`: what the process gives back to the C library is used again by all of its threads, so that its memory does not grow for hours.
    """
    folder = scratch_folder("start")
    connection = folder / "connection"
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
    }
    if loopback:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    if lasts:
        environment.setdefault("MALLOC_ARENA_MAX", "2")
    log, output = _open_log()
    try:
        process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, preexec_fn=_ignore_interrupts
        )
    finally:
        if output is not None:
            output.close()
    return JavaProcess(process, connection, log)


def compile_in_pauses(java: JavaProcess) -> None:
    """Let Java's full compiler work in the pauses: beside others its threads get a tenth of a processor. On Linux; else nothing changes."""
    for thread in Path(f"/proc/{java.process.pid}/task").glob("*"):
        with contextlib.suppress(OSError):  # the thread has ended
            if (thread / "comm").read_text().startswith("C2 "):
                own = os.getpriority(os.PRIO_PROCESS, int(thread.name))  # of a command that was started with `nice`
                os.setpriority(os.PRIO_PROCESS, int(thread.name), max(own, _NICE))


def connect(java: JavaProcess) -> Gateway:
    """Wait until the Java process is ready and return pyspark's gateway to it. SPARK_START_FAILED when it ends or stays silent."""
    from pyspark.serializers import UTF8Deserializer, read_int

    deadline = time.monotonic() + (_RECORDING_TIMEOUT_SECONDS if os.environ.get(RECORD_CLASSES) else START_TIMEOUT_SECONDS)
    try:
        while not java.connection.is_file():
            if java.process.poll() is not None or time.monotonic() > deadline:
                java.process.kill()
                raise _start_failed(java)
            time.sleep(0.005)
        with java.connection.open("rb") as stream:
            port, secret = read_int(stream), UTF8Deserializer().loads(stream)  # type: ignore[no-untyped-call]
    finally:
        shutil.rmtree(java.connection.parent, ignore_errors=True)
    found = gateway(port, secret)
    found.proc = java.process
    return found


def _start_failed(java: JavaProcess) -> LakeletError:
    lines = java.log.read_text(errors="replace").splitlines() if java.log else []
    telling = [line for line in lines if "WARN" not in line][-3:]
    todo = f"The whole story is in {java.log}." if java.log else None
    return LakeletError("SPARK_START_FAILED", "Spark's Java process ended before it was ready", why="\n".join(telling) or None, todo=todo)


def _open_log() -> tuple[Path | None, IO[bytes] | None]:
    """A new log file in the cache, the oldest ones removed; nothing (the terminal) with LAKELET_DEBUG."""
    if os.environ.get(DEBUG):
        return None, None
    folder = cache_folder() / "logs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        old = sorted(folder.glob("spark-*.log"), key=lambda path: path.stat().st_mtime)
        for path in old[: -KEPT_LOGS + 1]:
            path.unlink(missing_ok=True)
        log = folder / f"spark-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        return log, log.open("wb")
    except OSError:
        return None, Path(os.devnull).open("wb")


def _ignore_interrupts() -> None:
    """Ctrl-C is for Python, which ends the run in order; Java must live until then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
