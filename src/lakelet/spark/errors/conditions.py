"""Spark's and Delta's error conditions, and the values that they carry."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors.exceptions.base import PySparkException

from lakelet.base import sentences


def conditions(error: BaseException) -> list[str]:
    """Return the names of the conditions of an error, without sub-conditions: those in its text, and its own."""
    found = sentences.CODE.pattern.findall(str(error))
    if isinstance(error, PySparkException):
        found.append((error.getCondition() or "").split(".")[0])
    return found


def parameter(error: BaseException, name: str, *, condition: str = "") -> str | None:
    """Return a value that the condition of an error carries, or of an error that caused it, without quotes and backticks around it.

    `condition`: how the condition begins. None where no error of Spark's in the chain has the condition and value.
    """
    for one in _error_chain(error):
        if (one.getCondition() or "").startswith(condition) and (value := (one.getMessageParameters() or {}).get(name)) is not None:
            return str(value).strip('"')
    return None


def java_class(error: BaseException) -> str:
    """Return the Java class at the end of the causes of an error of Spark's, such as `java.io.EOFException`; "" for any other error."""
    thrown = getattr(error, "_origin", None)
    while thrown is not None and (cause := thrown.getCause()) is not None:
        thrown = cause
    return "" if thrown is None else str(thrown.getClass().getName())


def _error_chain(error: BaseException | None) -> Iterator[PySparkException]:
    """The errors of Spark's among an error and what it was raised from, the outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, PySparkException):
            yield error
        error = error.__cause__ or error.__context__


__all__ = ["conditions", "java_class", "parameter"]
