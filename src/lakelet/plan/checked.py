"""A valid pipeline as `validate`, `graph` and `rules list` show it: its datasets, rules, definitions and notices. Pure values.

`as_json` and `from_json` are what an update stores of it, so that later commands show it without loading anything (IF-11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
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
        """All but `changes`, by the names of the fields, as values for JSON. The condition of a rule is its text."""
        nodes = tuple(replace(node, expectations=_as_texts(node.expectations)) for node in self.graph.nodes)
        rules = tuple(replace(one, expectations=_as_texts(one.expectations)) for one in self.rules)
        return asdict(replace(self, graph=Graph(nodes), rules=rules, changes=()))

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Checked:
        """Return what `as_json` stored, without changes. Raises ValueError, KeyError or TypeError for other values."""
        return cls(
            Graph(tuple(map(_node, found["graph"]["nodes"]))),
            tuple(map(_notice, found["notices"])),
            tuple(map(_notice, found["unchecked"])),
            {key: DefinitionParts.from_json(parts) for key, parts in found["definitions"].items()},
            rules=tuple(RuledDataset(TableName(**one["name"]), one["owner"], _rules(one["expectations"])) for one in found["rules"]),
        )


def _as_texts(rules: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """The rules with text for conditions that are columns of Spark."""
    return tuple(replace(rule, constraint=rule.text, written=None) for rule in rules)


def _notice(found: Mapping[str, Any]) -> Notice:
    return Notice(**{**found, "where": Location(**found["where"])})


def _rules(found: Iterable[Mapping[str, Any]]) -> tuple[Expectation, ...]:
    return tuple(map(_rule, found))


def _rule(found: Mapping[str, Any]) -> Expectation:
    given = {"action": Action(found["action"]), "where": Location(**found["where"]), "tags": tuple(found["tags"])}
    return Expectation(**{**found, **given})


def _node(found: Mapping[str, Any]) -> GraphNode:
    return GraphNode(
        name=TableName(**found["name"]),
        kind=Kind(found["kind"]),
        inputs=tuple(TableName(**name) for name in found["inputs"]),
        external=tuple(found["external"]),
        flows=tuple(found["flows"]),
        columns=tuple((name, kind) for name, kind in found["columns"]),
        expectations=_rules(found["expectations"]),
        where=Location(**found["where"]),
    )


__all__ = ["Checked", "RuledDataset"]
