"""Where a session is offered, and what is said there: values, a file, and lines of JSON on a Unix socket. No Spark.

An offer is a file in a folder of this user alone; it names the socket and holds the secret that a command must know. Whoever can read it
could read the user's files anyway.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lakelet.files import signatures
from lakelet.spark.launch.environment import cache_folder
from lakelet.spark.launch.resident.identity import Facts

FORMAT = 1
ANSWER_SECONDS = 5.0
"""So long a command waits for the answer of a session before it starts Spark itself."""
_LONGEST_LINE = 4_000_000


@dataclass(frozen=True)
class Offer:
    """A session that is offered: the path of its socket, its secret, the process that keeps it."""

    address: str
    secret: str
    process: int


@dataclass(frozen=True)
class Request:
    """What a command sends: the secret of the offer, its process, and what its own Spark process would depend on."""

    secret: str
    process: int
    facts: Facts


@dataclass(frozen=True)
class Lent:
    """The session is lent. `port`, `secret`: of py4j in the Java process; `python`: the interpreter that Spark starts."""

    port: int
    secret: str
    python: str


@dataclass(frozen=True)
class Refused:
    """The session is not lent. `why`: what to tell the user; None where it is only in use."""

    why: str | None


GIVEN_BACK = b"."
"""What a command sends when it has ended in order."""


def offers_folder() -> Path:
    """The folder of offers. Raises FileNotFoundError, or PermissionError where others can look into it."""
    folder = cache_folder() / "sessions"
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


def _offer_file() -> Path:
    """The file of the offer for this working folder and virtual environment."""
    key = signatures.digest((os.path.realpath(os.getcwd()), sys.prefix))
    return offers_folder() / f"{key[:16]}.json"


def write_offer(offer: Offer) -> Path:
    """Offer a session, in place of an earlier offer."""
    (cache_folder() / "sessions").mkdir(mode=0o700, parents=True, exist_ok=True)
    file = _offer_file()
    part = file.with_suffix(f".{secrets.token_hex(4)}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({"format": FORMAT, **asdict(offer)}, stream)
    os.replace(part, file)
    for other in file.parent.glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):  # of a process that was killed
            if not psutil.pid_exists(json.loads(other.read_text(encoding="utf-8"))["process"]):
                other.unlink()
    return file


def read_offer() -> Offer | None:
    """The offer for this working folder and environment; None where there is none, or one that is not this user's alone."""
    try:
        handle = os.open(_offer_file(), os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, encoding="utf-8") as stream:
            found = os.fstat(handle)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            content = json.load(stream)
        if content.pop("format") != FORMAT:
            return None
        return Offer(**content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def connected(offer: Offer) -> socket.socket | None:
    """A connection to the session; None where its process is gone, or is another user's."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(offer.address)
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


def send(connection: socket.socket, message: Request | Lent | Refused) -> None:
    """Send one message as a line."""
    content = {"format": FORMAT, "kind": type(message).__name__, **asdict(message)}
    connection.sendall(json.dumps(content).encode() + b"\n")


def receive(connection: socket.socket) -> Request | Lent | Refused | None:
    """The next message; None where the other side ended, waited too long, or speaks another format. Nothing behind it is read."""
    line = bytearray()
    with suppress(OSError, ValueError):
        while not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
            start = connection.recv(65536, socket.MSG_PEEK)
            if not start:
                return None
            line += connection.recv(start.find(b"\n") + 1 or len(start))
        return _message(json.loads(line))
    return None


def _message(content: Any) -> Request | Lent | Refused | None:
    kinds = {kind.__name__: kind for kind in (Request, Lent, Refused)}
    try:
        if content.pop("format") != FORMAT:
            return None
        found = kinds[content.pop("kind")](**content)
    except (KeyError, TypeError, AttributeError):
        return None
    sound = not isinstance(found, Request) or (isinstance(found.facts, Mapping) and isinstance(found.process, int))
    return found if sound else None


__all__ = [
    "GIVEN_BACK", "Lent", "Offer", "Refused", "Request",
    "connected", "is_of_this_user", "offers_folder", "read_offer", "receive", "send", "write_offer",
]  # fmt: skip
