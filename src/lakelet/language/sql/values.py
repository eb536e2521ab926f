"""Statements of a SQL source as frozen values; each part knows where it stands in the file (SQ-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lakelet.base.errors import Location
from lakelet.base.names import all_quoted
from lakelet.language.model import Action, Kind, RefreshPolicy


@dataclass(frozen=True)
class Name:
    """A dotted name by its parts."""

    parts: tuple[str, ...]
    where: Location

    @property
    def text(self) -> str:
        """The name with each part in back quotes."""
        return all_quoted(self.parts)


@dataclass(frozen=True)
class Fragment:
    """A piece of SQL that Spark will read: `text`, which begins at `where`, at character `start` of its statement."""

    text: str
    start: int
    where: Location


@dataclass(frozen=True)
class IdentityClause:
    """`GENERATED … AS IDENTITY (START WITH start INCREMENT BY step)`: numbers that rows get when they are written (DS-28)."""

    start: int = 1
    step: int = 1


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a column list. `filled`: what GENERATED ALWAYS AS or DEFAULT computes; `generated`: queries do not return it.

    That of an `identity` is NULL until the rows are written. `is_key`: it alone is the primary key.
    """

    name: str
    where: Location
    type: str | None = None
    nullable: bool = True
    comment: str | None = None
    filled: Fragment | None = None
    generated: bool = False
    identity: IdentityClause | None = None
    is_key: bool = False

    @property
    def value(self) -> str:
        """The SQL of a computed column's value, in its type."""
        assert self.filled is not None
        return f"CAST(({self.filled.text}\n) AS {self.type})"


@dataclass(frozen=True)
class ExpectConstraint:
    """CONSTRAINT name EXPECT (condition) ON VIOLATION …"""

    name: str
    condition: Fragment
    action: Action
    where: Location


@dataclass(frozen=True)
class Remark:
    """Something that was read and has no effect here, and why."""

    text: str
    where: Location


@dataclass(frozen=True)
class Spec:
    """The parenthesised list after a dataset's name."""

    columns: tuple[ColumnDefinition, ...] = ()
    rules: tuple[ExpectConstraint, ...] = ()
    where: Location | None = None
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clauses:
    """The clauses between a dataset's name and its query."""

    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    refresh_policy: RefreshPolicy = RefreshPolicy.AUTO


Columns = tuple[str, ...] | None
"""Names of columns, each as text with back quotes; None where the clause is absent."""


@dataclass(frozen=True)
class Changes:
    """FROM source KEYS (…) … of AUTO CDC and APPLY CHANGES, each clause under the name that it has as an argument (SQ-11).

    `places`: where each clause stands.
    """

    source: Fragment
    source_streams: bool
    keys: tuple[str, ...]
    sequence_by: Fragment
    system_sequence_by: Fragment | None = None
    stored_as_scd_type: str = "1"
    where: Fragment | None = None
    apply_as_deletes: Fragment | None = None
    apply_as_truncates: Fragment | None = None
    column_list: Columns = None
    except_column_list: Columns = None
    track_history_column_list: Columns = None
    track_history_except_column_list: Columns = None
    ignore_null_updates: bool = False
    ignore_null_updates_column_list: Columns = None
    ignore_null_updates_except_column_list: Columns = None
    columns_to_update: str | None = None
    once: bool = False
    places: Mapping[str, Location] = field(default_factory=dict)


@dataclass(frozen=True)
class Replaces:
    """REPLACE WHERE condition, or REPLACE USING (keys) SEQUENCE BY expression: what the rows of a query replace (SQ-13)."""

    at: Location
    where: Fragment | None = None
    keys: tuple[str, ...] = ()
    sequence_by: Fragment | None = None


@dataclass(frozen=True)
class CreateDataset:
    """CREATE … TABLE, MATERIALIZED VIEW or VIEW. At most one of `query` and `changes` is given; `published`: CREATE VIEW.

    `once`: the query belongs to FLOW INSERT ONCE; `replaces`: to FLOW REPLACE.
    """

    kind: Kind
    name: Name
    where: Location
    spec: Spec = Spec()
    clauses: Clauses = Clauses()
    query: Fragment | None = None
    changes: Changes | None = None
    private: bool = False
    view: Literal["", "temporary", "live", "published"] = ""
    once: bool = False
    replaces: Replaces | None = None


@dataclass(frozen=True)
class CreateFlow:
    """CREATE FLOW, and AUTO CDC INTO / APPLY CHANGES INTO standing alone (then without a name). `once`: INSERT … ONCE."""

    target: Name
    where: Location
    name: Name | None = None
    comment: str | None = None
    query: Fragment | None = None
    changes: Changes | None = None
    once: bool = False
    replaces: Replaces | None = None


@dataclass(frozen=True)
class SetStatement:
    """SET key = value."""

    key: str
    value: str
    where: Location


@dataclass(frozen=True)
class Use:
    """USE CATALOG catalog, USE SCHEMA schema, USE catalog.schema; None leaves it as it is."""

    catalog: str | None
    schema: str | None
    where: Location


Statement = CreateDataset | CreateFlow | SetStatement | Use
