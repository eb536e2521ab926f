"""The side of `lakelet watch`: lends its Java process to one command at a time, and takes it back as it was, or ends it.

Nothing of a command may be left for the next one. What Spark keeps per session goes with the command's session, which shares nothing with
others. What it keeps per process is looked at before each command: where code has changed it, the session is not lent.
"""

from __future__ import annotations

import hmac
import os
import secrets
import select
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from lakelet.files.scratch import scratch_folder
from lakelet.jvm.processes import gateway_of
from lakelet.jvm.remains import Remains
from lakelet.spark.launch.environment import find_java
from lakelet.spark.launch.resident import offers
from lakelet.spark.launch.resident.identity import IDLE_SECONDS, NO_SESSION, Facts, Machine, difference, of_command
from lakelet.spark.launch.resident.offers import GIVEN_BACK, Lent, Offer, Refused, Request

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

_BUSY_SECONDS = 2.0
"""So long a command waits while the owner uses the session itself."""
_STEP_SECONDS = 4.0
"""So long it waits for a step of `Lender.spare`, which is short. A command waits five seconds for an answer (`offers.ANSWER_SECONDS`)."""
_LOOK_SECONDS = 0.5
_DEFAULT_IDLE_SECONDS = 3600.0
_LONGEST_ADDRESS = 100  # bytes in the path of a Unix socket, with room for those systems that take the fewest


class SessionEnded(Exception):
    """The session is over; its text says why. The owner needs a new process to have another one."""


@dataclass
class _Running:
    """The session of this process while it is offered."""

    java: subprocess.Popen[bytes]
    facts: Facts
    lent: Lent
    remains: Remains
    listener: socket.socket
    folder: Path
    file: Path


