"""Which columns of stored datasets the columns of a query are made of, read off the text of its analysed plan (EL-11). No Spark.

The text names each column with Spark's id of it (`amount#2`), which is unique in a plan: an id is followed from the list where it is
defined down to a placeholder. What the text does not say for certain is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class ColumnSource:
    """A column of a stored dataset; `dataset` is its key."""

    dataset: str
    column: str


@dataclass(frozen=True)
class TracedColumn:
    """A column of a query and the columns that its expression names; none where it cannot be traced."""

    name: str
    inputs: tuple[ColumnSource, ...]


@dataclass(frozen=True)
class TracedPlan:
    """The analysed plan of a query as text, and which dataset a placeholder in it stands for, by the id of its first column."""

    text: str = ""
    datasets: Mapping[int, str] = field(default_factory=dict)

    def columns(self, names: Sequence[str]) -> tuple[TracedColumn, ...]:
        """The columns of the query's target, of which those with a name of the query's own have inputs."""
        found = {column.name.lower(): column.inputs for column in traced_columns(self.text, self.datasets)}
        return tuple(TracedColumn(name, found.get(name.lower(), ())) for name in names)


_LINE = re.compile(r"(?P<indent>(?::  |   )*)(?P<branch>:- |\+- )")
_NAME = re.compile(r"[~'!]*(?P<name>[A-Za-z]\w*)")
_TOKEN = re.compile(r"#(?P<id>\d+)L?(?:-T\d+ms)?")
_SUBQUERY = re.compile(r"(?P<kind>scalar-subquery|lateral-subquery|exists|list)#\d+ \[")
_OUTER = re.compile(r"(?<=#)\d+ \[[^\]]*\]")
_LISTS = frozenset(("Project", "Aggregate", "Window"))
"""Nodes with a list of named expressions."""
_TRANSPARENT = frozenset(
    (
        *("SubqueryAlias", "Filter", "Sort", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "GlobalLimit", "LocalLimit", "Tail"),
        *("Offset", "Sample", "EventTimeWatermark", "CollectMetrics", "View", "Repartition", "RepartitionByExpression", "ResolvedHint"),
        *("RebalancePartitions", "CTERelationDef", "Except", "Intersect"),
    )
)


@dataclass(frozen=True)
class _Column:
    id: int
    name: str


@dataclass
class _Node:
    """One line of the plan. `subqueries`: of its expressions, in their order. `columns`: what it gives, once that is known."""

    text: str
    depth: int
    children: list[_Node] = field(default_factory=list)
    subqueries: list[_Node] = field(default_factory=list)
    columns: list[_Column] = field(default_factory=list)

    @property
    def name(self) -> str:
        match = _NAME.match(self.text)
        return match["name"] if match else ""


def traced_columns(text: str, datasets: Mapping[int, str]) -> tuple[TracedColumn, ...]:
    """The columns of a query in order. `text`: its analysed plan with all columns; `datasets`: see `TracedPlan`."""
    root = _tree(text)
    if root is None:
        return ()
    nodes = _children_first(root)
    trace = _Trace(datasets, nodes)
    for node in nodes:
        node.columns = trace.outputs(node)
        trace.names.update((column.id, column.name) for column in node.columns)
    return tuple(TracedColumn(c.name, tuple(sorted(trace.sources.get(c.id, ())))) for c in root.columns)


def _tree(text: str) -> _Node | None:
    """The lines of a plan as a tree; a text in an expression may have line breaks, which begin no node."""
    root: _Node | None = None
    path: list[_Node] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if root is None:
            root = _Node(line, 0)
            path = [root]
        elif match is None:
            path[-1].text += "\n" + line
        else:
            node = _Node(line[match.end() :], len(match["indent"]) // 3 + 1)
            while len(path) > 1 and path[-1].depth >= node.depth:
                path.pop()
            (path[-1].children if node.depth == path[-1].depth + 1 else path[-1].subqueries).append(node)
            path.append(node)
    return root


def _children_first(root: _Node) -> list[_Node]:
    """All nodes, each after its children and the subqueries of its expressions, which may name columns of the children."""
    pending, found = [root], []
    while pending:
        node = pending.pop()
        found.append(node)
        pending += [*node.children, *node.subqueries]
    return found[::-1]


class _Trace:
    """Follows ids through a plan from its leaves on. `sources` and `names`: of the ids met so far."""

    def __init__(self, datasets: Mapping[int, str], nodes: Sequence[_Node]) -> None:
        self.sources: dict[int, frozenset[ColumnSource]] = {}
        self.names: dict[int, str] = {}
        self._datasets = datasets
        self._of_columns: dict[tuple[str, ...], set[str]] = {}  # Spark gives a copy of a placeholder new ids: it is known by its columns
        self._named: dict[str, list[_Column]] = {}
        for columns in (_attributes(node.text) for node in nodes if node.name == "LocalRelation"):
            if columns and columns[0].id in datasets:
                self._of_columns.setdefault(tuple(c.name for c in columns), set()).add(datasets[columns[0].id])

    def outputs(self, node: _Node) -> list[_Column]:
        """The columns of a node in order; all below it was followed before."""
        inputs, subqueries = [child.columns for child in node.children], [subquery.columns for subquery in node.subqueries]
        below = [column for columns in inputs for column in columns]
        name, text = node.name, node.text
        if name == "LocalRelation":
            return self._leaf(text)
        if name in _LISTS:
            made = self._list(text, name == "Aggregate", below, subqueries)
            return [*below, *made] if name == "Window" else made
        if name == "Union":
            return self._union(inputs)
        if name == "CTERelationRef":
            return self._reference(text)
        if name == "CTERelationDef":
            self._named[_number(text)] = below
        return self._others(name, text, inputs, subqueries)

    def _others(self, name: str, text: str, inputs: list[list[_Column]], subqueries: list[list[_Column]]) -> list[_Column]:
        below = [column for columns in inputs for column in columns]
        if name in _TRANSPARENT:
            return inputs[0] if inputs else []
        if name == "WithCTE":
            return inputs[-1] if inputs else []
        if name == "Join":
            return inputs[0] if re.match(r"[~'!]*Join Left(Semi|Anti)", text) else below
        if name == "LateralJoin":
            return [*below, *(column for columns in subqueries for column in columns)]
        if name == "Generate":
            made = _attributes(text)
            refs = self._refs(text[: text.rfind(", [")], subqueries)
            self.sources.update((column.id, refs) for column in made)
            return [*below, *made]
        if name == "Expand":
            return self._expand(text, below)
        return _attributes(text)  # a relation from outside, or a Python function over groups: nothing is known of its columns

    def _leaf(self, text: str) -> list[_Column]:
        columns = _attributes(text)
        names = tuple(column.name for column in columns)
        keys = {self._datasets[columns[0].id]} if columns and columns[0].id in self._datasets else self._of_columns.get(names, set())
        if len(keys) == 1:
            (key,) = keys
            self.sources.update((column.id, frozenset((ColumnSource(key, column.name),))) for column in columns)
        return columns

    def _union(self, inputs: list[list[_Column]]) -> list[_Column]:
        first, *others = inputs or [[]]
        for position, column in enumerate(first):
            same = [other[position].id for other in others if position < len(other)]
            self.sources[column.id] = frozenset().union(*(self.sources.get(one, frozenset()) for one in (column.id, *same)))
        return first

    def _reference(self, text: str) -> list[_Column]:
        columns = _attributes(text)
        for column, meant in zip(columns, self._named.get(_number(text), []), strict=False):
            self.sources[column.id] = self.sources.get(meant.id, frozenset())
        return columns

    def _expand(self, text: str, below: list[_Column]) -> list[_Column]:
        """Each list of values is one row; a column of the result takes the values at its position."""
        columns = _attributes(text)
        head, _, _ = text.rpartition("]], [")
        rows = [row.split(", ") for row in head.partition("[[")[2].split("], [")]
        known = {column.id for column in below}
        for position, column in enumerate(columns):
            if column.id in known:
                continue
            if all(len(row) == len(columns) for row in rows):
                self.sources[column.id] = frozenset().union(*(self._refs(row[position], []) for row in rows))
            else:
                same = [self.sources.get(c.id, frozenset()) for c in below if c.name == column.name]
                self.sources[column.id] = frozenset().union(*same)
        return columns

    def _list(self, text: str, grouped: bool, below: list[_Column], subqueries: list[list[_Column]]) -> list[_Column]:
        """The named expressions in the list of a node; nothing where the text cannot be taken apart."""
        first = text.find(" [") + 2
        starts = [match.end() for match in re.finditer(r"\], \[", text)] if grouped else []
        for start in (*starts, first):  # the list of grouping expressions comes first, and is left out where there are none
            found = self._named_expressions(text, start, below, subqueries, whole=not text.startswith(("Window", "~Window")))
            if found is not None:
                return found
        return []

    def _named_expressions(
        self, text: str, start: int, below: list[_Column], subqueries: list[list[_Column]], *, whole: bool
    ) -> list[_Column] | None:
        """`a#1, upper(b#2) AS c#3]`: the columns, or None if the text from `start` on is no such list. `whole`: it ends with the text."""
        names = {column.id: column.name for column in below}
        pending = list(subqueries) if len(_SUBQUERY.findall(text)) == len(subqueries) else []
        found: list[_Column] = []
        cursor = start
        for token in _TOKEN.finditer(text, start):
            last = text.startswith("]", token.end()) and (not whole or token.end() + 1 == len(text))
            before, id = text[cursor : token.start()], int(token["id"])
            if token.start() < cursor or not (last or text.startswith(", ", token.end())):
                continue
            if names.get(id) == before or (id not in names and re.fullmatch(r"\w+", before)):
                found.append(_Column(id, before))
            elif id not in names and " AS " in before:
                expression, _, name = before.rpartition(" AS ")
                mine = [pending.pop(0) for _ in _SUBQUERY.findall(expression) if pending]
                self.sources[id] = self._refs(expression, mine)
                found.append(_Column(id, name))
            else:
                continue
            if last:
                return found
            cursor = token.end() + 2
        return None

    def _refs(self, expression: str, subqueries: Sequence[Sequence[_Column]]) -> frozenset[ColumnSource]:
        """What an expression names; of a subquery that gives a value, what its column is made of."""
        text = _OUTER.sub("", expression)
        tokens = ((int(token["id"]), token.start()) for token in _TOKEN.finditer(text))
        ids = [id for id, at in tokens if id in self.names and text.endswith(self.names[id], 0, at)]
        for match, columns in zip(_SUBQUERY.finditer(expression), subqueries, strict=False):
            if match["kind"] == "scalar-subquery":
                ids += [column.id for column in columns]
        return frozenset().union(*(self.sources.get(id, frozenset()) for id in ids))


def _number(text: str) -> str:
    """The number of a common table expression: the first in the line."""
    match = re.search(r"\d+", text)
    return match[0] if match else ""


def _attributes(text: str) -> list[_Column]:
    """The last list of a line, if it has only columns: `[a#1, b#2L]`."""
    return next((columns for columns in _lists(text) if columns), [])


def _lists(text: str) -> Iterator[list[_Column]]:
    start = text.rfind("[")
    while start >= 0:
        columns, cursor = [], start + 1
        for token in _TOKEN.finditer(text, cursor):
            columns.append(_Column(int(token["id"]), text[cursor : token.start()]))
            cursor = token.end() + 2
            if text.startswith("]", token.end()):
                yield columns
                break
            if not text.startswith(", ", token.end()):
                break
        start = text.rfind("[", 0, start)
