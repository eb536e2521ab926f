"""The public facade: load a pipeline, look at it, plan it, run it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import DefinitionErrors, LakeletError, Location, distinct
from lakelet.base.redaction import remember_secrets
from lakelet.base.user_code import display_path
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.config.properties import reset_allowed
from lakelet.config.update_config import PipelineConfig, load_config
from lakelet.files.stores import stores_of
from lakelet.language.registry import Notice
from lakelet.plan.checked import Checked
from lakelet.plan.decisions import Plan
from lakelet.plan.explanation import DatasetState
from lakelet.plan.graph import Graph
from lakelet.plan.selection import EVERYTHING, Request, below_failed, forgotten, refuse_in_continuous, select, with_conditions
from lakelet.storage.ownership import Owner, recognised, refused
from lakelet.storage.promotion import finish_promotion, is_unfinished
from lakelet.storage.root import ExistingTables, Storage
from lakelet.storage.root import StorageRegistry as StoredRegistry
from lakelet.update.idle.answer import KnownPipeline, idle_answer, is_asked, known_pipeline
from lakelet.update.input_size import expected_bytes
from lakelet.update.stopping import only_interrupting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelet.flows.replays import ReplayResult
    from lakelet.language.loader import LoadedSources
    from lakelet.quality.definitions import TableCheck
    from lakelet.spark.names.catalog import Catalog
    from lakelet.spark.names.outside import Outside
    from lakelet.storage.eventlog.events import Write
    from lakelet.storage.eventlog.writer import Listener
    from lakelet.update.idle.recording_begun import Recording
    from lakelet.update.opened import LoadedPipeline, OpenedPipeline
    from lakelet.update.promotion import PromotedDataset
    from lakelet.update.result import UpdateResult


_HOSTED_SETTINGS = {"spark.sql.sources.default": "delta", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""Settings of Spark that have another value here. What is read or created without a format is a Delta table, as on Databricks. Timestamps
are written as microseconds: many readers take Spark's own INT96 for nanoseconds, which do not reach beyond 2262."""


def _settings_of_update(config: PipelineConfig, pipeline_id: str) -> dict[str, str]:
    """What code finds in `spark.conf` on Databricks without having set it: frameworks ask where they run."""
    names = {"pipelines.id": pipeline_id, "pipelines.catalog": config.namespace.catalog, "pipelines.schema": config.namespace.schema}
    return {**_HOSTED_SETTINGS, **names, "spark.databricks.unityCatalog.enabled": "true"}


def load(
    source: str | Path = ".",
    *,
    target: str | None = None,
    parameters: Mapping[str, str] | None = None,
    storage: str | Path | None = None,
    catalog: str | None = None,
    schema: str | None = None,
    maps: Mapping[str, str] | None = None,
    tables: Mapping[str, str] | None = None,
    moved: Mapping[str, str] | None = None,
    master: str | None = None,
    spark: SparkSession | None = None,
) -> Pipeline:
    """Return the pipeline of a project, folder or file, configured as `lakelet run` configures it. No source file is run yet.

    Args:
        source: a project folder, a source file, a folder or glob of them.
        target: the bundle's deployment target; None is the bundle's default.
        parameters: the pipeline's configuration, over what the bundle says (`--param`).
        storage: folder or URI of a store of tables, checkpoints and event log (`--storage`).
        catalog, schema: where names without them belong (`--catalog`, `--schema`).
        maps: paths of user code to paths of this machine (`--map`).
        tables: names of tables from outside to their paths (`--table`).
        moved: folders whose files lie elsewhere now, to their new paths (`--moved`).
        master: Spark master of a session that Lakelet starts (`--master`).
        spark: a session of your own, with Delta; None lets Lakelet start one when it is needed.

    Raises DefinitionError (configuration, no sources) and MachineError (a storage that this version cannot use).
    """
    config = load_config(
        [str(source)],
        target=target,
        params=parameters,
        storage=None if storage is None else str(storage),
        catalog=catalog,
        schema=schema,
        master=master,
        maps=tuple((maps or {}).items()),
        tables=tuple((tables or {}).items()),
        moved=tuple((moved or {}).items()),
    )
    return Pipeline(config, spark=spark)


