"""Runs one unit test: the function alone on the given rows where that says all, else real updates in a storage of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import DefinitionErrors, LakeletError, Location, nearest_names
from lakelet.config.named_tables import named_tables
from lakelet.config.path_map import PathMap
from lakelet.config.update_config import PipelineConfig
from lakelet.language.model import Dataset, Flow, Kind
from lakelet.language.wrappers import BOUND
from lakelet.storage.eventlog.states import UpdateState
from lakelet.testing.loading import PipelineFunctions, load_answered, project_root
from lakelet.testing.project import Pairs, Project
from lakelet.testing.row_comparison import Row, columns_of, compared
from lakelet.testing.tables import frame_of
from lakelet.testing.unit_tests.cases import CaseInput, CaseStep, ExpectedResult, FailedUnitTest, UnitTest, wrong_counts
from lakelet.testing.unit_tests.inputs import Frames, GivenTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__tracebackhide__ = True

_NO_COLUMN = "_placeholder"  # a table without rows and types has one column, as sdp-test gives it


def run_test(test: UnitTest, spark: SparkSession, folder: Path) -> None:
    """Run a unit test. `folder`: an empty one of its own, for updates.

    Raises FailedUnitTest, LakeletError, or what the tested code raises.
    """
    with _spark_conf_set(spark, test.spark_conf):
        frames = _input_frames(spark, test.steps[0].given)
        answers = GivenTables(test.settings.namespace, frames)
        loaded = load_answered(test.model, spark=spark, conf=_parameters(test), answers=answers)
        answers.functions = _functions(loaded)
        dataset, function = _tested_function(test, loaded)
        if function is not None and not (test.needs_update or _reads_files(test)):
            list(frames.values())  # those that nobody reads may be wrong too
            _check_frame(function(), test.steps[0].expect, dataset.name.name if dataset else test.function or test.model.stem)
        elif dataset is None:
            raise LakeletError("USAGE", "a function that declares no dataset cannot be updated", where=test.where)
        else:
            needed = _needed_datasets(dataset, loaded, answers)
            _run_updates(test, dataset, Project(folder, _configure(test, folder, needed), spark))


def _input_frames(spark: SparkSession, given: Sequence[CaseInput]) -> Frames:
    """The given rows as frames by table or folder. An update takes them without: it has a table of each."""

    def frame(parts: Sequence[CaseInput]) -> DataFrame:
        made = []
        for one in parts:
            with _located(one.where):
                made.append(frame_of(spark, one.rows, _input_schema(one)))
        return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), made)

    by_name: dict[str, list[CaseInput]] = {}
    for one in given:
        if one.text is None:
            by_name.setdefault(one.name, []).append(one)
    return Frames({name: partial(frame, parts) for name, parts in by_name.items()})


def _input_schema(given: CaseInput) -> Mapping[str, str]:
    return given.schema if given.rows or given.schema else {_NO_COLUMN: "string"}


def _parameters(test: UnitTest) -> dict[str, str]:
    return {"catalog": test.settings.namespace.catalog, **test.settings.parameters}


def _reads_files(test: UnitTest) -> bool:
    """Return whether SQL reads files: only an update maps paths in it."""
    return test.model.suffix == ".sql" and any(given.folder for given in test.steps[0].given)


def _tested_function(test: UnitTest, loaded: PipelineFunctions) -> tuple[Dataset | None, Callable[[], DataFrame] | None]:
    """Return the dataset under test and its function, if a single one makes it; for a plain function of the file, no dataset."""
    name = test.function or (test.model.stem if test.model.suffix == ".py" or len(loaded.datasets) > 1 else next(iter(loaded.datasets), ""))
    found = getattr(loaded.module, name, None) if test.model.suffix == ".py" else None
    bound = getattr(found, BOUND, None)
    if bound is not None:
        name = bound.name
    elif name not in loaded.datasets and callable(found):
        return None, loaded.inside(found)
    if name not in loaded.datasets and test.function is None and len(loaded.datasets) == 1:
        name = next(iter(loaded.datasets))
    if name not in loaded.datasets:
        known = [*loaded.datasets, *(key for key, value in vars(loaded.module).items() if callable(value) and not key.startswith("_"))]
        todo = "Name the function: callable: NAME." if test.function is None else None
        near = nearest_names(name, known)
        raise LakeletError(
            "UNKNOWN_DATASET", f"{test.model.name} has no function or dataset {name!r}", where=test.where, nearest=near, todo=todo
        )
    dataset = loaded.datasets[name]
    flows = loaded.definitions.flows_by_target()[dataset.name.key]
    alone = len(flows) == 1 and _is_plain(flows[0])
    return dataset, loaded.functions[name] if alone else None


def _is_plain(flow: Flow) -> bool:
    """Whether the rows of its function are those of its dataset."""
    return flow.changes is None and flow.replaces is None and flow.default


# ------------------------------------------------------------------------------------------------------------------- one function


def _check_frame(frame: Any, expect: ExpectedResult | None, name: str) -> None:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    if expect is None or expect.rows is None:
        return
    if not isinstance(frame, DataFrame):
        raise FailedUnitTest(expect.where, [f"{name} returned {type(frame).__name__}, not a DataFrame"])
    columns = columns_of(expect.rows) or frame.columns
    _check_columns(name, frame.columns, [column.split(".")[0] for column in columns], expect)
    chosen = frame.select(*(F.col(column).alias(column) for column in columns))
    variants = [field.name for field in chosen.schema if field.dataType.typeName() == "variant"]
    texts = {name: F.col(f"`{name}`").cast("string") for name in _not_in_arrow(chosen) if name not in variants}
    changed = {**{name: F.to_json(F.col(f"`{name}`")) for name in variants}, **texts}
    table = (chosen.withColumns(changed) if changed else chosen).toArrow()
    differing = compared(table, expect.rows, columns, variants)
    if differing:
        raise FailedUnitTest(expect.where, differing.lines(name))


def _not_in_arrow(frame: DataFrame) -> list[str]:
    """Columns of a type that Arrow does not have, such as an interval of months."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    names = []
    for column in frame.schema:
        try:
            to_arrow_type(column.dataType, timezone="UTC")
        except PySparkException:
            names.append(column.name)
    return names


