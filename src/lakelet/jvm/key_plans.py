"""From the plan of a query to one that finds values of its key columns: what puts rows together is taken out of it (IV-24).

The result has at least the keys of the query's rows. Aggregates become projections of their grouping expressions, windows those of the
columns that they are partitioned by. DISTINCT vanishes, as do the parts of conditions that name a column which is then missing. A condition
that is left out only adds keys. It would not where the absence of rows counts: on the side of an outer join that may be filled with NULL.
Of such a side nothing is kept unless it gives exactly the rows of the query.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakelet.jvm.expressions import conjuncts, with_children
from lakelet.jvm.frames import Plan, analyzed, replanned
from lakelet.jvm.scala import items, java_class, option, seq, singleton, value_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGED = "__lakelet_changed_rows"
"""Alias of a frame whose rows came to a table or left it."""
INEXACT = "__lakelet_other_rows"
"""Alias of a frame with other rows than its table has, more or none."""

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_TRANSPARENT = frozenset({"View", "Distinct", "Sort", "CollectMetrics", "ResolvedHint", "Repartition", "RepartitionByExpression"})
"""Operators that are left out: the rows below them are taken."""


def aliases_in(frame: DataFrame) -> Counter[str]:
    """How many places of a query each alias of a frame has. A common table expression has one wherever it is read."""
    shared: dict[int, Counter[str]] = {}

    def found(node: Plan) -> Counter[str]:
        name = str(node.nodeName())
        if name == "CTERelationRef":
            return shared.get(int(node.cteId()), Counter())
        if name == "WithCTE":
            for definition in items(node.cteDefs()):
                shared[int(definition.id())] = found(definition.child())
            return found(node.plan())
        below = sum(map(found, items(node.children())), Counter[str]())
        return below + Counter([str(node.alias())]) if name == "SubqueryAlias" else below

    return found(analyzed(frame))


class NoKeyPlan(Exception):
    """The plan has an operator whose keys cannot be found by taking operators out. The text names it."""


@dataclass(frozen=True)
class KeyPlan:
    """What is left of a query's plan. `positions`: those of the result's columns that are left."""

    frame: DataFrame
    columns: Sequence[Any]
    plan: Plan
    positions: frozenset[int]

    @classmethod
    def of(cls, frame: DataFrame) -> KeyPlan:
        """That of a query which reads a frame with the alias `CHANGED`. Raises NoKeyPlan."""
        plan = analyzed(frame)
        columns, found = items(plan.output()), _Reduction(frame.sparkSession).of(plan)
        if not found.changed:
            raise NoKeyPlan("a plan that does not show the changed rows")
        return cls(frame, columns, found.plan, frozenset(at for at, one in enumerate(columns) if _id(one) not in found.missing))

    def select(self, positions: Sequence[int]) -> DataFrame:
        """Columns that are left, for at least the rows that depend on the changed rows."""
        return replanned(self.frame, _project(self.frame.sparkSession, [self.columns[at] for at in positions], self.plan))


@dataclass(frozen=True)
class _Part:
    """A part of a plan without what puts rows together.

    Attributes:
        missing: ids of the columns that the part had and has no more.
        changed: whether it reads the changed rows.
        exact: whether it has a row for each row, or group, that the part had, and no other.
    """

    plan: Plan
    missing: frozenset[int] = frozenset()
    changed: bool = False
    exact: bool = True

    def has(self, expressions: Iterable[Any]) -> bool:
        """Whether the part has all columns that some expressions name."""
        return not self.missing or not any(_id(column) in self.missing for one in expressions for column in items(one.references().toSeq()))


@dataclass
class _Reduction:
    """One plan on its way. `shared`: by id of a common table expression what became of it, and the positions of the columns it has left."""

    spark: SparkSession
    shared: dict[int, tuple[_Part, tuple[int, ...]]] = field(default_factory=dict)

    def of(self, node: Plan) -> _Part:
        """What is left of a plan. Raises NoKeyPlan."""
        name = str(node.nodeName())
        if name in _TRANSPARENT:
            return self.of(node.children().apply(0))
        if name in _STEPS:
            return _STEPS[name](self, node)
        if node.children().size():
            raise NoKeyPlan(f"the operator {name}")
        return _Part(node)

    def alias(self, node: Plan) -> _Part:
        """The rows of a frame with one of the two aliases are taken as they are, however it is computed."""
        name = str(node.alias())
        return _Part(node.child(), changed=name == CHANGED, exact=False) if name in (CHANGED, INEXACT) else self.of(node.child())

    def project(self, node: Plan) -> _Part:
        below, expressions = self.of(node.child()), items(node.projectList())
        kept = [one for one in expressions if below.has([one])]
        missing = frozenset(map(_id, expressions)) - {_id(one) for one in kept}
        return replace(below, plan=_project(self.spark, kept, below.plan), missing=missing)

    def aggregate(self, node: Plan) -> _Part:
        """The grouping expressions among the results, for each row. Without any there is one row whatever the rows are."""
        if not node.groupingExpressions().size():
            raise NoKeyPlan("an aggregate of all rows")
        below = self.of(node.child())
        results = items(node.aggregateExpressions())
        kept = [one for one in results if not _aggregates(one) and below.has([one])]
        missing = _ids(node.output()) - {_id(one) for one in kept}
        return replace(below, plan=_project(self.spark, kept, below.plan), missing=missing)

    def window(self, node: Plan) -> _Part:
        """The columns that the windows are partitioned by: a condition above on another one says nothing about the rows beside."""
        by = items(node.partitionSpec())
        if not by:
            raise NoKeyPlan("a window over all rows")
        return self._by(node, by)

    def deduplicate(self, node: Plan) -> _Part:
        """The columns that are compared; those of `distinct` are all."""
        return self._by(node, items(node.keys()))

    def _by(self, node: Plan, columns: Sequence[Any]) -> _Part:
        below = self.of(node.child())
        ids = {_id(one) for one in columns if str(one.nodeName()) == "AttributeReference"} - below.missing
        kept = [one for one in items(node.output()) if _id(one) in ids]
        missing = _ids(node.output()) - {_id(one) for one in kept}
        return replace(below, plan=_project(self.spark, kept, below.plan), missing=missing)

    def filter(self, node: Plan) -> _Part:
        below = self.of(node.child())
        condition, all_of_it = self._condition(node.condition(), below)
        plan = below.plan if condition is None else java_class(self.spark._jvm, f"{_LOGICAL}.Filter")(condition, below.plan)
        return replace(below, plan=plan, exact=below.exact and all_of_it)

    def _condition(self, condition: Any, *parts: _Part) -> tuple[Any | None, bool]:
        """The conjuncts of a condition that these parts have the columns for, together, and whether these are all."""
        found = list(conjuncts(condition))
        kept = [one for one in found if all(part.has([one]) for part in parts)]
        both = java_class(self.spark._jvm, f"{_EXPRESSIONS}.And")
        return functools.reduce(both, kept) if kept else None, len(kept) == len(found)

    def generate(self, node: Plan) -> _Part:
        below = self.of(node.child())
        made = _ids(node.generatorOutput())
        if not below.has([node.generator()]):
            return replace(below, missing=below.missing | made, exact=False)
        if node.unrequiredChildIndex().size():
            raise NoKeyPlan("an explode that hides columns")
        return replace(below, plan=with_children(self.spark, node, [below.plan]))

    def expand(self, node: Plan) -> _Part:
        """Several rows from each: a row of ROLLUP and CUBE for each set of groups, of UNPIVOT for each column."""
        below = self.of(node.child())
        if below.missing:
            raise NoKeyPlan("a ROLLUP or UNPIVOT of rows that are put together")
        return replace(below, plan=with_children(self.spark, node, [below.plan]))

    def union(self, node: Plan) -> _Part:
        """The positions that every branch has left."""
        branches = items(node.children())
        found = [self.of(branch) for branch in branches]
        columns = [items(branch.output()) for branch in branches]
        positions = [at for at in range(len(columns[0])) if all(_id(c[at]) not in p.missing for c, p in zip(columns, found, strict=True))]
        plans = [_project(self.spark, [c[at] for at in positions], p.plan) for c, p in zip(columns, found, strict=True)]
        output = items(node.output())
        missing = frozenset(_id(output[at]) for at in range(len(output)) if at not in positions)
        plan = with_children(self.spark, node, plans)
        return _Part(plan, missing, any(part.changed for part in found), all(part.exact for part in found))

    # ------------------------------------------------------------------------------------------------------- joins

    def join(self, node: Plan) -> _Part:
        left, right, kind = self.of(node.left()), self.of(node.right()), str(node.joinType())
        if kind == "RightOuter":
            return self._outer(node, right, left, node.left(), kind, turned=True)
        if kind == "LeftOuter":
            return self._outer(node, left, right, node.right(), kind, turned=False)
        if kind in ("LeftSemi", "LeftAnti"):
            return self._semi(node, left, right, kind)
        if kind not in ("Inner", "Cross"):
            raise NoKeyPlan(f"a {kind} join")
        plan, all_of_it = self._joined(node, left, right, None)
        exact = left.exact and right.exact and all_of_it
        return _Part(plan, left.missing | right.missing, left.changed or right.changed, exact)

    def _outer(self, node: Plan, kept: _Part, filled: _Part, side: Plan, kind: str, *, turned: bool) -> _Part:
        """Of an outer join: `kept` is the side that keeps its rows, `filled` the one that may be NULL, and that was `side`.

        Where the rows of `filled` changed, only rows of `kept` with one of these can be others than before. Their values from the other
        side are not known, as they can be NULL before or after.
        """
        parts = (filled, kept) if turned else (kept, filled)
        plan, all_of_it = self._joined(node, *parts, "Inner" if filled.changed else None)
        missing = kept.missing | filled.missing
        if filled.exact and all_of_it and not filled.changed:
            return _Part(plan, missing, kept.changed, kept.exact)
        output = items((node.right() if turned else node.left()).output())
        plan = _project(self.spark, [column for column in output if _id(column) not in kept.missing], plan)
        return _Part(plan, missing | _ids(side.output()), kept.changed or filled.changed, kept.exact and not filled.changed)

    def _semi(self, node: Plan, left: _Part, right: _Part, kind: str) -> _Part:
        if kind == "LeftAnti" and not right.changed:
            condition = value_of(node.condition())
            if not right.exact or (condition is not None and not self._condition(condition, left, right)[1]):
                return replace(left, exact=False)  # a row more on the right would take one away
        plan, all_of_it = self._joined(node, left, right, "LeftSemi" if right.changed else None)
        exact = left.exact and right.exact and all_of_it
        return _Part(plan, left.missing, left.changed or right.changed, exact)

    def _joined(self, node: Plan, left: _Part, right: _Part, kind: str | None) -> tuple[Plan, bool]:
        """The join of two parts, as another kind of join where one is given; whether its condition is as it was."""
        condition, kept, all_of_it = value_of(node.condition()), None, True
        if condition is not None:
            kept, all_of_it = self._condition(condition, left, right)
            if kept is None:
                raise NoKeyPlan("a join on a value that is computed from rows that are put together")
        jvm = self.spark._jvm
        type_ = node.joinType() if kind is None else singleton(jvm, f"org.apache.spark.sql.catalyst.plans.{kind}")
        made = java_class(jvm, f"{_LOGICAL}.Join")
        return made(left.plan, right.plan, type_, option(jvm, kept), node.hint()), all_of_it

    # ----------------------------------------------------------------------------------- common table expressions

    def with_shared(self, node: Plan) -> _Part:
        definitions = []
        for definition in items(node.cteDefs()):
            before = items(definition.child().output())
            found = self.of(definition.child())
            positions = tuple(at for at, column in enumerate(before) if _id(column) not in found.missing)
            found = replace(found, plan=_project(self.spark, [before[at] for at in positions], found.plan))
            self.shared[int(definition.id())] = found, positions
            definitions.append(with_children(self.spark, definition, [found.plan]))
        below = self.of(node.plan())
        return replace(below, plan=node.copy(below.plan, seq(self.spark._jvm, definitions)))

    def reference(self, node: Plan) -> _Part:
        if int(node.cteId()) not in self.shared:
            raise NoKeyPlan("a common table expression that reads itself")
        found, positions = self.shared[int(node.cteId())]
        output = items(node.output())
        kept = [output[at] for at in positions]
        jvm, number = self.spark._jvm, _field_number(node, "output")
        given = [getattr(node, f"copy$default${at + 1}")() for at in range(int(node.productArity()))]
        given[number] = seq(jvm, kept)
        missing = frozenset(_id(column) for column in output) - {_id(column) for column in kept}
        return replace(found, plan=node.copy(*given), missing=missing)


_STEPS: Mapping[str, Callable[[_Reduction, Plan], _Part]] = {
    "SubqueryAlias": _Reduction.alias,
    "Project": _Reduction.project,
    "Aggregate": _Reduction.aggregate,
    "Window": _Reduction.window,
    "Deduplicate": _Reduction.deduplicate,
    "Filter": _Reduction.filter,
    "Generate": _Reduction.generate,
    "Expand": _Reduction.expand,
    "Union": _Reduction.union,
    "Join": _Reduction.join,
    "WithCTE": _Reduction.with_shared,
    "CTERelationRef": _Reduction.reference,
}


def _project(spark: SparkSession, columns: Sequence[Any], plan: Plan) -> Plan:
    return java_class(spark._jvm, f"{_LOGICAL}.Project")(seq(spark._jvm, columns), plan)


def _aggregates(expression: Any) -> bool:
    """Whether an expression has an aggregate function in it."""
    return str(expression.nodeName()) == "AggregateExpression" or any(map(_aggregates, items(expression.children())))


def _field_number(node: Plan, name: str) -> int:
    return [str(node.productElementName(at)) for at in range(int(node.productArity()))].index(name)


def _id(column: Any) -> int:
    return int(column.exprId().id())


def _ids(columns: Any) -> frozenset[int]:
    return frozenset(map(_id, items(columns)))


__all__ = ["CHANGED", "INEXACT", "KeyPlan", "NoKeyPlan", "aliases_in"]
