"""Facts read off Spark's analysed plans.

In: the plan of a query over placeholders. Out: streaming leaves with their filters, what makes a batch query skippable, and which
partitions of its input a partition of a view depends on. Where a view's rows of a day depend only on one table's rows of that day, the
view can be refreshed day by day (docs/semantics/updates.md, UP-8).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelet.analysis.column_lineage import TracedPlan
from lakelet.analysis.refused_queries import CALLS_PYTHON, CHANGES_WITH_TIME, NOT_DETERMINISTIC, WITHOUT_VERSION
from lakelet.analysis.used_columns import UsedColumns
from lakelet.cdc import change_feed
from lakelet.jvm.expressions import check_stream, relation_without_rows, uses
from lakelet.jvm.frames import analyzed, of_plan, plan_string
from lakelet.jvm.kafka import topic_options
from lakelet.jvm.scala import items
from lakelet.jvm.sessions import java_session

_AGGREGATES = {"Aggregate", "Distinct"}
_TRANSPARENT = {"SubqueryAlias", "EventTimeWatermark", "CollectMetrics"}
_IDS = re.compile(r"#\d+|(?<=CTERelationDef )\d+|(?<=CTERelationRef )\d+|(?<=UnionLoop )\d+|(?<=UnionLoopRef )\d+")
_OBSERVED = re.compile(r"(CollectMetrics .*), \d+$", re.MULTILINE)
_WHOLE_NUMBERS = {"tinyint", "smallint", "int", "bigint"}
_EPOCH_DAY = datetime.date(1970, 1, 1)


class Placeholders:
    """Placeholders for tables during analysis: relations without rows that have the right columns, batch or streaming.

    A pipeline may have hundreds of queries, and each call into Java costs a fraction of a millisecond: a table has one placeholder for all
    queries (a second one where a query reads it twice).
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._reads: dict[int, tuple[str, int]] = {}
        self._names: dict[int, str] = {}
        self._sources: dict[int, int] = {}
        self._versioned: set[int] = set()
        self._made: dict[tuple[str, bool, int], tuple[str, Any]] = {}
        self._frames: dict[tuple[str, bool, int], tuple[Any, Any, DataFrame]] = {}
        self._own_frames: set[int] = set()
        self._aliases: dict[tuple[int, str], tuple[DataFrame, DataFrame]] = {}

    @property
    def datasets(self) -> Mapping[int, str]:
        """Keys of the placeholders' datasets, by the id of a placeholder's first column; grows with the analysis."""
        return self._names

    @property
    def reads(self) -> Mapping[int, tuple[str, int]]:
        """Dataset and copy of the placeholders, as `datasets`."""
        return self._reads

    def frame(self, key: str, schema: StructType, *, streaming: bool, copy: int = 0) -> DataFrame:
        """An empty DataFrame with these columns that stands for the dataset `key`.

        `copy`: how many times the same query has read the dataset before; each has columns of its own, as it will have in the run.
        """
        jsession = java_session(self._spark)
        text = schema.json()
        known = self._made.get((key, streaming, copy)) if key else None
        if known is None or known[0] != text:
            known = text, self._relation_of(key, copy, text, streaming)
            self._made[key, streaming, copy] = known
        made = self._frames.get((key, streaming, copy))
        if made is None or made[0] is not known[1] or made[1] is not jsession:
            made = known[1], jsession, of_plan(self._spark, known[1])
            self._frames[key, streaming, copy] = made
            self._own_frames.add(id(made[2]))
        return made[2]

    def source(self, number: int, schema: StructType) -> DataFrame:
        """An empty stream with these columns that stands for file source `number` of its flow."""
        frame = self.frame("", schema, streaming=True)
        first = _first_id(analyzed(frame))
        if first != _NO_ID:
            self._sources[first] = number
        return frame

    def aliased(self, frame: DataFrame, name: str) -> DataFrame:
        """`frame.alias(name)`, made once for a placeholder, which many queries read."""
        if id(frame) not in self._own_frames:
            return frame.alias(name)
        known = self._aliases.get((id(frame), name))
        if known is None or known[0] is not frame:
            known = self._aliases[id(frame), name] = (frame, frame.alias(name))
        return known[1]

    def _relation_of(self, key: str, copy: int, schema: str, streaming: bool) -> Any:
        relation = relation_without_rows(self._spark, schema, streaming=streaming)
        first = _first_id(relation) if key else _NO_ID
        if first != _NO_ID:
            self._names[first], self._reads[first] = key, (key, copy)
        return relation

    def check_mode(self, plan: Any, *, complete: bool) -> None:
        """Raise AnalysisException for an analysed streaming plan that cannot run in append mode, or in `complete` mode."""
        check_stream(self._spark, plan, "Complete" if complete else "Append")

    def check_sent(self, plan: Any, *, update: bool) -> None:
        """Raise AnalysisException for an analysed streaming plan that cannot run in append mode, or in `update` mode."""
        check_stream(self._spark, plan, "Update" if update else "Append")

    def is_placeholder(self, frame: DataFrame) -> bool:
        """Whether a query reads a placeholder."""
        return any(self.key_of(leaf) is not None for leaf in _leaves(analyzed(frame)))

    def mark_versioned(self, frame: DataFrame) -> None:
        """Mark the one relation that a frame reads as versioned: the caller compares its files."""
        leaves = analyzed(frame).collectLeaves()
        if leaves.size() == 1 and leaves.apply(0).output().size():
            self._versioned.add(int(leaves.apply(0).output().apply(0).exprId().id()))

    def has_version(self, leaf: Any) -> bool:
        """Whether a leaf of a plan is a dataset, or was noted by `mark_versioned`."""
        return self.key_of(leaf) is not None or bool(leaf.output().size() and int(leaf.output().apply(0).exprId().id()) in self._versioned)

    def key_of(self, leaf: Any) -> str | None:
        """The dataset that a leaf of a plan stands for, or None."""
        return self._names.get(_placeholder_id(leaf))

    def read_by(self, leaf: Any) -> tuple[str | None, int | None]:
        """The dataset, and the number of the file source, that a leaf of a plan stands for; None where it is not one."""
        first = _placeholder_id(leaf)
        return self._names.get(first), self._sources.get(first)