class Pipeline:
    """One pipeline as configured; `load` makes it.

    Args:
        config: files, names, parameters, storage (`lakelet.config.update_config.load_config`).
        spark: session to use; None starts one, or takes the process's own.
    """

    def __init__(self, config: PipelineConfig, *, spark: SparkSession | None = None) -> None:
        self.config = config
        remember_secrets(config.parameters)
        self._spark = spark
        self._lasts = False

    def validate(self, request: Request = EVERYTHING) -> Graph:
        """Load and analyse everything; nothing is written. Raises LakeletError or DefinitionErrors, also for a function that raises."""
        return self.check(request).graph

    def check(self, request: Request = EVERYTHING, *, strict: bool = True, new_process: bool = False) -> Checked:
        """`validate`, with what is accepted without effect and what only an update can check. Raises like it.

        `strict`: also for a function that raises; else that is left to the update. `new_process`: as for `run`; where nothing has changed
        since an update recorded what it found, that is returned without Spark (IF-11).
        """
        known = self.known(request) if new_process else None
        if known is not None:
            return known.checked
        with self._opened(request, str(uuid.uuid4()), checking=strict) as opened:
            return opened.checked()

    def states(self) -> Mapping[str, DatasetState]:
        """Return the state of each dataset after the last update, by key; of several flows the worst."""
        storage = Storage(self.config.storage)
        last = storage.registry().last_update
        if last is None:
            return {}
        from lakelet.storage.eventlog.reading import progress_of

        datasets = progress_of(storage.events, last.id).all_datasets
        return {name.lower(): DatasetState(str(d.state).lower(), d.state.mark) for name, d in datasets.items()}

    @contextmanager
    def opened(self, request: Request = EVERYTHING) -> Iterator[OpenedPipeline]:
        """The loaded and analysed pipeline with its session, for commands that look at it; nothing is written. Raises like `run`."""
        with self._opened(request, str(uuid.uuid4())) as opened:
            yield opened

    def session(self) -> SparkSession:
        """The session that it uses; one must have been given, or started."""
        from pyspark.sql import SparkSession

        found = self._spark or SparkSession._instantiatedSession
        assert found is not None
        return found

    def plan(self, request: Request = EVERYTHING, *, new_process: bool = False) -> Plan:
        """Return what `run` would do now and why; nothing is written. Raises like `validate`.

        `new_process`: as for `check`; a plan that is returned without Spark knows of a view only that it is skipped.
        """
        known = self.known(request) if new_process else None
        if known is not None:
            return Plan(known.steps, unchecked=known.checked.unchecked)
        from lakelet.update.tasks import flow_tasks, planned

        with self._opened(request, str(uuid.uuid4()), checking=True) as opened:
            found = planned(opened.environment, flow_tasks(opened.analysis, opened.environment), opened.selection)
            return replace(found, unchecked=opened.analysis.unchecked, changes=opened.definition_changes())

    def known(self, request: Request = EVERYTHING) -> KnownPipeline | None:
        """What an update recorded, if nothing has changed since then; None where that is not certain."""
        return known_pipeline(self.config) if self._spark is None and is_asked(self.config, request) else None

    def run(self, request: Request = EVERYTHING, *, listeners: Sequence[Listener] = (), new_process: bool = False) -> UpdateResult:
        """Run one update, and others after it as long as it fails and may be tried again. `listeners` get every event as it happens,
        in order, from one thread at a time.

        `new_process`: the process runs this update and nothing else, like that of a command. Then an update that certainly has no work to
        do needs no Spark (IF-3), and other updates record what that takes.

        A flow that fails is in the result, it raises nothing. Raises LakeletError or DefinitionErrors if the pipeline cannot be loaded or
        analysed, or its storage is in use: this attempt wrote nothing. Raises also what stops an update that has begun, KeyboardInterrupt
        included, after the event that says FAILED or CANCELED: what was committed and registered until then stays.
        """
        self._lasts = self.config.continuous
        if self._lasts:
            refuse_in_continuous(request)
        recording = None
        if new_process and self._spark is None and is_asked(self.config, request):
            _ready(Storage(self.config.storage))
            answer = idle_answer(self.config, listeners)
            if answer is not None:
                return answer
            from lakelet.update.idle.recording_begun import Recording

            recording = Recording.begin(self.config)
        result, attempt = self._update(request, listeners, 0, recording), 0
        while result.retry_after is not None:
            time.sleep(result.retry_after)
            attempt += 1
            result = self._update(request, listeners, attempt)
        return result

    def _update(self, request: Request, listeners: Sequence[Listener], attempt: int, recording: Recording | None = None) -> UpdateResult:
        from lakelet.storage.eventlog.writer import EventWriter

        update_id = str(uuid.uuid4())
        _ready(Storage(self.config.storage))
        events = EventWriter(Storage(self.config.storage).events, listeners=listeners)
        with self._opened(request, update_id, events.emit, updating=True, recording=recording) as opened:
            from lakelet.update.update import Update  # after `import_update`

            if attempt:
                opened = replace(opened, selection=opened.selection.without_resets())
            update = Update(opened, events, attempt=attempt, recording=recording)
            with only_interrupting():
                return update.run()

    def replay(self, dataset: str, *, listeners: Sequence[Listener] = ()) -> tuple[UpdateResult, ReplayResult | None]:
        """Judge the rows that the quarantine of a dataset has by its present rules, and give the dataset those that pass.

        It is an update that runs no flow. Return how it ended, and what it did if it did not fail. Raises like `run`, and QUARANTINE_REPLAY
        for a dataset without a quarantine, or one whose rows are computed again as a whole.
        """
        from lakelet.storage.eventlog.writer import EventWriter
        from lakelet.update.update import Replay

        _ready(Storage(self.config.storage))
        events = EventWriter(Storage(self.config.storage).events, listeners=listeners)
        with self._opened(Request(select=(dataset,)), str(uuid.uuid4()), events.emit, updating=True) as opened:
            update = Replay(opened, events)
            with only_interrupting():
                return update.run(), update.found

    def promote(
        self, environment: Storage, *, listeners: Sequence[Listener] = ()
    ) -> tuple[UpdateResult | None, tuple[PromotedDataset, ...]]:
        """Bring the datasets that an environment has written up to date: what was computed there is taken over where it is the same.

        Return how the update ended, and what it did with each dataset; None where the environment has written none of them. Raises like
        `run`.
        """
        from lakelet.storage.eventlog.writer import EventWriter
        from lakelet.update.promotion import Promotion, promoted_selection

        _ready(Storage(self.config.storage))
        events = EventWriter(Storage(self.config.storage).events, listeners=listeners)
        with self._opened(EVERYTHING, str(uuid.uuid4()), events.emit) as opened:
            opened = replace(opened, selection=promoted_selection(opened, environment))
            if not opened.selection.refresh:
                return None, ()
            update = Promotion(opened, events, environment)
            with only_interrupting():
                return update.run(), update.found

    @contextmanager
    def loaded(self) -> Iterator[LoadedPipeline]:
        """The loaded pipeline with its session, not analysed; nothing is written. Raises what makes loading fail as a whole."""
        with self._loaded(str(uuid.uuid4())) as (found, _):
            yield found

    @contextmanager
    def _opened(
        self,
        request: Request,
        update_id: str,
        write: Write = lambda event: None,
        *,
        checking: bool = False,
        updating: bool = False,
        recording: Recording | None = None,
    ) -> Iterator[OpenedPipeline]:
        """`checking`: see `Analyzer.pipeline`. `updating`: an update follows. `recording`: records what is read until the block begins."""
        config = self.config
        with self._loaded(update_id, write, recording, request=request) as (found, end_watching):
            from lakelet.update.dataset_definitions import dataset_definitions, modified_datasets
            from lakelet.update.environment_datasets import prepare_datasets
            from lakelet.update.opened import OpenedPipeline
            from lakelet.update.resets import check_resets

            environment = found.environment
            registry, kept = environment.storage.registry(), _never_reset(environment.catalog)
            unbound = forgotten(request, registry.datasets, config.namespace, kept=kept)
            analysis = environment.analyzer.pipeline(found.loaded, unbound, checking=checking)
            failed = _failed(environment.storage, analysis.graph) if request.refresh_failed else frozenset()
            definitions = dataset_definitions(config, found.loaded, analysis.graph, found.checks)
            modified = modified_datasets(request.select, definitions, environment.storage)
            selection = select(request, analysis.graph, config.namespace, kept=kept, failed=failed, modified=modified)
            if environment.storage.base is not None:
                selection = selection.without(environment.catalog.sinks())
            if updating and prepare_datasets(environment.storage, analysis.graph, selection, definitions, environment.spark):
                environment = environment.begun_again(config.parameters)  # what was analysed saw the state of the main storage's flows
                analysis = environment.analyzer.pipeline(found.loaded, unbound)
            check_resets(selection, environment, analysis.datasets)
            end_watching()
            yield OpenedPipeline(config, found.loaded, analysis, selection, environment, found.owner, found.checks, definitions)

    @contextmanager
    def _loaded(
        self, update_id: str, write: Write = lambda event: None, recording: Recording | None = None, *, request: Request = EVERYTHING
    ) -> Iterator[tuple[LoadedPipeline, Callable[[], None]]]:
        """Yield the loaded pipeline, and the function that ends the watch for `recording`. `request`: of the update that is to come."""
        config, storage = self.config, Storage(self.config.storage)
        checks, invalid = _table_checks(config)
        registry = storage.registry()
        owner = _owner(config, registry)
        again = bool(request.full_refresh or request.full_refresh_all)
        base = self._spark or _session(config, registry, owner.id, again=again, lasts=self._lasts)

        from lakelet.flows.environment import Environment
        from lakelet.language.loader import loaded
        from lakelet.spark.names.catalog import Catalog
        from lakelet.spark.patches.update_context import UpdateContext, patched
        from lakelet.storage.eventlog.events import Reporter
        from lakelet.update.opened import LoadedPipeline

        roots = [*config.import_roots]
        stored = ExistingTables(storage)
        context = UpdateContext(
            base,
            settings={**_settings_of_update(config, owner.id), **config.parameters},
            outside=_outside(config, stored, owner, base),
        )
        with (
            _watching(recording) as end_watching,
            patched(context) as spark,
            _importable_on_workers(spark, roots),
            loaded(
                config.files,
                import_roots=roots,
                namespace=config.namespace,
                injected={"spark": spark},
                parameters=config.parameters,
                remarks=[Notice(text, where) for text, where in config.remarks],
                locate=config.paths.mapped,
            ) as found,
        ):
            found = _with_rule_files(config, found)
            if config.only is not None:
                found = replace(found, definitions=found.definitions.only(config.only))
            found = replace(found, definitions=with_conditions(found.definitions, request.replace_where, config.namespace))
            read_before = context.outside.tables.foreign.define(
                {d.name.key: d.where for d in found.definitions.datasets if not d.is_temporary_view}
            )
            others = [*_without_package(found, checks), *read_before, *refused(registry, owner, found.definitions.datasets)]
            found = replace(
                found,
                errors=distinct([*found.errors, *invalid, *others]),
                notices=(*found.notices, *_hidden_tables(config, found), *_about_parameters(config, spark.remarks)),
            )
            _pickle_by_value(found.helpers)
            catalog = Catalog.of(found.definitions, config.namespace, stored)
            reporter = Reporter(owner.id, config.name, update_id, storage, catalog.sinks(), write)
            keys = {key: columns for key, made in checks.items() if (columns := _unique_columns(made))}
            environment = Environment.of(spark, catalog, reporter, config.parameters, keys)
            yield LoadedPipeline(config, found, environment, owner, checks), end_watching


