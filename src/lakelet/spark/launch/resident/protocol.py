"""How a command and the server of a warm session find each other and talk: facts that they compare, a file, lines of JSON.

A command uses the session only where all facts on which its own Spark process would depend are equal. A fact is a name, as a difference is
reported, and a digest. Digests are keyed with the secret of the session: nobody can guess the values of variables from them.

Of the variables of the environment only those count that are read when a process starts (`lakelet.base.variables`). All others mean
something to code alone, and Java gets those of the command (`handed_over`). With other code in Java all variables count.

The address of the server is a file in a folder of this user alone; it names the Unix socket and holds the secret that a command must know.
Whoever can read it could read the user's files anyway.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import shutil
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
from lakelet.base.variables import COUNTED, PROGRAMS, read_at_start
from lakelet.files import signatures
from lakelet.files.stores import KINDS
from lakelet.spark.launch.environment import JAR_NAMES, PACKAGES, STORE_PACKAGES, cache_folder

# ------------------------------------------------------------------------------------- what a Spark process depends on


NO_SESSION = "LAKELET_NO_SESSION"
"""Variable of the environment; where it is set, no session is served and none is used."""
IDLE_SECONDS = "LAKELET_SESSION_IDLE"

_SET_BY_LAKELET = frozenset(
    (
        *(NO_SESSION, IDLE_SECONDS, "LAKELET_SESSION_COMMAND", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"),
        *("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"),
    )
)
"""Variables that Lakelet and pyspark set themselves."""
_OF_ONE_PROCESS = ("_PYSPARK_", "MALLOC_")
"""How variables begin that Java got for itself at its start, or by which its memory is managed: they stay as they are."""
_VARIABLE = "the environment variable "
_NOT_TEXT = ", which is not UTF-8"
_FOREIGN = (
    *("spark.jars", "spark.plugins", "spark.extraListeners", "spark.executor.plugins"),
    *("spark.sql.queryExecutionListeners", "spark.sql.streaming.streamingQueryListeners"),
)
"""How settings begin that bring other code into Java."""
_AGENTS = ("-javaagent", "-agentlib", "-agentpath", "-Xbootclasspath", "--patch-module", "--module-path", "--upgrade-module-path")
_JARS_OF_SPARK = os.path.join("pyspark", "jars", "*")
_BY_VARIABLE = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "IBM_JAVA_OPTIONS", "OPENJ9_JAVA_OPTIONS", "SPARK_CONF_DIR")
"""Variables that may do that."""

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
        files: further files that are read once per process: Java, the time zone, credentials of stores.
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
            (os.path.realpath(java), "/etc/localtime", *(file for kind in KINDS for file in kind.credential_files(environ))),
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
        for program in PROGRAMS:
            yield (
                f"the program {program} that PATH finds",
                signatures.digest(shutil.which(program, path=self.environ.get("PATH", os.defpath)), key),
            )
        for folder in self.packages:
            yield f"the packages in {folder}", signatures.digest(list(_installed_packages(folder)), key)
        for file in self.files:
            yield f"the file {file}", signatures.of_file(file)
        for folder in self.folders:
            yield f"the files in {folder}", signatures.of_tree(folder)
        for name, value in sorted(self.environ.items()):
            if name not in _SET_BY_LAKELET and not name.startswith(_OF_ONE_PROCESS):
                yield f"{_VARIABLE}{name}{'' if _is_text(name, value) else _NOT_TEXT}", signatures.digest(value, key)


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


def foreign_code(machine: Machine, command: Sequence[str]) -> str | None:
    """Return what brings code into Java that is not Spark's, Delta's or Lakelet's; None without such code.

    `command`: with which Java was started on that machine.
    """
    options = [argument for argument in command if argument.startswith(_AGENTS)]
    entries = next((entries.split(os.pathsep) for flag, entries in itertools.pairwise(command) if flag == "-cp"), [])
    classes = [entry for entry in entries if entry and not _is_fetched(entry) and not entry.endswith(_JARS_OF_SPARK)]
    settings = [name for flag, name in itertools.pairwise(command) if flag == "--conf" and name.startswith(_FOREIGN)]
    variables = [name for name in _BY_VARIABLE if machine.environ.get(name)]
    known = [
        *options,
        *(f"the Spark setting {name.partition('=')[0]}" for name in settings),
        *variables,
        *map("the classes in {}".format, classes),
    ]
    return known[0] if known else next(filter(None, map(_foreign_jar, map(Path, machine.packages))), None)


def _is_fetched(jar: str) -> bool:
    """Whether Lakelet fetches jars of that name: their versions are pinned."""
    return os.path.basename(jar) in {
        *JAR_NAMES,
        *(name for package in (*STORE_PACKAGES.values(), *PACKAGES.values()) for name in package.jars),
    }


def _foreign_jar(packages: Path) -> str | None:
    """The first jar beside Spark's that did not come with the package."""
    jars = {jar.name for jar in packages.glob("pyspark/jars/*.jar")}
    records = [record.read_text(encoding="utf-8") for record in packages.glob("pyspark-*.dist-info/RECORD")] if jars else []
    own = {line.partition(",")[0].rpartition("/")[2] for record in records for line in record.splitlines()}
    return f"the jar {packages / 'pyspark' / 'jars' / min(jars - own)}" if jars - own else None


def compared(facts: Facts, foreign: str | None) -> Facts:
    """Return the facts that count. `foreign`: as of `foreign_code`; with such code all variables count but those of terminals."""

    def counts(variable: str) -> bool:
        return read_at_start(variable) or variable.endswith(_NOT_TEXT) or (foreign is not None and variable not in VOLATILE)

    return {name: digest for name, digest in facts.items() if not name.startswith(_VARIABLE) or counts(name.removeprefix(_VARIABLE))}


def _is_text(name: str, value: str) -> bool:
    try:
        return bool((name + value).encode() or True)
    except UnicodeEncodeError:
        return False


def handed_over(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a command that Java gets with it: those that are not read at the start of a process."""
    return {name: value for name, value in environ.items() if is_handed_over(name) and _is_text(name, value)}


def is_handed_over(name: str) -> bool:
    return not read_at_start(name) and name not in _SET_BY_LAKELET and not name.startswith(_OF_ONE_PROCESS)


def difference(served: Facts, asked: Facts) -> str | None:
    """The name of the first thing that is another one, or that only one side has; None where all is equal."""
    names = dict.fromkeys((*asked, *served))
    return next((name for name in names if served.get(name) != asked.get(name)), None)


def refusal_text(name: str, served: Facts, asked: Facts, foreign: str | None) -> str:
    """Why a session is refused: what differs, and of a variable how, and which variables count. `foreign`: see `compared`."""
    if not name.startswith(_VARIABLE):
        return f"{name} is not what it was started with"
    how = "is set here only" if name not in served else "is not set here" if name not in asked else "has another value here"
    if foreign is not None:
        return f"{name} {how}, and every variable counts because of {foreign}"
    return f"{name} {how}. These count: {COUNTED}"


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
    "compared",
    "connected",
    "difference",
    "foreign_code",
    "handed_over",
    "is_handed_over",
    "is_of_this_user",
    "read_address",
    "receive",
    "refusal_text",
    "send",
    "sessions_folder",
    "write_address",
]
