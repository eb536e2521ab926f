"""Declarations of user code, as frozen values. No Spark, no I/O.

A pipeline is `Definitions`: datasets, and the flows that write to them. Terms: `docs/how-it-works.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.base.text import TextEnum
from lakelet.config.properties import QUARANTINE, look_up, owner_in, personal_in, tags_in

QueryFunction = Callable[[], Any]
"""A dataset's function: no arguments in, a Spark DataFrame out."""


class Action(TextEnum):
    """Action on a row that violates an expectation (EP-3)."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"


class Kind(TextEnum):
    """Kinds of datasets. TABLE is `dlt.table`: streaming table or materialized view, known once the query is analysed (DS-3).

    A SINK is only written to; it has a place in the graph and in the event log like a dataset, and no rows of its own.
    """

    TABLE = "table"
    STREAMING_TABLE = "streaming_table"
    MATERIALIZED_VIEW = "materialized_view"
    VIEW = "view"
    SINK = "sink"


class RefreshPolicy(Enum):
    """What the definition asks for. The value is the argument of the decorator.

    AUTO: what is estimated to be cheaper. INCREMENTAL: in part wherever that is right; a query for which it never is, is refused.
    INCREMENTAL_STRICT: an update that would compute all fails instead. FULL: always all.
    """

    AUTO = "auto"
    INCREMENTAL = "incremental"
    INCREMENTAL_STRICT = "incremental_strict"
    FULL = "full"


@dataclass(frozen=True)
class Expectation:
    """A named boolean constraint. `constraint` is SQL text or a Spark Column; `written`: the text as it stands in the code, where the
    constraint says it in Spark's words. `description`, `owner`, `tags`: as its rule file has them."""

    name: str
    constraint: Any
    action: Action
    where: Location
    written: str | None = None
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The constraint as it is shown."""
        return self.written or (self.constraint if isinstance(self.constraint, str) else str(self.constraint))


_FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "text", "xml", "avro"})

SinkHandler = Callable[[Any, int], Any]
"""A micro-batch as DataFrame and its number in; what comes out is not used (SK-6)."""


@dataclass(frozen=True)
class Sink:
    """Where a sink's rows go: a data source of Spark's by its `format`, or the user's `handler`, whose format is `foreach_batch`.

    `table`: the table that a Delta sink names instead of a path.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    handler: SinkHandler | None = None
    table: TableName | None = None

    @property
    def is_delta(self) -> bool:
        return self.handler is None and self.format.lower() == "delta"

    @property
    def is_files(self) -> bool:
        """Whether it is a folder of files without a log."""
        return self.handler is None and self.format.lower() in _FILE_FORMATS


