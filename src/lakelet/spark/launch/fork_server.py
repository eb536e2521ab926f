"""The fork server: one process with pyspark and Auto Loader imported, which forks the Python processes that Spark asks for.

`python -m lakelet.spark.launch.fork_server LISTENER` serves the listening socket with that number until its standard input ends.
Every request (see `launch.fork_client`) becomes a fork that runs `python -m MODULE …` as a fresh interpreter would: with the request's
environment, working folder, module path and standard streams. It has one thread, for a fork takes only the thread that calls it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelet.spark.launch.fork_client import FORKED

# What Spark starts for Auto Loader and for Python functions, and what those import in their turn.
PRELOADED = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "lakelet.autoloader.data_source",
    "lakelet.autoloader.micro_batches",
    "lakelet.autoloader.discovery.listing",
    "lakelet.autoloader.state.ledger",
    "lakelet.autoloader.formats.json.format",
    "lakelet.autoloader.formats.json.readers",
    "lakelet.autoloader.formats.csv.format",
    "pandas",  # imported by pyarrow when the first Python list becomes an array
    "encodings.idna",  # by the first host name that becomes an address
)
# A fork cannot take on another hash seed: Spark asks for this one in all its Python processes.
HASH_SEED = "0"


@dataclass(frozen=True)
class Process:
    """What a forked process is to run: `python -m arguments[0] …`, its environment, its working folder."""

    arguments: Sequence[str]
    environment: dict[str, str]
    folder: str


class ForkServer:
    """Serves `listener` until `lifeline` ends; `serve` returns in every forked process, and there alone it returns something."""

    def __init__(self, listener: socket.socket, lifeline: int) -> None:
        self._listener, self._lifeline = listener, lifeline
        self._clients: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = os.pipe()

    def serve(self) -> Process | None:
        """Return what this process is to run when it is a fork, None when it is the server and its work is over."""
        for number in (self._woken, self._waker):
            os.set_blocking(number, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for source in (self._listener, self._lifeline, self._woken):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._lifeline:
                    return None
                if key.fileobj is self._woken:
                    os.read(self._woken, 4096)
                    self._reap_ended()
                elif key.fileobj is self._listener:
                    process = self._accept_request()
                    if process is not None:
                        return process
                elif isinstance(key.fileobj, socket.socket):
                    self._abandon_killed(key.fileobj)

    def _accept_request(self) -> Process | None:
        client, _ = self._listener.accept()
        try:
            process, streams = _receive_request(client)
        except (OSError, EOFError, ValueError):
            client.close()
            return None
        forkable = process.environment.get("PYTHONHASHSEED") == HASH_SEED
        number = os.fork() if forkable else None
        if number == 0:
            self._leave_server(client)
            _take_streams(streams)
            return process
        for stream in streams:
            os.close(stream)
        if number is None:
            client.close()  # and becomes an interpreter of its own
            return None
        self._clients[number] = client
        self._selector.register(client, selectors.EVENT_READ)
        with contextlib.suppress(OSError):
            client.sendall(FORKED)
        return None

    def _leave_server(self, client: socket.socket) -> None:
        """In a fork: let go of all that is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for owned in (self._listener, client, *self._clients.values()):
            owned.close()
        os.close(self._woken)
        os.close(self._waker)

    def _reap_ended(self) -> None:
        """Send to the clients of ended processes their exit codes."""
        while True:
            try:
                number, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if number == 0:
                return
            client = self._clients.pop(number, None)
            if client is None:
                continue
            self._selector.unregister(client)
            with contextlib.suppress(OSError):
                client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            client.close()

    def _abandon_killed(self, client: socket.socket) -> None:
        """A client says nothing after its request: it has been killed, and its process follows it."""
        number = next((n for n, c in self._clients.items() if c is client), None)
        if number is not None:
            del self._clients[number]
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGTERM)
        self._selector.unregister(client)
        client.close()


def _receive_request(client: socket.socket) -> tuple[Process, list[int]]:
    """One request with the three descriptors that came beside it."""
    start, streams, *_ = socket.recv_fds(client, 65536, 3)
    content = bytearray(start)
    try:
        while len(content) < 4 or len(content) < 4 + struct.unpack(">I", content[:4])[0]:
            more = client.recv(65536)
            if not more:
                raise EOFError("a request ended early")
            content += more
        if len(streams) != 3:
            raise ValueError("a request came without its standard streams")
        arguments, environment, folder = marshal.loads(bytes(content[4:]))
    except BaseException:  # also Ctrl-C: the received streams are closed
        for stream in streams:
            os.close(stream)
        raise
    return Process(arguments, environment, folder), streams


def _take_streams(streams: Sequence[int]) -> None:
    """Make these descriptors this process's standard streams."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        if stream > 2:
            os.close(stream)


def become(process: Process) -> None:
    """In a fork: run what was asked for as `python -m` would."""
    installed = [path for path in sys.path[1:] if path not in _python_path(os.environ)]
    os.environ.clear()
    os.environ.update(process.environment)
    time.tzset()
    os.chdir(process.folder)
    named = _python_path(process.environment)
    sys.path[:] = [process.folder, *named, *(path for path in installed if path not in named)]
    module, *_ = process.arguments
    sys.argv[:] = list(process.arguments)
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _python_path(environment: Mapping[str, str]) -> list[str]:
    """The entries of PYTHONPATH, but for Spark's own archives: they hold the pyspark that is imported already, and a search costs time."""
    spark = environment.get("SPARK_HOME")
    paths = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    return [path for path in paths if not (spark and path.startswith(spark + os.sep))]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process of the run, which ends the others in order
    listener = socket.socket(fileno=int(sys.argv[1]))
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    process = ForkServer(listener, sys.stdin.fileno()).serve()
    if process is not None:
        become(process)


if __name__ == "__main__":
    main()
