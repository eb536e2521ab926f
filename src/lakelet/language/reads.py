"""`dlt.read` and its relatives: what functions of datasets read by name."""

from __future__ import annotations

from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.locations import caller_location
from lakelet.language.arguments import invalid
from lakelet.language.decorated import BOUND
from lakelet.language.registry import active_reader

_MOVE = "Move the call into the function that returns the dataset's DataFrame."
_READ_TABLE = " Code outside of functions reads tables, as the last update has left them, with spark.read.table(name)."


def _reader_or_error(call: str) -> Any:
    reader = active_reader()
    if reader is None:
        todo = _MOVE if "stream" in call else _MOVE + _READ_TABLE
        raise LakeletError("OUTSIDE_PIPELINE", f"{call} was called outside of a dataset's function", where=caller_location(), todo=todo)
    return reader


def read(name: str) -> Any:
    """Batch DataFrame of a dataset of this pipeline, or of a table from outside."""
    return _reader_or_error("dlt.read").batch(_dataset_name("dlt.read", name))


def read_stream(name: str) -> Any:
    """Streaming DataFrame of a dataset of this pipeline, or of a table from outside."""
    return _reader_or_error("dlt.read_stream").stream(_dataset_name("dlt.read_stream", name), {})


def _dataset_name(call: str, name: Any) -> str:
    if isinstance(name, str):
        return name
    bound = getattr(name, BOUND, None)
    todo = f'Write {call}("{bound.name}").' if bound else None
    raise invalid(f"{call} takes the name of a dataset as text, got {type(name).__name__}", caller_location(), todo)


def enable_local_execution() -> None:
    """`dlt.enable_local_execution` of the published stub: nothing to do, the module's functions work here."""
