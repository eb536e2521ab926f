"""A connection to a workspace: the SDK's client with coded errors, measured patience and requests that take effect at most once.

Credentials are found by the SDK's own chain and stand in no text.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from lakelet.base import VERSION
from lakelet.base.errors import LakeletError
from lakelet.deploy.credentials import CODE, HOW, HostProbe, arguments, check_host, redact_loggers, remember_headers
from lakelet.deploy.desired_state import User, is_application_id

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.config import Config

_TOKEN_REFUSED = re.compile(r"(invalid|expired)\b.*\btoken|token\b.*\b(invalid|expired)", re.IGNORECASE)
_TRY_LATER = "Wait some minutes and give the same command again."
_CHECK_ADDRESS = "Check the address of the workspace, the network and its proxies. Nothing is lost: the same command can be given again."


class UnansweredRequest(LakeletError):
    """A request that must take effect at most once got no answer: the workspace may have acted or not. Look before asking again."""

    def __init__(self, request: str, why: str) -> None:
        what = f"no answer to {request}: nobody knows whether the workspace acted"
        super().__init__("WORKSPACE_UNANSWERED", what, why=why, todo="Give the same command again: it looks first.")

        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        return (UnansweredRequest, (self.request, self.why or ""))


def coded(error: BaseException, request: str) -> LakeletError:
    """Return what the SDK raised for `request` (`GET /api/2.0/…`) as an error with a code of the family WORKSPACE_."""
    from databricks.sdk.errors.base import DatabricksError
    from requests import RequestException

    if isinstance(error, LakeletError):
        return error
    if isinstance(error, TimeoutError) and error.__cause__ is not None:
        return coded(error.__cause__, request)
    if isinstance(error, DatabricksError):
        return _refusal(error, request)
    if isinstance(error, ValueError):  # the answer's body, also as a requests.JSONDecodeError
        why = "The answer is not JSON: it may come from a proxy or a sign-in page."
        return LakeletError("WORKSPACE_REFUSED", f"the answer to {request} cannot be read", why=why, todo=_CHECK_ADDRESS)
    if isinstance(error, (RequestException, OSError)):
        return LakeletError("WORKSPACE_UNREACHABLE", f"the workspace does not answer {request}", why=reason(error), todo=_CHECK_ADDRESS)
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


def _refusal(error: BaseException, request: str) -> LakeletError:
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
        (sdk.TooManyRequests, "WORKSPACE_BUSY", "the workspace has no room for", _TRY_LATER),
        (
            sdk.TemporarilyUnavailable,
            "WORKSPACE_BUSY",
            "the workspace is not ready for",
            _TRY_LATER,
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


T = TypeVar("T")
_NOTICED = 1.0  # waiting that is said on stderr


@dataclass(frozen=True)
class RequestTimeouts:
    """How long the workspace may take, in seconds.

    Attributes:
        first: repeated attempts of the very first request, which shows that the host is there at all.
        repeated: attempts of a later request that may be repeated, and of a request that was refused for lack of room.
        answer: silence of one request.
    """

    first: float = 5
    repeated: float = 120
    answer: float = 60


class _EndsRepetition(BaseException):
    """Ends the SDK's own repetition of a request that must take effect at most once."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class _Clock:
    """The clock that the SDK sleeps by: it says on what it waits, and does not wait at all where a request must not be repeated."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice
        self._thread = threading.local()

    def time(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        cause = sys.exc_info()[1]
        if self.once and cause is not None:
            raise _EndsRepetition(cause)
        self.wait(seconds, cause)

    def wait(self, seconds: float, cause: BaseException | None) -> None:
        if cause is not None and seconds >= _NOTICED:
            self._notice(f"the workspace: {_short_reason(cause)}; next attempt in {seconds:.0f} s")
        time.sleep(seconds)

    @property
    def once(self) -> bool:
        """Whether this thread makes a request that must take effect at most once."""
        return getattr(self._thread, "once", False)

    @once.setter
    def once(self, value: bool) -> None:
        self._thread.once = value


class Client:
    """One workspace, as one user.

    Attributes:
        sdk: the SDK's `WorkspaceClient`. Whatever its methods raise is a LakeletError with a code WORKSPACE_…: WORKSPACE_NOT_FOUND,
            WORKSPACE_CONFLICT, WORKSPACE_DENIED … Requests are repeated when a connection drops: for calls that may be repeated.
        host: address of the workspace.
    """

    def __init__(self, config: Config, patience: RequestTimeouts, clock: _Clock) -> None:
        from databricks.sdk import WorkspaceClient

        self._patience, self._clock = patience, clock
        self.host: str = config.host
        self.sdk: WorkspaceClient = WorkspaceClient(config=config)
        self.sdk.api_client.do = self._do(self.sdk.api_client.do)  # type: ignore[method-assign]

    def user(self) -> User:
        """Return who the credentials belong to."""
        me = self.sdk.current_user.me()
        name = me.user_name or ""
        called = (me.display_name or name) if is_application_id(name) else name  # a service principal's name is its application ID
        short = re.sub(r"[^A-Za-z0-9]", "_", called.partition("@")[0])
        return User(name, short, me.display_name or "", me.id or "")

    def once(self, call: Callable[[WorkspaceClient], T]) -> T:
        """Return `call(sdk)`, whose one request takes effect at most once.

        A request that the workspace certainly did not act on (no connection, 429, 503 with its Retry-After) is repeated. Raises
        Unanswered where the connection was lost, time ran out or the workspace failed inside: check whether it acted before asking
        again. Raises LakeletError for what the workspace refused.
        """
        self._clock.once = True
        try:
            return call(self.sdk)
        finally:
            self._clock.once = False

    def _do(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def do(method: str, path: str | None = None, **rest: Any) -> Any:
            request = f"{method} {path or rest.get('url')}"
            try:
                if self._clock.once:
                    return self._at_most_once(lambda: inner(method, path, **rest), request)
                return inner(method, path, **rest)
            except LakeletError:
                raise
            except Exception as error:
                raise coded(error, request) from error

        return do

    def _at_most_once(self, ask: Callable[[], Any], request: str) -> Any:
        deadline = time.monotonic() + self._patience.repeated
        pause = 1.0
        while True:
            try:
                return ask()
            except _EndsRepetition as refused:
                error = refused.cause
            except Exception as other:
                error = other
            later = getattr(error, "retry_after_secs", None)
            if later is None and not not_sent(error):
                if leaves_doubt(error):
                    raise UnansweredRequest(request, reason(error)) from error
                raise coded(error, request) from error
            pause = min(10.0, pause + 1)
            seconds = float(later if later is not None else pause)
            if time.monotonic() + seconds > deadline:
                raise coded(error, request) from error
            self._clock.wait(seconds, error)


def connect(
    host: str | None = None,
    profile: str | None = None,
    said: Mapping[str, str] = MappingProxyType({}),
    *,
    environ: Mapping[str, str],
    patience: RequestTimeouts | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> Client:
    """Return a connection to the workspace.

    Args:
        host: address that the bundle names; None leaves it to the SDK's chain: environment, then configuration file.
        profile: profile of the SDK's configuration file that the bundle names.
        said: what else the bundle says of signing in, by the SDK's names (`auth_type`, `azure_tenant_id` …). It goes before `environ`.
        environ: the process's environment. Its values go before what the SDK reads by itself.
        patience: how long the workspace may take.
        notice: called with a sentence before each wait of a second and more.

    Raises:
        LakeletError: SDK_MISSING without the extra; WORKSPACE_CREDENTIALS without usable credentials; WORKSPACE_UNREACHABLE when
            nothing answers at the address.
    """
    try:
        from databricks.sdk.config import Config
    except ImportError as missing:
        what = "databricks-sdk is needed to talk to a workspace, and it is not installed"
        raise LakeletError("SDK_MISSING", what, why=str(missing), todo="pip install 'lakelet[deploy]'") from None
    patience, clock = patience or RequestTimeouts(), _Clock(notice)
    redact_loggers()
    given = arguments(host, profile, environ, Config.attributes(), said)
    times = {"retry_timeout_seconds": patience.first, "http_timeout_seconds": min(patience.answer, 15)}
    with HostProbe() as probe:
        try:
            config = Config(product="lakelet", product_version=VERSION, clock=clock, **given, **times)  # type: ignore[arg-type]
        except Exception as problem:  # ValueError of the SDK's chain, and whatever a provider of credentials raises
            raise _credentials_error(problem) from None
    if not config.host:
        raise LakeletError(CODE, "no workspace is named", todo=f"Write `workspace: host:` in databricks.yml, or: {HOW}")
    check_host(config.host)
    config.authenticate = _remembering_headers(config.authenticate)  # type: ignore[method-assign]
    if probe.unreachable:
        _refuse_unreachable(config, patience, clock)
    config.retry_timeout_seconds, config.http_timeout_seconds = int(patience.repeated), patience.answer
    client = Client(config, patience, clock)
    redact_loggers()  # those of the modules that were imported on the way
    return client


def _refuse_unreachable(config: Config, patience: RequestTimeouts, clock: _Clock) -> None:
    """Raise WORKSPACE_UNREACHABLE if a first request gets no answer either; whatever else it gets, somebody is there."""
    try:
        Client(config, patience, clock).user()
    except LakeletError as error:
        if error.code == "WORKSPACE_UNREACHABLE":
            todo = "Check the address of the workspace, the network and its proxies."
            raise LakeletError(error.code, f"nothing answers at {config.host}", why=error.why, todo=todo) from error


def _remembering_headers(inner: Callable[[], dict[str, str]]) -> Callable[[], dict[str, str]]:
    """Blot out the credentials of each request, refreshed tokens included."""
    from requests import RequestException

    def authenticate() -> dict[str, str]:
        try:
            headers = inner()
        except RequestException:
            raise
        except Exception as problem:  # a refreshed token was refused, a command line tool failed …
            raise _credentials_error(problem) from None
        remember_headers(headers)
        return headers

    return authenticate


def _credentials_error(problem: Exception) -> LakeletError:
    if isinstance(problem, LakeletError):
        return problem
    return LakeletError(CODE, "the credentials cannot be used", why=reason(problem), todo=HOW)


def _short_reason(cause: BaseException) -> str:
    code = getattr(cause, "error_code", None)
    text = f"{code}: {reason(cause)}" if code else "no connection" if not_sent(cause) else reason(cause)
    return text if len(text) <= 120 else text[:119] + "…"
