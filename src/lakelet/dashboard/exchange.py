"""Two folders change places in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2, too


def exchange(one: Path, other: Path) -> bool:
    """Let two paths of one file system change places, both of which exist; False where the system or the file system cannot."""
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        library, system = ctypes.CDLL(None, use_errno=True), platform.system()
        if system == "Linux":
            return bool(library.renameat2(_HERE, first, _HERE, second, _EXCHANGE) == 0)
        return system == "Darwin" and bool(library.renamex_np(first, second, _EXCHANGE) == 0)
    except (AttributeError, OSError, TypeError):  # a C library without the call
        return False


__all__ = ["exchange"]
