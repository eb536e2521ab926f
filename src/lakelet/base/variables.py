"""Variables of the environment that are read once, when Java, Spark or Python starts, and those that only code can read.

There are three kinds. Variables of terminals (`terminals.VOLATILE`) say nothing about what a command does. Those that are `read_at_start`
decide how a process behaves as long as it runs. All others mean something only to code, which reads them when it runs: the pipeline's own.
"""

from __future__ import annotations

_PREFIXES = (
    *("SPARK_", "PYSPARK_", "HADOOP_", "HDFS_", "YARN_", "HIVE_", "LAKELET_", "JAVA_", "JDK_", "_JAVA_", "IBM_JAVA_", "OPENJ9_"),
    *("PYTHON", "AWS_", "AZURE_", "GOOGLE_", "KRB5", "LC_", "LD_", "DYLD_"),
)
_LIBRARIES = (
    *("_SPARK_", "DELTA_", "ARROW_", "ICU_", "ROCKSDB_", "LOG4J", "OMP_", "OPENBLAS_", "MKL_", "BLIS_", "VECLIB_", "KMP_", "GLIBC_"),
    *("PANDAS_", "NPY_", "NUMPY_", "NUMEXPR_", "PYARROW_", "PYTZ_"),  # the fork server has imported these
)
_NAMES = ("CLASSPATH", "HOME", "LANG", "LANGUAGE", "LOGNAME", "STORAGE_EMULATOR_HOST", "TMPDIR", "TMP", "TEMP", "TZ", "USER")
_OF_LIBRARIES = (
    *("MASTER", "DEPLOY_MODE", "CONTAINER_ID", "LOCAL_DIRS", "DEFAULT_ARTIFACT_REPOSITORY"),
    *("TZDIR", "LOCPATH", "LOCALDOMAIN", "RES_OPTIONS", "HOSTALIASES"),
)
_PROXIES = ("ALL_PROXY", "FTP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_NOTHING = frozenset(
    (
        *("LC_TERMINAL", "LC_TERMINAL_VERSION", "AWS_PAGER", "LAKELET_IDLE_ANSWER", "LAKELET_PROGRESS"),
        *("PYTHONSTARTUP", "PYTHON_BASIC_REPL", "PYTHON_COLORS", "PYTHON_HISTORY", "PYTHON_ARGCOMPLETE_OK"),
    )
)
"""Names like those above that no process without a prompt reads, or that only the command itself reads."""
PROGRAMS = ("bash", "chmod", "id", "ln", "ls", "readlink", "setsid", "sh", "stat", "whoami")
"""Programs that Spark and Hadoop start by name: of PATH it counts which ones it finds."""
COUNTED = ", ".join((*(f"{prefix}*" for prefix in _PREFIXES), *_NAMES, "proxies (HTTP_PROXY …)", "the programs that PATH finds"))
COUNTED += ", and those of libraries (ARROW_*, OMP_*, PANDAS_* …)"
"""The list, to be shown."""


def read_at_start(name: str) -> bool:
    """Return whether Java, Spark, Hadoop, Python, a client of a store or a library in C reads a variable when it starts."""
    return (
        name.startswith((*_PREFIXES, *_LIBRARIES)) or name in (*_NAMES, *_OF_LIBRARIES) or name.upper() in _PROXIES
    ) and name not in _NOTHING


__all__ = ["COUNTED", "PROGRAMS", "read_at_start"]
