"""The server of a warm session, in `lakelet watch`: it gives its Java process to one command at a time, and cleans or ends it afterwards.

Nothing of a command may be left for the next one. What Spark keeps per session goes with the command's session, which shares nothing with
others. What it keeps per process is checked before each command: where code has changed it, the session is refused.

The first update in a Java process takes twice as long as the next one: its classes are loaded, its code is compiled. So `WarmUpSteps` use
in idle time what an update will use first. Each step is short, because a file that is saved meanwhile waits for its end. Steps write below
a folder of their own and leave nothing in the session.
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
from lakelet.jvm.environment import can_replace
from lakelet.jvm.leftovers import Leftovers
from lakelet.jvm.processes import gateway_of
from lakelet.spark.launch.environment import find_java
from lakelet.spark.launch.resident import protocol
from lakelet.spark.launch.resident.protocol import (
    FINISHED,
    IDLE_SECONDS,
    NO_SESSION,
    Facts,
    Machine,
    ServerAddress,
    SessionAccess,
    SessionRefusal,
    SessionRequest,
    command_facts,
    compared,
    difference,
    foreign_code,
    refusal_text,
)

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

_BUSY_SECONDS = 2.0
"""So long a command waits while the owner uses the session itself."""
_STEP_SECONDS = 4.0
"""So long it waits for a step of `SessionServer.use_idle_time`, which is short. A command waits longer (`protocol.ANSWER_SECONDS`)."""
_POLL_SECONDS = 0.5
_DEFAULT_IDLE_SECONDS = 3600.0
_LONGEST_ADDRESS = 100  # bytes in the path of a Unix socket, with room for those systems that take the fewest


class SessionEnded(Exception):
    """The session is over; its text says why. The owner needs a new process to have another one."""


@dataclass
class _ServedSession:
    """The session of this process while commands may use it."""

    java: subprocess.Popen[bytes]
    facts: Facts
    foreign: str | None
    access: SessionAccess
    leftovers: Leftovers
    listener: socket.socket
    folder: Path
    file: Path


@dataclass
class SessionServer:
    """Serves the session that this process starts in its first turn to commands. Make it before.

    `turn` gives the owner the session alone; between turns it calls `check` every few seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _secret: str = field(default_factory=lambda: secrets.token_hex(32))
    _machine: Facts = field(init=False)
    _started_on: Machine = field(init=False)
    _idle_seconds: float = field(init=False)
    _in_use: threading.Lock = field(default_factory=threading.Lock)
    _used: float = field(init=False)
    _ended: str | None = field(default=None, init=False)
    _asleep: bool = field(default=False, init=False)
    _running: _ServedSession | None = field(default=None, init=False)
    _was_used: bool = field(default=False, init=False)
    _in_step: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._started_on = Machine.here(str(find_java().executable))
        self._machine = self._started_on.facts(bytes.fromhex(self._secret))
        self._idle_seconds = _idle_seconds_of(os.environ.get(IDLE_SECONDS))
        self._used = self.clock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The owner uses the session: no command does meanwhile. Raises SessionEnded."""
        with self._in_use:
            if self._ended is not None:
                raise SessionEnded(self._ended)
            token = _server.set(self)
            try:
                yield
            finally:
                _server.reset(token)
                self._used = self.clock()

    def use_idle_time(self, step: Callable[[], None]) -> None:
        """Do a short step in the session, while nobody uses it and no command has used it yet."""
        if not self._in_use.acquire(blocking=False):
            return
        try:
            if self._running is not None and not self._was_used:
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
        """Serve the session no longer. A command that uses it goes on as long as this process does."""
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

    # --- serving --------------------------------------------------------------------------------------------------------------------------

    def serve(self, session: SparkSession) -> None:
        """Serve a session that has just started for this machine, unless another process serves one for this folder."""
        from lakelet.jvm.errors import Py4JError

        if self._running is not None or self._ended is not None or os.environ.get(NO_SESSION):
            return
        with suppress(OSError, Py4JError):
            earlier = protocol.read_address()
            connection = protocol.connected(earlier) if earlier is not None and earlier.process != os.getpid() else None
            if connection is None:
                self._start_serving(session)
            else:
                connection.close()

    def _start_serving(self, session: Any) -> None:
        gateway = gateway_of(session)
        folder = scratch_folder("session")
        address = str(folder / "socket")
        if len(os.fsencode(address)) > _LONGEST_ADDRESS:
            return
        facts = {**self._machine, **command_facts(gateway.proc.args, bytes.fromhex(self._secret))}
        access = SessionAccess(gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token, os.environ["PYSPARK_PYTHON"])
        leftovers = Leftovers.of(session)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(16)
        file = protocol.write_address(ServerAddress(address, self._secret, os.getpid()))
        foreign = foreign_code(self._started_on, gateway.proc.args) or (
            None if can_replace(session.sparkContext) else "a Java whose variables cannot be replaced"
        )
        self._running = _ServedSession(gateway.proc, facts, foreign, access, leftovers, listener, folder, file)
        threading.Thread(target=self._accept_commands, args=(self._running,), name="lakelet-session", daemon=True).start()

    def _accept_commands(self, running: _ServedSession) -> None:
        while True:
            try:
                connection, _ = running.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer_command, args=(running, connection), name="lakelet-command", daemon=True).start()

    # --- one command ----------------------------------------------------------------------------------------------------------------------

    def _answer_command(self, running: _ServedSession, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(protocol.ANSWER_SECONDS)
            request = protocol.receive(connection) if protocol.is_of_this_user(connection) else None
            if not isinstance(request, SessionRequest) or not hmac.compare_digest(request.secret.encode(), self._secret.encode()):
                return
            with suppress(OSError):
                served, asked = (compared(facts, running.foreign) for facts in (running.facts, request.facts))
                other = difference(served, asked)
                if other is not None:
                    protocol.send(connection, SessionRefusal(refusal_text(other, served, asked, running.foreign)))
                elif not self._in_use.acquire(timeout=_STEP_SECONDS if self._in_step else _BUSY_SECONDS):
                    protocol.send(connection, SessionRefusal(None))
                else:
                    try:
                        self._serve_command(running, connection, request.process)
                    finally:
                        self._used = self.clock()
                        self._in_use.release()

    def _serve_command(self, running: _ServedSession, connection: socket.socket, process: int) -> None:
        """Give the session to a command, wait until it has ended, and clean the session. The caller holds `_in_use`."""
        if self._ended is not None:
            protocol.send(connection, SessionRefusal(None))
            return
        changed = running.leftovers.unlike()
        if changed is not None:
            protocol.send(connection, SessionRefusal(changed))
            return
        self._was_used = True
        protocol.send(connection, running.access)
        if not _ended_in_order(connection, process, running.java):
            self.end("a command that used it was killed")
        elif (left := running.leftovers.cleaned()) is not None:
            self.end(left)


def _ended_in_order(connection: socket.socket, process: int, java: subprocess.Popen[bytes]) -> bool:
    """Wait for the end of a command; whether it ended in order, and Java still runs.

    The connection alone does not show it: a fork of the command keeps it open.
    """
    while True:
        readable, _, _ = select.select([connection], [], [], _POLL_SECONDS)
        if readable:
            try:
                return connection.recv(1) == FINISHED
            except OSError:
                return False
        if java.poll() is not None or not _is_alive(process):
            return False


def _is_alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


_server: ContextVar[SessionServer | None] = ContextVar("lakelet_session_server", default=None)


def session_started(session: SparkSession) -> None:
    """A session has been started for this machine alone; no code of a pipeline has used it yet. In the turn of a server it is served."""
    server = _server.get()
    if server is not None:
        server.serve(session)


def _idle_seconds_of(text: str | None) -> float:
    try:
        return float(text) if text else _DEFAULT_IDLE_SECONDS
    except ValueError:
        return _DEFAULT_IDLE_SECONDS


# ----------------------------------------------------------------------------------------------------------- idle time


@dataclass
class WarmUpSteps:
    """Steps that are done one by one."""

    _steps: Iterator[None] = field(default_factory=lambda: _warm_up_steps())

    def step(self) -> None:
        """Do the next step; nothing after the last one. What goes wrong ends the steps: nobody needs them."""
        from pyspark.errors import PySparkException

        from lakelet.jvm.errors import Py4JError

        with suppress(Py4JError, PySparkException, OSError):
            next(self._steps, None)


def _warm_up_steps() -> Iterator[None]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    active = SparkSession.getActiveSession()
    if active is None:
        return
    spark = active.newSession()
    folder = scratch_folder("warm")
    try:
        table, copied, checkpoint = (str(folder / name) for name in ("table", "copied", "checkpoint"))
        rows = spark.range(20).selectExpr("id", "concat('k', id % 2) AS kind", "CAST(id AS DECIMAL(20, 2)) AS amount")
        rows.write.format("delta").save(table)
        yield
        judged = spark.readStream.format("delta").load(table).withColumn("valid", F.struct((F.col("id") > 3).alias("positive")))
        measured = judged.observe("rules", F.count(F.lit(1)).alias("rows"), F.sum(F.col("valid.positive").cast("int")).alias("passed"))
        kept = measured.where("valid.positive").drop("valid").writeStream.format("delta").trigger(availableNow=True)
        kept.option("checkpointLocation", checkpoint).start(copied).awaitTermination()
        yield
        found = spark.read.format("delta").load(copied).groupBy("kind").agg(F.count(F.lit(1)).alias("n"), F.sum("amount").alias("amount"))
        found.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
        yield
        spark.read.format("delta").load(table).orderBy("kind").toArrow()
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["SessionEnded", "SessionServer", "WarmUpSteps", "session_started"]
