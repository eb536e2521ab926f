"""How a command and the server of a warm session find each other and talk: facts that they compare, a file, lines of JSON.

A command uses the session only where all facts on which its own Spark process would depend are equal. A fact is a name, as a difference is
reported, and a digest. Digests are keyed with the secret of the session: nobody can guess the values of variables from them.

The address of the server is a file in a folder of this user alone; it names the Unix socket and holds the secret that a command must know.
Whoever can read it could read the user's files anyway.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lakelet.base.terminals import VOLATILE
from lakelet.base.user_code import PACKAGE
from lakelet.files import signatures
from lakelet.spark.launch.environment import cache_folder

# ------------------------------------------------------------------------------------- what a Spark process depends on


NO_SESSION = "LAKELET_NO_SESSION"
"""Variable of the environment; where it is set, no session is served and none is used."""
IDLE_SECONDS = "LAKELET_SESSION_IDLE"

_SET_BY_LAKELET = frozenset(
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
            (os.path.realpath(java), "/etc/localtime", *_credential_files(environ)),
            tuple(filter(None, (environ.get("SPARK_CONF_DIR"), environ.get("HADOOP_CONF_DIR")))),
            umask,
            (os.getuid(), os.getgid(), *sorted(os.getgroups())),
        )

    def facts(self, key: bytes) -> Facts:
        """The facts, in the order in which a difference is reported."""
        return dict(self._each_fact(key))

    def _each_fact(self, key: bytes) -> Iterator[tuple[str, str]]:
        yield "the user", signatures.digest(self.groups, key)
        yield "the working folder", signatures.digest(self.folder, key)
        yield "the umask", signatures.digest(self.umask, key)
        yield "the Python interpreter", signatures.digest(self.interpreter, key)
        yield "Lakelet itself", signatures.digest(list(_installed_below(self.code)))
        for folder in self.packages:
            yield f"the packages in {folder}", signatures.digest(list(_installed_packages(folder)), key)
        for file in self.files:
            yield f"the file {file}", signatures.of_file(file)
        for folder in self.folders:
            yield f"the files in {folder}", signatures.of_tree(folder)
        for name, value in sorted(self.environ.items()):
            if name not in VOLATILE | _SET_BY_LAKELET:
                yield f"the environment variable {name}", signatures.digest(value, key)


def _installed_packages(folder: str) -> Iterator[tuple[str, str]]:
    """What is installed in a folder, each with the file that every installation writes again; and what else lies there."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name != "__pycache__":
            path = os.path.join(folder, name)
            yield name, _installed_signature(os.path.join(path, "RECORD") if name.endswith(".dist-info") else path)
    yield from _installed_below(os.path.join(folder, "pyspark", "jars"))


def _installed_below(folder: str) -> Iterator[tuple[str, str]]:
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from ((os.path.join(path, name), _installed_signature(os.path.join(path, name))) for name in sorted(names))


def _installed_signature(path: str) -> str:
    """The signature of an installed file. The time of its inode says nothing: it changes when another environment links the same file."""
    try:
        found = os.stat(path)
    except OSError:
        return signatures.ABSENT
    return signatures.FOLDER if os.path.isdir(path) else f"{found.st_size:x}.{found.st_mtime_ns:x}.{found.st_ino:x}"


def _credential_files(environ: Mapping[str, str]) -> Iterator[str]:
    home = os.path.expanduser("~/.aws")
    yield environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials")
    yield environ.get("AWS_CONFIG_FILE") or os.path.join(home, "config")


def command_facts(command: Sequence[str], key: bytes) -> Facts:
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


def difference(served: Facts, asked: Facts) -> str | None:
    """The name of the first thing that is another one, or that only one side has; None where all is equal."""
    names = dict.fromkeys((*asked, *served))
    return next((name for name in names if served.get(name) != asked.get(name)), None)


# --------------------------------------------------------------------------------------------------- file and messages


FORMAT = 1
ANSWER_SECONDS = 5.0
"""So long a command waits for the answer of a session before it starts Spark itself."""
_LONGEST_LINE = 4_000_000


