"""The Spark data source `cloudFiles`: what runs in Spark's Python processes (docs/semantics/auto-loader.md).

The stream reader lives in a process of its own and sees nothing but its options, so one option carries a `ReaderSpec` as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lakelet.autoloader.metadata import LINE_FIELD, METADATA_FIELD, emitted
from lakelet.autoloader.part_reader import FilesPartition, PartReader, joined
from lakelet.autoloader.planning import Planner
from lakelet.autoloader.rounds import SourceRounds
from lakelet.autoloader.spec import SPEC_OPTION, ReaderSpec
from lakelet.autoloader.state.ledger import Limits
from lakelet.autoloader.state.offsets import batch_of, offset_of

NEWEST_FIRST_SECONDS = 5.0
"""A round of `latestFirst` plans no further batch after so long: what reads the table gets the newest rows before the backlog is read."""


class CloudFilesDataSource(DataSource):
    """`format("cloudFiles")`."""

    @classmethod
    def name(cls) -> str:
        return "cloudFiles"

    _opened: ReaderSpec | None = None  # travels from `schema` to `streamReader` with the pickled object

    def _spec(self, schema: StructType | None = None) -> ReaderSpec:
        """What the driver described, else what the options say (a stream outside the Lakelet runtime)."""
        text = self.options.get(SPEC_OPTION)
        if text:
            return ReaderSpec.from_json(text)
        if self._opened is None:
            from lakelet.autoloader.alone import reader_alone

            self._opened = reader_alone(self.options.get("path") or "", dict(self.options), schema)
        return self._opened

    def schema(self) -> StructType:
        spec = self._spec()
        columns = emitted(StructType.fromJson(json.loads(spec.schema_json)))
        return StructType([*columns.fields, METADATA_FIELD, LINE_FIELD]) if spec.internal else columns

    def reader(self, schema: StructType) -> Any:
        from lakelet.autoloader.batch import FilesReader
        from lakelet.autoloader.options import batch_usage

        if self.options.get(SPEC_OPTION) and not self._spec().state:
            return FilesReader(self._spec())
        raise batch_usage()

    def streamReader(self, schema: StructType) -> CloudFilesStreamReader:
        return CloudFilesStreamReader(self._spec(schema))


class CloudFilesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches (in the driver's helper process) and reads partitions (in worker processes)."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        self._plans: Planner | None = None
        self._rounds: SourceRounds | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_spec": self._spec, "_plans": None, "_rounds": None}

    @property
    def _planner(self) -> Planner:
        if self._plans is None:
            self._plans = Planner(self._spec)
        return self._plans

    def initialOffset(self) -> dict[str, int]:
        return offset_of(-1)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._spec.max_files or 1000)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.freeze()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:
        whole = isinstance(limit, ReadAllAvailable)
        limits = Limits() if whole else Limits(self._spec.max_files, self._spec.max_bytes)
        after = batch_of(start)

        def plan() -> int:
            return self._planner.plan(after, limits)

        if not self._spec.rounds:
            return offset_of(plan())
        if self._rounds is None:
            if self._spec.newest_first:  # the newest may come at any time: each batch lists again
                self._rounds = SourceRounds(self._spec.rounds, lambda: None, seconds=NEWEST_FIRST_SECONDS)
            else:
                self._rounds = SourceRounds(self._spec.rounds, self._planner.freeze)
        return offset_of(self._rounds.plan(after, plan))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        after, up_to = batch_of(start), batch_of(end)
        return [FilesPartition(parts, after, up_to) for parts in self._planner.parts(after, up_to)]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing depends on it: Spark does not call it for the last batch of availableNow."""

    def read(self, partition: FilesPartition) -> Iterator[Any]:  # type: ignore[override]
        return joined(PartReader(self._spec, partition).batches())
