"""What a Spark process depends on, as facts that two processes compare: a command uses the session only where all of them are equal.

A fact is a name, in the words in which a difference is told, and a digest. Digests are keyed with the secret of the session: nobody can
guess the values of variables from them. Nothing of Spark is imported.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakelet.base.terminals import VOLATILE
from lakelet.base.user_code import PACKAGE
from lakelet.files import signatures

NO_SESSION = "LAKELET_NO_SESSION"
"""Variable of the environment; where it is set, no session is offered and none is used."""
IDLE_SECONDS = "LAKELET_SESSION_IDLE"

_OWN = frozenset(
    (
        *(NO_SESSION, IDLE_SECONDS, "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"),
        *("GNOME_TERMINAL_SCREEN", "ALACRITTY_WINDOW_ID", "KONSOLE_DBUS_SESSION", "WEZTERM_PANE", "VSCODE_NONCE", "ZELLIJ_PANE_ID"),
        "PYTEST_VERSION",
    )
)
"""Variables that Lakelet, pyspark and pytest set themselves, and further ones of terminals."""

PER_PROCESS = ("-Djava.io.tmpdir=", "-XX:SharedArchiveFile=", "-Xlog:")
"""Options of Java that differ between processes, or change only how quickly it starts."""
PER_SESSION = frozenset(
    (
        *("spark.app.name", "spark.sql.warehouse.dir", "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"),
        *("spark.sql.adaptive.enabled", "spark.databricks.delta.snapshotPartitions"),
    )
)
"""Settings that a command's session gets from the command, whatever the process was started with."""

Facts = Mapping[str, str]


@dataclass(frozen=True)
class Machine:
    """The surroundings in which a Spark process starts.

    Args:
        environ: variables of the environment.
        folder: the working folder, against which Java resolves relative paths, and its inode: another one may get its name.
        interpreter: which Python it is, and how it was started.
        packages: folders of installed packages.
        code: folder of Lakelet's own code.
        files: further files that are read once per process: Java, the time zone, credentials of S3.
        folders: further folders, of which every file counts: configuration of Spark.
        umask: of files that Java makes.
        groups: user and groups.
    """

    environ: Mapping[str, str]
    folder: str
    interpreter: Sequence[object]
    packages: Sequence[str]
    code: str
    files: Sequence[str]
    folders: Sequence[str]
    umask: int
    groups: Sequence[int]

    @classmethod
    def here(cls, java: str) -> Machine:
        """This process and machine. `java`: the file that starts Java."""
        environ, paths = dict(os.environ), sysconfig.get_paths()
        umask = os.umask(0o077)
        os.umask(umask)
        return cls(
            environ,
            f"{os.path.realpath(os.getcwd())} {os.stat(os.curdir).st_ino}",
            (sys.version, sys.executable, sys.prefix, sys.base_prefix, sys.flags),
            tuple(dict.fromkeys((paths["purelib"], paths["platlib"]))),
            PACKAGE,
            (os.path.realpath(java), "/etc/localtime", *_credentials(environ)),
            tuple(filter(None, (environ.get("SPARK_CONF_DIR"), environ.get("HADOOP_CONF_DIR")))),
            umask,
            (os.getuid(), os.getgid(), *sorted(os.getgroups())),
        )

    def facts(self, key: bytes) -> Facts:
        """The facts, in the order in which a difference is told."""
        return dict(self._facts(key))

    def _facts(self, key: bytes) -> Iterator[tuple[str, str]]:
        yield "the user", signatures.digest(self.groups, key)
        yield "the working folder", signatures.digest(self.folder, key)
        yield "the umask", signatures.digest(self.umask, key)
        yield "the Python interpreter", signatures.digest(self.interpreter, key)
        yield "Lakelet itself", signatures.digest(list(_installed_below(self.code)))
        for folder in self.packages:
            yield f"the packages in {folder}", signatures.digest(list(_packages(folder)), key)
        for file in self.files:
            yield f"the file {file}", signatures.of_file(file)
        for folder in self.folders:
            yield f"the files in {folder}", signatures.of_tree(folder)
        for name, value in sorted(self.environ.items()):
            if name not in VOLATILE | _OWN:
                yield f"the environment variable {name}", signatures.digest(value, key)


def _packages(folder: str) -> Iterator[tuple[str, str]]:
    """What is installed in a folder, each with the file that every installation writes again; and what else lies there."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name != "__pycache__":
            path = os.path.join(folder, name)
            yield name, _installed(os.path.join(path, "RECORD") if name.endswith(".dist-info") else path)
    yield from _installed_below(os.path.join(folder, "pyspark", "jars"))


def _installed_below(folder: str) -> Iterator[tuple[str, str]]:
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from ((os.path.join(path, name), _installed(os.path.join(path, name))) for name in sorted(names))


def _installed(path: str) -> str:
    """The signature of an installed file. The time of its inode says nothing: it changes when another environment links the same file."""
    try:
        found = os.stat(path)
    except OSError:
        return signatures.ABSENT
    return signatures.FOLDER if os.path.isdir(path) else f"{found.st_size:x}.{found.st_mtime_ns:x}.{found.st_ino:x}"


def _credentials(environ: Mapping[str, str]) -> Iterator[str]:
    home = os.path.expanduser("~/.aws")
    yield environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials")
    yield environ.get("AWS_CONFIG_FILE") or os.path.join(home, "config")


def of_command(command: Sequence[str], key: bytes) -> Facts:
    """The facts about Java's command line: each setting of Spark by its name, all other arguments together."""
    found, rest, arguments = {}, [], iter(command)
    for argument in arguments:
        if argument == "--conf":
            name, _, value = next(arguments).partition("=")
            if name not in PER_SESSION:
                found[f"the Spark setting {name}"] = signatures.digest(value, key)
        elif not argument.startswith(PER_PROCESS):
            rest.append(argument)
    return {**found, "the options of Java": signatures.digest(rest, key)}


def difference(offered: Facts, wanted: Facts) -> str | None:
    """The name of the first thing that is another one, or that only one side has; None where all is equal."""
    names = dict.fromkeys((*wanted, *offered))
    return next((name for name in names if offered.get(name) != wanted.get(name)), None)


__all__ = ["IDLE_SECONDS", "NO_SESSION", "PER_SESSION", "Facts", "Machine", "difference", "of_command"]
