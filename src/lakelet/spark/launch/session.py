"""Starts the one Spark session of a process: Delta's two jars, quiet, local by default, quick.

pyspark is imported inside the functions, so importing this module costs nothing.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError
from lakelet.base.masters import is_local, is_on_this_machine
from lakelet.base.phases import report
from lakelet.base.user_code import PACKAGE
from lakelet.files.scratch import scratch_folder
from lakelet.files.stores import KINDS, StoreKind
from lakelet.jvm.cluster import cluster_cores
from lakelet.jvm.first_session import look_up_sources, session_of
from lakelet.jvm.hadoop import write_no_checksum_files
from lakelet.jvm.local_files import use_quick_local_files
from lakelet.jvm.sessions import active_context
from lakelet.spark.launch import java_process
from lakelet.spark.launch.archives import archive_path, note_use
from lakelet.spark.launch.environment import PACKAGES, STORE_PACKAGES, Jars, default_settings, ensure_jars, ensure_package, require_java
from lakelet.spark.launch.forks import python_executable
from lakelet.spark.launch.quick_start import import_pyspark
from lakelet.spark.launch.resident.client import warm_session
from lakelet.spark.launch.resident.server import session_started
from lakelet.spark.partitions import session_sizes

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_STREAMING = "org.apache.spark.sql.execution.streaming"

# Set on every master.
_ALWAYS = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    "spark.sql.catalogImplementation": "in-memory",
    # spark.sql(text, args): with Delta's extension Spark 4.2 loses the arguments otherwise (UNBOUND_SQL_PARAMETER).
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    # A Python UDF over Parquet or Delta columns never ends otherwise (SPARK-58241, Spark 4.2.0).
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.debug.maxToStringFields": "1000",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Set where nobody looks at Spark's page: it keeps the plans and numbers of a thousand queries, an hour of a continuous update.
_WITHOUT_PAGE = {
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
}
# Set where no other machine takes part.
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Set on a local master only: one process, small tables, and a file system on which Hadoop's Java code starts a process
# (chmod, readlink) wherever it lacks its native library. With these a Delta commit takes half the time (docs/decisions/0001-start-up.md).
_LOCAL = {
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # A master elsewhere cannot import it before it has got Lakelet's code; there the state of Python functions has no arrays and maps.
    "spark.python.daemon.module": "lakelet.spark.launch.python_daemon",
    # Spark derives 64 MB from the heap and takes one such page for each broadcast table with a long key, each sort and each aggregate.
    "spark.buffer.pageSize": "2m",
    # The views of a continuous update have more generated classes than the 100 that Spark keeps.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
}


@dataclass(frozen=True)
class Launch:
    """How a Java process is started for a session.

    Attributes:
        settings: Spark's.
        command: the command line.
        archive: the class-data archive, which need not exist.
        local: tasks run in this process alone.
        is_plain: its Python processes are of this interpreter, so that a resident session can take its place.
        lasts: it goes on for long.
    """

    settings: Mapping[str, str]
    command: Sequence[str]
    archive: Path
    local: bool
    is_plain: bool
    lasts: bool

    @classmethod
    def of(
        cls,
        app_name: str,
        master: str | None,
        input_bytes: int | None,
        conf: Mapping[str, str],
        *,
        stores: Sequence[StoreKind],
        packages: Sequence[str],
        worker_python: str | None,
        lasts: bool,
    ) -> Launch:
        """Find out what the session needs, and set the variables of this process that Spark reads only there. Raises as `start_session`."""
        java, delta = require_java(), ensure_jars()
        wanted = (*(STORE_PACKAGES[kind.jars] for kind in stores if kind.jars), *(PACKAGES[name] for name in packages))
        more = tuple(jar for package in wanted for jar in ensure_package(package))
        settings = session_settings(delta, app_name=app_name, master=master, conf=conf, more=more, stores=stores, input_bytes=input_bytes)
        local = is_local(settings["spark.master"])
        # Workers must run the driver's version of Python; Spark reads these only here, and Java the second one.
        os.environ["PYSPARK_PYTHON"] = worker_python or (python_executable() if local else sys.executable)
        os.environ["PYSPARK_DRIVER_PYTHON"] = python_executable() if local and not worker_python else sys.executable
        # Spark's own temporary files go with this process too, also when it is killed.
        tuned = java_process.tuning_options(java, delta, input_bytes, lasts=lasts)
        folders = [Path(folder) for kind in stores for folder in kind.settings.of(os.environ).class_path()]
        options = [*tuned, f"-Djava.io.tmpdir={scratch_folder('java')}"]
        command = java_process.java_command(java, delta, options, settings, (*more, *folders))
        return cls(settings, command, archive_path(java, delta), local, local and not worker_python, lasts)

    def start(self) -> java_process.JavaProcess:
        """Start the Java process and return at once."""
        loopback = is_on_this_machine(self.settings["spark.master"])
        process = java_process.start_java(self.command, loopback=loopback, lasts=self.lasts)
        note_use(self.archive)
        return process


def start_session(
    *,
    app_name: str = "lakelet",
    master: str | None = None,
    input_bytes: int | None = None,
    conf: Mapping[str, str] | None = None,
    stores: Sequence[StoreKind] = (),
    packages: Sequence[str] = (),
    worker_python: str | None = None,
    lasts: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> SparkSession:
    """Return the Spark session of this process, starting it when there is none.

    Args:
        app_name: shown in Spark's own listings.
        master: a Spark master URL; by default this machine with all its cores.
        input_bytes: how much the run will read, None when unknown; picks the Java compiler (see `java_process.tuning_options`), the
            number of partitions, and whether code is generated (see `partitions.session_sizes`).
        conf: further Spark settings; they win over Lakelet's.
        stores: what Spark itself reads and writes there. Takes more jars, fetched when they are not there.
        packages: names in `environment.PACKAGES`: their jars are on the class path, fetched when they are not there.
        worker_python: the interpreter on the master's machines, this one included; by default this process's own. It needs pyarrow and
            nothing of Lakelet: for it, and for a master elsewhere, Lakelet's code travels with the session.
        lasts: the process goes on for long, so that what takes time at its start pays for itself: both compilers, `local_files`.
        meanwhile: called once while Java starts, for imports that the caller needs afterwards; not where a session is there already.

    A session that is already active is returned as it is, with its own settings, provided that it has Delta. In the block of
    `resident.client.session_client` a warm session is used where one fits. Raises JAVA_MISSING, JARS_MISSING, PYSPARK_BROKEN,
    SPARK_START_FAILED or SESSION_WITHOUT_DELTA.
    """
    if "pyspark" in sys.modules:
        running = _running_session()
        if running is not None:
            return running
    launch = Launch.of(
        app_name, master, input_bytes, conf or {}, stores=stores, packages=packages, worker_python=worker_python, lasts=lasts
    )
    if launch.is_plain:
        session = warm_session(launch.command, launch.settings)
        if session is not None:
            return session
    report("Starting Spark")
    process = launch.start()
    try:
        session = _new_session(process, launch, meanwhile=meanwhile)
        if launch.is_plain:
            session_started(session)
        else:
            _equip_workers(session.sparkContext)
        if not launch.local:
            _size_for_cluster(session, input_bytes)
        return session
    except BaseException:  # also Ctrl-C: no Java process is left
        process.process.kill()
        raise


def session_settings(
    delta: Jars,
    *,
    app_name: str,
    master: str | None,
    conf: Mapping[str, str],
    more: Sequence[Path] = (),
    stores: Sequence[StoreKind] = (),
    input_bytes: int | None = None,
) -> dict[str, str]:
    """Return every Spark setting of a new session: Lakelet's for this kind of master, then `conf` over them.

    `more`: jars beside Delta's; `stores`: those for these kinds are among them; `input_bytes`: see `start_session`.
    """
    url = conf.get("spark.master") or master or f"local[{cores()}]"
    settings = {
        "spark.master": url,
        "spark.app.name": app_name,
        "spark.driver.memory": driver_memory(),
        "spark.driver.extraClassPath": delta.class_path,
        "spark.sql.warehouse.dir": (scratch_folder("spark") / "warehouse").as_uri(),
        **_ALWAYS,
    }
    if is_local(url):
        settings |= {**_LOCAL, **session_sizes(cores(), input_bytes, {*conf, *default_settings()})}
    else:  # its cores are known when it has started: `_size_for_cluster`
        settings["spark.jars"] = ",".join(path.as_uri() for path in (*delta.paths, *more))
    if is_on_this_machine(url):
        settings |= _LOOPBACK
    if stores:
        # Spark's own choice replaces a file whose name is taken; the one for local disks cannot do that on an object store.
        settings.pop("spark.sql.streaming.checkpointFileManagerClass", None)
        for kind in stores:
            settings |= kind.settings.of(os.environ).spark_settings()
    if conf.get("spark.ui.enabled", "false").lower() != "true":
        settings |= _WITHOUT_PAGE
    return {**settings, **conf}


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 2


def driver_memory() -> str:
    """Return the Java heap's limit: `SPARK_DRIVER_MEMORY`, which is Spark's own variable, else 2 GB, less on machines under 5 GB.

    With 0.7 GB beside the heap, Python and its workers, a run stays below 4 GB in all.
    """
    asked = os.environ.get("SPARK_DRIVER_MEMORY")
    if asked:
        return asked
    import psutil

    total = psutil.virtual_memory().total // (1024 * 1024)
    return f"{max(768, min(2048, int(total * 0.4)))}m"


def _running_session() -> SparkSession | None:
    """The session that this process already has, in whichever thread it was made."""
    from pyspark.sql import SparkSession

    if active_context() is None:
        return None
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    if DELTA_EXTENSION not in str(session.conf.get("spark.sql.extensions", "")):
        raise LakeletError(
            "SESSION_WITHOUT_DELTA",
            "A Spark session without Delta is already active in this process",
            todo="Stop it (spark.stop()) and start again, or start it with lakelet.spark.launch.session.start_session().",
        )
    return session


def _new_session(java: java_process.JavaProcess, launch: Launch, *, meanwhile: Callable[[], None] | None) -> SparkSession:
    """Make the session in the Java process that is starting. Python's imports happen here, while Java comes up."""
    try:
        import_pyspark()
        from pyspark import SparkConf, SparkContext
    except ImportError as error:
        raise LakeletError("PYSPARK_BROKEN", "pyspark cannot be imported", why=str(error), todo="Type: lakelet doctor") from error
    if meanwhile is not None:
        meanwhile()
    conf = SparkConf(loadDefaults=False).setAll(list(launch.settings.items()))
    context = SparkContext(conf=conf, gateway=java_process.connect(java))
    if launch.local:
        if launch.lasts:
            java_process.compile_in_pauses(java)
            use_quick_local_files(context)
        write_no_checksum_files(context)
    look_up_sources(context)
    return session_of(context)


def _size_for_cluster(session: SparkSession, input_bytes: int | None) -> None:
    """Give the session of a cluster the sizes that a local one has from its start. What the user has set anywhere stays."""
    context = session.sparkContext
    given = {name for name, _ in context.getConf().getAll()}
    for name, value in session_sizes(cluster_cores(context), input_bytes, given).items():
        session.conf.set(name, value)


def _equip_workers(context: SparkContext) -> None:
    """Give Python processes that do not share this one's packages what Auto Loader's readers need: our code, and where stores are."""
    archive = scratch_folder("code") / "lakelet-code.zip"
    package = Path(PACKAGE)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        for file in sorted(package.rglob("*.py")):
            content.write(file, f"{package.name}/{file.relative_to(package).as_posix()}")
    context.addPyFile(str(archive))
    # Where Spark plans a stream it looks for added files in a folder of its own, and they are not there (Spark 4.2.0).
    path = [str(archive), *filter(None, [context.environment.get("PYTHONPATH")])]
    addresses = {name: value for kind in KINDS for name, value in kind.settings.of(os.environ).variables().items()}
    context.environment.update({**addresses, "PYTHONPATH": os.pathsep.join(path)})
