"""User code: the line of it that called into Lakelet, and calls of its functions, whose failures never end the process.

`sys.exit()` raises SystemExit, which is not an Exception: it passes all handlers, and a process that ends with code 0 looks like success.
GeneratorExit, asyncio.CancelledError and a KeyboardInterrupt that no user sent pass them too.
"""

from __future__ import annotations

import dis
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

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


Result = TypeVar("Result")
_RAISES = dis.opmap["RAISE_VARARGS"]
_thread = threading.local()


class ControlSignal(BaseException):
    """Raised by Lakelet through user code, whose `except Exception` must not catch it."""


class EscapedException(Exception):
    """Raised instead of a BaseException that user code raised; `original` says which."""

    def __init__(self, original: BaseException) -> None:
        super().__init__(str(original))
        self.original = original


def call_user_code(function: Callable[..., Result], *arguments: object) -> Result:
    """Return the result of a user's function. Raises EscapedException for what it raises that is not an Exception."""
    with user_code_block():
        return function(*arguments)


@contextmanager
def user_code_block() -> Iterator[None]:
    """Let user code in the block raise Exceptions only: EscapedException for all else but Ctrl-C and the signals of Lakelet itself."""
    before = user_code_runs()
    _thread.in_user_code = True
    try:
        yield
    except (Exception, ControlSignal):
        raise
    except BaseException as raised:
        if isinstance(raised, KeyboardInterrupt) and _sent(raised):
            raise
        raise EscapedException(raised) from raised
    finally:
        _thread.in_user_code = before


def user_code_runs() -> bool:
    """Return whether this thread is in a `user_code_block`; what a user's own threads do does not count."""
    return getattr(_thread, "in_user_code", False)


def original_error(error: BaseException) -> BaseException:
    """Return the exception that user code raised."""
    return error.original if isinstance(error, EscapedException) else error


def class_and_text(error: BaseException, text: str) -> str:
    """An error's class, and `text` if it says something."""
    name = type(error).__name__
    return f"{name}: {text}" if text else name


_INSTALLED = re.compile(r"[\\/]site-packages[\\/]|[\\/]lib[\\/]python3(?:\.\d+t?)?[\\/]")
"""Folders, whole, that packages and Python's own modules are installed in."""


def is_library(filename: str) -> bool:
    """Return whether a file of a traceback belongs to Python, a package or Lakelet, not to the user."""
    return filename.startswith((PACKAGE, "<")) or _INSTALLED.search(filename) is not None


def _sent(interrupt: KeyboardInterrupt) -> bool:
    """Whether a signal raised it: it comes in the main thread, between two instructions or in a library's handler, not by `raise`."""
    if threading.current_thread() is not threading.main_thread():
        return False
    last = _innermost(interrupt.__traceback__)
    if last is None or is_library(last.tb_frame.f_code.co_filename):
        return True
    return last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISES


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


active_reader: ContextVar[object | None] = ContextVar("lakelet_reader", default=None)


def in_pipeline() -> bool:
    """Return whether a dataset function of a pipeline runs in this thread."""
    return active_reader.get() is not None
