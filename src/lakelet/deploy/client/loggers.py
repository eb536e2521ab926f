"""The SDK's own loggers: no credential in a record, whoever prints it."""

from __future__ import annotations

import logging
import re
import traceback
from types import TracebackType

from lakelet.base.redaction import redacted

_ROOTS = ("databricks", "urllib3", "requests", "requests_oauthlib", "oauthlib")
_PROBE_FAILED = "Failed to automatically resolve config from host metadata"
_NO_CONNECTION = re.compile(r"Timed out after|Max retries exceeded|Connection refused")


def redact_loggers() -> None:
    """Pass every record of the SDK's loggers, of those below it and of the root logger through redaction. Can be repeated."""
    logging.getLogger("databricks.sdk")
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _ROOTS]
    for logger in (logging.getLogger(), *map(logging.getLogger, names)):
        if _redact not in logger.filters:
            logger.addFilter(_redact)


class Probe:
    """Watches the SDK look for the workspace's description when it is set up, which it does before any request.

    Attributes:
        unreachable: whether nothing answered.
    """

    def __init__(self) -> None:
        self.unreachable = False
        self._logger = logging.getLogger("databricks.sdk")

    def __enter__(self) -> Probe:
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


def _redact(record: logging.LogRecord) -> bool:
    record.msg, record.args = redacted(record.getMessage()), None
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = redacted("".join(traceback.format_exception(*record.exc_info)))
        record.exc_info = None
    return True
