"""Converts exceptions of the SDK into coded errors. The caller imports the SDK."""

from __future__ import annotations

import re

from lakelet.base.errors import LakeletError
from lakelet.deploy.client.credentials import HOW

_TOKEN_REFUSED = re.compile(r"(invalid|expired)\b.*\btoken|token\b.*\b(invalid|expired)", re.IGNORECASE)
_LATER = "Wait some minutes and give the same command again."
_UNREACHABLE = "Check the address of the workspace, the network and its proxies. Nothing is lost: the same command can be given again."


class Unanswered(LakeletError):
    """A request that must take effect at most once got no answer: the workspace may have acted or not. Look before asking again."""

    def __init__(self, request: str, why: str) -> None:
        what = f"no answer to {request}: nobody knows whether the workspace acted"
        super().__init__("WORKSPACE_UNANSWERED", what, why=why, todo="Give the same command again: it looks first.")

        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        return (Unanswered, (self.request, self.why or ""))


def coded(error: BaseException, request: str) -> LakeletError:
    """Return what the SDK raised for `request` (`GET /api/2.0/…`) as an error with a code of the family WORKSPACE_."""
    from databricks.sdk.errors.base import DatabricksError
    from requests import RequestException

    if isinstance(error, LakeletError):
        return error
    if isinstance(error, TimeoutError) and error.__cause__ is not None:
        return coded(error.__cause__, request)
    if isinstance(error, DatabricksError):
        return _refused(error, request)
    if isinstance(error, ValueError):  # the answer's body, also as a requests.JSONDecodeError
        why = "The answer is not JSON: it may come from a proxy or a sign-in page."
        return LakeletError("WORKSPACE_REFUSED", f"the answer to {request} cannot be read", why=why, todo=_UNREACHABLE)
    if isinstance(error, (RequestException, OSError)):
        return LakeletError("WORKSPACE_UNREACHABLE", f"the workspace does not answer {request}", why=reason(error), todo=_UNREACHABLE)
    return LakeletError("WORKSPACE_REFUSED", f"{request} failed", why=reason(error))


def not_sent(error: BaseException) -> bool:
    """Whether the request did not reach the workspace for certain: no connection was made."""
    from requests import ConnectionError as NoConnection
    from requests import ConnectTimeout
    from requests.exceptions import ProxyError, SSLError
    from urllib3.exceptions import NewConnectionError

    if isinstance(error, (ConnectTimeout, ProxyError, SSLError)):
        return True
    cause = getattr(error.args[0], "reason", None) if isinstance(error, NoConnection) and error.args else None
    return isinstance(cause, NewConnectionError)


def leaves_doubt(error: BaseException) -> bool:
    """Whether the workspace may have acted although this was raised: a lost connection, a time-out, a failure inside the workspace."""
    from databricks.sdk import errors as sdk
    from databricks.sdk.errors.base import DatabricksError

    if isinstance(error, LakeletError):
        return False
    return not isinstance(error, DatabricksError) or isinstance(error, (sdk.InternalError, sdk.DeadlineExceeded))


def reason(error: BaseException) -> str:
    """Return the error's text in one line, without the settings that the SDK appends to it."""
    text = " ".join(str(error).split()) or type(error).__name__
    return re.split(r"\.? Config: |\.? Env: ", text)[0]


def _refused(error: BaseException, request: str) -> LakeletError:
    from databricks.sdk import errors as sdk

    said = reason(error)
    number = getattr(error, "error_code", None)
    why = f"{number}: {said}" if number and not str(number).isdigit() else said
    if isinstance(error, sdk.Unauthenticated) or (isinstance(error, sdk.PermissionDenied) and _TOKEN_REFUSED.search(said)):
        what = "the workspace does not accept the credentials; a token may be wrong or expired"
        return LakeletError("WORKSPACE_CREDENTIALS", what, why=why, todo=HOW)
    for kind, code, what, todo in (
        (sdk.PermissionDenied, "WORKSPACE_DENIED", "this user may not do", "Ask an owner of the object or an administrator for the right."),
        (sdk.NotFound, "WORKSPACE_NOT_FOUND", "the workspace has not what was asked for by", None),
        (sdk.ResourceConflict, "WORKSPACE_CONFLICT", "something else stands in the way of", None),
        (sdk.TooManyRequests, "WORKSPACE_BUSY", "the workspace has no room for", _LATER),
        (
            sdk.TemporarilyUnavailable,
            "WORKSPACE_BUSY",
            "the workspace is not ready for",
            _LATER,
        ),
        (sdk.NotImplemented, "WORKSPACE_REFUSED", "the workspace does not know", None),
        (
            sdk.InternalError,
            "WORKSPACE_REFUSED",
            "the workspace failed inside at",
            "Give the same command again, later.",
        ),
    ):
        if isinstance(error, kind):
            return LakeletError(code, f"{what} {request}", why=why, todo=todo)
    return LakeletError("WORKSPACE_REFUSED", f"the workspace refused {request}", why=why)
