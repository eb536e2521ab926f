"""By which columns the result of a query can be cut into parts that depend on different input rows (IV-4 to IV-13). No Spark.

The question is asked of the query without its aggregates, windows and DISTINCTs: which of its columns are still there, and have for each
row the value that the row of the result has. A column *survives* an operator if it is one of those. GROUP BY lets its grouping columns
survive, a window those of PARTITION BY, each other operator what it passes on or computes from surviving columns. A condition that mentions
another column is left out, which only lets more rows through: more keys may be found than changed, never fewer.

LEFT JOIN: the columns of its right side survive while nothing changes there (`Survivor.nullable`). If rows of the right side change, rows
that were filled with NULL come or go, and the join does not give these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakelet.analysis.plan_tree import Node
from lakelet.analysis.refused_queries import JOIN_ON_RESULTS, JOIN_WITHOUT_CONDITION, WINDOW_OVER_ALL, NotFollowed, refused_operator
from lakelet.plan.refreshes import Technique

EMPTY: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Origin:
    """A column of a leaf, by its number; `function`: of that column, as in `Range`, and empty for the column as it is."""

    leaf: int
    column: str
    function: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Survivor:
    """A surviving column.

    Attributes:
        origins: columns of leaves that it equals; rows of such a leaf with other values contribute to no row with its value.
        nullable: leaves on the right side of a LEFT JOIN that it came through: it survives only while none of them changed.
    """

    origins: frozenset[Origin] = frozenset()
    nullable: frozenset[int] = EMPTY


@dataclass(frozen=True)
class Rows:
    """The rows of an operator.

    Attributes:
        output: ids of its columns.
        survivors: the surviving ones.
        leaves: numbers of the leaves below.
        linear: nothing below puts rows together.
        lowest: kinds of the lowest operators that do.
        exact: no condition below was left out.
    """

    output: tuple[int, ...]
    survivors: Mapping[int, Survivor]
    leaves: frozenset[int]
    linear: bool = True
    lowest: frozenset[Technique] = frozenset()
    exact: bool = True

    def survive(self, ids: frozenset[int]) -> bool:
        return ids <= self.survivors.keys()

    def nullable(self, ids: frozenset[int]) -> frozenset[int]:
        return EMPTY.union(*(self.survivors[id].nullable for id in ids))


@dataclass
class Leaves:
    """The relations at the ends of a plan, by number: what the joins above do with their rows."""

    keys: list[tuple[str, int]] = field(default_factory=list)
    preserved: list[bool] = field(default_factory=list)
    joined: list[set[int]] = field(default_factory=list)

    def add(self, key: tuple[str, int]) -> int:
        self.keys.append(key)
        self.preserved.append(True)
        self.joined.append(set())
        return len(self.keys) - 1

    def join(self, left: frozenset[int], right: frozenset[int], *, outer: bool) -> None:
        for one in left:
            self.joined[one] |= right
        for other in right:
            self.joined[other] |= left
            self.preserved[other] = self.preserved[other] and not outer


def traced_rows(root: Node, leaf_of: Callable[[Node], tuple[str, int]]) -> tuple[Rows, Leaves]:
    """Return what a plan gives, and its leaves. `leaf_of`: dataset and copy of a relation. Raises NotFollowed."""
    leaves = Leaves()
    made: list[Rows] = []
    for node in root.children_first():
        count = len(node.inputs)
        inputs = made[len(made) - count :]
        del made[len(made) - count :]
        if count == 0:
            made.append(_relation(node, leaves.add(leaf_of(node))))
        elif node.kind == "Join":
            made.append(_join(node, inputs[0], inputs[1], leaves))
        elif node.kind == "Union":
            made.append(_union(inputs))
        elif node.kind in _OPERATORS:
            made.append(_OPERATORS[node.kind](node, inputs[0]))
        else:
            raise NotFollowed(refused_operator(node))
    return made[0], leaves


def _relation(node: Node, number: int) -> Rows:
    columns = node.expressions("output")
    survivors = {column.id: Survivor(frozenset((Origin(number, column.name),))) for column in columns}
    return Rows(tuple(survivors), survivors, frozenset((number,)))


# ------------------------------------------------------------------------------------------------------- one row from one row


def _project(node: Node, rows: Rows) -> Rows:
    columns = node.expressions("projectList")
    found = {column.id: _computed(unnamed(column), rows) for column in columns}
    return replace(rows, output=tuple(column.id for column in columns), survivors=_present(found))


def _filter(node: Node, rows: Rows) -> Rows:
    conditions = list(conjuncts(node.expression("condition")))
    kept = [condition for condition in conditions if rows.survive(mentioned(condition))]
    survivors = dict(rows.survivors)
    for one, other in filter(None, map(_equal_columns, kept)):
        both = survivors[one].origins | survivors[other].origins
        survivors[one], survivors[other] = replace(survivors[one], origins=both), replace(survivors[other], origins=both)
    return replace(rows, survivors=survivors, exact=rows.exact and len(kept) == len(conditions))


def _generate(node: Node, rows: Rows) -> Rows:
    generator = node.expression("generator")
    made, columns = (_computed(generator, rows) if generator else None), node.expressions("generatorOutput")
    survivors = {**rows.survivors, **({column.id: made for column in columns} if made is not None else {})}
    output = (*rows.output, *(column.id for column in columns))
    return replace(rows, output=output, survivors=survivors, exact=rows.exact and made is not None)


def _expand(node: Node, rows: Rows) -> Rows:
    """Several rows from each, as for ROLLUP and UNPIVOT; which of its columns are made of which is not in the JSON."""
    output, all_there = tuple(column.id for column in node.expressions("output")), rows.survive(frozenset(rows.output))
    made = Survivor(nullable=rows.nullable(frozenset(rows.survivors)))
    return replace(rows, output=output, survivors=dict.fromkeys(output, made) if all_there else {}, exact=rows.exact and all_there)


def _reference(node: Node, rows: Rows) -> Rows:
    columns = node.expressions("output")
    known = zip(columns, rows.output, strict=True)
    survivors = {column.id: rows.survivors[id] for column, id in known if id in rows.survivors}
    return replace(rows, output=tuple(column.id for column in columns), survivors=survivors)


def _same(node: Node, rows: Rows) -> Rows:
    return rows


# -------------------------------------------------------------------------------------------------------- rows put together


def _aggregate(node: Node, rows: Rows) -> Rows:
    groups, columns = node.expressions("groupingExpressions"), node.expressions("aggregateExpressions")
    known = {signature(group): _computed(group, rows) if is_key_type(group.type) else None for group in groups}
    found = {column.id: _grouped(unnamed(column), known) for column in columns} if groups else {}
    lowest = frozenset((Technique.GROUPS,)) if rows.linear else rows.lowest
    output = tuple(column.id for column in columns)
    return Rows(output, _present(found), rows.leaves, linear=False, lowest=lowest, exact=rows.exact and bool(groups))


def _grouped(expression: Node, known: Mapping[str, Survivor | None]) -> Survivor | None:
    """What an expression over grouping expressions is; None if it is made of anything else."""
    text = signature(expression)
    if text in known:
        return known[text]
    if expression.kind in ("AttributeReference", "AggregateExpression"):
        return None
    parts = [_grouped(child, known) for child in expression.children]
    if any(part is None for part in parts):
        return None
    return Survivor(nullable=EMPTY.union(*(part.nullable for part in parts if part is not None)))


def _window(node: Node, rows: Rows) -> Rows:
    parts = [part for part in node.expressions("partitionSpec") if is_key_type(part.type)]
    if not node.expressions("partitionSpec"):
        raise NotFollowed(WINDOW_OVER_ALL)
    survivors = {part.id: rows.survivors[part.id] for part in parts if part.kind == "AttributeReference" and part.id in rows.survivors}
    lowest = frozenset((Technique.WINDOWS,)) if rows.linear else rows.lowest
    output = (*rows.output, *(column.id for column in node.expressions("windowExpressions")))
    return Rows(output, survivors, rows.leaves, linear=False, lowest=lowest, exact=rows.exact)


def _distinct(node: Node, rows: Rows) -> Rows:
    return replace(rows, linear=False, lowest=frozenset((Technique.GROUPS,)) if rows.linear else rows.lowest)


def _deduplicate(node: Node, rows: Rows) -> Rows:
    keys = node.expressions("keys")
    survivors = {key.id: rows.survivors[key.id] for key in keys if is_key_type(key.type) and key.id in rows.survivors}
    return replace(_distinct(node, rows), survivors=survivors)


# ------------------------------------------------------------------------------------------------------------ several inputs


def _union(inputs: Sequence[Rows]) -> Rows:
    survivors = {}
    for position, id in enumerate(inputs[0].output):
        parts = [rows.survivors.get(rows.output[position]) for rows in inputs]
        known = [part for part in parts if part is not None]
        if len(known) == len(inputs):
            origins = frozenset[Origin]().union(*(part.origins for part in known))
            survivors[id] = Survivor(origins, EMPTY.union(*(part.nullable for part in known)))
    return Rows(
        inputs[0].output,
        survivors,
        EMPTY.union(*(rows.leaves for rows in inputs)),
        linear=all(rows.linear for rows in inputs),
        lowest=frozenset[Technique]().union(*(rows.lowest for rows in inputs)),
        exact=all(rows.exact for rows in inputs),
    )


def _join(node: Node, left: Rows, right: Rows, leaves: Leaves) -> Rows:
    kind = node.option("joinType")
    if kind not in ("Inner", "Cross", "LeftOuter"):
        raise NotFollowed(refused_operator(node))
    conditions, outer = list(conjuncts(node.expression("condition"))), kind == "LeftOuter"
    both = {**left.survivors, **right.survivors}
    kept = [condition for condition in conditions if mentioned(condition) <= both.keys()]
    whole = len(kept) == len(conditions)
    if not (whole and (conditions or (left.linear and right.linear))) and not any(_ties(one, left, right) for one in kept):
        raise NotFollowed(JOIN_ON_RESULTS if conditions else JOIN_WITHOUT_CONDITION)
    survivors = dict(both)
    for one, other in filter(None, map(_equal_columns, kept)):
        origins = both[one].origins | both[other].origins
        for id in (one, other):
            survivors[id] = replace(survivors[id], origins=survivors[id].origins | origins)
    if outer:
        for id in right.survivors:
            del survivors[id]
            if right.exact and whole:  # else a row may find a partner here that it does not find in the query
                survivors[id] = Survivor(nullable=both[id].nullable | right.leaves)
    leaves.join(left.leaves, right.leaves, outer=outer)
    return Rows(
        (*left.output, *right.output),
        survivors,
        left.leaves | right.leaves,
        linear=left.linear and right.linear,
        lowest=left.lowest | right.lowest,
        exact=left.exact and right.exact and whole,
    )


def _ties(condition: Node, left: Rows, right: Rows) -> bool:
    """Whether a condition is an equality between the two sides of a join."""
    if condition.kind not in _EQUALITIES:
        return False
    sides = [mentioned(child) for child in condition.children]
    ours, others = set(left.output), set(right.output)
    return all(sides) and any(one <= ours and other <= others for one, other in (sides, sides[::-1]))


# --------------------------------------------------------------------------------------------------------------- expressions


_EQUALITIES = ("EqualTo", "EqualNullSafe")
_DATE_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    **{unit: unit for unit in ("QUARTER", "WEEK")},
}
_TRUNCATIONS = {
    "TruncDate": _DATE_UNITS,
    "TruncTimestamp": {**_DATE_UNITS, "DAY": "DAY", "DD": "DAY", **{unit: unit for unit in ("HOUR", "MINUTE", "SECOND")}},
}
"""Units of the functions that cut a time off, as they can be written."""
_TIMES = ("timestamp", "timestamp_ntz")
_KEY_TYPES = frozenset(("boolean", "byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "string", "binary"))


def is_key_type(type: Any) -> bool:
    """Whether equal values of a type are the same value; True where the type is not known.

    They are not for floating-point numbers (0.0 and -0.0) and strings with a collation.
    """
    if type is None:
        return True
    if isinstance(type, dict):
        return type.get("type") == "struct" and all(is_key_type(field["type"]) for field in type["fields"])
    return str(type) in _KEY_TYPES or str(type).startswith(("decimal(", "char(", "varchar("))


def mentioned(expression: Node) -> frozenset[int]:
    """Ids of the columns that an expression mentions."""
    return frozenset(node.id for node in expression.walk() if node.kind == "AttributeReference")


def conjuncts(condition: Node | None) -> Iterator[Node]:
    """The conditions that must all be true for this one to be."""
    pending = [condition] if condition is not None else []
    while pending:
        node = pending.pop()
        if node.kind == "And":
            pending.extend(reversed(node.children))
        else:
            yield node


def unnamed(column: Node) -> Node:
    """What a named expression names."""
    return column.children[0] if column.kind == "Alias" else column


def _present(found: Mapping[int, Survivor | None]) -> dict[int, Survivor]:
    return {id: survivor for id, survivor in found.items() if survivor is not None}


def _computed(expression: Node, rows: Rows) -> Survivor | None:
    """What an expression over the columns of some rows is; None if it mentions one that does not survive."""
    if expression.kind == "AttributeReference":
        return rows.survivors.get(expression.id)
    ids = mentioned(expression)
    return Survivor(frozenset(_ranges(expression, rows)), rows.nullable(ids)) if rows.survive(ids) else None


def _ranges(expression: Node, rows: Rows) -> Iterator[Origin]:
    """The columns of leaves that a date, or a truncated time, comes from."""
    function, unit, column = "", "", expression
    if expression.kind in ("Cast", "ParseToDate") and len(expression.children) == 1 and expression.children[0].type in _TIMES:
        to_date = expression.kind == "ParseToDate" or expression.type == "date"
        function, unit, column = "date" if to_date else "", "DAY", expression.children[0]
    elif expression.kind in _TRUNCATIONS:
        literal = next((child for child in expression.children if child.kind == "Literal"), expression)
        column = next((child for child in expression.children if child.kind != "Literal"), expression)
        function, unit = "date_trunc", _TRUNCATIONS[expression.kind].get(str(literal.fields.get("value")).upper(), "")
        if column.kind == "Cast" and column.type == "timestamp" and column.children[0].type == "date":
            column = column.children[0]
    if function and unit and column.kind == "AttributeReference" and column.id in rows.survivors:
        for origin in rows.survivors[column.id].origins:
            if not origin.function:
                yield replace(origin, function=function, unit=unit)


def _equal_columns(condition: Node) -> tuple[int, int] | None:
    """The two columns of which a condition says that they are equal."""
    if condition.kind not in _EQUALITIES or any(child.kind != "AttributeReference" for child in condition.children):
        return None
    one, other = condition.children
    return (one.id, other.id) if one.type == other.type and is_key_type(one.type) else None


def signature(expression: Node) -> str:
    """A text that two expressions have in common if they are the same."""
    if expression.kind == "AttributeReference":
        return f"#{expression.id}"
    fields = {name: value for name, value in expression.fields.items() if name not in ("exprId", "qualifier")}
    return json.dumps([fields, *map(signature, expression.children)], sort_keys=True, default=str)


_OPERATORS: Mapping[str, Callable[[Node, Rows], Rows]] = {
    "Project": _project,
    "Filter": _filter,
    "Generate": _generate,
    "Expand": _expand,
    "CTERelationRef": _reference,
    "Aggregate": _aggregate,
    "Window": _window,
    "Distinct": _distinct,
    "Deduplicate": _deduplicate,
    **dict.fromkeys(("SubqueryAlias", "View", "Sort", "WithCTE", "ResolvedHint"), _same),
    **dict.fromkeys(("Repartition", "RepartitionByExpression", "RebalancePartitions"), _same),
}
"""Operators of one input that are followed. All others are refused: a new version of Spark can only make more views be computed whole."""
