"""Whether the rules of a dataset fit the columns of its query: errors and notices with the line of each rule. Nothing is run.

A constant that Spark casts to the type of what it is compared with, and cannot (`amount = 'EUR'` on a number), is such an error: Spark
analyses the rule, and fails at the first row. A cast that is not evaluated for each row, in a branch of CASE for example, counts too.
Without ANSI mode the result is NULL, and nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, NullType

from lakelet.base.errors import LakeletError
from lakelet.base.raised import pointed
from lakelet.jvm.errors import Py4JJavaError
from lakelet.jvm.expressions import uses
from lakelet.jvm.frames import analyzed
from lakelet.jvm.scala import items
from lakelet.language.model import Dataset, Expectation
from lakelet.language.registry import Notice
from lakelet.spark.errors.diagnosis import first_line, unresolved_name, unresolved_nearest, without_proposal
from lakelet.spark.expectations.measure import constraint
from lakelet.spark.expectations.resolution import CHECKS, RESULT, checked, lost_in

_LITERAL = re.compile(r"""['"]""")
_LOST = {
    "Aggregate": "{0} is a column of the rows that the query aggregates; a rule sees the groups: {1}",
    "Distinct": "{0} is a column of the rows that the query makes distinct; a rule sees what is left: {1}",
    "Deduplicate": "{0} is a column of the rows that the query makes distinct; a rule sees what is left: {1}",
}


@dataclass(frozen=True)
class RuleFindings:
    """Errors and notices about the rules of a dataset."""

    errors: tuple[LakeletError, ...] = ()
    notices: tuple[Notice, ...] = ()


def check_rules(dataset: Dataset, frame: DataFrame) -> RuleFindings:
    """Resolve the rules of a dataset as a run does. All are analysed at once; the wrong one is searched for only if that fails."""
    rules = dataset.expectations
    if not rules:
        return RuleFindings()
    below: frozenset[int] | None = None
    with suppress(PySparkException):
        types, below, impossible = _resolved(frame, rules)
        below = below if all(isinstance(found, BooleanType | NullType) for found in types) and not any(impossible) else None
    if below is None:
        return RuleFindings(tuple(problem for rule in rules if (problem := _rule_problem(dataset, frame, rule)) is not None))
    errors = tuple(_of_identity(dataset, rule) for rule in rules if dataset.identities and _reads_identity(dataset, frame, rule))
    return RuleFindings(errors, tuple(_notice(dataset, rules[i]) for i in sorted(below)))


def _reads_identity(dataset: Dataset, frame: DataFrame, rule: Expectation) -> bool:
    """Whether a rule that the rows satisfy or not names a column that has no number yet when rows are judged."""
    rest = frame.drop(*(column.name for column in dataset.identities))
    try:
        return _resolved(rest, [rule])[1] != _resolved(frame, [rule])[1]
    except PySparkException:
        return True


def _of_identity(dataset: Dataset, rule: Expectation) -> LakeletError:
    return LakeletError(
        "NOT_SUPPORTED_YET",
        f"the rule {rule.name!r} of {dataset.name} names an IDENTITY column: {rule.text}",
        where=rule.where,
        dataset=str(dataset.name),
        why="Rows are judged before they are written, and get their numbers then.",
        todo="Leave the column out of the rule, or judge it in a table that reads this one.",
    )


def _resolved(frame: DataFrame, rules: Sequence[Expectation]) -> tuple[list[Any], frozenset[int], list[_ImpossibleCast | None]]:
    """Return the types of the constraints, which of them name columns that the query leaves out (EP-14), and what they cannot cast.

    Raises what Spark raises.
    """
    with_checks, found = checked(frame, [constraint(rule) for rule in rules])
    struct: Any = with_checks.schema[CHECKS].dataType
    casts = _impossible_casts(with_checks, [rule.text if isinstance(rule.constraint, str) else None for rule in rules])
    return [field.dataType for field in struct.fields], found.below, casts


def _notice(dataset: Dataset, rule: Expectation) -> Notice:
    text = (
        f"expectation {rule.name!r} of {dataset.name} names a column that the query leaves out or renames at its end: {rule.text}. "
        "It is judged on the value before that"
    )
    return Notice(text, rule.where)


def _rule_problem(dataset: Dataset, frame: DataFrame, rule: Expectation) -> LakeletError | None:
    columns = f"{', '.join(frame.columns[:12])}{' …' if len(frame.columns) > 12 else ''}"
    missing: str | None = None
    cause: PySparkException | None = None
    why, todo = None, f"The rule is judged on the columns of {dataset.name}: {columns}"
    try:
        (found,), _, (cast,) = _resolved(frame, [rule])
        nearest: tuple[str, ...] = ()
        if cast is not None:
            problem = f"compares {cast.value} with a value of type {cast.kind}"
            why = f"{cast.value} is not a {cast.kind}: the rule would fail the flow at the first row"
            columns = ", ".join(f"{name} {kind.upper()}" for name, kind in frame.dtypes[:12]) + (" …" if len(frame.columns) > 12 else "")
            todo = f"Compare values of one type. The columns of {dataset.name}: {columns}"
        elif isinstance(found, BooleanType | NullType):
            return None
        else:
            problem = f"is {found.simpleString()}, not boolean"
            todo = "Write a condition, for example `amount > 0`."
    except PySparkException as error:
        cause = error
        problem, nearest, missing = "does not analyse", unresolved_nearest(error, frame.columns), unresolved_name(error)
        why = without_proposal(first_line(error))
        lost = _LOST.get(lost_in(frame, missing) or "") if missing else None
        if missing and lost:
            problem, why = f"names {missing}, which the result of the query does not have", lost.format(missing, columns)
            todo = f"Let the query return {missing}, or put the rule on a dataset that it reads."
    problem_found = LakeletError(
        "EXPECTATION_INVALID",
        f"expectation {rule.name!r} {problem}: {rule.text}",
        where=pointed(rule.where, missing),
        dataset=str(dataset.name),
        why=why,
        nearest=nearest,
        todo=todo,
    )
    problem_found.__cause__ = cause
    return problem_found


# --- casts of constants ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ImpossibleCast:
    """A constant, as SQL writes it, and the type that it cannot be cast to."""

    value: str
    kind: str


def _impossible_casts(with_checks: DataFrame, texts: Sequence[str | None]) -> list[_ImpossibleCast | None]:
    """The first such cast of each condition of `resolution.checked`. `texts`: of the conditions, None for a Column.

    Looks only at conditions with a quoted text: each look at a node is a call to Java.
    """
    asked = [i for i, text in enumerate(texts) if text is None or _LITERAL.search(text)]
    found: list[_ImpossibleCast | None] = [None] * len(texts)
    if asked:
        plan = analyzed(with_checks)
        struct = plan.projectList().last().child().children()  # name, value, name, value …
        spark = with_checks.sparkSession
        for i in asked:
            found[i] = next(_failing_casts(spark, _condition(plan, struct.apply(2 * i + 1))), None)
    return found


def _condition(plan: Any, value: Any) -> Any:
    """The condition itself, where `value` is the column in which a projection below has put its result (EP-12, EP-14)."""
    name = str(value.name()) if value.nodeName() == "AttributeReference" else ""
    while name.startswith(RESULT) and plan.children().size() == 1:
        plan = plan.children().apply(0)
        if plan.nodeName() == "Project":
            made = next((one for one in items(plan.projectList()) if one.nodeName() == "Alias" and str(one.name()) == name), None)
            if made is not None:
                return made.child()
    return value


def _failing_casts(spark: SparkSession, expression: Any) -> Iterator[_ImpossibleCast]:
    if not uses(spark, expression, "CAST"):
        return
    if expression.nodeName() == "Cast" and expression.foldable():
        try:
            expression.eval(None)
        except (Py4JJavaError, PySparkException):
            yield _ImpossibleCast(str(expression.child().sql()), str(expression.dataType().sql()))
        return
    for child in items(expression.children()):
        yield from _failing_casts(spark, child)


__all__ = ["RuleFindings", "check_rules"]
