"""Settings that Spark does not take from a pipeline: set at its start, or known to Databricks only.

`note` and `note_once` report what user code asks for and has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql.conf import RuntimeConfig

from lakelet.base.errors import LakeletError
from lakelet.base.user_code import caller_location
from lakelet.language.registry import Notice, active_reader, active_registry

_FIXED = frozenset({"CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG"})
_PARTITIONS = "spark.sql.shuffle.partitions"
_HOSTED_CLASSES = "com.databricks."


class SessionSettings(RuntimeConfig):
    """`spark.conf` of user code. A value that only Databricks knows is noted, and Spark keeps its own."""

    def set(self, key: str, value: str | int | bool) -> None:
        """Set a key for this session. Raises what Spark raises for a key that it takes at its start only, and for an unfit value."""
        text = hosted_only(key, str(value))
        if text is None:
            super().set(key, value)
        else:
            note(text)


def hosted_only(key: str, value: str) -> str | None:
    """Why a setting can have no effect here although Databricks takes it; None for all others."""
    if key == _PARTITIONS and value.strip().lower() == "auto":
        return f"{key} = auto has no effect here: Spark joins small partitions by itself"
    if key.startswith("spark.") and value.startswith(_HOSTED_CLASSES):
        return f"{key} has no effect here: its value is a class of Databricks"
    return None


def apply(conf: RuntimeConfig, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Set what Spark accepts. Return one notice for each other setting, which concerns speed or size only. Can be repeated.

    Raises PROPERTY_INVALID for a value that the key cannot have.
    """
    notices = []
    for key, value in settings.items():
        text = hosted_only(key, value)
        if text is None:
            text = _set_or_explain(conf, key, value)
        if text is not None:
            notices.append(text)
    return tuple(notices)


def _set_or_explain(conf: RuntimeConfig, key: str, value: str) -> str | None:
    try:
        conf.set(key, value)
    except PySparkException as error:
        if error.getCondition() in _FIXED:
            return f"{key} has no effect here: Spark takes it when it starts, not from a pipeline"
        if str(error.getCondition()).startswith("INVALID_CONF_VALUE"):
            text = str(error).splitlines()[0].split("] ", 1)[-1].split(" SQLSTATE")[0]
            raise LakeletError("PROPERTY_INVALID", text, todo="Correct the value, or leave the setting out.") from None
        raise
    return None


def note(text: str) -> None:
    """Report a notice while files are loaded; a function that is called for each use of its dataset reports nothing more."""
    try:
        active_registry().note(text, caller_location())
    except LakeletError:
        return


def note_once(text: str) -> None:
    """Report a notice once for the flow whose function runs, or at the line of the source file that is being loaded."""
    notices: list[Notice] | None = getattr(active_reader(), "notices", None)
    if notices is None:
        note(text)
    elif all(notice.text != text for notice in notices):
        notices.append(Notice(text, caller_location()))
