"""Patches that answer reads and settings from the inputs of a test (`lakelet.testing`), without an update."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.patching import Patch
from lakelet.spark.patches import owners
from lakelet.spark.patches.function_exports import FUNCTION_NAMES

__tracebackhide__ = True


class Inputs(Protocol):
    """The data frames that a test provides."""

    def batch(self, name: str) -> DataFrame:
        """Return the frame of a name. Raises UNKNOWN_DATASET."""

    def sql(self, spark: SparkSession, text: str, run: Callable[[str], Any]) -> Any:
        """Run SQL text on the frames."""

    def folder(self, path: object) -> DataFrame | None:
        """Return the frame that replaces the files of a folder, or None."""


@dataclass(frozen=True)
class InputsOfTest:
    """The inputs of a test without an update: data frames and the pipeline's parameters."""

    inputs: Inputs
    parameters: Mapping[str, str]


def _given_table(_: Any, given: InputsOfTest) -> Any:
    def table(self: Any, name: str, *_: Any, **__: Any) -> Any:
        return given.inputs.batch(name)

    return table


def _given_sql(original: Any, given: InputsOfTest) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **frames: Any) -> Any:
        if frames:  # `{name}` in the text: no SQL yet, and it brings its data along
            return original(self, sqlQuery, args, **frames)
        return given.inputs.sql(self, sqlQuery, lambda text: original(self, text, args))

    return sql


def _given_load(original: Any, given: InputsOfTest) -> Any:
    def load(self: Any, path: Any = None, *args: Any, **kwargs: Any) -> Any:
        frame = given.inputs.folder(path)
        return original(self, path, *args, **kwargs) if frame is None else frame

    return load


def _given_setting(original: Any, given: InputsOfTest) -> Any:
    def get(self: Any, key: str, *default: Any, **kwargs: Any) -> Any:
        return given.parameters[key] if key in given.parameters else original(self, key, *default, **kwargs)

    return get


def _deduplicated_batch(original: Any, _: InputsOfTest) -> Any:
    def deduplicate(self: Any, subset: Any = None) -> Any:
        return original(self, subset) if self.isStreaming else self.dropDuplicates(subset)

    return deduplicate


_READS = "a dataset's name means the frame that the test gives"

GIVEN_INPUTS: tuple[Patch, ...] = (
    *FUNCTION_NAMES,
    Patch(owners.SESSION, "table", _given_table, _READS, "2.0.0"),
    Patch(owners.SESSION, "sql", _given_sql, _READS, "2.0.0"),
    Patch(owners.BATCH_READER, "table", _given_table, _READS, "1.4.0"),
    Patch(owners.STREAM_READER, "table", _given_table, _READS, "3.1.0"),
    Patch(owners.BATCH_READER, "load", _given_load, "a folder means the frame that the test gives", "1.4.0"),
    Patch(owners.STREAM_READER, "load", _given_load, "a folder means the frame that the test gives", "2.0.0"),
    Patch(owners.CONF, "get", _given_setting, "the pipeline's parameters are those that the test gives", "2.0.0"),
    Patch(
        owners.FRAME,
        "dropDuplicatesWithinWatermark",
        _deduplicated_batch,
        "Spark refuses it for frames that are not streams; within one batch it is dropDuplicates",
        "3.5.0",
    ),
)
"""Patches that answer reads from the inputs of a test; the context is `InputsOfTest`."""
