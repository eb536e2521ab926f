"""Python 3.10's `pathlib` keeps the functions for files that it found when it was imported; these patches let it look them up at each call.

Without them, a replacement of `os.stat` or `io.open` does not reach `Path`. Python 3.11 and later look them up at each call by themselves.
"""

from __future__ import annotations

import functools
import io
import os
import sys
from types import ModuleType
from typing import Any

from lakelet.base.patching import Make, Patch

__lakelet_passes_on__ = True
"""See `lakelet.files.reads.PASSES_ON`."""


def _call_current(owner: ModuleType, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(owner, name)(*args, **kwargs)


def _calling_current(owner: ModuleType, name: str) -> Make:
    """Make a replacement that is no plain function: as an attribute of a class it would become a method."""
    return lambda original, _: functools.partial(_call_current, owner, name)


_FUNCTIONS = ((io, "open"), *((os, name) for name in ("stat", "listdir", "scandir", "mkdir", "chmod")))
_WHY = "what replaces a function for files must reach pathlib, too"

OLD_PATHLIB: tuple[Patch, ...] = tuple(
    Patch("pathlib._NormalAccessor", name, _calling_current(owner, name), _WHY, "3.10")
    for owner, name in _FUNCTIONS
    if sys.version_info < (3, 11)
)
"""Patches of `pathlib`, none in Python 3.11 and later. `since`: versions of Python."""

__all__ = ["OLD_PATHLIB"]
