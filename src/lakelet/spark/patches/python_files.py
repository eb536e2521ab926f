"""Paths that code gives to Python's own functions, replaced by paths of this machine while there is a map of them.

On Databricks `/Volumes`, `/Workspace` and `/dbfs` are folders of the machine: code opens files there with `open`, and so do libraries that
it calls (pandas, configparser). Only what the map covers is replaced, and nothing that Lakelet itself looks at. Paths of a workspace mean
files of the repository: there is a map of them as soon as code that names a workspace runs.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

from lakelet.base.patching import Patch, PatchSet, put_on, without_context
from lakelet.base.user_code import PACKAGE, is_library
from lakelet.config.path_map import WORKSPACE_ROOTS, PathMap, is_of_workspace
from lakelet.files import old_pathlib
from lakelet.files.audit import Listener
from lakelet.files.stores import scheme_of
from lakelet.spark.names.outside import active_map


def _installed_folders(*kinds: str) -> tuple[str, ...]:
    return tuple({path + os.sep for kind in kinds if (path := sysconfig.get_path(kind))})


__lakelet_passes_on__ = True
"""See `lakelet.files.reads.PASSES_ON`."""
_LIBRARIES = _installed_folders("purelib", "platlib")
_PYTHON = ("<frozen ", __file__, old_pathlib.__file__, *_installed_folders("stdlib", "platstdlib"))


def _by_lakelet(depth: int) -> bool:
    """Whether Lakelet called the function that calls this one, `depth` frames up, directly or by way of Python's own modules."""
    frame: Any = sys._getframe(depth + 1)
    while frame is not None and _is_python(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and str(frame.f_code.co_filename).startswith(PACKAGE)


def _is_python(file: str) -> bool:
    return file.startswith(_PYTHON) and not file.startswith(_LIBRARIES)


def _mapped_path(path: Any) -> Any:
    """Return the path of this machine that the map gives for a path; anything else unchanged."""
    if not isinstance(path, str | os.PathLike):
        return path
    text = os.fspath(path)
    if not isinstance(text, str) or scheme_of(text) is not None or not text.startswith("/"):
        return path
    if is_of_workspace(text) and _by_lakelet(2):
        return path  # the map itself asks whether this machine has it
    local = active_map().mapped(text)
    return path if local == text or scheme_of(local) is not None or _by_lakelet(2) else local


def _mapped_open(original: Any) -> Any:
    def open(file: Any, *args: Any, **kwargs: Any) -> Any:
        return original(_mapped_path(file), *args, **kwargs)

    return open


def _with_path(original: Any) -> Any:
    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        return original(_mapped_path(path), *args, **kwargs)

    return call


def _mapped_listing(original: Any) -> Any:
    def call(path: Any = ".") -> Any:
        return original(_mapped_path(path))

    return call


def _file_patches(owner: str, make: Callable[[Any], Any], *names: str) -> list[Patch]:
    why = "files of user code lie elsewhere here (--map)"
    return [Patch(owner, name, without_context(make), why, "3.11") for name in names]


PYTHON_FILES: tuple[Patch, ...] = (
    *_file_patches("builtins", _mapped_open, "open"),
    *_file_patches("io", _mapped_open, "open"),
    *_file_patches("os", _mapped_listing, "listdir", "scandir"),
    *_file_patches("os", _with_path, "stat", "lstat", "mkdir", "chmod", "utime"),
    *old_pathlib.OLD_PATHLIB,
)
"""Patches that map the paths that Python's own functions are given. `since`: versions of Python.

What only asks whether a path is there (`os.path.exists`, `Path.is_dir`) calls `os.stat` or `os.lstat`.
"""


@contextmanager
def mapped_files(paths: PathMap, texts: Iterable[str]) -> Iterator[None]:
    """Map the paths that code gives to Python's own functions, in the block.

    Those of a map are mapped from the beginning. Without one, Python's functions stay as they are until a text, or code that begins to run,
    names a workspace.

    Args:
        texts: the parameters and the variables of the environment, from which code may take paths.
    """
    put: list[PatchSet] = []
    listener = Listener({"exec": lambda arguments: begin_with(arguments[0])})

    def begin_with(code: Any) -> None:
        if isinstance(code, CodeType) and not code.co_filename.startswith(PACKAGE) and _is_named_by(code):
            listener.end()
            put.append(put_on(PYTHON_FILES))

    if paths.entries or (paths.repository and (any(map(_is_named_by, texts)) or any(map(_is_named_in, _imported_from(paths.repository))))):
        put.append(put_on(PYTHON_FILES))
    elif paths.repository:
        listener.begin()
    try:
        yield
    finally:
        listener.end()
        for one in put:
            one.take_off()


def _is_named_by(constant: object) -> bool:
    """Return whether a constant of code names a workspace: a text, several, or the code of a function or class."""
    if isinstance(constant, str):
        return any(root in constant for root in WORKSPACE_ROOTS)
    if isinstance(constant, CodeType):
        return any(map(_is_named_by, constant.co_consts))
    return isinstance(constant, tuple | frozenset) and any(map(_is_named_by, constant))


def _imported_from(folders: Iterable[Path]) -> Iterator[str]:
    """Yield the files of the repository's modules that were imported before: their code does not begin to run again."""
    below = tuple(str(folder) + os.sep for folder in folders)
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return (file for file in files if isinstance(file, str) and file.startswith(below) and not is_library(file))


@functools.cache
def _is_named_in(file: str) -> bool:
    try:
        return _is_named_by(Path(file).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False


__all__ = ["PYTHON_FILES", "mapped_files"]
