"""A pseudo-terminal for a program under test, and what a person sees on it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
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