_NO_ID = -1
_FIRST_COLUMN = re.compile(r"#(\d+)L?(?:-T\d+ms)?\)$")


def _placeholder_id(leaf: Any) -> int:
    """The id of the first column of a relation without rows; -1 for any other leaf."""
    return _first_id(leaf) if leaf.nodeName() == "LocalRelation" else _NO_ID


def _first_id(plan: Any) -> int:
    """The id of the first column of a plan, -1 for one without columns; in three calls to Java, as each query of a pipeline is asked."""
    found = _FIRST_COLUMN.search(str(plan.output().headOption().toString()))  # Some(id#1L)
    return int(found[1]) if found else _NO_ID


def traced_plan(frame: DataFrame, placeholders: Placeholders) -> TracedPlan:
    """The analysed plan of a query as text with every column, in one call to Java."""
    text = analyzed(frame).treeString(True, False, 1 << 30, False, False)
    return TracedPlan(str(text), placeholders.datasets)


class _Leaf(NamedTuple):
    """A streaming leaf of a plan. `above`: the node above it, or None; `allowed`: its filter (`StreamPlan`)."""

    node: Any
    above: Any
    allowed: Mapping[str, frozenset[str]]

    @property
    def last_is_hidden(self) -> bool:
        """Whether the node above is the projection that hides the last column, and nothing further up has brought that back."""
        above = self.above
        return above is not None and above.nodeName() == "Project" and above.output().size() < self.node.output().size()


