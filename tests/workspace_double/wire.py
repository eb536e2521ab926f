"""What a request and an answer are, the errors that a workspace answers with, and pages of lists."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class ApiError(Exception):
    """An answer that is an error: `{"error_code", "message", "details"}` with a status (facts 1.4: Error body)."""

    def __init__(self, status: int, code: str | int, message: str, details: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.details = status, code, message, list(details)

    @property
    def body(self) -> dict[str, Any]:
        return {"error_code": self.code, "message": self.message, "details": self.details}


def invalid(message: str) -> ApiError:
    return ApiError(400, "INVALID_PARAMETER_VALUE", message)


def missing(message: str) -> ApiError:
    return ApiError(404, "RESOURCE_DOES_NOT_EXIST", message)


def conflict(message: str, code: str = "ABORTED") -> ApiError:
    return ApiError(409, code, message)


def denied(message: str) -> ApiError:
    return ApiError(403, "PERMISSION_DENIED", message)


def unmodelled(what: str) -> ApiError:
    """The honest answer to what the double does not know: never a pretended success."""
    return ApiError(501, "NOT_IMPLEMENTED", f"the workspace double does not know {what}")


@dataclass(frozen=True)
class User:
    """Who asks. `admin`: may do everything, as the workspace group `admins` does."""

    name: str
    id: str
    admin: bool = True
    display_name: str = ""
    service_principal: bool = False


@dataclass(frozen=True)
class Call:
    """One request as a handler sees it.

    Attributes:
        method, path: as asked for, the path percent-decoded, without its query.
        params: the parts of the path that stand in braces in the route.
        query: the last value of each key of the query.
        lists: all values of each key of the query (facts 1.2: lists repeat the key).
        raw: the body's bytes.
        body: the body as an object: of JSON, or the fields of a multipart form with the file's bytes in `content`.
        user: who asks.
        headers: as they came.
    """

    method: str
    path: str
    query: Mapping[str, str]
    lists: Mapping[str, Sequence[str]]
    raw: bytes
    body: Mapping[str, Any]
    user: User
    params: Mapping[str, str] = field(default_factory=dict)
    multipart: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """A text that must be in the body or in the query."""
        value = self.body.get(key, self.query.get(key))
        if not isinstance(value, str) or not value:
            raise invalid(f"Missing required field: {key}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean of the body or the query; `true` and `false` as text are one too (facts 1.2: multipart, queries)."""
        value = self.body.get(key, self.query.get(key, default))
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        raise invalid(f"Could not parse {key}: {value!r} is not a boolean")

    def number(self, key: str, default: int, *, low: int = 0, high: int = 2**63) -> int:
        value = self.body.get(key, self.query.get(key, default))
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise invalid(f"Could not parse {key}: {value!r} is not a number") from None
        if not low <= number <= high:
            raise invalid(f"{key} must be between {low} and {high}, is {number}")
        return number

    def only(self, allowed: set[str], what: str) -> None:
        """Refuse keys of the body that are not in `allowed`."""
        unknown = sorted(set(self.body) - allowed)
        if unknown:
            raise invalid(f"Could not parse request object: unrecognized field {unknown[0]!r} in {what}")


@dataclass(frozen=True)
class Answer:
    """What goes back: an object as JSON, or bytes."""

    body: Mapping[str, Any] | bytes = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Request:
    """One request as it arrived, in `Workspace.requests`.

    Attributes:
        method, path, query: as asked for.
        body: the object of a JSON body or the fields of a form; bytes for any other body; None without one.
        status: the answered status; None where the connection was closed without an answer.
        acted: whether a handler ran, whatever became of the answer.
        succeeded: whether the handler ran without an error.
        user: whose token it was; empty for a token that nobody has.
        headers: as they came, without the credentials.
    """

    method: str
    path: str
    query: dict[str, str]
    body: Any
    user: str
    headers: dict[str, str]
    status: int | None = None
    acted: bool = False
    succeeded: bool = False
    reads: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.status or 'no answer'}"


def page(items: Sequence[Any], call: Call, *, size_key: str, default: int, most: int) -> tuple[list[Any], str, str]:
    """One page of a list, the token of the next and of the previous one (facts 1.4: Pages).

    A token holds its offset and the list that it was made for; one of another list is refused.
    """
    size = call.number(size_key, default, high=most) or default
    start = _offset(call)
    end = start + size
    after = _token(call, end) if end < len(items) else ""
    before = _token(call, max(0, start - size)) if start else ""
    return list(items[start:end]), after, before


def _token(call: Call, offset: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([call.path, offset]).encode()).decode()


def _offset(call: Call) -> int:
    token = call.query.get("page_token", "")
    if not token:
        return 0
    try:
        path, offset = json.loads(base64.urlsafe_b64decode(token))
    except ValueError:
        raise invalid("Invalid page token") from None
    if path != call.path:
        raise invalid("Invalid page token: it belongs to another list")
    return int(offset)
