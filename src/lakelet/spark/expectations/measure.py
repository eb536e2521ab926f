"""One pass over the rows: evaluate every rule, count, drop.

A struct of booleans is added, `observe` counts it while the rows flow to the table, a filter drops, the struct is taken off again.
Nothing here starts a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.jvm.expressions import uses
from lakelet.jvm.frames import analyzed
from lakelet.language.model import Action, Expectation
from lakelet.spark.expectations.resolution import CHECKS, RESULT, checked, on_own_columns
from lakelet.spark.expectations.samples import NO_SAMPLES, SamplePolicy, rows_in_sample
from lakelet.storage.delta.split_write import LEAVING, LEAVING_TYPE
from lakelet.storage.rule_counts import RowSample, RuleCount

SOURCE_FILE = f"{RESULT}file"
"""A column that a stream may have for `judged`: the file that a row comes from."""
VIOLATION = "[EXPECTATION_VIOLATION] "
"""How the text begins with which `enforced` fails a job; JSON for `violations.violation_in` follows."""


@dataclass(frozen=True)
class Counts:
    """What one pass found. `rows` and `failed` are over rows before dropping; a NULL result counts as failed (EP-2).

    `violation`: JSON `{"rules": [...], "row": {...}}` of one row that breaks a fail rule, or None. `samples`: for each rule a few rows that
    break it, as JSON text and the file; empty where none were kept.
    """

    rows: int
    dropped: int
    failed: tuple[int, ...]
    violation: str | None
    samples: tuple[tuple[tuple[str, str | None], ...], ...] = ()

    @property
    def kept(self) -> int:
        return self.rows - self.dropped


@dataclass(frozen=True)
class JudgedRows:
    """The rows of one dataset or view in one batch, judged by its rules."""

    dataset: str
    rules: Sequence[Expectation]
    counts: Counts

    @property
    def fullness(self) -> tuple[bool, int]:
        """Orders several counts of the same rows: the greatest is the one to take."""
        return self.counts.violation is not None, self.counts.rows

    def rule_counts(self) -> tuple[RuleCount, ...]:
        """The counts of each rule (EP-8)."""
        counted = zip(self.rules, self.counts.failed, strict=True)
        return tuple(RuleCount(rule.name, self.dataset, self.counts.rows - failed, failed) for rule, failed in counted)

    def row_samples(self) -> tuple[RowSample, ...]:
        """A few rows that broke each rule."""
        kept = zip(self.rules, self.counts.samples, strict=True) if self.counts.samples else ()
        return tuple(RowSample(rule.name, self.dataset, row, file) for rule, rows in kept for row, file in rows)


def predicate(expectation: Expectation) -> Column:
    """The constraint as a Column that is never NULL."""
    return F.coalesce(constraint(expectation), F.lit(False))


def constraint(expectation: Expectation) -> Column:
    """The constraint as a Column, NULL where it is."""
    return F.expr(expectation.constraint) if isinstance(expectation.constraint, str) else expectation.constraint


def with_hidden_results(stream: DataFrame, rules: Sequence[Expectation]) -> tuple[DataFrame, tuple[Expectation, ...]]:
    """Return the stream with a column for the result of each rule that needs more than its columns, and the rules for its micro-batches.

    A micro-batch has neither the columns that a join by name hides (`other.id`, EP-12) nor those that the query leaves out (EP-14).
    `judged` drops the results. Raises what Spark raises about a rule that finds its columns nowhere.
    """
    if not rules:
        return stream, ()
    conditions = [predicate(rule) for rule in rules]
    found = on_own_columns(stream, conditions)
    pairs = zip(rules, conditions, found.conditions, strict=True)
    changed = (rule if after is before else replace(rule, constraint=after, written=rule.text) for rule, before, after in pairs)
    return found.rows, tuple(changed)


def judged(
    rows: DataFrame,
    rules: Sequence[Expectation],
    watch: Observation | str,
    *,
    hold: bool = False,
    samples: SamplePolicy = NO_SAMPLES,
) -> DataFrame:
    """The rows that break no drop rule; their counts arrive under `watch` once the rows have been written.

    `hold`: all rows, and in the column `LEAVING` what a quarantine is to know of those that break one. `samples`: which of the rows that
    break a rule are kept with the counts.

    Rules are judged on the incoming row, so their order does not matter (EP-4). Rows that break a fail rule stay in: the caller refuses the
    whole write when `Counts.violation` is set. Rules that only count are counted on the rows as they are: the struct of booleans would cost
    two more copies of each row.
    """
    counted = [F.count(F.lit(1)).alias("rows")]
    if not rules:
        return rows.observe(watch, *counted)
    with_checks, found = checked(rows, [predicate(rule) for rule in rules])
    rows, conditions = found.rows, found.conditions
    columns = [name for name in rows.columns if not name.startswith(RESULT)]
    results = [name for name in rows.columns if name.startswith(RESULT)]
    if not hold and all(rule.action is Action.WARN for rule in rules) and _are_countable(rows, with_checks):
        counted += [F.count(F.when(~condition, F.lit(1))).alias(f"f{i}") for i, condition in enumerate(conditions)]
        counted += _samples(rows, rules, [~condition for condition in conditions], samples)
        return rows.observe(watch, *counted).drop(*results)
    failed = [~F.col(f"{CHECKS}.r{i}") for i in range(len(rules))]
    drops = [failed[i] for i, rule in enumerate(rules) if rule.action is Action.DROP]
    fails = [i for i, rule in enumerate(rules) if rule.action is Action.FAIL]
    counted += [F.count_if(condition).alias(f"f{i}") for i, condition in enumerate(failed)]
    if drops:
        counted.append(F.count_if(_any(drops)).alias("dropped"))
    if fails:
        violation = _violation_json(rules, fails, failed, [samples.value_of(name) for name in columns])
        counted.append(F.min(F.when(_any([failed[i] for i in fails]), violation)).alias("violation"))
    counted += _samples(rows, rules, failed, samples)
    observed = with_checks.observe(watch, *counted)
    if hold:
        return observed.withColumn(LEAVING, _held(rows, rules, failed, drops)).drop(CHECKS, *results)
    return (observed.filter(~_any(drops)) if drops else observed).drop(CHECKS, *results)


def _samples(rows: DataFrame, rules: Sequence[Expectation], failed: Sequence[Column], policy: SamplePolicy) -> list[Column]:
    """The columns `s0`, `s1` … for `observe`, of the rules that have something to show."""
    if not policy.rows:
        return []
    schema = T.StructType([field for field in rows.schema.fields if not field.name.startswith(RESULT)])
    file = SOURCE_FILE if SOURCE_FILE in rows.columns else None
    found = [policy.column(rule, schema, condition, file) for rule, condition in zip(rules, failed, strict=True)]
    return [column.alias(f"s{i}") for i, column in enumerate(found) if column is not None]


def _are_countable(rows: DataFrame, with_checks: DataFrame) -> bool:
    """Whether Spark can evaluate the rules where it observes: they are deterministic expressions over the rows and nothing else.

    A rule with a subquery, a window or a Python function needs an operator of its own below the one that observes.
    """
    plan = analyzed(with_checks)
    if not plan.child().equals(analyzed(rows)):
        return False
    rules = plan.projectList().last()
    return bool(rules.deterministic()) and not uses(rows.sparkSession, rules, "PYTHON_UDF", "PLAN_EXPRESSION")


def enforced(rows: DataFrame, rules: Sequence[Expectation], view: str, samples: SamplePolicy = NO_SAMPLES) -> DataFrame:
    """The rows that break no drop rule, uncounted; the job that reads one that breaks a fail rule fails (for sinks, SK-9).

    Rules of views only: where the rows go cannot be rolled back when counts are known. `samples`: says which columns are personal.
    """
    columns = rows.columns
    _, found = checked(rows, [predicate(rule) for rule in rules])
    failed = [~condition for condition in found.conditions]
    drops = [failed[i] for i, rule in enumerate(rules) if rule.action is Action.DROP]
    fails = [i for i, rule in enumerate(rules) if rule.action is Action.FAIL]
    kept = ~_any(drops) if drops else F.lit(True)
    if fails:
        names = F.filter(F.array(*(F.when(failed[i], _described(rules[i])) for i in fails)), lambda rule: rule.isNotNull())
        row = F.struct(*(samples.value_of(name) for name in columns))
        detail = F.to_json(F.struct(F.lit(view).alias("view"), names.alias("rules"), row.alias("row")), {"ignoreNullFields": "false"})
        text = F.concat(F.lit(VIOLATION), detail)
        kept = F.when(_any([failed[i] for i in fails]), F.raise_error(text).cast("boolean")).otherwise(kept)
    results = [name for name in found.rows.columns if name.startswith(RESULT)]
    passed = found.rows.filter(kept) if drops or fails else rows
    return passed.drop(*results) if results else passed


def _described(rule: Expectation) -> Column:
    about = {"name": rule.name, "constraint": rule.text, "file": rule.where.file, "line": rule.where.line}
    return F.struct(*(F.lit(value).alias(key) for key, value in about.items()))


def _held(rows: DataFrame, rules: Sequence[Expectation], failed: Sequence[Column], drops: Sequence[Column]) -> Column:
    """The column `LEAVING`: all rules that a row breaks, and its file where that is known; NULL unless one of them drops it."""
    if not drops:
        return F.lit(None).cast(LEAVING_TYPE)
    names = F.filter(F.array(*(F.when(failed[i], F.lit(rule.name)) for i, rule in enumerate(rules))), lambda name: name.isNotNull())
    file = F.col(SOURCE_FILE) if SOURCE_FILE in rows.columns else F.lit(None).cast("string")
    return F.when(_any(drops), F.struct(names.alias("rules"), file.alias("file")))


def judged_again(
    rows: DataFrame, rules: Sequence[Expectation], watch: Observation, held: Column, *, broken: str, released: tuple[str, str]
) -> DataFrame:
    """All rows of a quarantine, those that are `held` judged by rules that may have changed.

    A row that breaks neither a drop rule nor a fail rule gets the value `released` names in the column it names; one that does gets the
    names of the rules that it breaks now in `broken`. Counted under `watch` are the held rows: `Counts.dropped` are those that stay.
    """
    results = [predicate(rule) for rule in rules]
    with_checks = rows.withColumn(CHECKS, F.struct(held.alias("held"), *(result.alias(f"r{i}") for i, result in enumerate(results))))
    judges = F.col(f"{CHECKS}.held")
    failed = [judges & ~F.col(f"{CHECKS}.r{i}") for i in range(len(rules))]
    keeps = [failed[i] for i, rule in enumerate(rules) if rule.action is not Action.WARN]
    stays = _any(keeps) if keeps else F.lit(False)
    counted = [F.count_if(judges).alias("rows"), F.count_if(judges & stays).alias("dropped")]
    counted += [F.count_if(condition).alias(f"f{i}") for i, condition in enumerate(failed)]
    names = F.filter(F.array(*(F.when(f, F.lit(r.name)) for f, r in zip(failed, rules, strict=True))), lambda name: name.isNotNull())
    column, value = released
    found = with_checks.observe(watch, *counted).withColumns(
        {
            column: F.when(judges & ~stays, F.lit(value)).otherwise(F.col(column)),
            broken: F.when(judges & stays, names).otherwise(F.col(broken)) if rules else F.col(broken),
        }
    )
    return found.drop(CHECKS)


def _any(conditions: Sequence[Column]) -> Column:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result | condition
    return result


def _violation_json(rules: Sequence[Expectation], fails: Sequence[int], failed: Sequence[Column], columns: Sequence[Column]) -> Column:
    names = F.filter(F.array(*(F.when(failed[i], F.lit(rules[i].name)) for i in fails)), lambda name: name.isNotNull())
    row = F.struct(*columns)
    return F.to_json(F.struct(names.alias("rules"), row.alias("row")), {"ignoreNullFields": "false"})


def counts(rules: Sequence[Expectation], observed: Mapping[str, Any] | None) -> Counts:
    """The observation's values as Counts; None: there was no row."""
    if observed is None:
        return Counts(0, 0, (0,) * len(rules), None)
    return Counts(
        rows=int(observed["rows"]),
        dropped=int(observed.get("dropped") or 0),
        failed=tuple(int(observed[f"f{i}"]) for i in range(len(rules))),
        violation=observed.get("violation"),
        samples=tuple(rows_in_sample(observed.get(f"s{i}")) for i in range(len(rules))),
    )
