"""A valid pipeline as `validate`, `graph` and `rules list` show it: its datasets, rules, definitions and notices. Pure values.

`as_json` and `from_json` are what an update stores of it, so that later commands show it without loading anything (IF-11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.language.model import Action, Expectation, Kind
from lakelet.language.registry import Notice
from lakelet.plan.definition_changes import DefinitionChange, DefinitionParts
from lakelet.plan.graph import Graph, GraphNode


@dataclass(frozen=True)
class RuledDataset:
    """A declared dataset with its rules. `owner`: of the dataset; "" where it has none."""

    name: TableName
    owner: str
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True)
class Checked:
    """A valid pipeline.

    Attributes:
        graph: its datasets.
        notices: sentences with file and line about what has no effect here.
        unchecked: sentences about what only an update can check.
        definitions: of the stored datasets, by key.
        changes: of definitions since the last update; none before the first one.
        rules: of all declared datasets, in the order of their declaration.
    """

    graph: Graph
    notices: tuple[Notice, ...]
    unchecked: tuple[Notice, ...] = ()
    definitions: Mapping[str, DefinitionParts] = field(default_factory=dict)
    changes: tuple[DefinitionChange, ...] = ()
    rules: tuple[RuledDataset, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """All but `changes`, as JSON values. The condition of a rule is its text."""
        return {
            "graph": [_node_json(node) for node in self.graph.nodes],
            "notices": [_notice_json(notice) for notice in self.notices],
            "unchecked": [_notice_json(notice) for notice in self.unchecked],
            "definitions": {key: parts.as_json() for key, parts in self.definitions.items()},
            "rules": [[_parts(one.name), one.owner, [_rule_json(rule) for rule in one.expectations]] for one in self.rules],
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Checked:
        """Return what `as_json` stored, without changes. Raises ValueError, KeyError or TypeError for other values."""
        return cls(
            Graph(tuple(map(_node, found["graph"]))),
            tuple(map(_notice, found["notices"])),
            tuple(map(_notice, found["unchecked"])),
            {key: DefinitionParts.from_json(parts) for key, parts in found["definitions"].items()},
            rules=tuple(RuledDataset(TableName(*name), owner, tuple(map(_rule, rules))) for name, owner, rules in found["rules"]),
        )


def _parts(name: TableName) -> list[str]:
    return [name.catalog, name.schema, name.name]


def _place(where: Location) -> list[Any]:
    return [where.file, where.line, where.column, where.source, where.cell]


def _notice_json(notice: Notice) -> list[Any]:
    return [notice.text, _place(notice.where), notice.magic]


def _notice(found: Sequence[Any]) -> Notice:
    text, where, magic = found
    return Notice(text, Location(*where), magic)


def _rule_json(rule: Expectation) -> dict[str, Any]:
    about = {"description": rule.description, "owner": rule.owner, "tags": list(rule.tags)}
    return {"name": rule.name, "constraint": rule.text, "action": rule.action.value, "where": _place(rule.where), **about}


def _rule(found: Mapping[str, Any]) -> Expectation:
    given = {"action": Action(found["action"]), "where": Location(*found["where"]), "tags": tuple(found["tags"])}
    return Expectation(**{**found, **given})


def _node_json(node: GraphNode) -> dict[str, Any]:
    return {
        "name": _parts(node.name),
        "kind": node.kind.value,
        "inputs": [_parts(name) for name in node.inputs],
        "external": list(node.external),
        "flows": list(node.flows),
        "columns": [list(column) for column in node.columns],
        "expectations": [_rule_json(rule) for rule in node.expectations],
        "where": _place(node.where),
    }


def _node(found: Mapping[str, Any]) -> GraphNode:
    return GraphNode(
        name=TableName(*found["name"]),
        kind=Kind(found["kind"]),
        inputs=tuple(TableName(*name) for name in found["inputs"]),
        external=tuple(found["external"]),
        flows=tuple(found["flows"]),
        columns=tuple((name, kind) for name, kind in found["columns"]),
        expectations=tuple(map(_rule, found["expectations"])),
        where=Location(*found["where"]),
    )


__all__ = ["Checked", "RuledDataset"]