def _outside(config: PipelineConfig, stored: ExistingTables, owner: Owner, spark: SparkSession) -> Outside:
    """What names and paths mean to the pipeline that are not its own. `spark`: the session that asks a metastore."""
    from lakelet.spark.names.outside import Outside, OutsideTables, StorageTables
    from lakelet.spark.names.paths import located
    from lakelet.storage.catalogs.foreign_tables import ForeignTables

    foreign = ForeignTables()
    if config.catalogs:
        from lakelet.storage.catalogs.publishing import catalogs

        foreign = ForeignTables(catalogs(config.catalogs, lambda: spark), owner.ids, located)
    known = StorageTables.of(Storage(config.storage), stored, owner.id, config.namespace)
    return Outside(config.paths, OutsideTables(config.tables, foreign), known)


def _ready(storage: Storage) -> None:
    """Let an update begin: complete a promotion that was interrupted. Raises LAKELET_STORAGE_BUSY if another update holds the lease."""
    storage.refuse_if_busy()
    if is_unfinished(storage):
        with storage.lease(str(uuid.uuid4())):
            finish_promotion(storage)


def _watching(recording: Recording | None) -> AbstractContextManager[Callable[[], None]]:
    """Note what is read until the yielded function is called or the block ends."""
    return recording.reads.watching() if recording is not None else nullcontext(lambda: None)


