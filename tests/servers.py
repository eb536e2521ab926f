"""Servers on loopback, for tests: processes that are started, waited for and ended by their ids; those of Java are asked by py4j."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from py4j.java_gateway import GatewayParameters, JavaGateway

_SECONDS = 120
T = TypeVar("T")


@contextmanager
def server_process(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that writes into `log`, and kill it at the end: an orderly end takes seconds, and its data are thrown away."""
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, cwd=log.parent, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


def awaited(process: subprocess.Popen[bytes], log: Path, look: Callable[[], T | None]) -> T:
    """Wait until `look` finds something. Raises RuntimeError with the end of the log if the process ends, or takes two minutes."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    raise RuntimeError(f"it did not start: {log.read_text(errors='replace')[-3000:]}")


def address_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """The URL of a server that writes `Running on URL` into its log."""
    found = awaited(process, log, lambda: re.search(r"Running on (http://127\.0\.0\.1:\d+)\s", log.read_text(errors="replace")))
    return found[1]


@contextmanager
def gateway_of(process: subprocess.Popen[bytes], log: Path) -> Iterator[JavaGateway]:
    """Connect to a `py4j.GatewayServer` that was started with the port 0, which prints its port as a line, for the block.

    Objects that are collected afterwards ask nobody. Each would log that the process is gone, in the middle of whatever Python does then:
    a traceback that is formatted while Python 3.11 parses code is a SystemError of that code.
    """
    found = awaited(process, log, lambda: re.search(r"^(\d+)$", log.read_text(errors="replace"), re.MULTILINE))
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(found[1]), auto_convert=True))
    try:
        yield gateway
    finally:
        gateway.shutdown(raise_exception=False)


def stay(address: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print how a process finds a server (the variables as a shell sets them, then the address), and wait for Ctrl-C."""
    print(*(f"export {name}={shlex.quote(value)}" for name, value in environment.items()), address, sep="\n", flush=True)
    with suppress(KeyboardInterrupt):
        time.sleep(1_000_000)
