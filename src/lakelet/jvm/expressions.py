"""Catalyst's plans and expressions: walked and changed as nodes, never as the SQL that Spark prints for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.jvm.frames import Plan
from lakelet.jvm.scala import items, java_class, option, seq, static

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

Expression = Any
_CATALYST = "org.apache.spark.sql.catalyst"
_EXPRESSIONS = f"{_CATALYST}.expressions"
_TEXT = "org.apache.spark.sql.types.DataTypes"


def uses(spark: SparkSession, node: Any, *patterns: str) -> bool:
    """Whether a plan or an expression has one of Spark's tree patterns in it, such as `PYTHON_UDF`."""
    return any(node.containsPattern(_pattern(spark._jvm, pattern)) for pattern in patterns)


@functools.lru_cache(maxsize=32)
def _pattern(jvm: Any, name: str) -> Any:
    return static(jvm, f"{_CATALYST}.trees.TreePattern", name)()


def with_children(spark: SparkSession, node: Any, children: Sequence[Any]) -> Any:
    """A node with other children."""
    return node.withNewChildren(seq(spark._jvm, children))


def replaced(spark: SparkSession, expression: Expression, replacement: Callable[[Any], Any | None]) -> Expression:
    """The expression with what `replacement` gives instead of a node; where that is None, the node stays, and what is below it is asked.

    The same object comes back if nothing was replaced.
    """
    new = replacement(expression)
    if new is not None:
        return new
    children = items(expression.children())
    changed = [replaced(spark, child, replacement) for child in children]
    if all(after is before for after, before in zip(changed, children, strict=True)):
        return expression
    return with_children(spark, expression, changed)


def by_names(spark: SparkSession, expression: Expression, qualifier: str) -> Expression:
    """A resolved expression over columns of the table `qualifier`, which are found by their names, fields of structs too."""
    jvm, common = spark._jvm, dict[int, Any]()

    def named(node: Any) -> Any | None:
        kind = str(node.nodeName())
        if kind == "AttributeReference":
            return java_class(jvm, f"{_CATALYST}.analysis.UnresolvedAttribute")(seq(jvm, [qualifier, str(node.name())]))
        if kind == "GetStructField":
            field = text_literal(spark, node.childSchema().apply(node.ordinal()).name())
            return java_class(jvm, f"{_CATALYST}.analysis.UnresolvedExtractValue")(replaced(spark, node.child(), named), field)
        if kind == "With":  # of BETWEEN and NULLIF: a part that is named once, and cannot be so without a type
            common.update({int(part.id().id()): replaced(spark, part.child(), named) for part in items(node.defs())})
            return replaced(spark, node.child(), named)
        return common[int(node.id().id())] if kind == "CommonExpressionRef" else None

    return replaced(spark, expression, named)


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions that must all be true for this one to be."""
    if condition.nodeName() == "And":
        yield from conjuncts(condition.left())
        yield from conjuncts(condition.right())
    else:
        yield condition


def column(spark: SparkSession, expression: Expression) -> Column:
    """A column of pyspark that is this expression."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(static(spark._jvm, "org.apache.spark.sql.classic.ExpressionUtils", "column")(expression))


def text_literal(spark: SparkSession, value: str) -> Expression:
    """A constant of type STRING."""
    jvm = spark._jvm
    return static(jvm, f"{_EXPRESSIONS}.Literal", "create")(value, java_class(jvm, _TEXT).StringType)


def field(spark: SparkSession, struct: Expression, ordinal: int, name: str) -> Expression:
    """A field of a struct."""
    return java_class(spark._jvm, f"{_EXPRESSIONS}.GetStructField")(struct, ordinal, option(spark._jvm, name))


def regexp_replaced(spark: SparkSession, text: Expression, pattern: str, replacement: str) -> Expression:
    """A text with another one instead of each match of a pattern."""
    return java_class(spark._jvm, f"{_EXPRESSIONS}.RegExpReplace")(text, text_literal(spark, pattern), text_literal(spark, replacement))


# ------------------------------------------------------------------------------------------------------------ plans


def with_constants(spark: SparkSession, plan: Plan, *, at_one_time: bool = False) -> Plan:
    """A plan whose constant expressions are literals. `at_one_time`: the current time, date and user are constants too."""
    rules = ("ReplaceExpressions", "ComputeCurrentTime", "ConstantFolding") if at_one_time else ("ConstantFolding",)
    for rule in rules:
        plan = static(spark._jvm, f"{_CATALYST}.optimizer.{rule}", "apply")(plan)
    return plan


