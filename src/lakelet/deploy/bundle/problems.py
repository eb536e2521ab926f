"""Mistakes of a bundle, collected so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lakelet.base.errors import DefinitionErrors, LakeletError, Location
from lakelet.config.yaml_tree import Node


class Problems:
    """The errors found so far, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Location | None], LakeletError] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, error: LakeletError) -> None:
        """Keep an error, or each of several that come as one."""
        for one in error.errors if isinstance(error, DefinitionErrors) else (error,):
            self._found.setdefault((one.code, one.what, one.where), one)

    def bad(self, node: Node, what: str, *, code: str = "CONFIG_INVALID", nearest: Sequence[str] = (), **more: Any) -> None:
        """Keep an error that points at a node."""
        self.add(LakeletError(code, what, where=node.where, nearest=nearest, **more))

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the error that the body raises, and go on after the body."""
        try:
            yield
        except LakeletError as error:
            self.add(error)

    def error(self) -> DefinitionErrors:
        """All of them as one error, in the order of files and lines."""
        return DefinitionErrors(sorted(self._found.values(), key=lambda e: (e.where.file, e.where.line) if e.where else ("", 0)))

    def raise_all(self) -> None:
        """Raise DefinitionErrors if there is any."""
        if self._found:
            raise self.error()
