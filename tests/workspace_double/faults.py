"""Faults by rule: what goes wrong between a client and a workspace."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from tests.workspace_double.wire import ApiError

# ecosystem 1.4: 429 and 503 are retried after `Retry-After`, a plain 500 is not.
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
class Faults:
    rules: list[Fault] = field(default_factory=list)
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
        return None
