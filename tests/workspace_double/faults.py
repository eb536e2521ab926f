"""Faults by rule: what goes wrong between a client and a workspace."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from tests.workspace_double.wire import ApiError

# facts 1.4: 429 and 503 are retried after `Retry-After`, a plain 500 is not.
_ERRORS = {
    401: ("UNAUTHENTICATED", "Credential was not sent or was of an unsupported type for this API."),
    403: ("PERMISSION_DENIED", "User does not have permission for this operation."),
    404: ("RESOURCE_DOES_NOT_EXIST", "The resource does not exist."),
    409: ("ABORTED", "The resource was changed at the same time."),
    429: ("REQUEST_LIMIT_EXCEEDED", "Your request was rejected since your organization has exceeded the rate limit."),
    500: ("INTERNAL_ERROR", "An internal error occurred."),
    503: ("TEMPORARILY_UNAVAILABLE", "The service at this address is temporarily under maintenance."),
}


@dataclass
class Fault:
    """A rule of `Workspace.fail`; `hits` says how often it was applied."""

    method: str
    path: str
    times: int
    skip: int
    status: int | None
    error_code: str | None
    message: str | None
    retry_after: float | None
    drop: Literal["before", "after"] | None
    delay: float
    acted: bool
    hits: int = 0
    seen: int = 0

    def matches(self, method: str, path: str) -> bool:
        return fnmatchcase(method, self.method) and fnmatchcase(path, self.path)

    @property
    def error(self) -> ApiError | None:
        if self.status is None:
            return None
        code, message = _ERRORS.get(self.status, ("UNKNOWN", f"Status {self.status}."))
        return ApiError(self.status, self.error_code or code, self.message or message)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}


@dataclass
class Hook:
    """Something that happens when a request arrives, or when the server has acted on it."""

    method: str
    path: str
    action: Callable[[], None]
    after: bool
    times: int

    def matches(self, method: str, path: str) -> bool:
        return self.times > 0 and fnmatchcase(method, self.method) and fnmatchcase(path, self.path)


@dataclass
class Faults:
    """Rules and hooks; `chance` and `rate`: what goes wrong by chance besides, of the kinds of `chaos`."""

    rules: list[Fault] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    rate: float = 0.0
    kinds: tuple[str, ...] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, method: str, path: str) -> Fault | None:
        """The rule that applies to this request, which then has one time less; None if there is none."""
        with self._lock:
            for rule in self.rules:
                if rule.hits >= rule.times or not rule.matches(method, path):
                    continue
                rule.seen += 1
                if rule.seen > rule.skip:
                    rule.hits += 1
                    return rule
            if self.rate and not path.startswith("/.well-known/") and self.chance.random() < self.rate:
                return _by_chance(self.chance.choice(self.kinds), method, path)
        return None

    def happen(self, method: str, path: str, *, after: bool) -> None:
        """Do what hooks are there for."""
        for hook in self.hooks:
            with self._lock:
                due = hook.after == after and hook.matches(method, path)
                hook.times -= due
            if due:
                hook.action()


def _by_chance(kind: str, method: str, path: str) -> Fault:
    drop: Literal["before", "after"] | None = "before" if kind == "before" else "after" if kind == "after" else None
    status = int(kind) if kind.isdigit() else None
    return Fault(method, path, 1, 0, status, None, None, 0 if status in (429, 503) else None, drop, 0, False)
