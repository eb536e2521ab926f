"""Locations in source files: the line of user code that called into Lakelet, and how a file is named to its user."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from lakelet.base.errors import Location

PACKAGE = str(Path(__file__).parents[1]) + os.sep
"""The folder of Lakelet's own code, with a separator at its end: a file below it is not the user's."""

_PASSING_ON = frozenset({"pyspark", "functools"})
"""Packages whose code calls Lakelet on behalf of user code."""

_CELL = re.compile(r"(?P<file>.+\.ipynb)#cell-(?P<cell>\d+)")


def caller_location() -> Location:
    """The line of user code that called into Lakelet: the nearest frame outside this package and outside pyspark."""
    frame = caller_frame()
    return Location("<unknown>", 0) if frame is None else code_location(frame.f_code.co_filename, frame.f_lineno)


def caller_frame() -> FrameType | None:
    """The nearest frame outside this package and outside pyspark; None where all code is theirs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not frame.f_code.co_filename.startswith((PACKAGE, "<frozen")) and module not in _PASSING_ON:
            return frame
        frame = frame.f_back
    return None


def function_location(function: Callable[..., Any]) -> Location:
    """Where a function is defined, else where this was called from."""
    code = getattr(inspect.unwrap(function), "__code__", None)  # several decorators may stand between
    return code_location(code.co_filename, code.co_firstlineno) if code else caller_location()


def cell_filename(file: str, cell: int | None) -> str:
    """The name under which the code of one cell of a Jupyter notebook is compiled; that of the file where it has no such cells."""
    return file if cell is None else f"{file}#cell-{cell}"


def code_location(filename: str, line: int) -> Location:
    """The position that the file name and line of a frame or code object mean."""
    match = _CELL.fullmatch(filename)
    return Location(display_path(match["file"]), line, cell=int(match["cell"])) if match else Location(display_path(filename), line)


def display_path(path: str) -> str:
    """The path as the user would name it: relative to the current directory where it lies below it."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive on Windows
        return path
    return path if relative.startswith("..") else relative
