"""Calls of user code: whatever it raises is its own failure, never the end of the process.

`sys.exit()` raises SystemExit, which is not an Exception: it passes all handlers, and a process that ends with code 0 looks like success.
GeneratorExit, asyncio.CancelledError and a KeyboardInterrupt that no user sent pass them too.
"""

from __future__ import annotations

import dis
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from lakelet.base.locations import PACKAGE

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


__all__ = [
    "ControlSignal",
    "EscapedException",
    "call_user_code",
    "class_and_text",
    "is_library",
    "original_error",
    "user_code_block",
    "user_code_runs",
]
