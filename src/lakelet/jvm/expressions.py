"""Catalyst's expressions, by way of py4j: walked and changed as nodes, never as the SQL that Spark prints for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame


def items(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(i) for i in range(sequence.size())]


def replaced(jvm: Any, expression: Any, replacement: Callable[[Any], Any | None]) -> Any:
    """The expression with what `replacement` gives instead of a node; where that is None, the node stays, and what is below it is asked.

    The same object comes back if nothing was replaced.
    """
    new = replacement(expression)
    if new is not None:
        return new
    children = items(expression.children())
    changed = [replaced(jvm, child, replacement) for child in children]
    if all(after is before for after, before in zip(changed, children, strict=True)):
        return expression
    return expression.withNewChildren(jvm.PythonUtils.toSeq(changed))


def by_names(jvm: Any, expression: Any, qualifier: str) -> Any:
    """A resolved expression over columns of the table `qualifier`, which are found by their names, fields of structs too."""
    analysis, catalyst = jvm.org.apache.spark.sql.catalyst.analysis, jvm.org.apache.spark.sql.catalyst.expressions
    common: dict[int, Any] = {}

    def named(node: Any) -> Any | None:
        kind = str(node.nodeName())
        if kind == "AttributeReference":
            return analysis.UnresolvedAttribute(jvm.PythonUtils.toSeq([qualifier, str(node.name())]))
        if kind == "GetStructField":
            field = node.childSchema().apply(node.ordinal()).name()
            text = jvm.org.apache.spark.sql.types.DataTypes.StringType
            return analysis.UnresolvedExtractValue(replaced(jvm, node.child(), named), catalyst.Literal.create(field, text))
        if kind == "With":  # of BETWEEN and NULLIF: a part that is named once, and cannot be so without a type
            common.update({int(part.id().id()): replaced(jvm, part.child(), named) for part in items(node.defs())})
            return replaced(jvm, node.child(), named)
        return common[int(node.id().id())] if kind == "CommonExpressionRef" else None

    return replaced(jvm, expression, named)


def without_rows(frame: DataFrame) -> DataFrame:
    """A frame of the same columns that has no rows and reads nothing, made in one call to Java."""
    spark = frame.sparkSession
    jvm: Any = spark._jvm
    return DataFrame(spark._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), frame._jdf.schema()), spark)


def column(jvm: Any, expression: Any) -> Column:
    """A column of pyspark that is this expression."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
