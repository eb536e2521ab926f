"""What changed code would do to the stored tables: changed datasets and what reads them are computed beside, and compared.

In: a pipeline and a `DiffRequest`. Out: a `PipelineDiff`. The new results lie in an environment of this process, in its temporary folder:
all other tables are read from the storage, in the version that they had, and nothing of the storage is written. Each dataset is computed
as a whole: streams read all of their input again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.failpoints import reached
from lakelet.base.phases import report
from lakelet.config.properties import RESET_ALLOWED, reset_allowed
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.files.scratch import scratch_folder
from lakelet.language.model import Action, ChangeSpec, Expectation, Kind
from lakelet.pipeline import Pipeline
from lakelet.plan.definition_changes import MODIFIED, DefinitionChange
from lakelet.plan.selection import Request
from lakelet.storage.environments import begin_environment, environment_config
from lakelet.storage.eventlog.states import EventType, FlowState
from lakelet.storage.root import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelet.analysis.results import AnalyzedDataset
    from lakelet.inspection.table_comparison import TableComparison
    from lakelet.quality.definitions import TableCheck
    from lakelet.storage.eventlog.events import Event
    from lakelet.update.opened import OpenedPipeline

_START = "__START_AT"


@dataclass(frozen=True)
class DiffRequest:
    """What to compute and compare.

    Attributes:
        names: datasets, which are taken with what reads them.
        select: selectors, taken as they are. Without both: `state:modified+`.
        key: columns that identify a row, of every dataset that has them; empty lets each dataset's own be found.
        ignored: columns that do not count.
    """

    names: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def selectors(self) -> tuple[str, ...]:
        """The selectors of the update that computes."""
        named = tuple(name if name.endswith("+") else f"{name}+" for name in self.names)
        return (*named, *self.select) or (f"{MODIFIED}+",)


@dataclass(frozen=True)
class RuleDifference:
    """A rule whose count of violations differs, or that one side alone has. None: no such rule, or not known how many."""

    name: str
    action: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class DatasetDiff:
    """What changed code would do to one dataset.

    Attributes:
        name, kind: of the dataset.
        change: what changed in its own definition; None where nothing did.
        rows: how the rows differ; None where the new ones could not be computed.
        key_source: where the key was found: `given`, `keys of the change flow`, …; empty without a key.
        rules: rules whose counts differ.
        dropped: rows that drop rules left out before and after; None where that is not known.
        error: why it could not be computed.
        notes: sentences about what was not compared.
    """

    name: str
    kind: str
    change: DefinitionChange | None = None
    rows: TableComparison | None = None
    key_source: str = ""
    rules: tuple[RuleDifference, ...] = ()
    dropped: tuple[int | None, int | None] = (None, None)
    error: LakeletError | None = None
    skipped: bool = False
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """`failed`, `skipped` (it reads a failed one), `new`, `different` or `equal`."""
        if self.rows is None:
            return "skipped" if self.skipped else "failed"
        if self.change is not None and self.change.new and not self.rows.before:
            return "new"
        return "equal" if self.rows.equal and not self.rules else "different"

    @property
    def severity(self) -> tuple[int, float]:
        """Orders datasets by how bad the difference is."""
        order = {"failed": 0, "skipped": 1, "different": 2, "new": 3, "equal": 4}[self.state]
        rows = self.rows
        share = 0.0 if rows is None else (rows.added + rows.removed + rows.changed) / max(rows.before, rows.after, 1)
        lost = rows is not None and any(change.after is None for change in rows.schema)
        return order, -share - lost

    def as_json(self) -> dict[str, Any]:
        rows = self.rows
        return {
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "definition": None if self.change is None else self.change.as_json(),
            "schema": [] if rows is None else [vars(change) for change in rows.schema],
            **{name: None if rows is None else getattr(rows, name) for name in ("before", "after", "added", "removed", "changed")},
            "key": [] if rows is None else list(rows.key),
            "key_source": self.key_source,
            "repeated_keys": 0 if rows is None else rows.repeated_keys,
            "columns": [] if rows is None else [{"name": c.name, "changed": c.changed, "share": round(c.share, 6)} for c in rows.columns],
            "samples": _samples_json(rows),
            "rules": [vars(rule) for rule in self.rules],
            "dropped": {"before": self.dropped[0], "after": self.dropped[1]},
            "error": None if self.error is None else {"code": self.error.code, "text": "\n".join(self.error.lines())},
            "notes": list(self.notes),
        }


def _samples_json(rows: TableComparison | None) -> dict[str, Any]:
    if rows is None:
        return {"added": [], "removed": [], "changed": [], "changed_rows": []}
    changed = [{"column": c.name, **vars(sample)} for c in rows.columns for sample in c.samples]
    pairs = [{"before": before, "after": after} for before, after in rows.changed_rows]
    return {"added": list(rows.added_rows), "removed": list(rows.removed_rows), "changed": changed, "changed_rows": pairs}


@dataclass(frozen=True)
class PipelineDiff:
    """What changed code would do to a pipeline's tables: the datasets, worst first. `update`: the id of the last update before."""

    datasets: tuple[DatasetDiff, ...]
    update: str | None = None

    @property
    def failed(self) -> bool:
        """Whether some results could not be computed."""
        return any(one.rows is None for one in self.datasets)

    @property
    def equal(self) -> bool:
        """Whether all tables would stay as they are."""
        return all(one.state == "equal" for one in self.datasets)

    def as_json(self) -> dict[str, Any]:
        return {"update": self.update, "equal": self.equal, "datasets": [one.as_json() for one in self.datasets]}


