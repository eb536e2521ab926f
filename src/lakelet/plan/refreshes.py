"""How a materialized view follows its inputs: values that pass from analysis through deciding to the run and the event log. No Spark.

    ViewShape        analysis: what the query does to the rows of each table that it reads, and by which columns its result can be cut
    Issue            analysis or deciding: why a view is not refreshed in part, in our words and with Databricks' name
    TableChange      deciding: what the log of one input says about the versions since the last refresh
    Estimate         deciding: seconds that a refresh takes in part and as a whole
    Refresh          deciding: the technique for one refresh, with all of the above; `Decision.refresh`

docs/semantics/views.md has the rules (IV-1 to IV-19), docs/decisions/0093-incremental-views.md the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lakelet.base.text import TextEnum
from lakelet.language.model import RefreshPolicy


class Technique(Enum):
    """How the rows of a view are brought up to date. The value is Databricks' name behind `MAINTENANCE_TYPE_`.

    APPEND: the query of the new rows of its inputs is added. GROUPS, WINDOWS, ROWS: the rows with certain values of key columns are
    computed again; the names differ by what the query does (puts rows together, has windows, neither). MERGE: aggregates of the new rows
    are put together with the stored ones. PARTITIONS: partitions of the view. FULL: all of it.
    """

    SKIP = "NO_OP"
    APPEND = "APPEND_ONLY"
    GROUPS = "GENERIC_AGGREGATE"
    WINDOWS = "WINDOW_FUNCTION"
    ROWS = "ROW_BASED"
    MERGE = "GROUP_AGGREGATE"
    PARTITIONS = "PARTITION_OVERWRITE"
    FULL = "COMPLETE_RECOMPUTE"


class IssueType(TextEnum):
    """Databricks' `issue_type` of what stands against a refresh in part. POLICY is Lakelet's own: Databricks has no name for it.

    FIRST_COMPUTATION: the view has no rows yet, or lost them by a full refresh that was asked for.
    """

    PLAN = "PLAN_NOT_INCREMENTALIZABLE"
    NOT_DETERMINISTIC = "PLAN_NOT_DETERMINISTIC"
    EXPECTATIONS = "EXPECTATIONS_NOT_SUPPORTED"
    COST = "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL"
    FIRST_COMPUTATION = "CHANGE_SET_MISSING"
    OTHER_QUERY = "QUERY_FINGERPRINT_CHANGED"
    OTHER_DATA = "DATA_HAS_CHANGED"
    POLICY = "REFRESH_POLICY"
    NOT_IN_DELTA = "INPUT_NOT_IN_DELTA"
    KEY_TYPE = "MAP_TYPE_NOT_SUPPORTED"
    COMMITS_GONE = "PRIOR_TIMESTAMP_MISSING"
    FILE_GONE = "DATA_FILE_MISSING"
    OTHER_PARTITIONS = "PARTITION_SCHEMA_CHANGED"
    TOO_MANY_FILES = "TOO_MANY_FILE_ACTIONS"


OPERATOR = "OPERATOR_NOT_SUPPORTED"
"""The most common `sub_type` of PLAN: an operator, or what else the plan does, is not followed."""


@dataclass(frozen=True)
class Issue:
    """Why a view is computed as a whole.

    Attributes:
        type: Databricks' name for it.
        reason: a clause that reads well after "because".
        sub_type: Databricks' name of the kind of it, such as TIME_FUNCTION; None where there is none.
        remedy: what the author can do, a sentence; None where nothing.
    """

    type: IssueType
    reason: str
    sub_type: str | None = None
    remedy: str | None = None

    @property
    def name(self) -> str:
        """Databricks' names: `PLAN_NOT_DETERMINISTIC.TIME_FUNCTION`."""
        return f"{self.type}.{self.sub_type}" if self.sub_type else self.type