@dataclass(frozen=True)
class StreamPlan:
    """Streaming leaves in plan order, as (dataset key or None for another source, filter); `watermark`: the query has one.

    `files`: for each leaf the number of its file source, None for another leaf. A flow may open sources that its query does not read, and
    may open them in another order. `topics`: for each leaf the options of a source of Kafka, None for another leaf.
    `plain`: numbers of the file sources of which the query does not read `_metadata`.

    `processor`: it has state of the user's own (transformWithState), which Spark keeps in RocksDB only. `aggregates`: it aggregates.
    `feeds`: numbers of the leaves that have the columns of a change feed. `groups`: it keeps state by a function of the user's
    for each group (applyInPandasWithState), which may do something when time passes.

    A filter maps a column to the values it may have, spelt as the partition values of a Delta log; only conditions directly above the leaf
    count. `unversioned`: why it depends on data without versions, such as files that it joins; None where it does not.
    """

    leaves: tuple[tuple[str | None, Mapping[str, frozenset[str]]], ...]
    watermark: bool
    processor: bool = False
    aggregates: bool = False
    feeds: frozenset[int] = frozenset()
    groups: bool = False
    files: tuple[int | None, ...] = ()
    unversioned: str | None = None
    topics: tuple[Mapping[str, str] | None, ...] = ()
    plain: frozenset[int] = frozenset()

    @property
    def is_known(self) -> bool:
        """Whether every leaf is a dataset, a file source or a source of Kafka."""
        leaves = zip(self.leaves, self.files, self.topics, strict=True)
        return all(key is not None or number is not None or options is not None for (key, _), number, options in leaves)


NO_STREAM = StreamPlan((), False)
"""That of a query that is no stream."""


def stream_plan(frame: DataFrame, placeholders: Placeholders) -> StreamPlan:
    """Walk the analysed plan of a streaming query."""
    names: set[str] = set()
    found = list(_walk(analyzed(frame), None, [], names))
    read = [placeholders.read_by(leaf.node) for leaf in found]
    leaves = tuple((key, leaf.allowed) for (key, _), leaf in zip(read, found, strict=True))
    feeds = frozenset(number for number, leaf in enumerate(found) if _is_feed(leaf.node))
    processor = any(name.startswith("TransformWithState") for name in names)
    groups = any(name.startswith("FlatMapGroups") and name.endswith("WithState") for name in names)
    files = tuple(number for _, number in read)
    aggregates, changing = not names.isdisjoint(_AGGREGATES), unversioned(frame, placeholders)
    topics = tuple(topic_options(leaf.node) if one == (None, None) else None for leaf, one in zip(found, read, strict=True))
    asked = {number for leaf, number in zip(found, files, strict=True) if not leaf.last_is_hidden}  # a query may have a source twice
    plain = frozenset(number for number in files if number is not None) - asked
    return StreamPlan(leaves, "EventTimeWatermark" in names, processor, aggregates, feeds, groups, files, changing, topics, plain)


def _is_feed(leaf: Any) -> bool:
    """Whether a leaf has the columns of a change feed; in one call to Java, as each query of a pipeline is asked."""
    columns = str(leaf.output().toString())  # List(id#1L, _change_type#2, …)
    return all(re.search(rf"[( ]{column.name}#", columns) for column in change_feed.COLUMNS)


def aggregates_all(node: Any, common: Mapping[int, bool] | None = None) -> bool:
    """Whether every streaming leaf of a plan is below an aggregate: only then its result at any time is made of all rows so far.

    `common`: the same of the common table expressions that the node may refer to, by their ids.
    """
    name, known = node.nodeName(), dict(common or {})
    if not node.isStreaming() or name in _AGGREGATES:
        return True
    if name == "WithCTE":
        for definition in items(node.cteDefs()):
            known[int(definition.id())] = aggregates_all(definition.child(), known)
        return aggregates_all(node.plan(), known)
    if name == "CTERelationRef":
        return known.get(int(node.cteId()), False)
    children = items(node.children())
    return bool(children) and all(aggregates_all(child, known) for child in children)


def _walk(node: Any, above: Any, filters: list[Any], names: set[str]) -> Iterator[_Leaf]:
    """The streaming leaves below a streaming node. `above`: the node above it, or None; `filters`: the conditions directly above it."""
    name = node.nodeName()
    names.add(name)
    if name == "CTERelationRef":
        return  # its leaves are those of the definition, which is another child of the node above both
    children = items(node.children())
    if not children:
        yield _Leaf(node, above, equality_filter(filters))
        return
    filters = [*filters, node.condition()] if name == "Filter" else filters if name in _TRANSPARENT else []
    for child in children if len(children) == 1 else [child for child in children if child.isStreaming()]:
        yield from _walk(child, node, filters, names)