def _owner(config: PipelineConfig, registry: StoredRegistry) -> Owner:
    """The pipeline among those that the storage knows. Raises USAGE."""
    by_files = PipelineIdentity.of(config.name, None, config.root, config.files, config.storage)
    return recognised(registry, config.identity or by_files, config.pipeline_id, config.take_over, partial=config.partial)


def _table_checks(config: PipelineConfig) -> tuple[Mapping[str, tuple[TableCheck, ...]], Sequence[LakeletError]]:
    """The checks of each dataset, by its key, and the errors in the rule files, which are reported with those of the sources."""
    from lakelet.config.rule_files import FOLDER as RULES
    from lakelet.quality.definitions import table_checks

    try:
        return table_checks(config.root / RULES, config.namespace), ()
    except DefinitionErrors as invalid:
        return {}, invalid.errors


def _unique_columns(checks: Sequence[TableCheck]) -> tuple[str, ...]:
    """The columns that the first check of uniqueness names; empty without one."""
    return next((check.unique_columns for check in checks if check.unique_columns), ())


def _without_package(found: LoadedSources, checks: Mapping[str, tuple[TableCheck, ...]]) -> Sequence[LakeletError]:
    """The error for checks of the pipeline's tables that this machine cannot make; none where it can."""
    from lakelet.quality.validation import without_package

    error = without_package((d.name, checks[d.name.key]) for d in found.definitions.datasets if d.name.key in checks)
    return () if error is None else (error,)


