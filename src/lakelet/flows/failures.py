"""What a query of a flow fails with, as the error of its flow.

In: what Spark, Delta or the function raised. Out: a `LakeletError`. A batch query: `failures_of`. A streaming query that cannot go on
from where it was: `stream_failure`, with the command that helps (DS-10, DS-12). Spark and Delta notice most of it when the query runs;
their messages are read here. No Spark calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.errors.exceptions.base import PySparkException

from lakelet.analysis.checks import remedies
from lakelet.autoloader.state.ledger import NO_OFFSET
from lakelet.base import sentences
from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowTask
from lakelet.spark.errors.conditions import conditions
from lakelet.spark.errors.diagnosis import essence, run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.storage.delta import schemas
from lakelet.storage.root import INTERNAL


@contextmanager
def failures_of(task: FlowTask, what: str = "the query failed while it ran") -> Iterator[None]:
    """Raise as a LakeletError what the block raises: `what` happened, or the function of the user's raised something."""
    try:
        yield
    except (LakeletError, schemas.Incompatible, PySparkException) as problem:
        raise run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what) from None
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] == "py4j":  # Java failed while it wrote
            raise run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what) from problem
        raise user_error(problem, task.dataset, task.declared) from problem


_ROWS_CHANGED = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")
_STATE_CHANGED = (
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_EVOLUTION",
    "STATEFUL_PROCESSOR_",
    "STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE",
    "TRANSFORM_WITH_STATE_SCHEMA",
)
_SOURCES_CHANGED = (
    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
    "DELTA_INVALID_SOURCE_VERSION",
    "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
)


def stream_failure(task: FlowTask, failure: BaseException) -> LakeletError | None:
    """The failure as one of STREAM_{SOURCE,STATE,SOURCES}_CHANGED; None if it is something else."""
    text, found = str(failure), conditions(failure)
    if any(condition.startswith(_ROWS_CHANGED) for condition in found):
        error = _rows_changed(task, text)
    elif any(condition.startswith(_STATE_CHANGED) for condition in found):
        error = _state_changed(task, text)
    elif any(condition.startswith(_SOURCES_CHANGED) for condition in found) or _of_other_sources(text):
        error = _sources_changed(task, text)
    else:
        return None
    error.__cause__ = failure
    return error


def _of_other_sources(text: str) -> bool:
    """Whether a source found the offset of another one, or none."""
    counted = sentences.SOURCES_COUNTED
    offsets = (sentences.OFFSET_OF_DELTA, sentences.OFFSET_BEFORE_FILES)
    return NO_OFFSET in text or any(sentence.is_in(text) for sentence in (counted, *offsets))


def mode_of(task: FlowTask, checkpoint: AnyPath, *, started: bool) -> str:
    """The output mode of the flow's query, "append" or "complete", noted with the checkpoint of a query that aggregates.

    State that appends has forgotten the groups that are finished, and state that replaces has not; Spark takes one for the other.
    Raises STREAM_STATE_CHANGED if the query was in the other mode so far.
    """
    mode, note = "complete" if task.flow.kind.whole else "append", checkpoint / "lakelet-mode"
    if not task.flow.stream.aggregates:
        return mode
    if not started:
        write_atomically(note, mode)
        return mode
    with suppress(FileNotFoundError):
        if note.read_text() not in (mode, ""):  # empty: cut off while it was written
            came = "lost" if task.flow.kind.whole else "got"
            what = f"its aggregate {came} its watermark, which its state was not made for"
            why = "with a watermark finished groups are appended and forgotten, without one all groups are kept and replace the table"
            raise _error(task, "STREAM_STATE_CHANGED", what, why, f"Change the query back, or rebuild the table: {_rebuild(task)}")
    return mode


def _error(task: FlowTask, code: str, what: str, why: str, todo: str) -> LakeletError:
    return LakeletError(code, what, dataset=str(task.dataset.name), where=task.declared.where, why=why, todo=todo)


def _rebuild(task: FlowTask) -> str:
    return f"lakelet run --full-refresh {task.dataset.name}"


def _refresh_hint(task: FlowTask) -> str:
    if task.flow.kind.whole:
        return ""
    return f"\nTo keep its rows and read the sources again from the start, rows may come twice: lakelet run --reset-checkpoint {task.name}"


def _rows_changed(task: FlowTask, text: str) -> LakeletError:
    source, version = _source_name(task, text), sentences.CHANGED_VERSION.find(text)
    stored = task.environment.storage.registry().datasets.get(source.lower())
    if stored is not None and TableLog(task.environment.storage.root / stored.path / INTERNAL).version() >= 0:
        instead = f"{remedies(source)}."
    else:
        instead = (
            'Read it with .option("skipChangeCommits", "true") to leave such versions out, its changes with '
            '.option("readChangeFeed", "true"), or its rows as a batch (spark.read.table, dlt.read).'
        )
    return _error(
        task,
        "STREAM_SOURCE_CHANGED",
        f"it streams from {source}, whose rows were updated or deleted",
        f"{f'version {version[1]}' if version else 'a version'} of {source} changed rows that were there; a stream reads added rows only",
        f"{instead}\nTo read all it holds now into an empty table: {_rebuild(task)}",
    )


def _source_name(task: FlowTask, text: str) -> str:
    """The table that a message of Delta's speaks of: its name where the storage knows it, else its path."""
    found = sentences.CHANGED_PATH.find(text)
    if not found:
        return "a table"
    storage, path = task.environment.storage, found[1].rstrip("/")
    names = [d.name for d in storage.registry().datasets.values() if str(storage.root / d.path).rstrip("/").endswith(path.lstrip("/"))]
    return names[0] if names else path


def _state_changed(task: FlowTask, text: str) -> LakeletError:
    operators = sentences.OPERATORS_NOW.is_in(text)
    return _error(
        task,
        "STREAM_STATE_CHANGED",
        "its stateful operators (deduplication, aggregation, join, …) are not those that its state was made with",
        _operators(text) if operators else essence(text),
        f"Change the query back, or rebuild the table from what its sources still hold: {_rebuild(task)}{_refresh_hint(task)}",
    )


def _operators(text: str) -> str:
    """Spark's sentence (SQLSTATE 42K03), with the names alone of what it lists."""
    before, now = sentences.OPERATORS_NOW.pattern.split(text, maxsplit=1)
    stored, found = (
        ", ".join(sentences.OPERATOR.pattern.findall(sentences.SQLSTATE.pattern.split(part)[0])) or "none" for part in (before, now)
    )
    return f"Streaming stateful operator name does not match: the state knows {stored}, the query now has {found} (SQLSTATE 42K03)"


def _sources_changed(task: FlowTask, text: str) -> LakeletError:
    counts = sentences.SOURCES_COUNTED.find(text)
    if counts:
        why = f"it read {counts[1]} source(s) so far, and now it has {counts[2]}"
    elif "DIFFERENT_DELTA_TABLE" in text:
        why = "one of its sources was replaced by another table, or created again"
    else:
        why = "one of its sources is of another kind now (table, files, …), or they come in another order"
    return other_sources(task, why)


def other_sources(task: FlowTask, why: str) -> LakeletError:
    """The error of a flow whose sources are not those of its checkpoint."""
    return _error(
        task,
        "STREAM_SOURCES_CHANGED",
        "its sources are not those that it has read so far",
        why,
        "Change them back, or give each source a flow of its own (append_flow): a new flow reads its source from the start.\n"
        f"To rebuild the table from what its sources hold now: {_rebuild(task)}{_refresh_hint(task)}",
    )


__all__ = ["failures_of", "mode_of", "other_sources", "stream_failure"]
