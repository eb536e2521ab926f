"""`dlt.read` and its relatives: what functions of datasets read by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.user_code import caller_location
from lakelet.language.arguments import invalid
from lakelet.language.registry import active_reader
from lakelet.language.wrappers import BOUND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOVE = "Move the call into the function that returns the dataset's DataFrame."
_READ_TABLE = " Code outside of functions reads tables, as the last update has left them, with spark.read.table(name)."


def _reader_or_error(call: str) -> Any:
    reader = active_reader()
    if reader is None:
        todo = _MOVE if "stream" in call else _MOVE + _READ_TABLE
        raise LakeletError("OUTSIDE_PIPELINE", f"{call} was called outside of a dataset's function", where=caller_location(), todo=todo)
    return reader


def read(name: str) -> DataFrame:
    """Return the batch DataFrame of a dataset of this pipeline, or of a table from outside (DS-19).

    Args:
        name: of the dataset or table, with one, two or three parts.

    Raises OUTSIDE_PIPELINE where no function of a dataset is running, ARGUMENT_INVALID for a name that is no text.
    """
    frame: DataFrame = _reader_or_error("dlt.read").batch(_dataset_name("dlt.read", name))
    return frame


def read_stream(name: str) -> DataFrame:
    """Return the streaming DataFrame of a dataset of this pipeline, or of a table from outside (DS-19).

    The argument and errors are those of `read`.
    """
    frame: DataFrame = _reader_or_error("dlt.read_stream").stream(_dataset_name("dlt.read_stream", name), {})
    return frame


def _dataset_name(call: str, name: Any) -> str:
    if isinstance(name, str):
        return name
    bound = getattr(name, BOUND, None)
    todo = f'Write {call}("{bound.name}").' if bound else None
    raise invalid(f"{call} takes the name of a dataset as text, got {type(name).__name__}", caller_location(), todo)


def enable_local_execution() -> None:
    """Do nothing: the functions of this module work outside of Databricks here."""
