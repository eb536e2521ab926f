"""Previews of a dataset: its columns compared with the stored ones, some rows, and its rules counted over them. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import DefinitionErrors, LakeletError, nearest_names
from lakelet.base.names import split_name
from lakelet.base.phases import report

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.analysis.results import AnalyzedDataset
    from lakelet.flows.context import FlowTask
    from lakelet.language.model import Dataset
    from lakelet.pipeline import Pipeline
    from lakelet.update.opened import LoadedPipeline


JUDGED_ROWS = 1_000
"""Number of rows that are computed and judged by the rules."""


@dataclass(frozen=True)
class ColumnChange:
    """A column that differs from the stored table. `before`, `after`: Spark's names of its types; None where there is no such column."""

    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class JudgedRule:
    """The counts of a rule over the rows of a preview. `dataset`: the one that the rule belongs to."""

    dataset: str
    name: str
    constraint: str
    action: str
    passed: int
    failed: int


@dataclass(frozen=True)
class Preview:
    """Preview of a dataset.

    Attributes:
        name, kind: of the dataset.
        columns: names and types.
        difference: columns that differ from the stored table; None where nothing is stored.
        rows: some rows as JSON values.
        judged: number of rows that the rules were judged on, dropped ones included.
        dropped: number of them that a rule drops.
        rules: the counts of each rule.
        notes: sentences about the limits of the preview.
    """

    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]
    difference: tuple[ColumnChange, ...] | None
    rows: tuple[Mapping[str, Any], ...]
    judged: int
    dropped: int
    rules: tuple[JudgedRule, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "columns": [{"name": name, "type": kind} for name, kind in self.columns],
            "difference": None if self.difference is None else [vars(change) for change in self.difference],
            "rows": [dict(row) for row in self.rows],
            "judged": self.judged,
            "dropped": self.dropped,
            "rules": [vars(rule) for rule in self.rules],
            "notes": list(self.notes),
        }


def preview(pipeline: Pipeline, name: str, rows: int) -> Preview:
    """Compute some rows of one dataset, view or sink. `rows`: the largest number to return.

    Only this dataset and what it reads are analysed. Raises UNKNOWN_DATASET, PREVIEW_REFUSED, and the errors of the files, the dataset and
    its functions.
    """
    with pipeline.loaded() as loaded:
        if loaded.loaded.errors:
            raise DefinitionErrors(list(loaded.loaded.errors))
        return preview_of(loaded, found_dataset(loaded, name), rows)


def analyzed(loaded: LoadedPipeline, dataset: Dataset) -> AnalyzedDataset:
    """Return the analysis of a dataset; of a view, which has no table, that of its flow alone. Raises its first error."""
    from pyspark.sql.types import StructType

    from lakelet.analysis.results import AnalyzedDataset, AnalyzedFlow
    from lakelet.autoloader import register
    from lakelet.language.model import Kind
    from lakelet.plan.kinds import VIEW

    register(loaded.environment.spark, wrap=False)
    if dataset.kind is not Kind.VIEW:
        return loaded.environment.analyzer.dataset(dataset.name.key)
    facts = AnalyzedFlow(loaded.environment.catalog.flows[dataset.name.key][0], VIEW, StructType())
    return AnalyzedDataset(dataset, Kind.VIEW, StructType(), (facts,))


def preview_of(loaded: LoadedPipeline, dataset: Dataset, rows: int) -> Preview:
    """Compute a preview of a dataset of a loaded pipeline. Raises like `preview`."""
    from lakelet.flows.context import FlowTask

    found = analyzed(loaded, dataset)
    runs = [FlowTask(loaded.environment, found, flow) for flow in found.flows]
    parts = [_part(task, rows, rules=task.declared.changes is None) for task in runs]
    schema = found.schema if found.schema.fields and not parts[0].grown else parts[0].schema
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    return Preview(
        str(dataset.name),
        str(found.kind.value),
        tuple((field.name, field.dataType.simpleString()) for field in schema.fields),
        _difference(loaded, dataset, schema),
        tuple(row for part in parts for row in part.rows)[:rows],
        sum(part.judged for part in parts),
        sum(part.dropped for part in parts),
        tuple(rule for part in parts for rule in part.rules),
        (*notes, *([f"{len(runs)} flows write to it"] if len(runs) > 1 else [])),
    )


