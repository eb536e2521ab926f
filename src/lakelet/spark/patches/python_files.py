"""Paths that code gives to Python's own functions, replaced by paths of this machine while an update runs.

On Databricks `/Volumes`, `/Workspace` and `/dbfs` are folders of the machine: code opens files there with `open`, and so do libraries that
it calls (pandas, configparser). Only what the map covers is replaced, and nothing that Lakelet itself looks at.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

from lakelet.base.locations import PACKAGE
from lakelet.base.patching import Patch, without_context
from lakelet.config.workspace_paths import is_of_workspace
from lakelet.files import old_pathlib
from lakelet.files.remote import scheme_of
from lakelet.spark.names.outside import active_map


def _installed(*kinds: str) -> tuple[str, ...]:
    return tuple({path + os.sep for kind in kinds if (path := sysconfig.get_path(kind))})


__lakelet_passes_on__ = True
"""See `lakelet.files.reads.PASSES_ON`."""
_LIBRARIES = _installed("purelib", "platlib")
_PYTHON = ("<frozen ", __file__, old_pathlib.__file__, *_installed("stdlib", "platstdlib"))


def _by_lakelet(depth: int) -> bool:
    """Whether Lakelet called the function that calls this one, `depth` frames up, directly or by way of Python's own modules."""
    frame: Any = sys._getframe(depth + 1)
    while frame is not None and _is_python(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and str(frame.f_code.co_filename).startswith(PACKAGE)


def _is_python(file: str) -> bool:
    return file.startswith(_PYTHON) and not file.startswith(_LIBRARIES)


def _mapped(path: Any) -> Any:
    """Return the path of this machine that the map gives for a path; anything else unchanged."""
    if not (active_map().entries or active_map().repository) or not isinstance(path, str | os.PathLike):
        return path
    text = os.fspath(path)
    if not isinstance(text, str) or scheme_of(text) is not None or not text.startswith("/"):
        return path
    if is_of_workspace(text) and _by_lakelet(2):
        return path  # the map itself asks whether this machine has it
    local = active_map().mapped(text)
    return path if local == text or scheme_of(local) is not None or _by_lakelet(2) else local


def _opening(original: Any) -> Any:
    def open(file: Any, *args: Any, **kwargs: Any) -> Any:
        return original(_mapped(file), *args, **kwargs)

    return open


def _with_path(original: Any) -> Any:
    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        return original(_mapped(path), *args, **kwargs)

    return call


def _listing(original: Any) -> Any:
    def call(path: Any = ".") -> Any:
        return original(_mapped(path))

    return call


def _files(owner: str, make: Callable[[Any], Any], *names: str) -> list[Patch]:
    why = "files of user code lie elsewhere here (--map)"
    return [Patch(owner, name, without_context(make), why, "3.11") for name in names]


PYTHON_FILES: tuple[Patch, ...] = (
    *_files("builtins", _opening, "open"),
    *_files("io", _opening, "open"),
    *_files("os", _listing, "listdir", "scandir"),
    *_files("os", _with_path, "stat", "lstat", "mkdir", "chmod", "utime"),
    *_files("posixpath", _with_path, "exists", "lexists", "isfile", "isdir"),
    *old_pathlib.OLD_PATHLIB,
)
"""Patches that map the paths that Python's own functions are given. `since`: versions of Python."""

__all__ = ["PYTHON_FILES"]