def _with_rule_files(config: PipelineConfig, found: LoadedSources) -> LoadedSources:
    """The declarations, whose rules say where in the rule files they stand, and notices about rules that no decorator asks for."""
    from lakelet.config.rule_files import FOLDER
    from lakelet.quality.applied_rules import unapplied, with_rule_locations

    folder = config.root / FOLDER
    found = replace(found, definitions=with_rule_locations(found.definitions, folder))
    if found.errors or not found.complete:
        return found
    modules = [Path(file) for module in found.helpers if (file := getattr(module, "__file__", None))]
    notices = unapplied(found.definitions, folder, [*config.files, *modules], partial=config.partial)
    return replace(found, notices=(*found.notices, *notices))


def _hidden_tables(config: PipelineConfig, found: LoadedSources) -> list[Notice]:
    """A notice for each `--table` whose name a dataset of the pipeline has."""
    own = {d.name.key: d for d in found.definitions.datasets if not d.is_temporary_view}
    text = "--table {} has no effect: the pipeline defines a dataset of that name"
    return [Notice(text.format(table.given), own[key].where) for key, table in config.tables.items() if key in own]


def _about_parameters(config: PipelineConfig, remarks: Sequence[str]) -> list[Notice]:
    """A notice for each parameter that Spark does not take, at the first source: configuration has no one place."""
    return [Notice(f"configuration: {text}", Location(display_path(str(config.files[0])), 1)) for text in remarks]


