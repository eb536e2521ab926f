"""Which host and profile the SDK is asked to use, and which values must never be shown, by a logger of the SDK either.

No request is made here.
"""

from __future__ import annotations

import configparser
import ipaddress
import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lakelet.base.errors import LakeletError
from lakelet.base.redaction import redacted, remember, remember_secrets

if TYPE_CHECKING:
    from databricks.sdk.config import ConfigAttribute

CODE = "WORKSPACE_CREDENTIALS"
HOW = (
    "Sign in as for the Databricks CLI: `databricks auth login`, a profile in ~/.databrickscfg,"
    " or DATABRICKS_HOST with DATABRICKS_TOKEN or DATABRICKS_CLIENT_ID and DATABRICKS_CLIENT_SECRET."
)
_SETTINGS = "__settings__"
_FOLDERS = ("PWD", "OLDPWD")
"""Variables of shells that sound like passwords."""


def arguments(
    host: str | None,
    profile: str | None,
    environ: Mapping[str, str],
    known: Iterable[ConfigAttribute],
    said: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the keyword arguments of the SDK's `Config`: values of `environ`, before them the host, profile and others of the bundle.

    A host without a profile and without credentials in the environment gets the one profile of the configuration file that has this
    host, as in the Databricks CLI. Every secret on the way is remembered for redaction. Raises WORKSPACE_CREDENTIALS for a host that
    holds a password or is not encrypted, a profile of another host, a setting that the SDK does not know, and a configuration file that
    cannot be read.
    """
    attributes = list(known)
    named = {a.name: environ[a.env] for a in attributes if a.env and environ.get(a.env)}
    _remember_all(environ, attributes)
    for name, value in said.items():
        if name not in {a.name for a in attributes}:
            todo = "Take it out, or set what the SDK for Python knows instead."
            raise LakeletError(CODE, f"the SDK for Python has no setting {name}, which the bundle's workspace has", todo=todo)
        named[name] = value
    if profile:
        named["profile"] = profile
    if host:
        named["host"] = host
    file = Path(named.get("config_file", "~/.databrickscfg")).expanduser()
    profiles = _profiles(file, attributes)
    if host and "profile" not in named and not any(a.auth and a.name in named for a in attributes):
        found = _profile_of(host, profiles, file)
        if found:
            named["profile"] = found
    used = profiles.get(named.get("profile", ""), {})
    for address in (named.get("host"), used.get("host")):
        check_host(address)
    theirs = used.get("host")
    if host and theirs and _bare_host(theirs) != _bare_host(host):
        what = f"the bundle names the workspace {host}, the profile {named['profile']} is for {theirs}"
        raise LakeletError(CODE, what, todo="Use a profile of the same workspace (DATABRICKS_CONFIG_PROFILE), or change workspace.host.")
    return named


def check_host(host: str | None) -> None:
    """Raise WORKSPACE_CREDENTIALS for an address that has a user or password in it, or that is neither encrypted nor loopback."""
    if not host:
        return
    parts = urlsplit(host if "://" in host else f"https://{host}")
    if "@" in parts.netloc:
        remember(parts.netloc.rpartition("@")[0])
        for secret in (parts.password, parts.username):
            remember(secret or "")
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        raise LakeletError(CODE, f"the address of the workspace holds a user name or a password; write {where}", todo=HOW)
    if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise LakeletError(
            CODE, f"{host} is not encrypted: credentials would be sent in clear text", todo="Write the address with https://"
        )


def remember_headers(headers: Mapping[str, str]) -> None:
    """Blot out what these headers of a request say about who asks."""
    for name, value in headers.items():
        if "authorization" in name.lower() or "token" in name.lower():
            remember(value)
            remember(value.partition(" ")[2])


def _remember_all(environ: Mapping[str, str], attributes: Iterable[ConfigAttribute]) -> None:
    remember_secrets({name: value for name, value in environ.items() if name not in _FOLDERS})
    for attribute in attributes:
        if attribute.sensitive and attribute.env:
            remember(environ.get(attribute.env, ""))


def _profiles(file: Path, attributes: Iterable[ConfigAttribute]) -> dict[str, dict[str, str]]:
    """The sections of the SDK's configuration file; nothing where there is none. Its secrets are remembered."""
    if not file.is_file():
        return {}
    parser = configparser.ConfigParser(default_section="", interpolation=None)
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
    except (configparser.Error, OSError, UnicodeDecodeError) as problem:  # its text quotes lines, which can hold a token
        line = getattr(problem, "lineno", None)
        what = f"{file} is not a configuration file" + (f": line {line}" if line else "")
        raise LakeletError(CODE, what, todo="Its form: [profile], then lines `host = https://…` and the way to sign in.") from None
    found = {name: dict(parser.items(name)) for name in parser.sections() if name != _SETTINGS}
    secret = {a.name for a in attributes if a.sensitive}
    for section in found.values():
        remember_secrets(section)
        for name in secret & section.keys():
            remember(section[name])
    return found


def _profile_of(host: str, profiles: Mapping[str, Mapping[str, str]], file: Path) -> str | None:
    same = [name for name, section in profiles.items() if _bare_host(section.get("host", "")) == _bare_host(host)]
    if len(same) > 1:
        what = f"{file} has {len(same)} profiles for {host}: {', '.join(sorted(same))}"
        raise LakeletError(CODE, what, todo="Name one: DATABRICKS_CONFIG_PROFILE, or workspace.profile of the target.")
    return same[0] if same else None


def _bare_host(host: str) -> str:
    return host.lower().partition("://")[2].rstrip("/") if "://" in host else host.lower().rstrip("/")


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


_LOGGERS = ("databricks", "urllib3", "requests", "requests_oauthlib", "oauthlib")
_PROBE_FAILED = "Failed to automatically resolve config from host metadata"
_NO_CONNECTION = re.compile(r"Timed out after|Max retries exceeded|Connection refused")


def redact_loggers() -> None:
    """Pass every record of the SDK's loggers, of those below it and of the root logger through redaction. Can be repeated."""
    logging.getLogger("databricks.sdk")
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOGGERS]
    for logger in (logging.getLogger(), *map(logging.getLogger, names)):
        if _redact_record not in logger.filters:
            logger.addFilter(_redact_record)


class HostProbe:
    """Watches the SDK look for the workspace's description when it is set up, which it does before any request.

    Attributes:
        unreachable: whether nothing answered.
    """

    def __init__(self) -> None:
        self.unreachable = False
        self._logger = logging.getLogger("databricks.sdk")

    def __enter__(self) -> HostProbe:
        self._logger.addFilter(self._look)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._logger.removeFilter(self._look)

    def _look(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if not text.startswith(_PROBE_FAILED):
            return True
        self.unreachable = self.unreachable or bool(_NO_CONNECTION.search(text))
        return False  # a workspace without this description is as good as one with it


def _redact_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = redacted(record.getMessage()), None
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = redacted("".join(traceback.format_exception(*record.exc_info)))
        record.exc_info = None
    return True
