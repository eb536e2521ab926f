"""Values of the analysis: what it starts from, what it has found so far, and its results about datasets and flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakelet.analysis.column_lineage import TracedPlan
from lakelet.analysis.plan_facts import NO_STREAM, PartitionSource, Placeholders, StreamPlan
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.config import properties
from lakelet.language.model import Dataset, Flow, Kind
from lakelet.language.registry import Notice
from lakelet.plan.graph import Graph
from lakelet.plan.kinds import FlowKind
from lakelet.plan.refreshes import Issue, ViewShape
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.from_json import JsonSchemas
from lakelet.spark.names.reader import FileOpener
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.root import StoredDataset

STRICT = "lakelet.strictActions"
"""Configuration key: `true` refuses actions inside functions."""


def strict_actions(parameters: Mapping[str, str]) -> bool:
    """Whether the configuration refuses actions. Raises PROPERTY_INVALID for a value that is neither true nor false."""
    try:
        return properties.switch(properties.look_up(parameters, STRICT) or "false")
    except ValueError as problem:
        raise LakeletError("PROPERTY_INVALID", f"{STRICT}: {problem}", todo="Correct the value in the pipeline's configuration.") from None


def sampled_rows(parameters: Mapping[str, str]) -> int:
    """How many rows that break a rule are kept for each rule and batch. Raises PROPERTY_INVALID for a value that is not such a number."""
    try:
        return properties.sample_rows(parameters)
    except ValueError as problem:
        todo = "Correct the value in the pipeline's configuration; 0 keeps no rows."
        raise LakeletError("PROPERTY_INVALID", f"{properties.SAMPLE_ROWS}: {problem}", todo=todo) from None


OpenRows = Callable[[Dataset, Any], DataFrame | None]
"""(dataset, JVM reader with the user's options or None) → the rows that it has in the storage; None where it has no table yet."""


@dataclass(frozen=True, eq=False)
class AnalysisInputs:
    """What one analysis starts from.

    Args:
        stored: what the storage knows, by key.
        parameters: the pipeline's configuration.
        placeholders: of the tables that functions read.
        files, open_rows: open what else a function reads.
        json_schemas: of the flows' calls of `from_json`.
        has_run: whether a flow that runs once has run.
        made_with: what a change table was made with, by key (`cdc.identity`).
        ever_run: an update of this storage has begun before.
    """

    spark: UpdateSession
    catalog: Catalog
    stored: Mapping[str, StoredDataset]
    parameters: Mapping[str, str]
    placeholders: Placeholders
    files: FileOpener
    open_rows: OpenRows
    json_schemas: JsonSchemas
    has_run: Callable[[Flow], bool]
    made_with: Callable[[str], str | None]
    ever_run: bool

    def __post_init__(self) -> None:
        """Raises PROPERTY_INVALID for a wrong value of a setting of Lakelet's own, also where nothing depends on it."""
        strict_actions(self.parameters)
        sampled_rows(self.parameters)

    @cached_property
    def strict(self) -> bool:
        """Whether a function that asks for rows is refused."""
        return strict_actions(self.parameters)


@dataclass(frozen=True)
class BatchPlan:
    """What deciding about a batch query needs; of a stream all of it is empty.

    Attributes:
        fingerprint: digest of all that its rows depend on besides its input rows.
        always: why it can never be skipped, or None.
        outside: keys of the tables from outside that it reads as they are.
        partitions: the input rows that one partition of a view depends on; None where the query does not determine them.
        shape: of a materialized view, what its query does to the rows that it reads, or why it is computed as a whole; else None.
        identifying: the columns of which no two rows of the result have equal values; empty where none are known.
    """

    fingerprint: str = ""
    always: str | None = None
    outside: tuple[str, ...] = ()
    partitions: PartitionSource | None = None
    shape: ViewShape | Issue | None = None
    identifying: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnalyzedFlow:
    """One flow: what was declared, its kind, its columns, and what deciding about it and running it needs.

    Attributes:
        stream: the sources of a stream; of a batch it is empty.
        batch: what a batch query depends on.
        sources: its cloudFiles sources, in the order of their numbers.
        of_views: settings of the views that it reads.
        transforms: the functions of `lakelet.transforms` that its function applied, those of the views that it reads included, as calls.
        plan: its analysed plan, from which the lineage of its columns is read when it is asked for.
    """

    declared: Flow
    kind: FlowKind
    schema: StructType
    stream: StreamPlan = NO_STREAM
    batch: BatchPlan = BatchPlan()
    sources: tuple[SourceSpec, ...] = ()
    of_views: Mapping[str, str] = field(default_factory=dict)
    transforms: tuple[str, ...] = ()
    plan: TracedPlan = field(default_factory=TracedPlan)

    @property
    def name(self) -> str:
        return self.declared.name


@dataclass(frozen=True)
class AnalyzedDataset:
    """One stored dataset: its kind as it turned out, the columns its table will have, its flows.

    `inputs`: keys of the stored datasets that it reads, views resolved to what they read.
    """

    dataset: Dataset
    kind: Kind
    schema: StructType
    flows: tuple[AnalyzedFlow, ...]
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnanalyzedDataset:
    """A stored dataset that could not be analysed: its own error is among the failures, or what it reads has one."""

    dataset: Dataset


@dataclass(frozen=True)
class Analysis:
    """All that analysis found out, complete.

    Attributes:
        graph: all datasets.
        results: each stored dataset, by key.
        notices: about flows, by name of the flow, each once.
        failures: keys of datasets that cannot be analysed now because of data or user code, with the error of each.
        unchecked: notices about those that only an update can check.
    """

    graph: Graph
    results: Mapping[str, AnalyzedDataset | UnanalyzedDataset]
    failures: Mapping[str, LakeletError]
    notices: Mapping[str, tuple[Notice, ...]]
    unchecked: tuple[Notice, ...] = ()

    @property
    def datasets(self) -> Mapping[str, AnalyzedDataset]:
        """Those that could be analysed."""
        return {key: found for key, found in self.results.items() if isinstance(found, AnalyzedDataset)}


@dataclass
class Findings:
    """Findings of an analysis so far, besides the datasets.

    Attributes:
        errors: definition errors.
        failures: by dataset, errors that only the run reports.
        notices: by flow.
        uncertain: datasets whose columns may be others once there are rows, and what reads them.
        reads_rows: datasets whose functions read rows while they are called.
        fields_unknown: datasets with a `from_json` whose fields are not known before a flow has run.
        below_unknown: what reads those, uncertain too.
    """

    errors: list[LakeletError] = field(default_factory=list)
    failures: dict[str, LakeletError] = field(default_factory=dict)
    notices: dict[str, dict[Notice, None]] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)
    fields_unknown: set[str] = field(default_factory=set)
    below_unknown: set[str] = field(default_factory=set)
    reads_rows: set[str] = field(default_factory=set)

    def notice(self, flow: Flow, *notices: Notice) -> None:
        """Add notices about a flow; each is kept once, as a query is analysed several times."""
        self.notices.setdefault(flow.name, {}).update(dict.fromkeys(notices))