@dataclass(frozen=True)
class _Dataset:
    """What is known of a dataset before it is computed.

    `keys`: columns that identify a row, with their source, best first. `refused`: why an update that does not reset it fails it.
    `hidden`: columns, in lower case, whose values no sample shows.
    """

    key: str
    name: str
    kind: Kind
    rules: tuple[Expectation, ...]
    keys: tuple[tuple[tuple[str, ...], str], ...]
    change: DefinitionChange | None
    resettable: bool
    hidden: frozenset[str] = frozenset()
    refused: LakeletError | None = None


def pipeline_diff(pipeline: Pipeline, request: DiffRequest) -> PipelineDiff:
    """Compute what the request selects, and compare it with the stored tables. Nothing of the storage is written.

    Raises UNKNOWN_SELECTION, USAGE for a key that no dataset has, LAKELET_STORAGE_BUSY while an update runs, and the errors of
    definitions.
    """
    chosen = _all_chosen(pipeline, request)
    main = Storage(pipeline.config.storage)
    last = main.registry().last_update
    found = _Computed.of(pipeline, chosen) if chosen else None
    if found is None:
        return PipelineDiff((), last.id if last else None)
    work = _Comparing(main, found, request)
    datasets = [work.of(one) for one in chosen]
    reached("diff.compared")
    return PipelineDiff(tuple(sorted(datasets, key=lambda one: (one.severity, one.name))), last.id if last else None)


def _all_chosen(pipeline: Pipeline, request: DiffRequest) -> list[_Dataset]:
    """The selected datasets; those that the stored columns do not fit are analysed once more, as a full refresh does it."""
    with pipeline.opened(Request(select=request.selectors)) as opened:
        _check_key(request.key, opened)
        chosen, failures = _chosen(opened), opened.analysis.failures
        unknown = [one for one in chosen if one.key not in opened.analysis.datasets]
    if not unknown:
        return chosen
    resets = tuple(one.name for one in chosen if one.resettable)
    with pipeline.opened(Request(select=tuple(one.name for one in chosen), full_refresh=resets)) as opened:
        return [replace(one, refused=failures.get(one.key)) for one in _chosen(opened)]


def _check_key(key: tuple[str, ...], opened: OpenedPipeline) -> None:
    """Raise USAGE for a column of a given key that no dataset of the pipeline has."""
    columns = dict.fromkeys(name for node in opened.analysis.graph.nodes for name, _ in node.columns)
    known = {name.lower() for name in columns}
    missing = next((name for name in key if name.lower() not in known), None)
    if missing is not None:
        raise LakeletError(
            "USAGE",
            f"--key names {missing!r}, and no dataset has a column of that name",
            nearest=nearest_names(missing, list(columns)),
            todo="Leave --key out: keys of change flows, primary keys, unique checks and GROUP BY are found.",
        )


def _chosen(opened: OpenedPipeline) -> list[_Dataset]:
    """The selected datasets that have a table, inputs first."""
    changes = {change.dataset.lower(): change for change in opened.definition_changes(from_nothing=True)}
    found = []
    for node in opened.analysis.graph.nodes:
        key, dataset = node.name.key, opened.environment.catalog.datasets[node.name.key]
        if key not in opened.selection.refresh or node.kind in (Kind.SINK, Kind.VIEW):
            continue
        analyzed = opened.analysis.datasets.get(key)
        keys = tuple(_keys(analyzed, opened.checks.get(key, ()))) if analyzed is not None else ()
        own = reset_allowed(dataset.table_properties)
        hidden = opened.environment.hidden_columns
        found.append(_Dataset(key, str(node.name), node.kind, dataset.expectations, keys, changes.get(key), own, hidden))
    return found


