"""What the query of a materialized view does to the rows that it reads, and by which columns its result can be cut. No Spark.

In: the plan of the query as a tree. Out: a `ViewShape`, or the `Issue` that stands against computing it in part. Everything is refused
that is not known to be right (docs/semantics/views.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakelet.analysis.key_columns import Leaves, Origin, Rows, is_key_type, signature, traced_rows, unnamed
from lakelet.analysis.plan_tree import Node, PlanTooLarge
from lakelet.analysis.refused_queries import (
    NO_KEY_TYPE,
    NO_KEYS,
    OF_QUERIES,
    ONE_ROW,
    TOO_LARGE,
    UNKNOWN_PLAN,
    FunctionChecks,
    NotFollowed,
    nodes_of,
    reads_metadata,
    reads_twice,
    refused_operator,
)
from lakelet.analysis.used_columns import output_of
from lakelet.plan.refreshes import Issue, IssueType, Leaf, Merge, Range, Technique, ViewShape

_METADATA = "_metadata"


@dataclass(frozen=True)
class QueryFacts:
    """What is known of a query besides its plan.

    Attributes:
        relations: dataset and copy of a placeholder, by the id of its first column.
        reads: names of the columns of each placeholder that the query's function was given, by dataset and copy. Spark gives a placeholder
            that is joined with itself new ids: it is known by its columns.
        types: of the result's columns, as in Spark's JSON of schemas.
        refused: why the query is not followed, from elsewhere; None for nothing.
        always: why it can never be skipped; None where it can.
        ansi: whether an overflow is an error.
        tries: it has a function that gives NULL instead.
        by_chance: functions that depend on the order of rows are allowed: the author asked for it by the refresh policy.
    """

    relations: Mapping[int, tuple[str, int]]
    reads: Mapping[tuple[str, int], tuple[str, ...]]
    types: Sequence[object]
    refused: Issue | None = None
    always: str | None = None
    ansi: bool = True
    tries: bool = False
    by_chance: bool = False


def shape_of(root: Node, facts: QueryFacts) -> ViewShape | Issue:
    """Return what a query does to the rows that it reads, or why it is not known."""
    if facts.always is not None:
        return OF_QUERIES.get(facts.always) or Issue(IssueType.NOT_DETERMINISTIC, facts.always)
    if facts.refused is not None:
        return facts.refused
    try:
        return _shape(root, facts)
    except NotFollowed as refused:
        return refused.issue
    except (PlanTooLarge, RecursionError):
        return TOO_LARGE
    except (LookupError, ValueError):  # of a version of Spark that writes plans differently
        return UNKNOWN_PLAN


def _shape(root: Node, facts: QueryFacts) -> ViewShape:
    checks = FunctionChecks(facts.by_chance, {})
    for node in nodes_of(root):
        checks.check(node)
    rows, leaves = traced_rows(root, _Relations(root, facts).of)
    _check_reads(leaves)
    keys = _keys(rows, facts)
    merges = _merges(root, rows.output, keys, facts)
    if not keys and merges is None and not rows.linear:
        raise NotFollowed(_without_keys(root))
    columns = [rows.survivors[rows.output[position]] for position in keys]
    origins = [(number, column.origins) for number, column in enumerate(columns)]
    return ViewShape(
        technique=Technique.ROWS if rows.linear else Technique.WINDOWS if rows.lowest == {Technique.WINDOWS} else Technique.GROUPS,
        leaves=tuple(_leaf(leaves, number, origins) for number in range(len(leaves.keys))),
        keys=keys,
        nullable_keys={number: column.nullable for number, column in enumerate(columns) if column.nullable},
        linear=rows.linear,
        merges=merges,
        ordered_by_chance=", ".join(checks.found) or None,
    )


def _without_keys(root: Node) -> Issue:
    """Why there is no column to cut the result by."""
    groups = [node.expressions("groupingExpressions") for node in nodes_of(root) if node.kind == "Aggregate"]
    if not all(groups):
        return ONE_ROW
    return NO_KEY_TYPE if any(not is_key_type(column.type) for columns in groups for column in columns) else NO_KEYS


# ------------------------------------------------------------------------------------------------------------------- leaves


@dataclass
class _Relations:
    """Which dataset a relation of the plan is."""

    root: Node
    facts: QueryFacts

    def of(self, node: Node) -> tuple[str, int]:
        """Dataset and copy of a relation. Raises NotFollowed."""
        columns = node.expressions("output") if node.kind == "LocalRelation" else ()
        if not columns:
            raise NotFollowed(refused_operator(node))
        found = self.facts.relations.get(columns[0].id) or self._by_columns(tuple(column.name for column in columns))
        if found is None:
            raise NotFollowed(refused_operator(node))
        if columns[-1].name == _METADATA and _is_mentioned(self.root, columns[-1].id):
            raise NotFollowed(reads_metadata(found[0]))
        return found

    def _by_columns(self, names: tuple[str, ...]) -> tuple[str, int] | None:
        """The placeholder of which Spark made a copy with new ids; it is in the plan with its own ids too."""
        present = {self.facts.relations.get(self._first(node)) for node in self.root.walk() if node.kind == "LocalRelation"}
        found = [key for key, columns in self.facts.reads.items() if columns == names and key in present]
        return found[0] if len(found) == 1 else None

    def _first(self, node: Node) -> int:
        return next((column.id for column in node.expressions("output")), -1)


def _is_mentioned(root: Node, id: int) -> bool:
    """Whether an expression mentions a column anywhere but where it is defined."""
    for node in root.walk():
        for name in node.fields:
            if name != "output" and any(inner.id == id for e in node.expressions(name) for inner in e.walk() if inner.kind != "Alias"):
                return True
    return False


def _check_reads(leaves: Leaves) -> None:
    """Raises NotFollowed for rows of one read that are joined with themselves: what changed on one side would be missing on the other."""
    for number, key in enumerate(leaves.keys):
        if any(leaves.keys[other] == key for other in leaves.joined[number]):
            raise NotFollowed(reads_twice(key[0]))


def _leaf(leaves: Leaves, number: int, origins: Sequence[tuple[int, Collection[Origin]]]) -> Leaf:
    found = sorted(((o, key) for key, own in origins for o in own if o.leaf == number), key=lambda one: -one[1])  # the first key is kept
    return Leaf(
        *leaves.keys[number],
        preserved=leaves.preserved[number],
        joined=frozenset(leaves.joined[number]),
        within={origin.column: key for origin, key in found if not origin.function},
        ranges={origin.column: Range(key, origin.function, origin.unit or "DAY") for origin, key in found if origin.function},
    )


# --------------------------------------------------------------------------------------------------------------------- keys


def _keys(rows: Rows, facts: QueryFacts) -> tuple[int, ...]:
    """Positions of the columns by which the result can be cut; of rows that are not put together those that pass as they are."""
    usable = [
        position
        for position, id in enumerate(rows.output)
        if id in rows.survivors and facts.types[position] is not None and is_key_type(facts.types[position])
    ]
    if rows.linear:
        unchanged = [p for p in usable if any(not origin.function for origin in rows.survivors[rows.output[p]].origins)]
        usable = unchanged or [p for p in usable if not rows.survivors[rows.output[p]].nullable]
    return tuple(usable)


# ------------------------------------------------------------------------------------------------------------------- merges


_RENAMING = frozenset(("SubqueryAlias", "View", "Sort", "WithCTE"))
_TOGETHER = frozenset(("Aggregate", "Window", "Distinct", "Deduplicate"))
_NUMBERS = ("float", "double")
"""Of these the least and the greatest value do not depend on how rows are put together, which sums do."""
_MERGES = {
    **dict.fromkeys(("Count", "CountIf", "Sum"), Merge.SUM),
    "Min": Merge.MIN,
    "Max": Merge.MAX,
    "BoolAnd": Merge.EVERY,
    "BoolOr": Merge.SOME,
}


def _merges(root: Node, output: Sequence[int], keys: Collection[int], facts: QueryFacts) -> Mapping[int, Merge] | None:
    """Return how two values of each column that is no key are put together; None where that is not known for one of them.

    The query must be one aggregate, with nothing but names above it, and have a key for each of its grouping expressions.
    """
    columns, top = _renamed(root, list(output))
    if top.kind != "Aggregate" or facts.tries or any(node.kind in _TOGETHER for node in nodes_of(top.inputs[0])):
        return None
    named = {column.id: column for column in top.expressions("aggregateExpressions")}
    shown = {signature(unnamed(named[columns[position]])) for position in keys}
    if not all(signature(group) in shown for group in top.expressions("groupingExpressions")):
        return None
    found = {}
    for position, id in enumerate(columns):
        if position not in keys:
            merge = _merge(unnamed(named[id]), facts.types[position], ansi=facts.ansi)
            if merge is None:
                return None
            found[position] = merge
    return found


def _renamed(root: Node, columns: list[int]) -> tuple[list[int], Node]:
    """The node below all that only names columns, and the ids there of these columns."""
    node = root
    while True:
        if node.kind == "Project":
            inner = {column.id: unnamed(column) for column in node.expressions("projectList")}
            if any(inner[id].kind != "AttributeReference" for id in columns):
                return columns, node
            columns = [inner[id].id for id in columns]
        elif node.kind == "CTERelationRef":
            known = dict(zip((column.id for column in node.expressions("output")), output_of(node.inputs[0]), strict=False))
            columns = [known[id] for id in columns]
        elif node.kind not in _RENAMING:
            return columns, node
        node = node.inputs[0]


_FEWER = frozenset({"Filter", "GlobalLimit", "LocalLimit", "ResolvedHint", "Distinct"})
"""Operators whose rows are some of those that they take."""


def identifying_columns(root: Node, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns in which no two rows of a result are equal: keys of GROUP BY or dropDuplicates. Empty if none are known."""
    columns, node = output_of(root), root
    if len(columns) != len(names):
        return ()
    while node.kind == "Project" or node.kind in _RENAMING | _FEWER:
        if node.kind == "Project":
            inner = {column.id: unnamed(column) for column in node.expressions("projectList")}
            columns = [inner[id].id if id in inner and inner[id].kind == "AttributeReference" else -1 for id in columns]
        node = node.inputs[0]
    if node.kind == "Deduplicate":
        keys = {f"#{key.id}" for key in node.expressions("keys")}
        shown = [f"#{id}" for id in columns]
    elif node.kind == "Aggregate":
        named = {column.id: column for column in node.expressions("aggregateExpressions")}
        keys = {signature(group) for group in node.expressions("groupingExpressions")}
        shown = [signature(unnamed(named[id])) if id in named else "" for id in columns]
    else:
        return ()
    return tuple(names[shown.index(key)] for key in sorted(keys, key=shown.index)) if keys <= set(shown) else ()


def _merge(expression: Node, type: object, *, ansi: bool) -> Merge | None:
    """How two results of an aggregate function, of old rows and of new ones, become that of all; None where they do not."""
    if expression.kind != "AggregateExpression" or expression.fields.get("isDistinct"):
        return None
    name = expression.children[0].kind
    if name == "Sum":  # an overflow is NULL without ANSI, and two sums of which one is NULL are not; floating-point sums drift
        return Merge.SUM if type == "long" or (ansi and str(type).startswith("decimal(")) else None
    if name in ("Min", "Max") and not (type in _NUMBERS or (is_key_type(type) and type is not None)):
        return None
    return _MERGES.get(name)


__all__ = ["QueryFacts", "identifying_columns", "shape_of"]
