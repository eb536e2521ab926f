"""Which columns of its inputs the result of a query depends on. No Spark.

A column is used if an expression mentions it, if it is in the result, or if it goes into an operator that takes whole rows. UNION,
DISTINCT, INTERSECT and EXCEPT do, and so does each operator that is not known here. A projection that only passes a column on does not
use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.analysis.plan_tree import Flat, Node, expressions_of, references, subqueries

_MENTIONING = frozenset(
    (
        *("Project", "Filter", "Join", "Aggregate", "Window", "Sort", "Generate", "SubqueryAlias", "View", "WithCTE", "Deduplicate"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "GlobalLimit", "LocalLimit", "Offset", "Tail"),
        *("Sample", "CTERelationDef", "CTERelationRef", "CollectMetrics"),
    )
)
"""Operators that use what their expressions mention; all others use each column of their children."""
_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_ADDED = {"Window": "windowExpressions", "Generate": "generatorOutput"}
_OWN = "output"
"""Field of a relation, and of a reference to a common table expression, with the columns that it has."""
_REFERENCE = "CTERelationRef"
_TOKEN = re.compile(r"#(?P<id>\d+)(L|-T\d+ms)?")


@dataclass(frozen=True)
class UsedColumns:
    """Columns of a plan, by their ids in it.

    Attributes:
        types: of each relation that has columns: the id of the first one, and the types of the used ones by name, as JSON of schemas.
        unused: names of the columns of relations and of common table expressions that are not used.
    """

    types: tuple[tuple[int, Mapping[str, Any]], ...]
    unused: Mapping[int, str]

    def text_of(self, plan: str) -> str:
        """The text of the plan without the columns that are not used."""
        parts: list[str] = []
        cursor = 0
        for token in _TOKEN.finditer(plan) if self.unused else ():
            name = self.unused.get(int(token["id"]))
            if name is not None and plan.endswith(name, cursor, token.start()):
                parts.append(plan[cursor : token.start() - len(name)])
                cursor = token.end()
        return _joined([*parts, plan[cursor:]])


ALL_USED = UsedColumns((), {})
"""Where it is not known which columns are used: the text of the plan has them all."""


def _joined(parts: Sequence[str]) -> str:
    """Parts of a text between which elements of lists were taken out, each with one of the separators beside it."""
    made = [parts[0]]
    for part in parts[1:]:
        separator = next((s for s in (", ", ",") if part.startswith(s)), "")
        if not separator and part.startswith("]"):
            last = next((s for s in (", ", ",") if made[-1].endswith(s)), "")
            made[-1] = made[-1][: len(made[-1]) - len(last)]
        kept = part[len(separator) :]
        if kept:
            made.append(kept)
    return "".join(made)


def used_columns(root: Node) -> UsedColumns:
    """Return the columns that the result of a plan depends on."""
    nodes = list(_all_nodes(root))
    own = [node for node in nodes if isinstance(node.fields.get(_OWN), list) and (node.kind == _REFERENCE or not node.children)]
    relations = [(node, node.expressions(_OWN)) for node in own]
    used = _mentioned(root, nodes)
    definitions = {node.fields["id"]: node.children[0] for node in nodes if node.kind == "CTERelationDef"}
    meant = dict[int, int]()
    for node, columns in relations:
        if node.kind == _REFERENCE and node.fields["cteId"] in definitions:  # one in a subquery refers to a definition outside of it
            meant.update(zip((column.id for column in columns), output_of(definitions[node.fields["cteId"]]), strict=False))
    pending = list(used)
    while pending:
        found = meant.get(pending.pop())
        if found is not None and found not in used:
            used.add(found)
            pending.append(found)
    types = tuple(
        (columns[0].id, {column.name: column.type for column in columns if column.id in used})
        for node, columns in relations
        if columns and node.kind != _REFERENCE
    )
    return UsedColumns(types, {column.id: column.name for _, columns in relations for column in columns if column.id not in used})


def _all_nodes(root: Node) -> Iterator[Node]:
    """All operators of a plan and of the subqueries in it."""
    pending = [root]
    while pending:
        for node in pending.pop().walk():
            yield node
            pending += [plan for flat in node.all_expressions() for plan in subqueries(flat)]


def _mentioned(root: Node, nodes: Sequence[Node]) -> set[int]:
    used = set(output_of(root))
    for node in nodes:
        for flat in _mentioning(node):
            used.update(references(flat))
            for plan in subqueries(flat):
                used.update(output_of(plan))
        if node.kind not in _MENTIONING:
            for child in node.children:
                used.update(output_of(child))
    return used


def _mentioning(node: Node) -> Iterator[Flat]:
    """The expressions of a node that use the columns which they mention."""
    for name, value in node.fields.items():
        if name != _OWN:
            yield from (flat for flat in expressions_of(value) if not (node.kind == "Project" and len(flat) == 1))


def output_of(node: Node) -> list[int]:
    """Ids of the columns of a node in their order; of an operator that is not known here at least all of its columns."""
    while node.kind not in _LISTS and not isinstance(node.fields.get(_OWN), list):
        added = [column.id for column in node.expressions(_ADDED.get(node.kind, ""))]
        if node.kind not in _MENTIONING and node.kind != "Union":
            return [*_outputs(node), *(id for flat in node.all_expressions() for id in references(flat))]
        if added or len(node.inputs) != 1:
            return [*_outputs(node), *added]
        node = node.inputs[0]
    return [column.id for column in node.expressions(_LISTS.get(node.kind, _OWN))]


def _outputs(node: Node) -> list[int]:
    return [id for child in node.inputs for id in output_of(child)]


__all__ = ["ALL_USED", "UsedColumns", "output_of", "used_columns"]
