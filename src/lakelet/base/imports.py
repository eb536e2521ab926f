"""Acting on the imports of this process: after a module was imported, or instead of one."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _After(MetaPathFinder):
    """Finds a module as all other finders do, and has `action` called when it is complete; once."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self._module = module
        self._action = action
        self._looking = threading.local()

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The interface of `sys.meta_path`."""
        if fullname != self._module or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking.now = False
        loader = spec.loader if spec is not None else None
        if loader is None:
            return spec
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path and module.__name__ == self._module:
                sys.meta_path.remove(self)
                self._action()

        loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def after_import(module: str, action: Callable[[], None]) -> None:
    """Call `action` once, when this process has imported the module: at once where it already has."""
    if module in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _After(module, action))


class _Absent(MetaPathFinder):
    """Refuses to find a module in one thread."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The interface of `sys.meta_path`. Raises ModuleNotFoundError."""
        if fullname == self._module and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not to be imported here", name=fullname)
        return None


@contextmanager
def unless_imported(module: str) -> Iterator[None]:
    """In the block, this thread finds the module only where the process has imported it already."""
    absent = _Absent(module)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


__all__ = ["after_import", "unless_imported"]