def _keys(analyzed: AnalyzedDataset, checks: Sequence[TableCheck]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Columns that identify a row of a dataset, with their source, best first."""
    specs = [flow.declared.changes for flow in analyzed.flows if flow.declared.changes is not None]
    if specs and all(len(path) == 1 for path in specs[0].keys):
        yield _key_of_changes(specs[0], analyzed.schema.fieldNames()), "keys of the change flow"
    if analyzed.dataset.primary_key:
        yield analyzed.dataset.primary_key, "primary key"
    for check in checks:
        if check.unique_columns:
            yield check.unique_columns, f"check {check.name}"
    if len(analyzed.flows) == 1 and analyzed.flows[0].batch.identifying:
        yield analyzed.flows[0].batch.identifying, "keys of the query"


def _key_of_changes(spec: ChangeSpec, columns: Sequence[str]) -> tuple[str, ...]:
    """The key of a change table; of one that keeps history with the columns that say since when a row counts."""
    own = tuple(path[0] for path in spec.keys)
    starts = tuple(name for name in columns if name.upper().startswith("__") and name.upper().endswith("START_AT"))
    return own if spec.scd_type == 1 else (*own, *(starts or (_START,)))


@dataclass
class _Computed:
    """The new results: the environment that holds them, and what its update reported, by key of the datasets."""

    storage: Storage
    spark: SparkSession
    errors: Mapping[str, LakeletError]
    skipped: frozenset[str]
    rules: Mapping[tuple[str, str], int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline, chosen: Sequence[_Dataset]) -> _Computed:
        """Compute datasets as a whole, in a new environment."""
        folder = scratch_folder("diff") / "environment"
        storage = begin_environment(pipeline.config.storage, folder)
        reached("diff.begun")
        config = replace(environment_config(pipeline.config, folder), continuous=False, development=True)  # nothing is tried again
        run = Pipeline(config, spark=pipeline.session())
        names = tuple(one.name for one in chosen)
        events: list[Event] = []
        report("Computing", 0, len(names))
        resets = tuple(one.name for one in chosen if one.resettable)
        result = run.run(Request(select=names, full_refresh=resets), listeners=[events.append])
        reached("diff.computed")
        storage.reload()
        errors = {str(error.dataset).lower(): error for error in result.errors if error.dataset}
        statuses = {e.origin.dataset_name: e.body["status"] for e in events if e.event_type == EventType.FLOW_PROGRESS}
        skipped = frozenset(str(name).lower() for name, status in statuses.items() if status == FlowState.SKIPPED)
        return cls(storage, run.session(), errors, skipped, *_counts(events))


def _counts(events: Sequence[Event]) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
    """Violations of each rule by key of its dataset and name, and dropped rows by key, in the events of an update."""
    rules: dict[tuple[str, str], int] = {}
    dropped: dict[str, int] = {}
    for event in events:
        quality = event.body.get("data_quality") if event.event_type == EventType.FLOW_PROGRESS else None
        if quality:
            key = str(event.origin.dataset_name).lower()
            dropped[key] = dropped.get(key, 0) + int(quality.get("dropped_records") or 0)
            for rule in quality.get("expectations", ()):
                at = str(rule["dataset"]).lower(), str(rule["name"])
                rules[at] = rules.get(at, 0) + int(rule["failed_records"])
    return rules, dropped


@dataclass
class _Comparing:
    """Compares tables of the main storage with those of the environment."""

    main: Storage
    computed: _Computed
    request: DiffRequest

    def of(self, one: _Dataset) -> DatasetDiff:
        """Compare one dataset."""
        from lakelet.inspection.table_comparison import compared

        report(f"Comparing {one.name}")
        start = DatasetDiff(one.name, str(one.kind.value), one.change)
        if one.key in self.computed.errors or one.key in self.computed.skipped:
            return replace(start, error=self.computed.errors.get(one.key), skipped=one.key in self.computed.skipped)
        before, after = self._stored(one), self._result(one)
        if after is None:
            return replace(start, notes=("it has no table after the update",))
        key, source, notes = self._key(one, before, after)
        stored = before if before is not None else after.limit(0)
        rows = compared(stored, after, key, self.request.ignored).hiding(lambda name: name.lower() in one.hidden)
        if before is None:
            rows = replace(rows, schema=tuple(_new_columns(after)))
        notes += (*_row_notes(rows), *self._left_out(stored, after))
        if not one.resettable:
            notes = (*notes, f"its property {RESET_ALLOWED} is false: only new input was read")
        rules, dropped = self._rules(one)
        if one.refused is not None:
            notes = (*notes, f"an update needs --full-refresh {one.name}: {one.refused.what}")
        return replace(start, rows=rows, key_source=source, rules=rules, dropped=dropped, notes=notes)

    def _stored(self, one: _Dataset) -> DataFrame | None:
        known = self.main.registry().datasets.get(one.key)
        base = self.computed.storage.base
        if known is None or base is None or known.path not in base.versions:
            return None
        version = base.versions[known.path].get("", -1)
        return self._read(self.main.at(known.path), version) if version >= 0 else None

    def _result(self, one: _Dataset) -> DataFrame | None:
        known = self.computed.storage.registry().datasets.get(one.key)
        if known is None:
            return None
        path = self.computed.storage.at(known.path)
        version = TableLog(path).version()
        return self._read(path, version) if version >= 0 else None

    def _read(self, path: AnyPath, version: int) -> DataFrame:
        from lakelet.jvm.frames import loaded
        from lakelet.jvm.sessions import plain_reader

        spark = self.computed.spark
        return loaded(spark, plain_reader(spark, options={"versionAsOf": str(version)}), "delta", str(path))

    def _key(self, one: _Dataset, before: DataFrame | None, after: DataFrame) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        """The key by which rows are compared, its source, and a note where there is none."""
        ignored = {name.lower() for name in self.request.ignored}
        usable = _comparable_columns(before, after) - ignored
        given = [(self.request.key, "given")] if self.request.key else []
        for key, source in (*given, *one.keys):
            if key and all(name.lower() in usable for name in key):
                return key, source, ()
        if before is None:
            return (), "", ()
        known = one.keys[0] if one.keys else None
        why = f"the {known[1]} ({', '.join(known[0])}) cannot be compared" if known else "no key is known"
        return (), "", (f"{why}: a changed row counts as removed and added; name the key with --key COL,…",)

    def _left_out(self, before: DataFrame, after: DataFrame) -> Iterator[str]:
        """A note that names the ignored columns of a dataset."""
        ignored = {name.lower() for name in self.request.ignored}
        found = dict.fromkeys(name for name in (*after.columns, *before.columns) if name.lower() in ignored)
        if found:
            yield f"values not compared, by --ignore: {', '.join(found)}"

    def _rules(self, one: _Dataset) -> tuple[tuple[RuleDifference, ...], tuple[int | None, int | None]]:
        """The rules whose counts differ, and the dropped rows before and after."""
        old = _stored_counts(self.main, one)
        new = {name: count for (dataset, name), count in self.computed.rules.items() if dataset == one.key}
        actions = {rule.name: rule.action.value for rule in one.rules}
        before = None if old is None else old[0]
        found = []
        for name in dict.fromkeys([*actions, *(before or {})]):
            sides = None if before is None else before.get(name), new.get(name, 0) if name in actions else None
            if before is not None and sides[0] != sides[1]:
                found.append(RuleDifference(name, actions.get(name, ""), *sides))
        drops = any(rule.action is Action.DROP for rule in one.rules) or bool(old and old[1])
        dropped = (None if old is None else old[1], self.computed.dropped.get(one.key, 0)) if drops else (None, None)
        return tuple(found), dropped


def _comparable_columns(before: DataFrame | None, after: DataFrame) -> set[str]:
    """Columns of both sides with one type, in lower case."""
    new = {f.name.lower(): f.dataType.simpleString() for f in after.schema.fields}
    if before is None:
        return set(new)
    return {f.name.lower() for f in before.schema.fields if new.get(f.name.lower()) == f.dataType.simpleString()}


def _new_columns(after: DataFrame) -> Iterator[Any]:
    from lakelet.inspection.preview import ColumnChange

    for one in after.schema.fields:
        yield ColumnChange(one.name, None, one.dataType.simpleString())


def _row_notes(rows: TableComparison) -> tuple[str, ...]:
    notes = [f"values not compared, as the type changed: {', '.join(rows.not_compared)}"] if rows.not_compared else []
    if rows.repeated_keys:
        keys = ", ".join(rows.key)
        notes.append(f"several rows have one {keys}, {rows.repeated_keys:,} times: they were paired in the order of their values")
    return tuple(notes)


def _stored_counts(main: Storage, one: _Dataset) -> tuple[dict[str, int], int] | None:
    """Violations by rule, and dropped rows, of the stored rows: of all batches of a stream, of the last refresh of a view.

    None where they are not known: the log was cleaned up, or a view was refreshed in part.
    """
    from lakelet.storage.delta.batch_metrics import BatchMetrics

    known = main.registry().datasets.get(one.key)
    log = TableLog(main.at(known.path)) if known is not None else None
    commits = log.commits(-1, log.version()) if log is not None else None
    if not commits:
        return None
    batches = [found for commit in commits if (found := BatchMetrics.of_commit(commit.user_metadata)) is not None]
    if one.kind is Kind.MATERIALIZED_VIEW:
        batches = batches[-1:]
        if not batches or batches[0].view is None or batches[0].view.technique not in (None, "full"):
            return None
    rules: dict[str, int] = {}
    for batch in batches:
        for count in batch.expectations:
            if count.dataset.lower() == one.key:
                rules[count.name] = rules.get(count.name, 0) + count.failed
    return rules, sum(batch.dropped for batch in batches)


__all__ = ["DatasetDiff", "DiffRequest", "PipelineDiff", "RuleDifference", "pipeline_diff"]
