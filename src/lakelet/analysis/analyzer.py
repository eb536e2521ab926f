"""Analyses the declared datasets before anything runs, and single ones again while flows run, on what is stored at that moment.

In: the declarations (`Catalog`) and what the storage knows. Out: an `Analysis`: kinds, columns, dependencies; or all errors in definitions.

Each function is called once with placeholders for the tables it reads (`flow_queries`). An error in a definition refuses the whole update.
A failure may depend on data, on stored tables or on the user's code: a missing folder, another kind of table, an exception in a function.
Such a failure is kept for the run, where it fails its own branch (RE-1, RE-2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakelet.analysis import checks
from lakelet.analysis.failed_queries import Unusable, fails_alone, missing_later, refused, unchecked
from lakelet.analysis.file_sources import FileSources
from lakelet.analysis.flow_queries import AnalysisProgress, FlowQuery
from lakelet.analysis.from_json_checks import assumed, with_remedy
from lakelet.analysis.placeholders import PlaceholderReader, RowsRequested, circle
from lakelet.analysis.plan_facts import Placeholders
from lakelet.analysis.results import Analysis, AnalysisInputs, AnalyzedDataset, AnalyzedFlow, Findings, UnanalyzedDataset
from lakelet.analysis.sink_paths import sink_path
from lakelet.autoloader import register
from lakelet.autoloader.metadata_column import dry_stream
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import DefinitionErrors, ExitCode, LakeletError
from lakelet.base.names import TableName
from lakelet.base.patching import patched_with
from lakelet.base.phases import report
from lakelet.cdc import identity
from lakelet.files.delta_log import TableLog
from lakelet.jvm.frames import loaded
from lakelet.jvm.sessions import plain_reader
from lakelet.language.failed_parts import FailedParts
from lakelet.language.loader import LoadedSources
from lakelet.language.model import Dataset, Flow, Kind
from lakelet.language.registry import Notice, name_left_out, reading
from lakelet.plan.graph import Graph, GraphNode, stored_inputs, topological
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.errors.user_errors import coded
from lakelet.spark.launch.forks import start_ahead
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.patches.session_patches import CALL_SITES
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.root import Storage, StoredDataset

_Result = TypeVar("_Result")

# Errors that may disappear once the function has rows to look at, and with them the columns.
_OF_COLUMNS = {
    *("QUERY_FAILED_ANALYSIS", "SCHEMA_MISMATCH", "SCHEMA_INCOMPATIBLE", "EXPECTATION_INVALID"),
    *("CDC_UNKNOWN_COLUMN", "CDC_STATE_CHANGED", "CDC_RESERVED_COLUMN"),
}


@dataclass(frozen=True)
class Analyzer:
    """Analyses the datasets of a pipeline. `sources`: opens their files; `has_run`: whether a flow that runs once has run."""

    spark: UpdateSession
    storage: Storage
    catalog: Catalog
    parameters: Mapping[str, str]
    sources: FileSources
    has_run: Callable[[Flow], bool]

    def pipeline(self, found: LoadedSources, unbound: Set[str], *, checking: bool = False) -> Analysis:
        """Analyse all datasets. `unbound`: keys of those for which it does not count what is stored of them. Raises DefinitionErrors.

        `checking`: also for functions that raise (decision 0044); else they fail their branch of the update.
        """
        register(self.spark, wrap=False)
        unbound = unbound | found.duplicates
        stored = {key: d for key, d in self.storage.registry().datasets.items() if key not in unbound}
        analysis = self._pass(stored, ahead=not checking)
        try:
            with patched_with(CALL_SITES):
                result = analysis.run(found.errors, lost=found.failed_parts, checking=checking)
        except DefinitionErrors as problem:
            findings = analysis.progress.found
            reported = dict.fromkeys([*found.notices, *chain(*findings.notices.values()), *unchecked(findings)])
            errors = sorted(self._with_others(problem.errors, found, stored), key=_place)
            for error in errors:
                if error not in found.errors:
                    name_left_out(error, found.notices)
            raise DefinitionErrors(errors, [f"{notice.where}: {notice.text}" for notice in reported]) from None
        for failure in result.failures.values():
            name_left_out(failure, found.notices)
        return result

    def fingerprint(self, key: str) -> str | None:
        """That of a materialized view, on the columns that its inputs have now; None if it cannot be analysed."""
        found = self._pass(self.storage.registry().datasets).dataset(key)
        return found.flows[0].batch.fingerprint if isinstance(found, AnalyzedDataset) else None

    def dataset(self, key: str) -> AnalyzedDataset:
        """Analyse one dataset on what is stored now. Raises its first error."""
        analysis = self._pass(self.storage.registry().datasets)
        result, found = analysis.dataset(key), analysis.progress.found
        if isinstance(result, AnalyzedDataset):
            return result
        problems = [found.failures.get(key), *found.errors, *found.failures.values()]
        raise next((p for p in problems if p is not None), None) or LakeletError("FLOW_FAILED", "it could not be analysed", dataset=key)

    def _with_others(
        self, errors: Sequence[LakeletError], found: LoadedSources, stored: Mapping[str, StoredDataset]
    ) -> Sequence[LakeletError]:
        """The errors of a pipeline, and those in the further definitions of a name that has several.

        A dataset that is right with one of them has no error: that would be a consequence. Of the others the errors count that they have
        with the definition with which the fewest are wrong.
        """
        passes = [errors]
        for definitions in found.others:
            other = replace(self, catalog=self.catalog.other(definitions))
            try:
                with patched_with(CALL_SITES):
                    other._pass(stored).run(found.errors, lost=found.failed_parts, checking=True)
            except DefinitionErrors as more:
                passes.append(more.errors)
        twice = {str(self.catalog.datasets[key].name) for key in found.duplicates}
        own = [[error for error in one if error.dataset in twice] for one in passes]
        broken = [sum(error.code != "EXPECTATION_INVALID" for error in wrong) for wrong in own]  # what reads such a one is not analysed
        sound = [one for one, count in zip(passes, broken, strict=True) if count == min(broken)]
        names = [{error.dataset for error in one} for one in sound]
        best = [error for error in min(sound, key=len) if all(error.dataset in wrong for wrong in names)]
        return list({_facts(error): error for error in chain(best, *own)}.values())

    def _pass(self, stored: Mapping[str, StoredDataset], *, ahead: bool = False) -> AnalysisPass:
        """`ahead`: start the fork server at the first cloudFiles source, for what is analysed will run; Spark reads those in Python."""
        progress, placeholders = AnalysisProgress(), Placeholders(self.spark)
        inputs = AnalysisInputs(
            spark=self.spark,
            catalog=self.catalog,
            stored=stored,
            parameters=self.parameters,
            placeholders=placeholders,
            files=_PlaceholderFiles(self.sources, placeholders, progress.found, ahead),
            open_rows=self._rows,
            json_schemas=self.sources.json_schemas,
            has_run=self.has_run,
            made_with=partial(identity.made_with, self.storage),
            ever_run=self.storage.registry().last_update is not None,
        )
        return AnalysisPass(inputs, progress)

    def _rows(self, dataset: Dataset, jreader: Any) -> DataFrame | None:
        """The rows that a dataset has now, read with the options of `jreader`; None where it has no table yet."""
        path = self.storage.table_path(dataset.name)
        if TableLog(path).version() < 0:
            return None
        reader = jreader or plain_reader(self.spark)
        return loaded(self.spark, reader, "delta", str(path))


@dataclass(frozen=True)
class _PlaceholderFiles:
    """Opens cloudFiles sources as analysis sees them: columns and hidden metadata, nothing read or written. `ahead`: see `Analyzer`."""

    sources: FileSources
    placeholders: Placeholders
    found: Findings
    ahead: bool

    def open(self, flow: Flow, number: int, spec: SourceSpec) -> DataFrame:
        if self.ahead:
            start_ahead()
        source = self.sources.open(flow, number, spec, dry=True)
        self.found.notice(flow, *(Notice(text, spec.where or flow.where) for text in source.notices))
        return dry_stream(source.schema(), lambda schema: self.placeholders.source(number, schema))


@dataclass(frozen=True, eq=False)
class AnalysisPass:
    """One pass over the datasets: each is analysed when it, or what reads it, has its turn."""

    inputs: AnalysisInputs
    progress: AnalysisProgress = field(default_factory=AnalysisProgress)

    def run(self, found: Sequence[LakeletError] = (), *, lost: FailedParts | None = None, checking: bool = False) -> Analysis:
        """Analyse every dataset. Raises DefinitionErrors with all errors: those `found` before, and those of the queries.

        `lost`: what did not run of the sources. A name that it may declare is not reported as unknown.
        `checking`: a function that raises is an error, unless only an update can check it (decision 0044); so it is beside other errors.
        """
        lost, progress, datasets = lost or FailedParts(), self.progress, self.inputs.catalog.datasets
        stored = sum(dataset.kind is not Kind.VIEW for dataset in datasets.values())
        for dataset in datasets.values():
            report("Analysing", len(progress.done), stored)
            if dataset.kind is Kind.VIEW:
                self._check_unread_view(dataset)
            else:
                self._analyzed(dataset)
        findings = progress.found
        errors = [*found, *(e for e in findings.errors if not (isinstance(e, MissingTable) and lost.may_declare(e.name)))]
        if checking or errors:
            errors += refused(findings, lost)
        if errors:
            raise DefinitionErrors(_distinct(errors))
        inputs = {key: [n.key for n in node.inputs] for key, node in progress.nodes.items()}
        order = topological([k for k in datasets if k in progress.nodes], inputs)
        graph = Graph(tuple(progress.nodes[key] for key in order))
        notices = {flow: tuple(about) for flow, about in findings.notices.items()}
        return Analysis(graph, progress.done, findings.failures, notices, unchecked(findings))

    def dataset(self, key: str) -> AnalyzedDataset | UnanalyzedDataset:
        """Analyse one dataset and what it reads."""
        return self._analyzed(self.inputs.catalog.datasets[key])

    # ------------------------------------------------------------------------------------ called back by the reader

    def usable(self, dataset: Dataset) -> AnalyzedDataset:
        """Return the analysis of a stored dataset that a query reads. Raises Unusable if it failed."""
        result, found, key = self._analyzed(dataset), self.progress.found, dataset.name.key
        readers = [d.name.key for d in self.progress.stack]
        if key in found.uncertain | found.fields_unknown:
            found.uncertain.update(readers)
        if key in found.below_unknown | found.fields_unknown:
            found.below_unknown.update(readers)
        if isinstance(result, UnanalyzedDataset):
            raise Unusable
        return result

    @contextmanager
    def without_cycle(self, dataset: Dataset) -> Iterator[None]:
        """Record CYCLE and raise Unusable if resolving `dataset` in the block leads back to itself."""
        stack = self.progress.stack
        keys = [d.name.key for d in stack]
        if dataset.name.key in keys:
            self.progress.found.errors.append(circle(*stack[keys.index(dataset.name.key) :]))
            raise Unusable
        # A view is entered here; a stored dataset by `_analyzed`, which keeps its result.
        if dataset.kind is Kind.VIEW:
            stack.append(dataset)
            try:
                yield
            except Unusable:
                raise
            except Exception as error:  # raised by a function of the user's
                raise Unusable(self._recorded(error, dataset, self._flow_of_view(dataset))) from None
            finally:
                stack.pop()
        else:
            yield

    def check_view(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Record a view's node and check its rules, the first time that a query reads it."""
        progress, key = self.progress, dataset.name.key
        if key in progress.checked_views:
            return
        before = len(progress.found.errors)
        progress.check_rules(dataset, self._flow_of_view(dataset), frame)
        if len(progress.found.errors) > before:
            raise Unusable
        progress.checked_views.add(key)
        progress.nodes[key] = self._node(dataset, frame.schema, reads, {})

    def note_failed_view(self, dataset: Dataset, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Record what a view reads that could not be opened: what reads the view is skipped with what failed above it."""
        self.progress.nodes.setdefault(dataset.name.key, self._node(dataset, StructType(), reads, {}))

    # ------------------------------------------------------------------------------------------------------- inside

    def _flow_of_view(self, dataset: Dataset) -> Flow:
        return self.inputs.catalog.flows[dataset.name.key][0]

    def _check_unread_view(self, dataset: Dataset) -> None:
        if dataset.name.key in self.progress.nodes:
            return
        flow = self._flow_of_view(dataset)
        self._run_guarded(dataset, flow, lambda: self._analyze_unread_view(self._reader(flow), dataset))
        self.progress.nodes.setdefault(dataset.name.key, self._node(dataset, StructType(), {}, {}))

    def _analyze_unread_view(self, reader: PlaceholderReader, dataset: Dataset) -> None:
        """Analyse a view that no analysed flow reads; a second time if its function asks for rows, as flows do."""
        flow = self._flow_of_view(dataset)
        conf = {**dataset.spark_conf, **flow.spark_conf}
        with reading(reader), self.progress.configured_session(self.inputs.spark, conf, flow), self.without_cycle(dataset):
            with suppress(RowsRequested):
                reader.query_of_view(dataset)
                return
            reader.restart()
            reader.query_of_view(dataset)

    def _analyzed(self, dataset: Dataset) -> AnalyzedDataset | UnanalyzedDataset:
        key = dataset.name.key
        if key in self.progress.done:
            return self.progress.done[key]
        self.progress.stack.append(dataset)
        try:
            flows = [self._flow(dataset, flow) for flow in self.inputs.catalog.flows[key]]
        finally:
            self.progress.stack.pop()
        usable = [f for f in flows if f is not None]
        result: AnalyzedDataset | None = None
        if len(usable) == len(flows) and usable:
            result = self._run_guarded(dataset, usable[0].declared, lambda: self._dataset(dataset, usable))
        self.progress.done[key] = result or UnanalyzedDataset(dataset)
        return self.progress.done[key]

    def _dataset(self, dataset: Dataset, flows: list[AnalyzedFlow]) -> AnalyzedDataset:
        kind, key, nodes, spark = dataset.kind, dataset.name.key, self.progress.nodes, self.inputs.spark
        if kind is Kind.TABLE:
            own = next(f for f in flows if f.declared.default)
            kind = Kind.STREAMING_TABLE if own.kind.streams else Kind.MATERIALIZED_VIEW
        stored = self.inputs.stored.get(key)
        checks.check_flows(dataset, kind, [f.declared for f in flows], stored)
        checks.check_refresh_policy(dataset, kind, flows[0].batch)
        inputs = tuple(i for i in stored_inputs(nodes, key) if i != key)
        if dataset.sink is not None:
            checks.check_sink_package(dataset, spark)
            sink_path(dataset, self.inputs.catalog)
            nodes[key] = replace(nodes[key], kind=kind, columns=())
            return AnalyzedDataset(dataset, kind, StructType(), tuple(flows), inputs)
        found = [f.schema for f in flows]
        if key in self.progress.found.fields_unknown:
            found = [assumed(schema, dataset, stored, spark) for schema in found]
        schema = checks.table_schema(dataset, kind, found, stored, spark, has_run=self.inputs.ever_run)
        nodes[key] = replace(nodes[key], kind=kind, columns=_columns(schema))
        return AnalyzedDataset(dataset, kind, schema, tuple(flows), inputs)

    def _flow(self, dataset: Dataset, flow: Flow) -> AnalyzedFlow | None:
        """Analyse a flow, and record what it reads also where that fails; then return None."""
        reader, nodes = self._reader(flow), self.progress.nodes
        query = FlowQuery(self.inputs, self.progress, dataset, flow, reader)
        result = self._run_guarded(dataset, flow, query.analyzed)
        node = self._node(dataset, self.progress.columns.get(flow.name, StructType()), reader.reads, reader.external)
        before = nodes.get(dataset.name.key)
        if before is not None:
            inputs = tuple(dict.fromkeys((*before.inputs, *node.inputs)))
            node = replace(node, inputs=inputs, external=tuple(dict.fromkeys((*before.external, *node.external))))
        nodes[dataset.name.key] = node
        return result

    def _reader(self, flow: Flow) -> PlaceholderReader:
        inputs = self.inputs
        return PlaceholderReader(
            inputs.spark, inputs.catalog, flow=flow, files=inputs.files, given=inputs, found=self.progress.found, resolver=self
        )

    def _node(
        self, dataset: Dataset, schema: StructType, reads: Mapping[tuple[str, bool], TableName], external: Mapping[str, None]
    ) -> GraphNode:
        return GraphNode(
            name=dataset.name,
            kind=dataset.kind,
            inputs=tuple(dict.fromkeys(reads.values())),
            external=tuple(external),
            flows=tuple(f.name for f in self.inputs.catalog.flows[dataset.name.key]),
            columns=_columns(schema),
            expectations=dataset.expectations,
            where=dataset.where,
        )

    def _run_guarded(self, dataset: Dataset, flow: Flow, work: Callable[[], _Result]) -> _Result | None:
        """Run `work` and return its result; on failure return None and record a definition error, or a failure for the update to report."""
        found = self.progress.found
        try:
            return work()
        except Unusable as unusable:
            failure = unusable.failure
            found.errors += self._further_missing(unusable, dataset, flow)
        except Exception as error:  # raised by a function of the user's, or by Spark about its query
            failure = self._recorded(error, dataset, flow)
        if failure is not None:
            found.failures.setdefault(dataset.name.key, failure)
        return None

    def _recorded(self, error: Exception, dataset: Dataset, flow: Flow) -> LakeletError | None:
        """Record a definition error, and those of further tables that the query does not find; return an error that only the update is to
        report, else None.
        """
        found = self.progress.found
        further, problem = self._further_missing(error, dataset, flow), with_remedy(coded(error, dataset, flow), dataset, found)
        if problem.code == "SCHEMA_OUTGROWN":
            found.notice(flow, Notice(f"an update fails {dataset.name}: {problem.what}", dataset.where))
        only_in_update = problem.exit_code is ExitCode.FAILED or (problem.code in _OF_COLUMNS and self.progress.is_uncertain(dataset))
        only_in_update = only_in_update or fails_alone(problem, stored=dataset.name.key in self.inputs.stored)
        found.errors += further if only_in_update else [problem, *further]
        return problem if only_in_update else None

    def _further_missing(self, error: Exception, dataset: Dataset, flow: Flow) -> list[LakeletError]:
        """Return the errors about tables that a query does not find besides the error that it ended with."""
        reader = self._reader(flow)
        with reading(reader):
            found = [*getattr(error, "others", ()), *missing_later(flow, error, reader.batch)]
        for missing in found:
            missing.dataset = str(dataset.name)
        return found


def _columns(schema: StructType) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, f.dataType.simpleString()) for f in schema.fields)


def _distinct(errors: list[LakeletError]) -> list[LakeletError]:
    """Return each error once: one inside a view occurs for every reader of the view."""
    return list({_facts(e): e for e in reversed(errors)}.values())[::-1]


def _facts(error: LakeletError) -> tuple[str | None, ...]:
    """What two errors have in common that are the same one."""
    return error.code, str(error.where), error.what, error.why


def _place(error: LakeletError) -> tuple[str, int, int, int]:
    """Where an error is, so that those of a file stand in the order of its lines."""
    where = error.where
    return ("", 0, 0, 0) if where is None else (where.file, where.cell or 0, where.line, where.column or 0)


__all__ = ["AnalysisPass", "Analyzer"]