def equality_filter(conditions: Sequence[Any]) -> dict[str, frozenset[str]]:
    """Columns that must equal one of some literals for all conditions to hold; `conditions` are Catalyst expressions.

    Conditions of any other shape say nothing: on a nested field, on a computed or cast value, on text with a collation.
    """
    found: dict[str, frozenset[str]] = {}
    for condition in conditions:
        for column, values in _equalities(condition):
            found[column] = found[column] & values if column in found else values
    return found


def _equalities(condition: Any) -> Iterator[tuple[str, frozenset[str]]]:
    name = condition.nodeName()
    if name == "And":
        yield from _equalities(condition.left())
        yield from _equalities(condition.right())
    elif name in ("EqualTo", "EqualNullSafe", "In"):
        first, *others = items(condition.children())
        if name != "In" and first.nodeName() == "Literal":
            first, others = others[0], [first]
        values = [_partition_value(other) for other in others]
        if first.nodeName() == "AttributeReference" and first.dataType().simpleString() == others[0].dataType().simpleString():
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                yield str(first.name()).lower(), frozenset(known)


def _partition_value(expression: Any) -> str | None:
    """A literal spelt as the partition values of a Delta log; None for any other expression, and for types of several spellings."""
    value = expression.value() if expression.nodeName() == "Literal" else None
    if value is None:
        return None
    kind = expression.dataType().simpleString()
    if kind == "date":
        return str(_EPOCH_DAY + datetime.timedelta(days=int(value)))
    return str(value) if kind == "string" or kind in _WHOLE_NUMBERS else None


# --------------------------------------------------------------------------------------------------- batch queries


_KEY = {"__lakelet_inner_pad", "__lakelet_outer_pad"}
"""Columns that lakelet.transforms.pii joins. That module stands alone, and may be a copy, so the names are here too."""
# The last two refer to other parts of the plan.
_VERSIONLESS = {"Range", "OneRowRelation", "LocalRelation", "CTERelationRef", "UnionLoopRef"}
_SHOWN_FIELDS = "spark.sql.debug.maxToStringFields"
_PYTHON_NODES = re.compile(r"(InPandas|InArrow|PythonUDTF|PythonDataSource|ArrowEval|BatchEvalPython)")


@contextmanager
def _whole_plans(spark: SparkSession) -> Iterator[None]:
    """Plans name every column meanwhile, however many there are."""
    before = spark.conf.get(_SHOWN_FIELDS, None)
    spark.conf.set(_SHOWN_FIELDS, str(1 << 30))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_SHOWN_FIELDS)
        else:
            spark.conf.set(_SHOWN_FIELDS, before)


def printed_plan(frame: DataFrame) -> str:
    """The analysed plan as Spark prints it, with every column. The text goes to `plan_text` and `never_skippable`."""
    with _whole_plans(frame.sparkSession):
        return plan_string(frame)


def plan_text(printed: str, used: UsedColumns) -> str:
    """A printed plan as text that is the same in every process, without the columns of its inputs that it does not use.

    Its ids are numbered in order of appearance. An observation ends in the id of its data frame, which is another one each time; that is
    left out.
    """
    numbers: dict[str, str] = {}
    text = used.text_of(_OBSERVED.sub(r"\1", printed))
    return _IDS.sub(lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), text)


def has_range_partitioning(frame: DataFrame) -> bool:
    """Whether a query spreads rows by ranges of values, as global sorts do.

    Spark then reads what is below twice, first to find the ranges.
    """
    return any(_by_range(node) for node in _nodes(analyzed(frame)))


def _by_range(node: Any) -> bool:
    if node.nodeName() == "Sort":
        return bool(getattr(node, "global")())
    if node.nodeName() != "RepartitionByExpression":
        return False
    return any(expression.getClass().getSimpleName() == "SortOrder" for expression in items(node.partitionExpressions()))


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in items(node.children()):
        yield from _nodes(child)