@dataclass(frozen=True)
class ServerAddress:
    """Where a session is served: the path of its socket, its secret, the process of the server."""

    address: str
    secret: str
    process: int


@dataclass(frozen=True)
class SessionRequest:
    """What a command sends: the secret of the server, its process, and what its own Spark process would depend on."""

    secret: str
    process: int
    facts: Facts


@dataclass(frozen=True)
class SessionAccess:
    """The command may use the session. `port`, `secret`: of py4j in the Java process; `python`: the interpreter that Spark starts."""

    port: int
    secret: str
    python: str


@dataclass(frozen=True)
class SessionRefusal:
    """The command may not use the session. `why`: the text for the user; None where it is only in use."""

    why: str | None


FINISHED = b"."
"""What a command sends when it has ended in order."""


def sessions_folder() -> Path:
    """The folder of addresses. Raises FileNotFoundError, or PermissionError where others can look into it."""
    folder = cache_folder() / "sessions"
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


def _address_file() -> Path:
    """The address of the server for this working folder and virtual environment."""
    key = signatures.digest((os.path.realpath(os.getcwd()), sys.prefix))
    return sessions_folder() / f"{key[:16]}.json"


def write_address(server: ServerAddress) -> Path:
    """Write the address of a server, in place of an earlier one."""
    (cache_folder() / "sessions").mkdir(mode=0o700, parents=True, exist_ok=True)
    file = _address_file()
    part = file.with_suffix(f".{secrets.token_hex(4)}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({"format": FORMAT, **asdict(server)}, stream)
    os.replace(part, file)
    for other in file.parent.glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):  # of a process that was killed
            if not psutil.pid_exists(json.loads(other.read_text(encoding="utf-8"))["process"]):
                other.unlink()
    return file


def read_address() -> ServerAddress | None:
    """The address of the server for this working folder and environment; None without one, or if the file is not this user's alone."""
    try:
        handle = os.open(_address_file(), os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, encoding="utf-8") as stream:
            found = os.fstat(handle)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            content = json.load(stream)
        if content.pop("format") != FORMAT:
            return None
        return ServerAddress(**content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def connected(server: ServerAddress) -> socket.socket | None:
    """A connection to the session; None where its process is gone, or is another user's."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(server.address)
        if is_of_this_user(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process at the other end is one of this user, as far as the system says (Linux does)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1]) == os.getuid()


def send(connection: socket.socket, message: SessionRequest | SessionAccess | SessionRefusal) -> None:
    """Send one message as a line."""
    content = {"format": FORMAT, "kind": type(message).__name__, **asdict(message)}
    connection.sendall(json.dumps(content).encode() + b"\n")


def receive(connection: socket.socket) -> SessionRequest | SessionAccess | SessionRefusal | None:
    """The next message; None where the other side ended, waited too long, or speaks another format. Nothing behind it is read."""
    line = bytearray()
    with suppress(OSError, ValueError):
        while not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
            start = connection.recv(65536, socket.MSG_PEEK)
            if not start:
                return None
            line += connection.recv(start.find(b"\n") + 1 or len(start))
        return _parsed_message(json.loads(line))
    return None


def _parsed_message(content: Any) -> SessionRequest | SessionAccess | SessionRefusal | None:
    kinds = {kind.__name__: kind for kind in (SessionRequest, SessionAccess, SessionRefusal)}
    try:
        if content.pop("format") != FORMAT:
            return None
        found = kinds[content.pop("kind")](**content)
    except (KeyError, TypeError, AttributeError):
        return None
    sound = not isinstance(found, SessionRequest) or (isinstance(found.facts, Mapping) and isinstance(found.process, int))
    return found if sound else None


__all__ = [
    "FINISHED",
    "IDLE_SECONDS",
    "NO_SESSION",
    "PER_SESSION",
    "Facts",
    "Machine",
    "ServerAddress",
    "SessionAccess",
    "SessionRefusal",
    "SessionRequest",
    "command_facts",
    "connected",
    "difference",
    "is_of_this_user",
    "read_address",
    "receive",
    "send",
    "sessions_folder",
    "write_address",
]