class Merge(Enum):
    """How two results of an aggregate function, over old rows and over new ones, become that over all. SUM also puts counts together."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    EVERY = "bool_and"
    SOME = "bool_or"


@dataclass(frozen=True)
class Leaf:
    """One place in the plan where the rows of a stored dataset come in.

    Attributes:
        key: the dataset.
        copy: which of the function's reads of that dataset it is, from 0 (as placeholders are numbered).
        preserved: no outer join above it fills its columns with NULL.
        joined: numbers of the leaves (positions in `ViewShape.leaves`) whose rows it is joined with. A leaf that only comes together with
            another one in a UNION is not joined with it.
        within: positions of the datasets' columns → positions of `ViewShape.keys`: a key column of the result that is this column as it is.
            Rows of the leaf with other values contribute to no row with that key.
        ranges: as `within`, for key columns that follow from a column of the leaf by a monotone function: name of the column → `Range`.
    """

    key: str
    copy: int
    preserved: bool = True
    joined: frozenset[int] = frozenset()
    within: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True)
class Range:
    """A key column that follows from a column of a leaf: `function` is `date` (cast of a timestamp) or `date_trunc` with a `unit`.

    `key`: position in `ViewShape.keys`. Rows of the leaf outside of [least key, greatest key + one unit) contribute to none of the keys.
    """

    key: int
    function: str
    unit: str = "DAY"


@dataclass(frozen=True)
class ViewShape:
    """What a view's query does to the rows that it reads.

    Attributes:
        technique: ROWS, GROUPS or WINDOWS, by the operator that is the lowest in the plan to put rows together.
        leaves: in the order of the plan.
        keys: positions of columns of the result. Rows of the result with certain values there depend on those input rows alone that get the
            same values in the query without its aggregates, windows and the conditions on these. Empty where there are none.
        linear: each row of the result comes of one row of each leaf above it: without aggregate, DISTINCT or window.
        merges: for a GROUP BY, by position of a result column that is no key, how two of its values are put together; None where one of the
            functions cannot be, or something else happens above the aggregate. Empty mapping: all columns are keys.
        ordered_by_chance: what depends on the order of rows within equal ones, such as row_number with ties, in words; None for nothing.
        nullable_keys: positions of `keys` → numbers of leaves. The column comes through the right side of a LEFT JOIN, which these leaves
            are below: it is a key only while none of them changed (rows that had no partner may get one).
    """

    technique: Technique
    leaves: tuple[Leaf, ...]
    keys: tuple[int, ...] = ()
    linear: bool = False
    merges: Mapping[int, Merge] | None = None
    ordered_by_chance: str | None = None
    nullable_keys: Mapping[int, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableChange:
    """What happened to one input since the view's last refresh, from the log alone.

    Attributes:
        key: the dataset.
        before, after: versions of its table; the changes are those of the commits in (before, after].
        added, removed: bytes of the files that brought rows and of those that took rows away.
        rows: rows of both; None where a file has no statistics.
        size: bytes of all files of version `after`; None where not known.
        searched: bytes of the files in which the changed rows are; of a file that got marks for deleted rows all of it, before and after.
            None where they are those of `added` and `removed`.
    """

    key: str
    before: int
    after: int
    added: int = 0
    removed: int = 0
    rows: int | None = None
    size: int | None = None
    searched: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.added and not self.removed

    @property
    def appends(self) -> bool:
        """Whether rows came and none went."""
        return bool(self.added) and not self.removed


@dataclass(frozen=True)
class Estimate:
    """Seconds that a refresh takes, in part and as a whole; None where nothing is known yet."""

    partial: float | None
    full: float | None


@dataclass(frozen=True)
class Refresh:
    """How one refresh of a view is done, and why.

    Attributes:
        technique: the chosen one.
        applicable: all that would be right now, the chosen one and FULL included.
        issues: why those of a smaller cost are not; of FULL at least one.
        changes: of the inputs that changed.
        estimate: what the choice between right ones was made by.
        estimated: the technique that `estimate.partial` is of; None where none was estimated.
        refused: each technique that was considered and is not taken, with the issues of it: it is not right now, or costs more.
        size: bytes of the view's files; None where not known.
        learned: what earlier refreshes cost, by the name of the number (`Learned`).
    """

    technique: Technique
    applicable: tuple[Technique, ...] = ()
    issues: tuple[Issue, ...] = ()
    changes: tuple[TableChange, ...] = ()
    estimate: Estimate = Estimate(None, None)
    estimated: Technique | None = None
    refused: Mapping[Technique, tuple[Issue, ...]] = field(default_factory=dict)
    size: int | None = None
    learned: Mapping[str, float | None] = field(default_factory=dict)


NO_OP = Refresh(Technique.SKIP, (Technique.SKIP, Technique.FULL))
"""That of a view whose inputs have other versions and the same rows."""


__all__ = [
    "NO_OP",
    "OPERATOR",
    "Estimate",
    "Issue",
    "IssueType",
    "Leaf",
    "Merge",
    "Range",
    "Refresh",
    "RefreshPolicy",
    "TableChange",
    "Technique",
    "ViewShape",
]