def never_skippable(frame: DataFrame, printed: str, placeholders: Placeholders) -> str | None:
    """Why the result may differ although no input table changed, as a clause; None if it cannot. `printed`: the plan of the frame."""
    spark, plan = frame.sparkSession, analyzed(frame)
    if uses(spark, plan, "CURRENT_LIKE"):
        return CHANGES_WITH_TIME
    if uses(spark, plan, "PYTHON_UDF") or _PYTHON_NODES.search(printed):
        return CALLS_PYTHON
    if not plan.deterministic():
        return NOT_DETERMINISTIC
    return unversioned(frame, placeholders)


def unversioned(frame: DataFrame, placeholders: Placeholders) -> str | None:
    """Why what a query reads as a batch may change without a new version of a table, as a clause; None if it cannot.

    The key of a transform counts only for a batch: a stream has nothing to hash with another one until new rows come.
    """
    for leaf in _leaves(analyzed(frame)):
        if leaf.isStreaming() or placeholders.has_version(leaf) or (frame.isStreaming and _is_key(leaf)):
            continue
        if leaf.nodeName() not in _VERSIONLESS or (leaf.nodeName() == "LocalRelation" and leaf.data().size()):
            return WITHOUT_VERSION
    return None


def _is_key(leaf: Any) -> bool:
    """Return whether this is the row with the key of `keyed_hash` or `tokenize`."""
    return leaf.nodeName() == "LogicalRDD" and {str(column.name()) for column in items(leaf.output())} == _KEY


def _leaves(plan: Any) -> Iterator[Any]:
    yield from items(plan.collectLeaves())
    for subquery in items(plan.subqueriesAll()):
        yield from items(subquery.collectLeaves())


_UNCHANGED = {"Filter", "SubqueryAlias", "View"}
_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_TYPES = {"date", "string", "tinyint", "smallint", "int", "bigint"}
"""Types with one spelling of each value in a Delta log."""


@dataclass(frozen=True)
class PartitionSource:
    """Rows of a view with a value of `column` depend only on rows of the dataset `key` with the same value of `source_column`.

    `column`: a partition column of the view. `type`: Spark's name of the type of both.
    """

    column: str
    key: str
    source_column: str
    type: str


def partition_source(frame: DataFrame, placeholders: Placeholders, partition_cols: Sequence[str]) -> PartitionSource | None:
    """Return the source of the first partition column that can be traced; None if the query does more than filter, compute and group."""
    plan = analyzed(frame)
    if not partition_cols or plan.subqueriesAll().size():
        return None
    columns = {str(a.name()).lower(): a for a in items(plan.output())}
    for name in partition_cols:
        attribute = columns.get(name.lower())
        if attribute is not None and attribute.dataType().simpleString() in _TYPES:
            found = _traced(plan, int(attribute.exprId().id()), placeholders)
            if found is not None:
                return PartitionSource(name, *found, str(attribute.dataType().simpleString()))
    return None


def _traced(node: Any, column: int, placeholders: Placeholders) -> tuple[str, str] | None:
    """Return key and column of the table whose column passes unchanged to the column with this id; None if there is none."""
    while True:
        key = placeholders.key_of(node)
        if key is not None:
            return next(((key, str(a.name())) for a in items(node.output()) if int(a.exprId().id()) == column), None)
        name = str(node.nodeName())
        if name in _LISTS:
            inner = _passed(items(getattr(node, _LISTS[name])()), column)
            if inner is None or (name == "Aggregate" and inner not in _grouped(node)):
                return None
            column = inner
        elif name not in _UNCHANGED:
            return None
        node = node.children().apply(0)


def _passed(expressions: Sequence[Any], column: int) -> int | None:
    """Return the id of the column that a list of expressions passes on as the id `column`; None if it is computed."""
    for expression in expressions:
        if int(expression.exprId().id()) == column:
            inner = expression.child() if expression.nodeName() == "Alias" else expression
            return int(inner.exprId().id()) if inner.nodeName() == "AttributeReference" else None
    return None


def _grouped(aggregate: Any) -> set[int]:
    return {int(e.exprId().id()) for e in items(aggregate.groupingExpressions()) if e.nodeName() == "AttributeReference"}