def found_dataset(loaded: LoadedPipeline, name: str) -> Dataset:
    """Return the dataset, view or sink with a name. Raises UNKNOWN_DATASET, and PREVIEW_REFUSED for a sink without flows."""
    catalog = loaded.environment.catalog
    try:
        found = catalog.dataset(split_name(name))
    except ValueError:
        found = None
    if found is None or found.name.key not in catalog.flows:
        known = [str(d.name) for d in catalog.datasets.values()]
        nearest = nearest_names(name, [*known, *(text.rpartition(".")[2] for text in known)])
        raise LakeletError("UNKNOWN_DATASET", f"the pipeline defines no {name!r}", nearest=nearest, todo="List all names: lakelet graph")
    if not catalog.flows[found.name.key]:
        what = f"there is no preview: no flow writes to {found.name}"
        raise LakeletError("PREVIEW_REFUSED", what, where=found.where, todo=f'Add one: @dlt.append_flow(target="{found.name.name}")')
    return found


@dataclass(frozen=True)
class _Part:
    """Preview of one flow."""

    schema: StructType
    rows: Sequence[Mapping[str, Any]]
    judged: int
    dropped: int
    rules: tuple[JudgedRule, ...]
    notes: tuple[str, ...]
    grown: bool  # the rows have fields that the analysis did not know


def _part(task: FlowTask, rows: int, *, rules: bool) -> _Part:
    """Compute up to `JUDGED_ROWS` rows of a flow and return the first `rows`. `rules`: whether to judge the dataset's rules on them."""
    from pyspark.errors.exceptions.base import PySparkException
    from pyspark.sql import Observation

    from lakelet.analysis.checks import part_of
    from lakelet.flows.sampling import SAMPLE_FILES, sampled
    from lakelet.inspection.json_values import json_rows
    from lakelet.inspection.spark_queries import collected
    from lakelet.jvm.streams import metrics_of
    from lakelet.spark.errors.diagnosis import run_failure
    from lakelet.spark.errors.user_errors import user_error
    from lakelet.spark.expectations.measure import counts, judged

    report(f"Computing {task.dataset.name}")
    own, watch = task.dataset.expectations if rules else (), Observation("lakelet_preview")
    replaces = task.declared.replaces
    try:
        with sampled(task) as (spark, reader, frame):
            table = collected(judged(part_of(task.declared, frame).limit(JUDGED_ROWS), own, watch))
            seen = counts(own, metrics_of(spark, watch))
    except LakeletError:
        raise
    except PySparkException as problem:
        what = "the preview failed"
        raise run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what) from None
    except Exception as problem:  # raised by the dataset's function
        raise user_error(problem, task.dataset, task.declared) from problem
    notes = [f"files: the newest {SAMPLE_FILES} of a source"] if reader.files.opened else []
    notes += [f"computed, not stored yet: {', '.join(reader.computed)}"] if reader.computed else []
    notes += [] if rules else ["rows of the source: change events before they are applied"]
    notes += [] if replaces is None else [f"rows of the flow, as they come: {replaces.clause} puts them in the place of stored ones"]
    found = tuple(
        JudgedRule(str(task.dataset.name), rule.name, rule.text, rule.action.value, seen.rows - failed, failed)
        for rule, failed in zip(own, seen.failed, strict=True)
    )
    grown = bool(reader.learned) and task.declared.changes is None
    return _Part(frame.schema, list(json_rows(table.slice(0, rows))), seen.rows, seen.dropped, found, tuple(notes), grown)


def _difference(loaded: LoadedPipeline, dataset: Dataset, schema: StructType) -> tuple[ColumnChange, ...] | None:
    """Return the columns that differ from those of the stored table; None where there is no table."""
    from lakelet.files.delta_log import TableLog
    from lakelet.storage.delta.tables import stored_schema

    stored = loaded.environment.storage.registry().datasets.get(dataset.name.key)
    if stored is None or dataset.sink is not None or TableLog(loaded.environment.storage.at(stored.path)).version() < 0:
        return None
    before = _types(stored_schema(loaded.environment.spark, loaded.environment.storage.at(stored.path)))
    after = _types(schema)
    names = [*after, *(key for key in before if key not in after)]
    pairs = [(key, before.get(key), after.get(key)) for key in names]
    return tuple(
        ColumnChange((new or old or ("", ""))[0], old and old[1], new and new[1])
        for _, old, new in pairs
        if (old and old[1]) != (new and new[1])
    )


def _types(schema: StructType) -> dict[str, tuple[str, str]]:
    """Return the name and type of each column by its name in lower case."""
    return {field.name.lower(): (field.name, field.dataType.simpleString()) for field in schema.fields}


__all__ = ["JUDGED_ROWS", "ColumnChange", "JudgedRule", "Preview", "analyzed", "found_dataset", "preview", "preview_of"]