@dataclass
class Lender:
    """Offers the session that this process starts in its first turn to commands. Make it before.

    `turn` gives the owner the session alone; between turns it calls `check` every few seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _secret: str = field(default_factory=lambda: secrets.token_hex(32))
    _machine: Facts = field(init=False)
    _idle_seconds: float = field(init=False)
    _in_use: threading.Lock = field(default_factory=threading.Lock)
    _used: float = field(init=False)
    _ended: str | None = field(default=None, init=False)
    _asleep: bool = field(default=False, init=False)
    _running: _Running | None = field(default=None, init=False)
    _lent: bool = field(default=False, init=False)
    _in_step: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._machine = Machine.here(str(find_java().executable)).facts(bytes.fromhex(self._secret))
        self._idle_seconds = _seconds(os.environ.get(IDLE_SECONDS))
        self._used = self.clock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The owner uses the session: no command does meanwhile. Raises SessionEnded."""
        with self._in_use:
            if self._ended is not None:
                raise SessionEnded(self._ended)
            token = _lender.set(self)
            try:
                yield
            finally:
                _lender.reset(token)
                self._used = self.clock()

    def spare(self, step: Callable[[], None]) -> None:
        """Do a short step in the session that is offered, while nobody uses it and no command has used it yet."""
        if not self._in_use.acquire(blocking=False):
            return
        try:
            if self._running is not None and not self._lent:
                self._in_step = True
                step()
        finally:
            self._in_step = False
            self._in_use.release()

    def check(self) -> None:
        """After long idleness end Java, until the next turn. Raises SessionEnded when a command has left it unusable."""
        if self._ended is not None:
            if not self._asleep:
                raise SessionEnded(self._ended)
        elif self._running is not None and self.clock() - self._used > self._idle_seconds and self._in_use.acquire(blocking=False):
            try:
                self._asleep = True
                self.end("it was idle")
            finally:
                self._in_use.release()

    def close(self) -> None:
        """Offer the session no longer. A command that uses it goes on as long as this process does."""
        running, self._running = self._running, None
        if running is not None:
            running.listener.close()
            with suppress(OSError):
                running.file.unlink()
            shutil.rmtree(running.folder, ignore_errors=True)

    def end(self, why: str) -> None:
        """End the session. Java ends before anything else: a query that a command left must not write any more."""
        running = self._running
        if running is not None:
            running.java.kill()
            running.java.wait()
        self._ended = why
        self.close()

    # --- offering -------------------------------------------------------------------------------------------------------------------------

    def offer(self, session: SparkSession) -> None:
        """Offer a session that has just started for this machine, unless another process offers one for this folder."""
        from lakelet.jvm.errors import Py4JError

        if self._running is not None or self._ended is not None or os.environ.get(NO_SESSION):
            return
        with suppress(OSError, Py4JError):
            earlier = offers.read_offer()
            connection = offers.connected(earlier) if earlier is not None and earlier.process != os.getpid() else None
            if connection is None:
                self._offer(session)
            else:
                connection.close()

    def _offer(self, session: Any) -> None:
        gateway = gateway_of(session)
        folder = scratch_folder("session")
        address = str(folder / "socket")
        if len(os.fsencode(address)) > _LONGEST_ADDRESS:
            return
        facts = {**self._machine, **of_command(gateway.proc.args, bytes.fromhex(self._secret))}
        lent = Lent(gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token, os.environ["PYSPARK_PYTHON"])
        remains = Remains.of(session)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(16)
        file = offers.write_offer(Offer(address, self._secret, os.getpid()))
        self._running = _Running(gateway.proc, facts, lent, remains, listener, folder, file)
        threading.Thread(target=self._serve, args=(self._running,), name="lakelet-session", daemon=True).start()

    def _serve(self, running: _Running) -> None:
        while True:
            try:
                connection, _ = running.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(running, connection), name="lakelet-lent", daemon=True).start()

    # --- one command ----------------------------------------------------------------------------------------------------------------------

    def _answer(self, running: _Running, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(offers.ANSWER_SECONDS)
            request = offers.receive(connection) if offers.is_of_this_user(connection) else None
            if not isinstance(request, Request) or not hmac.compare_digest(request.secret.encode(), self._secret.encode()):
                return
            with suppress(OSError):
                other = difference(running.facts, request.facts)
                if other is not None:
                    offers.send(connection, Refused(f"{other} is not what it was started with"))
                elif not self._in_use.acquire(timeout=_STEP_SECONDS if self._in_step else _BUSY_SECONDS):
                    offers.send(connection, Refused(None))
                else:
                    try:
                        self._lend(running, connection, request.process)
                    finally:
                        self._used = self.clock()
                        self._in_use.release()

    def _lend(self, running: _Running, connection: socket.socket, process: int) -> None:
        """Lend the session, wait until the command has ended, take it back. The caller holds `_in_use`."""
        if self._ended is not None:
            offers.send(connection, Refused(None))
            return
        changed = running.remains.unlike()
        if changed is not None:
            offers.send(connection, Refused(changed))
            return
        self._lent = True
        offers.send(connection, running.lent)
        if not _given_back(connection, process, running.java):
            self.end("a command that used it was killed")
        elif (left := running.remains.cleaned()) is not None:
            self.end(left)


def _given_back(connection: socket.socket, process: int, java: subprocess.Popen[bytes]) -> bool:
    """Wait for the end of a command; whether it ended in order, and Java still runs.

    The connection alone does not tell: a fork of the command keeps it open.
    """
    while True:
        readable, _, _ = select.select([connection], [], [], _LOOK_SECONDS)
        if readable:
            try:
                return connection.recv(1) == GIVEN_BACK
            except OSError:
                return False
        if java.poll() is not None or not _is_alive(process):
            return False


def _is_alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


_lender: ContextVar[Lender | None] = ContextVar("lakelet_lender", default=None)


def started(session: SparkSession) -> None:
    """A session has been started for this machine alone; no code of a pipeline has used it yet. In the turn of a lender it is offered."""
    lender = _lender.get()
    if lender is not None:
        lender.offer(session)


def _seconds(text: str | None) -> float:
    try:
        return float(text) if text else _DEFAULT_IDLE_SECONDS
    except ValueError:
        return _DEFAULT_IDLE_SECONDS


__all__ = ["Lender", "SessionEnded", "started"]