def with_columns(spark: SparkSession, project: Plan, columns: Sequence[Expression]) -> Plan:
    """A projection with other columns."""
    return project.copy(seq(spark._jvm, columns), project.child())


def with_hidden(spark: SparkSession, plan: Plan) -> Plan:
    """A plan whose last column resolves by its name and is invisible to `*`, by the tag with which Spark hides its own."""
    project, output = java_class(spark._jvm, f"{_CATALYST}.plans.logical.Project"), plan.output()
    seen = project(output.dropRight(1), plan)
    seen.setTagValue(project.hiddenOutputTag(), output.takeRight(1))
    return seen


def with_output(spark: SparkSession, relation: Plan, more: Any) -> Plan:
    """A relation of a stream or without rows (`StreamingRelation`, `LocalRelation`) with one more column."""
    columns = seq(spark._jvm, [*items(relation.output()), more])
    if str(relation.getClass().getSimpleName()) == "StreamingRelation":
        return relation.copy(relation.dataSource(), relation.sourceName(), columns, getattr(relation, "copy$default$4")())
    return relation.copy(columns, relation.data(), relation.isStreaming(), relation.stream())


def metadata_of_parquet(spark: SparkSession) -> Expression:
    """The column `_metadata` of Parquet files."""
    return java_class(spark._jvm, "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat")().createFileMetadataCol()


def relation_without_rows(spark: SparkSession, schema: str, *, streaming: bool) -> Plan:
    """A relation that has no rows, with the columns of a StructType's JSON."""
    jvm = spark._jvm
    columns = static(jvm, "org.apache.spark.sql.types.DataType", "fromJson")(schema)
    attributes = static(jvm, f"{_CATALYST}.types.DataTypeUtils", "toAttributes")(columns)
    return java_class(jvm, f"{_CATALYST}.plans.logical.LocalRelation")(attributes, seq(jvm, []), streaming, option(jvm))


def check_stream(spark: SparkSession, plan: Plan, mode: str) -> None:
    """Raise AnalysisException for an analysed streaming plan that cannot run in an output mode: `Append`, `Complete` or `Update`."""
    static(spark._jvm, f"{_CATALYST}.analysis.UnsupportedOperationChecker", "checkForStreaming")(plan, _mode(spark._jvm, mode))


@functools.lru_cache(maxsize=8)
def _mode(jvm: Any, name: str) -> Any:
    return static(jvm, "org.apache.spark.sql.streaming.OutputMode", name)()


# ------------------------------------------------------------------------------------------------------------ SQL text


def parsed(spark: SparkSession, sql: str) -> Plan:
    """Spark's unresolved plan of a statement. Raises pyspark's ParseException."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)


def substituted(spark: SparkSession, sql: str) -> str:
    """SQL text with `${key}` replaced from the configuration of this thread's session, as Spark's parser does it."""
    return str(java_class(spark._jvm, "org.apache.spark.sql.internal.VariableSubstitution")().substitute(sql))


def only_reads(spark: SparkSession, plan: Plan) -> bool:
    """Whether no node of an unresolved plan is a command, an insert or a script."""
    commands = [_command(spark._jvm, name) for name in ("Command", "ParsedStatement")]

    def reads(node: Any) -> bool:
        return not any(command.isInstance(node) for command in commands) and all(map(reads, items(node.children())))

    return reads(plan)


@functools.lru_cache(maxsize=8)
def _command(jvm: Any, name: str) -> Any:
    loader = java_class(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    return java_class(jvm, "java.lang.Class").forName(f"{_CATALYST}.plans.logical.{name}", True, loader)


def with_relations(spark: SparkSession, plan: Plan, plans: Mapping[str, Plan]) -> Plan:
    """An unresolved plan where each relation of one of these names is the plan given for it. Names inside subquery expressions stay."""
    jvm = spark._jvm

    def put(node: Any) -> Any:
        kind = str(node.nodeName())
        if kind == "UnresolvedRelation":
            return plans.get(".".join(str(part) for part in items(node.multipartIdentifier())), node)
        if kind == "UnresolvedWith":
            ctes = [java_class(jvm, "scala.Tuple3")(cte._1(), put(cte._2()), cte._3()) for cte in items(node.cteRelations())]
            return node.copy(put(node.child()), seq(jvm, ctes), node.allowRecursion())
        children = [put(child) for child in items(node.children())]
        return with_children(spark, node, children) if children else node

    return put(plan)
