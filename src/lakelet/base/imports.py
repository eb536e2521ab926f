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


class _Finder(MetaPathFinder):
    """Stands before all other finders from its first use on: other threads may be going through the list of finders at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: dict[str, Callable[[], None]] = {}
        self._of_thread = threading.local()

    def install(self) -> None:
        """Put it into the list of finders, once."""
        with self._lock:
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def add(self, module: str, action: Callable[[], None]) -> None:
        """Call `action` after the module's import, and no earlier one of the same module."""
        self._actions[module] = action

    @property
    def absent(self) -> list[str]:
        """The modules that this thread does not find."""
        if not hasattr(self._of_thread, "absent"):
            self._of_thread.absent = []
        found: list[str] = self._of_thread.absent
        return found

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The interface of `sys.meta_path`. Raises ModuleNotFoundError."""
        if fullname in self.absent:
            raise ModuleNotFoundError(f"{fullname} is not to be imported here", name=fullname)
        if fullname not in self._actions or getattr(self._of_thread, "looks", False):
            return None
        self._of_thread.looks = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._of_thread.looks = False
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader, fullname)
        return spec

    def _follow(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            action = self._actions.pop(name, None) if module.__name__ == name else None
            if action is not None:
                action()

        loader.exec_module = execute_and_act


_finder = _Finder()


def after_import(module: str, action: Callable[[], None]) -> None:
    """Call `action` once, when this process has imported the module: at once where it already has.

    What the action raises fails the import. Another action for the same module takes the place of one that waits.
    """
    if module in sys.modules:
        action()
    else:
        _finder.add(module, action)
        _finder.install()


@contextmanager
def unless_imported(module: str) -> Iterator[None]:
    """In the block, this thread finds the module only where the process has imported it already."""
    _finder.install()
    _finder.absent.append(module)
    try:
        yield
    finally:
        _finder.absent.remove(module)


__all__ = ["after_import", "unless_imported"]
