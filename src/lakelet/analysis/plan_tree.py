"""The analysed plan of a query as a tree of plain values, from the JSON that Spark makes of it in one call. No Spark.

In: the JSON, a list of nodes in pre-order, each with the number of its children. Expressions are fields of a node, lists of the same form;
a subquery is an expression with a field `plan`. Out: a tree of `Node`. A reference to a common table expression has the definition's
query as its child, so a query that is read twice is in the tree twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Flat = Sequence[Mapping[str, Any]]
"""Nodes in pre-order, as Spark writes them."""


SUBQUERY = "plan"
"""Field of an expression that is a subquery."""
MOST_NODES = 20_000


class PlanTooLarge(Exception):
    """A plan that is larger than `MOST_NODES`, as common table expressions read each other again and again."""


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a plan, or of an expression.

    Attributes:
        kind: name of its class in Spark, without the package.
        fields: the arguments of its constructor; those that are children are numbers.
    """

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...] = ()

    @property
    def id(self) -> int:
        """Spark's id of the column that a named expression is, or of a reference to it; -1 for any other node."""
        found = self.fields.get("exprId")
        return int(found["id"]) if isinstance(found, dict) else -1

    @property
    def name(self) -> str:
        """Name of a named expression."""
        return str(self.fields.get("name", ""))

    @property
    def type(self) -> Any:
        """Type of a column, a literal or a cast as in Spark's JSON of schemas; None for other expressions."""
        return self.fields.get("dataType")

    def option(self, name: str) -> str:
        """A field that is one of several objects of Scala, such as a join type, without package and `$`."""
        found = self.fields.get(name)
        text = str(found.get("object") or found.get("product-class") or "") if isinstance(found, dict) else str(found or "")
        return text.rpartition(".")[2].rstrip("$").rpartition("$")[2]

    def expressions(self, name: str) -> tuple[Node, ...]:
        """The expressions of a field, which has a list of them, or one, or none."""
        return tuple(map(tree, expressions_of(self.fields.get(name))))

    def expression(self, name: str) -> Node | None:
        """The expression of a field that has at most one."""
        return next(iter(self.expressions(name)), None)

    def all_expressions(self) -> Iterator[Flat]:
        """All expressions of the node, each in pre-order. Those that are its children are left out."""
        for value in self.fields.values():
            yield from expressions_of(value)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The children whose rows the node takes: all but the definitions of common table expressions."""
        return self.children[-1:] if self.kind == "WithCTE" else self.children

    def walk(self) -> Iterator[Node]:
        """The node and all below it, each once, a parent before its children."""
        pending, seen = [self], set[int]()
        while pending:
            node = pending.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                pending.extend(reversed(node.children))

    def children_first(self) -> list[Node]:
        """The node and all whose rows come into it, in the order of the plan, each after its inputs; what is read twice is there twice.

        Raises PlanTooLarge.
        """
        found, pending = list[Node](), [self]
        while pending:
            node = pending.pop()
            found.append(node)
            pending.extend(node.inputs)
            if len(found) > MOST_NODES:
                raise PlanTooLarge
        return found[::-1]


def expressions_of(value: Any) -> Iterator[Flat]:
    if not isinstance(value, list) or not value:
        return
    if isinstance(value[0], dict):
        if "class" in value[0]:
            yield value
    else:
        for inner in value:
            yield from expressions_of(inner)


def tree(flat: Flat) -> Node:
    """The tree of a list in pre-order."""
    made: list[Node] = []
    for fields in reversed(flat):
        children = tuple(made.pop() for _ in range(fields["num-children"]))
        made.append(Node(str(fields["class"]).rpartition(".")[2], fields, children))
    return made[-1]


def plan_tree(text: str) -> Node:
    """The tree of a plan from its JSON, with each reference to a common table expression above the query that it means."""
    return _with_definitions(tree(json.loads(text)))


def _with_definitions(root: Node) -> Node:
    """A tree where definitions are below the references to them. The last child of `WithCTE` is the query, the others are definitions."""
    if not any(node.kind == "WithCTE" for node in root.walk()):
        return root
    known: dict[int, Node] = {}
    made: list[Node] = []
    for node in [*_from_the_right(root)][::-1]:  # children from left to right, so that a definition comes before what refers to it
        count = len(node.children)
        children = tuple(made[len(made) - count :])
        del made[len(made) - count :]
        if node.kind == "CTERelationDef":
            known[int(node.fields["id"])] = children[0]
        elif node.kind == "CTERelationRef" and int(node.fields["cteId"]) in known:
            children = (known[int(node.fields["cteId"])],)
        made.append(Node(node.kind, node.fields, children))
    return made[-1]


def _from_the_right(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.children)


def references(flat: Flat) -> Iterator[int]:
    """Ids of the columns that an expression mentions, but for those in the plans of its subqueries."""
    for fields in flat:
        if str(fields["class"]).endswith(".AttributeReference"):
            yield int(fields["exprId"]["id"])
        for name, value in fields.items():
            if isinstance(value, list) and name != SUBQUERY:
                for inner in expressions_of(value):
                    yield from references(inner)


def subqueries(flat: Flat) -> Iterator[Node]:
    """The plans of the subqueries in an expression."""
    for fields in flat:
        if isinstance(fields.get(SUBQUERY), list):
            yield tree(fields[SUBQUERY])


__all__ = ["SUBQUERY", "Flat", "Node", "PlanTooLarge", "expressions_of", "plan_tree", "references", "subqueries", "tree"]
