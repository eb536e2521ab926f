"""Python processes for Spark without the price of their imports.

Spark starts a new Python for every stream that reads a Python data source, and once more per kind of worker. Each of them spends 0.6 to
1.2 s of processor time on importing pyspark, pyarrow and Auto Loader. `python_executable` gives Spark an interpreter of the same version
whose processes are forks of one that has imported them already (docs/decisions/0013-fork-server.md). Used by `session` only.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import select
import shlex
import socket
import subprocess
import sys
import threading

from lakelet.files.scratch import scratch_folder
from lakelet.spark.launch import fork_client
from lakelet.spark.launch.fork_server import HASH_SEED

PLAIN_PYTHON = "LAKELET_PLAIN_PYTHON"  # set to leave the fork server out
_wakers: list[int] = []  # the ends of pipes that start servers ahead of the first request
_servers: list[subprocess.Popen[bytes]] = []  # the server that runs; collected as garbage, its lifeline would close
_LONGEST_ADDRESS = 100  # bytes in the path of a Unix socket, with room for those systems that take the fewest


@functools.cache
def python_executable() -> str:
    """Return the path of what Spark on this machine starts for Python: with the fork server behind it, or this interpreter itself.

    The fork server starts with the first process that asks for it and ends with this one. Where it cannot start, or dies, the file at the
    returned path still is an interpreter. One server serves all sessions of this process.
    """
    if os.name != "posix" or os.environ.get(PLAIN_PYTHON):
        return sys.executable
    folder = scratch_folder("python")
    address = str(folder / "socket")
    if len(os.fsencode(address)) > _LONGEST_ADDRESS:
        return sys.executable
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(128)
    woken, waker = os.pipe()
    _wakers.append(waker)
    threading.Thread(target=_start_when_asked, args=(listener, woken), name="lakelet-forks", daemon=True).start()
    executable = folder / "python"
    command = shlex.join([sys.executable, "-IS", fork_client.__file__, address, sys.executable])
    executable.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    executable.chmod(0o700)
    return str(executable)


def start_ahead() -> None:
    """Let the fork server start now, while nothing waits for it: the caller knows that a process will be asked for. Does nothing later."""
    while _wakers:
        os.close(_wakers.pop())


def _start_when_asked(listener: socket.socket, woken: int) -> None:
    """Wait for the first request, leave it in the queue, and start the server that will answer it; `start_ahead` needs no request."""
    select.select([listener.fileno(), woken], [], [])
    os.close(woken)
    number = listener.fileno()
    # The server's standard input stays open as long as this process lives; its end makes the server end.
    server = subprocess.Popen(
        [sys.executable, "-m", "lakelet.spark.launch.fork_server", str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=None if os.environ.get("LAKELET_DEBUG") else subprocess.DEVNULL,
        env={**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONUNBUFFERED": "1"},
        pass_fds=(number,),
    )
    _servers.append(server)
    atexit.register(_end_server, server)
    # From here on the server alone holds the socket: when it dies, requests are refused instead of waiting for ever.
    listener.close()


def _end_server(server: subprocess.Popen[bytes]) -> None:
    """Let the server go, which it does at once."""
    assert server.stdin is not None
    server.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(timeout=5)
