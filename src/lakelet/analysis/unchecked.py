"""Datasets whose functions fail during analysis: those with errors, and those that only an update can check (decision 0044)."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors.exceptions.base import PySparkException

from lakelet.analysis.analyzed import Findings
from lakelet.base.errors import LakeletError, StateError
from lakelet.jvm.errors import Py4JError
from lakelet.language.lost import Lost
from lakelet.language.registry import Notice
from lakelet.spark.errors.user_errors import NO_ROWS, RUN_AGAIN

_RAISED = "USER_FUNCTION_FAILED"
_HAS_NOTICE = "SCHEMA_OUTGROWN"
"""Code of failures that the flow already has a notice about."""
_REMEDIES = {NO_ROWS: "Correct the function.", RUN_AGAIN: "Correct the function, or what it needs."}
"""Remedies for a function that raises without reading rows, by the remedy that the update would give."""
_OF_DATA = (OSError, PySparkException, Py4JError)
"""Classes of errors about data, files or services that the function needs. Wrong queries have a different code than `_RAISED`."""


class Unusable(Exception):
    """A dataset that is read cannot be used. Its own error has been recorded, or is `failure`, to be reported by the run."""

    def __init__(self, failure: LakeletError | None = None) -> None:
        super().__init__(failure)
        self.failure = failure


def fails_alone(error: LakeletError, *, stored: bool = True) -> bool:
    """Whether an update fails only the dataset of an error that analysis finds, and what reads it (decision 0068).

    The stored table, or a column that came with the data, does not fit one dataset; the definitions of the others are right.
    `stored`: whether the dataset has a table.
    """
    return error.code == "CDC_RESERVED_COLUMN" or (stored and isinstance(error, StateError))


def refused(found: Findings, lost: Lost) -> list[LakeletError]:
    """Return an error for each dataset that does not fit what is stored, or whose function raises whatever the data is.

    `lost`: what did not run of the sources; a missing name may be defined in it.
    """
    wrong = [e for key, e in found.failures.items() if _wrong(found, key, e)]
    shown = [e for e in wrong if e.where is None or not lost.excuses(e.where.file, e.__cause__)]
    return [error if fails_alone(error) else _as_definition_error(error) for error in shown]


def unchecked(found: Findings) -> tuple[Notice, ...]:
    """Return a notice for each dataset that only an update can check."""
    left = [(key, e) for key, e in found.failures.items() if e.code != _HAS_NOTICE and not _wrong(found, key, e)]
    notices = [Notice(_notice_text(e, _reason(found, key)), e.where) for key, e in left if e.where is not None]
    return tuple(dict.fromkeys(notices))


def _wrong(found: Findings, key: str, error: LakeletError) -> bool:
    if fails_alone(error):
        return key not in found.uncertain
    if error.code != _RAISED or _looks(found, key):
        return False
    causes = list(_causes(error.__cause__))
    return not isinstance(error.__cause__, _OF_DATA) and not any(isinstance(cause, Unusable) for cause in causes)


def _looks(found: Findings, key: str) -> bool:
    return key in found.looked or key in found.uncertain


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the error that it was raised from or while handling, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _as_definition_error(error: LakeletError) -> LakeletError:
    result = LakeletError(
        "QUERY_FAILED_ANALYSIS",
        error.what,
        where=error.where,
        dataset=error.dataset,
        why=error.why,
        todo=_REMEDIES.get(error.todo or "", error.todo),
        nearest=error.nearest,
    )
    result.__cause__ = error.__cause__
    return result


def _reason(found: Findings, key: str) -> str:
    if key in found.waiting:
        return "it reads a from_json without a schema, whose fields are known when its flow has run"
    return "its function looks at rows, and there may be none yet" if _looks(found, key) else "its data is not there yet, or cannot be read"


def _notice_text(error: LakeletError, reason: str) -> str:
    facts = error.what + (f": {error.why.splitlines()[0]}" if error.why else "")
    return f"{error.dataset} is not checked; only an update can check it: {reason} ({facts})"


__all__ = ["Unusable", "fails_alone", "refused", "unchecked"]
