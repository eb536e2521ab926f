"""Which handler answers which request."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.workspace_double.wire import Answer, Call

Handler = Callable[[Call], Answer]


@dataclass(frozen=True)
class Route:
    name: str
    method: str
    pattern: re.Pattern[str]
    handler: Handler
    reads: bool
    open: bool


class Routes:
    """Routes by method and path; `{name}` stands for one part of the path, `{name:path}` for the rest of it."""

    def __init__(self) -> None:
        self._routes: list[Route] = []
        self.used: set[str] = set()

    @property
    def names(self) -> set[str]:
        """All routes, as `GET /api/2.0/pipelines/{id}`."""
        return {route.name for route in self._routes}

    def add(self, method: str, path: str, handler: Handler, *, reads: bool | None = None, open: bool = False) -> None:
        """Answer a request with a handler.

        Args:
            reads: whether it changes nothing; otherwise the method says so (GET and HEAD).
            open: whether it is answered without credentials.
        """
        expression = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
        expression = re.sub(r"\\{(\w+):path\\}", r"(?P<\1>.+)", expression)
        silent = method in ("GET", "HEAD") if reads is None else reads
        self._routes.append(Route(f"{method} {path}", method, re.compile(expression), handler, silent, open))

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route of a request and the parts of its path, or None for a request that no route answers."""
        for route in self._routes:
            if route.method == method and (match := route.pattern.fullmatch(path)):
                self.used.add(route.name)
                return route, match.groupdict()
        return None
