"""Paths that user code gives to Python's own functions, replaced by paths of this machine while an update runs.

On Databricks `/Volumes`, `/Workspace` and `/dbfs` are folders of the machine, so code opens files there with `open`. Only what
the map covers is replaced, and only where user code itself makes the call, by way of `pathlib` or not: libraries see this machine as it is.
"""

from __future__ import annotations

import os
import pathlib
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

from lakelet.base.locations import PACKAGE
from lakelet.base.patching import Patch, without_context
from lakelet.files.remote import scheme_of
from lakelet.spark.names.outside import active_map

_INSTALLED = tuple({path + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))})
_PATHLIB = os.path.dirname(pathlib.__file__) + os.sep + "pathlib"


def _by_user(depth: int) -> bool:
    """Whether user code called the function that calls this one, `depth` frames up, directly or by a method of a path."""
    frame: Any = sys._getframe(depth + 1)
    while frame is not None and frame.f_code.co_filename.startswith(_PATHLIB):
        frame = frame.f_back
    name = "<" if frame is None else frame.f_code.co_filename
    return not name.startswith(("<", PACKAGE, *_INSTALLED))


def _mapped(path: Any) -> Any:
    """Return the path of this machine that the map gives for a path; anything else unchanged."""
    if not active_map().entries or not isinstance(path, str | os.PathLike):
        return path
    text = os.fspath(path)
    if not isinstance(text, str) or scheme_of(text) is not None or not text.startswith("/"):
        return path
    local = active_map().mapped(text)
    return path if local == text or scheme_of(local) is not None or not _by_user(2) else local


def _opening(original: Any) -> Any:
    def open(file: Any, *args: Any, **kwargs: Any) -> Any:
        return original(_mapped(file), *args, **kwargs)

    return open


def _with_path(original: Any) -> Any:
    def call(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        return original(_mapped(path), *args, **kwargs)

    return call


def _files(owner: str, make: Callable[[Any], Any], *names: str) -> list[Patch]:
    why = "files of user code lie elsewhere here (--map)"
    return [Patch(owner, name, without_context(make), why, "3.11") for name in names]


PYTHON_FILES: tuple[Patch, ...] = (
    *_files("builtins", _opening, "open"),
    *_files("io", _opening, "open"),
    *_files("os", _with_path, "listdir"),
    *_files("posixpath", _with_path, "exists", "isfile", "isdir"),
)
"""Patches that map the paths that Python's own functions are given. `since`: versions of Python."""

__all__ = ["PYTHON_FILES"]