def _check_columns(name: str, there: Sequence[str], wanted: Sequence[str], expect: ExpectedResult) -> None:
    known = {column.lower() for column in there}
    unknown = [column for column in wanted if column.lower() not in known]
    if unknown:
        near = nearest_names(unknown[0], there)
        hint = f"; did you mean {' or '.join(near)}?" if near else f". It has {', '.join(there)}."
        raise FailedUnitTest(expect.where, [f"{name} has no column {unknown[0]!r}{hint}"])


# ------------------------------------------------------------------------------------------------------------------------ updates


def _run_updates(test: UnitTest, dataset: Dataset, project: Project) -> None:
    for number, step in enumerate(test.steps, 1):
        for given in step.given:
            with _located(given.where):
                _put_inputs(project, given)
        if step.expect is not None and step.expect.error is not None:
            _check_error(project, step.expect.error, step.expect.where)
        else:
            project.update()
        lines = _wrong_results(project, dataset, step)
        if lines and step.expect is not None:
            raise FailedUnitTest(step.expect.where, [*([f"after update {number}:"] if len(test.steps) > 1 else []), *lines])


def _put_inputs(project: Project, given: CaseInput) -> None:
    if not given.folder:
        project.insert(given.name, *given.rows, schema=_input_schema(given))
        return
    lines = given.text.splitlines() if given.text is not None else given.rows
    project.arrive(f"{given.name.rstrip('/')}/{given.file or f'{project.arrived}.json'}", *lines)


def _check_error(project: Project, code: str, where: Location) -> None:
    """Run an update that must fail, or be refused, with the code."""
    try:
        project.update(state=UpdateState.FAILED)
        errors: Sequence[LakeletError] = project.errors
    except DefinitionErrors as several:
        errors = several.errors
    except LakeletError as error:
        errors = [error]
    if code not in {error.code for error in errors}:
        raise FailedUnitTest(where, [f"expected the error {code}, found:", *(f"  {line}" for error in errors for line in error.lines())])