@dataclass(frozen=True)
class Dataset:
    """One dataset as declared.

    `schema` is DDL text, a StructType, or None (inferred). `sink`: of kind SINK, where its rows go. `published`: a view with a catalog and
    schema; views without it are temporary. `refresh_policy`: of a materialized view. `computed`: columns that its
    flows leave to it (`lakelet.language.sql.values.Column`), where it has no query of its own. `identities`: those of its columns that
    are numbers, given when rows are written. `primary_key`: the columns that are declared to identify a row; nothing checks it.
    """

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
    sink: Sink | None = None
    published: bool = False
    refresh_policy: RefreshPolicy = RefreshPolicy.AUTO
    computed: tuple[Any, ...] = ()
    identities: tuple[Any, ...] = ()
    primary_key: tuple[str, ...] = ()

    @property
    def keeps_dropped(self) -> bool:
        """Whether the rows that its drop rules leave out are kept in a quarantine (QU-1)."""
        asked = (look_up(self.table_properties, QUARANTINE) or "").strip().lower() == "true"
        return asked and any(rule.action is Action.DROP for rule in self.expectations)

    @property
    def owner(self) -> str:
        """Who answers for it, as its properties say; "" where they do not."""
        return owner_in(self.table_properties)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that its properties have."""
        return tags_in(self.table_properties)

    @property
    def personal_columns(self) -> tuple[str, ...]:
        """The columns with personal data, which no sample shows."""
        return personal_in(self.table_properties)

    @property
    def quarantine(self) -> TableName:
        """The name that its quarantine has, or would have."""
        return replace(self.name, name=f"{self.name.name}_quarantine")

    @property
    def is_temporary_view(self) -> bool:
        """Whether it is a view that has no catalog and schema, so that only its bare name means it."""
        return self.kind is Kind.VIEW and not self.published


ColumnPath = tuple[str, ...]
"""A column by the parts of its name: one part, or several for a field of a struct."""

SnapshotFunction = Callable[[Any], Any]
"""Latest version or None in; None, or (DataFrame, version) out (CD-19)."""


class NullUpdates(Enum):
    """Whose nulls say nothing in an upsert: of no leaf, of every leaf, of the listed ones, of all but those (CD-7)."""

    NONE = "none"
    ALL = "all"
    ON = "on"
    EXCEPT = "except"


@dataclass(frozen=True)
class ChangeSpec:
    """How a flow's rows change its target: change data capture (docs/semantics/change-data.md).

    Attributes:
        source: name of the table or view with the changes or snapshots, as written; None where `snapshots` is a function.
        keys: columns that identify a row of the target.
        sequence_by: orders the events of a key: SQL text or a Column. None for snapshots, whose version takes its place.
        scd_type: 1 keeps the current row of a key, 2 every version.
        system_sequence_by: when an event became known, in the forms of `sequence_by`; given for bitemporal tables only, whose type is 2.
        apply_as_deletes, apply_as_truncates: conditions, SQL text or a Column; only TRUE counts.
        column_list, except_column_list: the columns of the target; at most one is given, None means all.
        track_history_column_list, track_history_except_column_list: whose changes open a version (type 2); at most one is given.
        ignore_null_updates: whose nulls say nothing; `ignore_null_columns` belongs to ON and EXCEPT.
        columns_to_update: the source column that names the leaves an event sets.
        where: a condition that every source row meets.
        once: a batch that is applied one time until a full refresh.
        snapshots: None for a feed of events, "periodic", or the function that gives the snapshots one by one.
    """

    source: str | None
    keys: tuple[ColumnPath, ...]
    sequence_by: Any = None
    scd_type: int = 1
    system_sequence_by: Any = None
    apply_as_deletes: Any = None
    apply_as_truncates: Any = None
    column_list: tuple[ColumnPath, ...] | None = None
    except_column_list: tuple[ColumnPath, ...] | None = None
    track_history_column_list: tuple[ColumnPath, ...] | None = None
    track_history_except_column_list: tuple[ColumnPath, ...] | None = None
    ignore_null_updates: NullUpdates = NullUpdates.NONE
    ignore_null_columns: tuple[ColumnPath, ...] = ()
    columns_to_update: ColumnPath | None = None
    where: Any = None
    once: bool = False
    snapshots: Literal["periodic"] | SnapshotFunction | None = None

    @property
    def bitemporal(self) -> bool:
        """Whether the target keeps what was known when (docs/semantics/bitemporal.md)."""
        return self.system_sequence_by is not None


@dataclass(frozen=True)
class Replacement:
    """Which rows of its target the rows of a flow take the place of (docs/semantics/replacing.md). Either `where` or `keys` is given.

    Attributes:
        where: SQL text or a Column on the target's columns. Each update takes out the rows for which it is true, and puts in those for
            which it is true of what the flow's batch query returns.
        keys: columns that group the rows of a stream. The rows of a group that arrive take the place of those with a smaller sequence.
        sequence_by: orders the rows of a group: SQL text or a Column. Given with `keys`.
    """

    where: Any = None
    keys: tuple[str, ...] = ()
    sequence_by: Any = None

    @property
    def streams(self) -> bool:
        """Whether the flow's query is a stream."""
        return bool(self.keys)

    @property
    def clause(self) -> str:
        """How it is called in SQL."""
        return "REPLACE USING" if self.keys else "REPLACE WHERE"


@dataclass(frozen=True)
class Flow:
    """A named query that writes to one target; its name identifies its checkpoint (DS-2).

    `changes`: how its rows change the target; `replaces`: which rows of the target they replace; without either they are appended, or are
    the whole content of a materialized view. `language`: that of its source. `once`: a batch that is appended one time until a full
    refresh (DS-9); for a change flow its `changes` say so. `update`: a stream into a sink that gets the rows of its result that changed
    (output mode update).
    """

    name: str
    target: TableName
    query: QueryFunction
    where: Location
    default: bool
    comment: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    changes: ChangeSpec | None = None
    language: Literal["PYTHON", "SQL"] = "PYTHON"
    once: bool = False
    update: bool = False
    replaces: Replacement | None = None

    @property
    def runs_once(self) -> bool:
        """Whether it runs one time until a full refresh."""
        return self.once or (self.changes is not None and self.changes.once)

    @property
    def replaces_part(self) -> bool:
        """Whether it replaces the part of its table that a condition names."""
        return self.replaces is not None and not self.replaces.streams


@dataclass(frozen=True)
class Hook:
    """A function that gets the events of each update (RE-17).

    `max_failures`: how often it may fail in a row before it is disabled; None means as often as it likes.
    """

    name: str
    function: Callable[[Any], Any]
    where: Location
    max_failures: int | None = None


@dataclass(frozen=True)
class Definitions:
    """Everything one pipeline declares, in the order of declaration."""

    datasets: tuple[Dataset, ...]
    flows: tuple[Flow, ...]
    hooks: tuple[Hook, ...] = ()

    @property
    def sinks(self) -> tuple[Dataset, ...]:
        """The targets outside of the pipeline."""
        return tuple(dataset for dataset in self.datasets if dataset.sink is not None)

    def only(self, keys: Collection[str]) -> Definitions:
        """These datasets and the flows into them alone, without event hooks."""
        kept = tuple(dataset for dataset in self.datasets if dataset.name.key in keys)
        return Definitions(kept, tuple(flow for flow in self.flows if flow.target.key in keys))

    def flows_by_target(self) -> Mapping[str, tuple[Flow, ...]]:
        """Key of each dataset → the flows that write to it, in the order of declaration."""
        found: dict[str, tuple[Flow, ...]] = {dataset.name.key: () for dataset in self.datasets}
        for flow in self.flows:
            key = flow.target.key
            found[key] = (*found.get(key, ()), flow)
        return found