def _failed(storage: Storage, graph: Graph) -> frozenset[str]:
    """Keys of the tables that the last update did not finish, and of those below them; all but the finished ones if its process ended."""
    from lakelet.storage.eventlog.reading import progress_of

    last = storage.registry().last_update
    if last is None:
        return frozenset()
    found = progress_of(storage.events, last.id)
    known, unfinished, excluded = ({name.lower() for name in names} for names in (found.all_datasets, found.unfinished, found.excluded))
    unknown = frozenset() if found.state.has_ended else graph.by_key.keys() - known
    return below_failed(graph, not_done=frozenset(unfinished | unknown), excluded=frozenset(excluded))


def _never_reset(catalog: Catalog) -> frozenset[str]:
    """Keys of the datasets whose property says that a full refresh leaves them alone (RE-5)."""
    return frozenset(k for k, d in catalog.datasets.items() if not reset_allowed(d.table_properties))


def _session(config: PipelineConfig, registry: StoredRegistry, pipeline_id: str, *, again: bool, lasts: bool) -> SparkSession:
    """`again`: see `expected_bytes`; `lasts`: see `start_session`."""
    from lakelet.spark.launch.session import start_session

    return start_session(
        app_name=config.name,
        master=config.master,
        input_bytes=expected_bytes(config, registry, pipeline_id=pipeline_id, again=again),
        stores=stores_of(config.storage, *(table.path for table in config.tables.values())),
        packages=config.packages,
        worker_python=config.worker_python,
        lasts=lasts,
        meanwhile=import_update,
    )


def import_update(*, pandas: bool = True) -> None:
    """Import what an update needs, which takes a second: a session calls it while Java starts.

    pyarrow imports pandas, half of that second, with a list that becomes an array. Without `pandas` it does so only where it has to.
    """
    import lakelet.flows.environment
    import lakelet.update.update  # noqa: F401

    if pandas:
        import pandas as _  # noqa: F401
    else:
        from lakelet.spark.launch.quick_start import leave_pandas

        leave_pandas()


@contextmanager
def _importable_on_workers(spark: SparkSession, roots: Sequence[Path]) -> Iterator[None]:
    """What a function imports only when it runs, it finds on a worker as it does here (local masters share the disk)."""
    environment = spark.sparkContext.environment
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, roots), *([before] if before else [])])
    try:
        yield
    finally:
        environment.pop("PYTHONPATH")
        if before is not None:
            environment["PYTHONPATH"] = before


def _pickle_by_value(helpers: Sequence[Any]) -> None:
    """Workers do not have the user's helper modules: their functions travel with the tasks."""
    from pyspark import cloudpickle

    for module in helpers:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


__all__ = ["Checked", "Pipeline", "Request", "UpdateResult", "import_update", "load"]


def __getattr__(name: str) -> Any:
    if name == "UpdateResult":
        from lakelet.update.result import UpdateResult

        return UpdateResult
    raise AttributeError(name)
