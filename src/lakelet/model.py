"""What user code declares, as frozen values. Layer 1: no Spark, no I/O.

A pipeline is `Definitions`: datasets, and the flows that write to them. Terms: `docs/how-it-works.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lakelet.errors import Location
from lakelet.names import TableName

QueryFunction = Callable[[], Any]
"""A dataset's function: no arguments in, a Spark DataFrame out."""


class Action(Enum):
    """What happens to a row that breaks an expectation (dlt-semantics 3.1)."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"


class Kind(Enum):
    """Kinds of datasets. TABLE is `dlt.table`: streaming table or materialized view, known once the query is analysed (1.6)."""

    TABLE = "table"
    STREAMING_TABLE = "streaming_table"
    MATERIALIZED_VIEW = "materialized_view"
    VIEW = "view"


@dataclass(frozen=True)
class Expectation:
    """A named boolean constraint. `constraint` is SQL text or a Spark Column."""

    name: str
    constraint: Any
    action: Action
    where: Location

    @property
    def text(self) -> str:
        return self.constraint if isinstance(self.constraint, str) else str(self.constraint)


@dataclass(frozen=True)
class Dataset:
    """One dataset as declared. `schema` is DDL text, a StructType, or None (inferred)."""

    name: TableName
    kind: Kind
    where: Location
    comment: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    table_properties: Mapping[str, str] = field(default_factory=dict)
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    schema: Any = None
    private: bool = False
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class Flow:
    """A named query that writes to one target; its name identifies its checkpoint (dlt-semantics 0)."""

    name: str
    target: TableName
    query: QueryFunction
    where: Location
    default: bool
    comment: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Definitions:
    """Everything one pipeline declares, in the order of declaration."""

    datasets: tuple[Dataset, ...]
    flows: tuple[Flow, ...]

    def flows_by_target(self) -> Mapping[str, tuple[Flow, ...]]:
        """Key of each dataset → the flows that write to it, in the order of declaration."""
        found: dict[str, tuple[Flow, ...]] = {dataset.name.key: () for dataset in self.datasets}
        for flow in self.flows:
            key = flow.target.key
            found[key] = (*found.get(key, ()), flow)
        return found
