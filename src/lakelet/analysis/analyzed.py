"""Values of the analysis: functions that open what datasets read, and the facts found about datasets and flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakelet.analysis.column_lineage import TracedPlan
from lakelet.analysis.partitions import PartitionSource
from lakelet.analysis.plan_facts import Placeholders, StreamPlan
from lakelet.base.errors import LakeletError
from lakelet.language.model import Dataset, Flow, Kind
from lakelet.language.registry import Notice
from lakelet.plan.graph import Graph

OpenSource = Callable[[Flow, int, Any, Placeholders], DataFrame]
"""(flow, number, spec, stubs) → streaming DataFrame with the columns of a cloudFiles source."""

OpenRows = Callable[[Dataset, Any], DataFrame | None]
"""(dataset, JVM reader with the user's options or None) → the rows that it has in the storage; None where it has no table yet."""


@dataclass(frozen=True)
class AnalyzedFlow:
    """One flow: whether it is a stream, its columns, and what deciding about it needs. `complete`: a stream whose result is replaced."""

    flow: Flow
    streaming: bool
    schema: StructType
    stream: StreamPlan | None
    fingerprint: str
    always: str | None
    complete: bool = False
    outside: tuple[str, ...] = ()
    """Keys of the tables from outside that a batch query reads as they are."""
    of_views: Mapping[str, str] = field(default_factory=dict)
    """Settings of the views that it reads."""
    earlier_fingerprint: str | None = None
    """The fingerprint in the form that storages of before table descriptions (TP-1) hold: as good as the present one."""
    transforms: tuple[str, ...] = ()
    """The functions of `lakelet.transforms` that its function applied, those of the views that it reads included, as calls."""
    partitions: PartitionSource | None = None
    """For a materialized view: the input rows that one of its partitions depends on; None where the query does not determine them."""
    unversioned: str | None = None
    """Why a stream depends on data without versions, such as files that it joins; None where it does not. For a batch see `always`."""
    plan: TracedPlan = field(default_factory=TracedPlan)
    """Its analysed plan, from which the lineage of its columns is read when it is asked for."""


@dataclass(frozen=True)
class AnalyzedDataset:
    """One stored dataset: its kind as it turned out, and the columns its table will have."""

    dataset: Dataset
    kind: Kind
    schema: StructType
    flows: tuple[AnalyzedFlow, ...]


@dataclass(frozen=True)
class Analysis:
    """`failures`: keys of datasets that cannot be analysed now because of data or user code, with the error of each.

    `unchecked`: notices about those that only an update can check.
    """

    graph: Graph
    datasets: Mapping[str, AnalyzedDataset]
    failures: Mapping[str, LakeletError]
    unchecked: tuple[Notice, ...] = ()


@dataclass
class Findings:
    """Findings of an analysis so far, besides the datasets.

    errors: definition errors. failures: by dataset, errors that only the run reports. notices: by flow. uncertain: datasets whose
    columns may be others once there are rows to look at, and what reads them. looked: datasets whose functions look at data.
    growing: datasets with a `from_json` whose fields are not known before a flow has run. waiting: what reads them, uncertain too.
    """

    errors: list[LakeletError] = field(default_factory=list)
    failures: dict[str, LakeletError] = field(default_factory=dict)
    notices: dict[str, list[Notice]] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)
    growing: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    looked: set[str] = field(default_factory=set)

    def notice(self, flow: Flow, *notices: Notice) -> None:
        self.notices.setdefault(flow.name, []).extend(notices)