def _wrong_results(project: Project, dataset: Dataset, step: CaseStep) -> list[str]:
    """Return the differences from the expected state after an update, as lines."""
    expect = step.expect
    if expect is None:
        return []
    lines: list[str] = []
    name = str(dataset.name)
    if expect.rows is not None:
        if dataset.kind is Kind.VIEW:
            raise LakeletError(
                "USAGE", f"{name} is a view: an update stores no rows of it", where=expect.where, todo="Expect those of a table."
            )
        lines += _table_lines(project, name, expect.rows, expect)
    for other, rows in expect.tables.items():
        lines += _table_lines(project, other, rows, expect)
    metrics = project.metrics(name)
    lines += wrong_counts(metrics.expectations, expect.rules)
    for what, wanted, found in (
        ("dropped", expect.dropped, metrics.dropped_records),
        ("quarantined", expect.quarantined, metrics.quarantined_records),
        ("late", expect.late, metrics.late_records),
    ):
        if wanted is not None and wanted != found:
            lines.append(f"{what}: expected {wanted}, found {found}")
    return lines


def _table_lines(project: Project, name: str, rows: Sequence[Row], expect: ExpectedResult) -> list[str]:
    table = project.table(name)
    columns = columns_of(rows) or table.column_names
    _check_columns(name, table.column_names, columns, expect)
    stored = {column.lower(): column for column in table.column_names}
    chosen = table.select([stored[column.lower()] for column in columns]).rename_columns(columns)
    differing = compared(chosen, rows, columns)
    return differing.lines(name) if differing else []


def _functions(loaded: PipelineFunctions) -> dict[str, Callable[[], DataFrame]]:
    """Return the functions of the file's datasets that a single function makes, by key."""
    flows = loaded.definitions.flows_by_target()
    made_by = {key: found[0] for key, found in flows.items() if len(found) == 1 and _is_plain(found[0])}
    return {key: flow.query for key, flow in made_by.items()}


def _needed_datasets(dataset: Dataset, loaded: PipelineFunctions, answers: GivenTables) -> frozenset[str]:
    """Keys of the dataset under test and of those of the file that it is made of: all that an update has to know of the file."""
    flows, known, waiting = loaded.definitions.flows_by_target(), set[str](), [dataset.name.key]
    if len(flows) == 1:  # nothing else to be found; no function needs to be called
        return frozenset(flows)
    while waiting:
        key = waiting.pop()
        known.add(key)
        for flow in flows[key]:
            waiting += [name for name in _read(flow, loaded, answers) if name in flows and name not in known]
    return frozenset(known)


def _read(flow: Flow, loaded: PipelineFunctions, answers: GivenTables) -> list[str]:
    """Keys of the tables that a flow reads and the test does not give."""
    if flow.changes is not None:
        source = answers.namespace.resolve(flow.changes.source).key if flow.changes.source else None
        return [source] if source is not None and answers.given(source) is None else []
    answers.missed.clear()
    with suppress(Exception):  # it needs what only an update has, such as files; an error of its own the update will show
        loaded.inside(flow.query)()
    return list(answers.missed)


def _configure(test: UnitTest, folder: Path, only: frozenset[str]) -> Callable[[Pairs, Pairs], PipelineConfig]:
    settings, storage = test.settings, folder / "storage"
    root = settings.root if settings.bundle is not None else project_root(test.model)
    above = [parent for parent in test.model.parents if parent.is_relative_to(root)]

    def configure(maps: Pairs, tables: Pairs) -> PipelineConfig:
        return PipelineConfig(
            name=settings.pipeline or test.model.stem,
            pipeline_id=str(folder),
            root=root,
            files=(test.model,),
            import_roots=tuple(dict.fromkeys([root, root / "src", *above])),
            namespace=settings.namespace,
            parameters={**_parameters(test), **test.spark_conf},
            storage=storage,
            paths=replace(PathMap.of(maps, root), kept=(str(storage),), root=str(root), repository=(root,)),
            tables=named_tables(tables, settings.namespace, root),
            only=only,
        )

    return configure


# ------------------------------------------------------------------------------------------------------------------------- helpers


@contextmanager
def _spark_conf_set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Spark's settings of one test."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@contextmanager
def _located(where: Location) -> Iterator[None]:
    """Give errors about inputs of a test their location in the YAML file."""
    try:
        yield
    except LakeletError as error:
        error.where = error.where or where
        raise
