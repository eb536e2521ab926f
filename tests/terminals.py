"""A pseudo-terminal for a program under test, and what a person sees on it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_SEQUENCE = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\r\n|\r|\n)")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(
    command: tuple[Sequence[str], Mapping[str, str]], *, columns: int = 80, rows: int = 24, folder: str | Path | None = None
) -> str:
    """Everything that the program writes to a terminal of that size, control sequences included. `command`: arguments and environment."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(command[0], env=command[1], cwd=folder, stdin=its, stdout=its, stderr=its, close_fds=True)
    os.close(its)
    found = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the program has ended
            break
        if not piece:
            break
        found += piece
    process.wait()
    os.close(ours)
    return found.decode()


class Typist:
    """A program on a terminal, and somebody who reads and types. `command`: arguments and environment."""

    def __init__(self, command: tuple[Sequence[str], Mapping[str, str]], *, columns: int = 80) -> None:
        self._ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._process = subprocess.Popen(command[0], env=command[1], stdin=its, stdout=its, stderr=its, close_fds=True)
        os.close(its)
        self._unread = b""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def read_to(self, text: str, *, seconds: float = 60) -> str:
        """Everything that is shown up to the text, with it. Fails if it is not shown in time."""
        ends = time.monotonic() + seconds
        while text.encode() not in self._unread:
            left = ends - time.monotonic()
            piece = b""
            if left > 0 and select.select([self._ours], [], [], left)[0]:
                try:
                    piece = os.read(self._ours, 65536)
                except OSError:  # the program has ended
                    piece = b""
            if not piece:
                self._process.kill()
                raise AssertionError(f"{text!r} is not shown, but {self._unread.decode(errors='replace')!r}")
            self._unread += piece
        found, sign, self._unread = self._unread.partition(text.encode())
        return (found + sign).decode()

    def end(self, *, seconds: float = 60) -> int:
        """The exit code of the program, which must end by itself."""
        try:
            return self._process.wait(seconds)
        finally:
            self._process.kill()
            os.close(self._ours)


def screen(text: str) -> list[str]:
    """The lines that are left at the end, colours as control sequences: cursor up, erasing and carriage returns are carried out."""
    lines, at, fresh = [""], 0, True
    for part in _SEQUENCE.split(text):
        if part in ("\n", "\r\n"):
            at, fresh = at + 1, True
            lines += [""] * (at + 1 - len(lines))
        elif part == "\r":
            fresh = True
        elif part.startswith("\x1b[") and part.endswith("A"):
            at = max(0, at - int(part[2:-1] or 1))
        elif part.startswith("\x1b[") and part.endswith("K"):
            lines[at] = ""
        elif part and (_STYLE.fullmatch(part) or not part.startswith("\x1b[")):
            lines[at] = part if fresh and not _STYLE.fullmatch(part) and not _STYLE.search(lines[at]) else lines[at] + part
            fresh = fresh and bool(_STYLE.fullmatch(part))
    while lines and not _STYLE.sub("", lines[-1]).strip():
        lines.pop()
    return lines
