"""The client of a warm session: a command takes the Java process of a `lakelet watch` instead of starting one."""

from __future__ import annotations

import atexit
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelet.jvm.environment import replace_variables
from lakelet.jvm.processes import answers, attached, leave_process
from lakelet.spark.launch import java_process
from lakelet.spark.launch.archives import RECORD_CLASSES
from lakelet.spark.launch.resident.protocol import (
    FINISHED,
    NO_SESSION,
    PER_SESSION,
    Machine,
    SessionAccess,
    SessionRefusal,
    SessionRequest,
    command_facts,
    connected,
    handed_over,
    is_handed_over,
    read_address,
    receive,
    send,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BY_ITSELF = (java_process.DEBUG, RECORD_CLASSES)
"""Variables with which Java writes to the terminal of the process that started it, or is started to be recorded."""
_INTERPRETERS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_COMMAND = "LAKELET_SESSION_COMMAND"
"""Variable of Spark's Python processes: those of one command are never used by another one, whose modules may be others."""


@dataclass
class SessionClient:
    """A command that may use a resident session.

    Args:
        note: gets a sentence where there is a session that cannot be used.
    """

    note: Callable[[str], None]
    _connection: socket.socket | None = field(default=None, init=False)
    _context: Any = field(default=None, init=False)

    def has_lost_session(self) -> bool:
        """Whether this command uses the session of a server whose Java process does not answer any more."""
        return self._context is not None and not answers(self._context)

    def session(self, command: Sequence[str], settings: Mapping[str, str]) -> SparkSession | None:
        """A session in the Java process of a server; None where there is none that fits.

        Args:
            command: with which Java would be started otherwise.
            settings: of the session that would be started.
        """
        if self._connection is not None:
            self._leave_server_process()  # code has stopped the session: from here on this command has its own
            return None
        if any(os.environ.get(name) for name in (NO_SESSION, *_BY_ITSELF)):
            return None
        server = read_address()
        connection = connected(server) if server is not None else None
        if server is None or connection is None:
            return None
        key = bytes.fromhex(server.secret)
        answer = None
        with suppress(OSError):
            send(
                connection,
                SessionRequest(server.secret, os.getpid(), {**Machine.here(command[0]).facts(key), **command_facts(command, key)}),
            )
            answer = receive(connection)
        if not isinstance(answer, SessionAccess):
            connection.close()
            if isinstance(answer, SessionRefusal) and answer.why:
                self.note(f"The session of lakelet watch is not used: {answer.why}.")
            return None
        return self._attach(connection, answer, settings)

    def _leave_server_process(self) -> None:
        """End the use of the server's process, which ends that process, and let pyspark start another one."""
        if self._connection is not None:
            self._connection.close()
        self._context = None
        leave_process()

    def _attach(self, connection: socket.socket, access: SessionAccess, settings: Mapping[str, str]) -> SparkSession | None:
        """Make this command's session in the process of the server. From here on an end without `_report_end` ends that process."""
        from lakelet.jvm.errors import Py4JError

        own = {name: os.environ[name] for name in _INTERPRETERS}
        connection.settimeout(None)
        self._connection = connection
        try:
            session = self._session_in(access, settings)
        except (Py4JError, OSError):
            self._leave_server_process()
            os.environ.update(own)
            self.note("The session of lakelet watch is not used: it does not answer.")
            return None
        atexit.register(_report_end, os.getpid(), connection)
        return session

    def _session_in(self, access: SessionAccess, settings: Mapping[str, str]) -> SparkSession:
        from pyspark.sql import SparkSession

        os.environ.update(dict.fromkeys(_INTERPRETERS, access.python))
        context = attached(access.port, access.secret, settings)
        own = handed_over(os.environ)
        replace_variables(context, own, lambda name: is_handed_over(name) and name not in os.environ)
        context.environment[_COMMAND] = f"{os.getpid()}-{os.urandom(4).hex()}"
        builder = SparkSession.builder
        for name in PER_SESSION & settings.keys():
            builder = builder.config(name, settings[name])
        session = builder.getOrCreate()
        for name in PER_SESSION - settings.keys():
            session.conf.unset(name)
        self._context = context
        return session


def _report_end(process: int, connection: socket.socket) -> None:
    """Report to the server that this command has ended in order. A process that is killed reports nothing, nor one whose threads go on."""
    going_on = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    if os.getpid() == process and not going_on:
        with suppress(OSError):
            connection.sendall(FINISHED)
            connection.close()


_client: ContextVar[SessionClient | None] = ContextVar("lakelet_session_client", default=None)


@contextmanager
def session_client(note: Callable[[str], None]) -> Iterator[SessionClient]:
    """In the block a session that would be started is taken from a resident one instead, where one fits."""
    client = SessionClient(note)
    token = _client.set(client)
    try:
        yield client
    finally:
        _client.reset(token)


def warm_session(command: Sequence[str], settings: Mapping[str, str]) -> SparkSession | None:
    """`SessionClient.session` inside of `session_client`, else None."""
    client = _client.get()
    return client.session(command, settings) if client is not None else None


__all__ = ["SessionClient", "session_client", "warm_session"]
