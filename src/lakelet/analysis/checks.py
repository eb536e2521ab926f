"""Checks of one dataset whose query is known: kind, columns, stream, replaced rows, and what a stream may read.

Each check raises or returns coded errors; `analyzer` and `flow_queries` say when it is made. A stream can read tables whose commits only
add rows (DS-10): what is known before anything runs is refused, or noted, here. What only the commits of a table tell is found when a
flow runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from lakelet.analysis.plan_facts import Placeholders, aggregates_all
from lakelet.analysis.results import BatchPlan
from lakelet.base import sentences
from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.cdc.checks import is_unordered
from lakelet.config.properties import PERSONAL_COLUMNS
from lakelet.config.tool_settings import PACKAGES, package_missing
from lakelet.jvm.expressions import uses
from lakelet.jvm.frames import analyzed, without_rows
from lakelet.language.model import Dataset, Flow, Kind, RefreshPolicy, Replacement
from lakelet.language.registry import Notice
from lakelet.plan.refresh_choice import RefreshFacts, never
from lakelet.spark.errors.diagnosis import first_line, proposed, without_proposal
from lakelet.spark.names.reader import ddl
from lakelet.storage.delta import column_mapping, schemas
from lakelet.storage.delta.quarantine import check_columns
from lakelet.storage.delta.table_spec import unenforceable
from lakelet.storage.root import StoredDataset

_READ_AS_STREAM, _READ_AS_BATCH = "Read with spark.readStream.table(...).", "Read with spark.read.table(...)."

# ---------------------------------------------------------------------------------------------------------------- kinds


def check_kind(dataset: Dataset, flow: Flow, frame: DataFrame) -> None:
    """Raise QUERY_KIND for a batch query where a stream is needed, and the other way round (DS-4)."""
    if flow.changes is not None and (flow.changes.once or flow.changes.snapshots is not None):
        return  # reads its source as a batch by itself
    if flow.once:
        if frame.isStreaming:
            raise LakeletError(
                "QUERY_KIND",
                "a flow that runs once needs a batch query; this one is a stream",
                where=flow.where,
                dataset=str(dataset.name),
                why="[INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW]",
                todo="Read with spark.read.table(...), or leave once out.",
            )
        return
    if flow.replaces is not None and flow.replaces.streams is not frame.isStreaming:
        needed, given = ("stream", "batch query") if flow.replaces.streams else ("batch query", "stream")
        raise LakeletError(
            "QUERY_KIND",
            f"a {flow.replaces.clause} flow needs a {needed}; this one is a {given}",
            where=flow.where,
            dataset=str(dataset.name),
            todo=_READ_AS_STREAM if flow.replaces.streams else _READ_AS_BATCH,
        )
    must_stream = (dataset.kind is Kind.STREAMING_TABLE or not flow.default) and flow.replaces is None
    if must_stream and not frame.isStreaming:
        target, way_out = ("sink", "write once=True") if dataset.sink is not None else ("streaming table", "declare a materialized view")
        raise LakeletError(
            "QUERY_KIND",
            f"a {target} needs a streaming query; this one is a batch query",
            where=flow.where,
            dataset=str(dataset.name),
            todo=f"Read with spark.readStream.table(...), or {way_out}.",
        )
    if dataset.kind is Kind.MATERIALIZED_VIEW and frame.isStreaming:
        raise LakeletError(
            "QUERY_KIND",
            "a materialized view needs a batch query; this one is a stream",
            where=flow.where,
            dataset=str(dataset.name),
            todo="Read with spark.read.table(...), or declare a streaming table.",
        )


def check_flows(dataset: Dataset, kind: Kind, flows: Sequence[Flow], stored: StoredDataset | None) -> None:
    """Raise UNKNOWN_TARGET for flows beside the query of a materialized view, KIND_CHANGED for a table stored as another kind."""
    foreign = [f for f in flows if not f.default]
    if kind is Kind.MATERIALIZED_VIEW and foreign:
        raise LakeletError(
            "UNKNOWN_TARGET",
            f"flow {foreign[0].name!r} writes to {dataset.name}, a materialized view",
            where=foreign[0].where,
            todo="Flows write to streaming tables only.",
        )
    if stored is not None and stored.kind is not kind:
        raise LakeletError(
            "KIND_CHANGED",
            f"it was a {stored.kind.replace('_', ' ')} and is now defined as a {kind.replace('_', ' ')}",
            where=dataset.where,
            dataset=str(dataset.name),
            todo=f"Change it back, give it another name, or drop its rows and compute it again: lakelet run --full-refresh {dataset.name}",
        )


def check_refresh_policy(dataset: Dataset, kind: Kind, batch: BatchPlan) -> None:
    """Raise REFRESH_NOT_INCREMENTAL for a view that its policy asks to compute in part, and that never can be (IV-44)."""
    policy = dataset.refresh_policy
    if kind is not Kind.MATERIALIZED_VIEW or batch.shape is None or policy in (RefreshPolicy.AUTO, RefreshPolicy.FULL):
        return
    facts = RefreshFacts(
        policy=policy,
        shape=batch.shape,
        changes=(),
        partitions=None if batch.partitions is None or dataset.expectations or dataset.identities else 0,
        rules=frozenset(rule.action.value for rule in dataset.expectations),
        identities=bool(dataset.identities),
        quarantined=dataset.keeps_dropped,
    )
    issue = never(facts)
    if issue is not None:
        raise LakeletError(
            "REFRESH_NOT_INCREMENTAL",
            f"its refresh policy is {policy.value}, and each refresh would compute all of it",
            where=dataset.where,
            dataset=str(dataset.name),
            why=f"[{issue.name}] {issue.reason}",
            todo=f"{f'{issue.remedy} ' if issue.remedy else ''}Or leave the policy out, which then computes all of it.",
        )


def check_sink_package(dataset: Dataset, spark: SparkSession) -> None:
    """Raise PACKAGE_MISSING, at the line of the sink, if its format is that of a package which the session does not have."""
    assert dataset.sink is not None
    format = dataset.sink.format.lower()
    if format in PACKAGES:
        try:
            spark.read.format(format).load()
        except PySparkException as problem:  # also without options, which the reader would need
            if sentences.FORMAT_MISSING.is_in(str(problem)):
                error = package_missing(format, dataset.where)
                error.dataset = str(dataset.name)
                raise error from None


def check_sink_stream(placeholders: Placeholders, dataset: Dataset, flow: Flow, frame: DataFrame) -> None:
    """Raise STREAM_QUERY_REFUSED for a query whose result cannot be sent to a sink row by row, or as updates where the flow says so."""
    try:
        placeholders.check_sent(analyzed(frame), update=flow.update)
    except AnalysisException as problem:
        mode = "update flow" if flow.update else "append flow"
        raise LakeletError(
            "STREAM_QUERY_REFUSED",
            f"this streaming query cannot be sent to a sink by an {mode}",
            where=flow.where,
            dataset=str(dataset.name),
            why=first_line(problem),
            todo="Compute it in a table that the flow reads."
            if flow.update
            else "Add a watermark, or write an update flow: @dp.update_flow.",
        ) from None


def runs_complete(placeholders: Placeholders, dataset: Dataset, flow: Flow, others: Sequence[Flow], frame: DataFrame) -> bool:
    """Whether a streaming query is maintained in complete mode: its whole result replaces the table in every micro-batch.

    False for what can be appended. `others`: the further flows into the table. Raises STREAM_QUERY_REFUSED for what can be neither.
    """
    plan = analyzed(frame)
    refused = _mode_problem(placeholders, plan, complete=False)
    if refused is None:
        return False
    problem = _complete_problem(placeholders, plan, flow, others, refused)
    if problem is None:
        return True
    what = "this streaming query can run neither by appending rows nor by replacing the table's content"
    raise LakeletError("STREAM_QUERY_REFUSED", what, where=flow.where, dataset=str(dataset.name), why=problem[0], todo=problem[1])


def _complete_problem(placeholders: Placeholders, plan: Any, flow: Flow, others: Sequence[Flow], refused: str) -> tuple[str, str] | None:
    """Why a plan cannot run in complete mode, and the remedy. `refused`: why it cannot be appended."""
    neither = _mode_problem(placeholders, plan, complete=True)
    if neither is not None and _NEEDS_OTHER_MODE not in refused:
        return refused, "Compute this in a materialized view, which reads its inputs as batches."
    if neither is not None:
        return neither, "Add a watermark and group by a window of it (or its column), or compute the aggregate in a materialized view."
    if not aggregates_all(plan):
        why = "it puts aggregated rows beside rows that are not aggregated; the former replace the table, the latter are added to it"
        return why, "Give each part a table of its own, and put them together in a view or a materialized view."
    if flow.changes is not None:
        return "change events are read one by one, an aggregate changes its rows", "Read the events themselves, not an aggregate of them."
    if flow.replaces is not None:
        why = "its rows replace others as they arrive, an aggregate without a watermark changes rows that have arrived"
        return why, "Give the aggregate a watermark, or compute it in a materialized view."
    if others:
        why = f"it aggregates without a watermark, so its result replaces the table; {others[0].name} writes to the table too"
        return why, "Give the aggregate a table of its own, or a watermark."
    return None


_UNENFORCED = "spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled"
_NEEDS_OTHER_MODE = "STREAMING_OUTPUT_MODE"


def _mode_problem(placeholders: Placeholders, plan: Any, *, complete: bool) -> str | None:
    try:
        placeholders.check_mode(plan, complete=complete)
    except AnalysisException as problem:
        return first_line(problem)
    return None


# -------------------------------------------------------------------------------------------------------------- columns


def table_schema(
    dataset: Dataset,
    kind: Kind,
    found: Sequence[StructType],
    stored: StoredDataset | None,
    spark: SparkSession,
    *,
    has_run: bool,
) -> StructType:
    """Columns of the table: declared, or stored ones merged with what the flows return (SC-1, SC-4, SC-5).

    Raises SCHEMA_MISMATCH, SCHEMA_INCOMPATIBLE or ARGUMENT_INVALID; SCHEMA_OUTGROWN for SCHEMA_MISMATCH in a pipeline that `has_run`:
    then data can have brought the difference, and only the dataset's own branch fails.
    """
    declared = dataset.schema is not None
    result = _declared_schema(dataset, found, spark, has_run) if declared else _merged_schema(dataset, kind, found, stored)
    if not column_mapping.automatic(dataset):
        code = "SCHEMA_OUTGROWN" if has_run else "SCHEMA_MISMATCH"
        refused = column_mapping.refused(result, dataset.table_properties, code=code, dataset=str(dataset.name), where=dataset.where)
        if refused is not None:
            raise refused
    _check_columns(dataset, result)
    return result


def _merged_schema(dataset: Dataset, kind: Kind, found: Sequence[StructType], stored: StoredDataset | None) -> StructType:
    name, widen = str(dataset.name), schemas.widens(dataset.table_properties)
    try:
        result = schemas.common(found, widen=widen)
    except schemas.Incompatible as problem:
        types = f"{problem.stored.simpleString()} and {problem.incoming.simpleString()}"
        what = f"its flows give column {problem.path} the types {types}, which no column takes both"
        todo = "Cast the column in one of the flows."
        raise LakeletError("SCHEMA_INCOMPATIBLE", what, dataset=name, where=dataset.where, todo=todo) from None
    if kind is not Kind.STREAMING_TABLE or stored is None or not stored.columns:
        return result
    try:
        return schemas.merge(StructType.fromJson(json.loads(stored.columns)), result, widen=widen)
    except schemas.Incompatible as problem:
        raise schemas.incompatible_error(problem, dataset=name, where=dataset.where) from None


def declared_types(dataset: Dataset, spark: SparkSession) -> str:
    """The declared schema without its comments, as text."""
    with suppress(PySparkException):  # reported where the columns are checked
        schema = dataset.schema if isinstance(dataset.schema, StructType) or dataset.schema is None else ddl(dataset.schema, spark)
        return str(schema and [(f.name, f.dataType.simpleString(), f.nullable) for f in schema.fields])
    return str(dataset.schema)


def _declared_schema(dataset: Dataset, found: Sequence[StructType], spark: SparkSession, has_run: bool) -> StructType:
    try:
        declared = dataset.schema if isinstance(dataset.schema, StructType) else ddl(dataset.schema, spark)
    except PySparkException as problem:
        raise LakeletError(
            "ARGUMENT_INVALID",
            f"the schema does not parse: {dataset.schema}",
            where=dataset.where,
            why=first_line(problem),
            todo="Write it like schema=\"id BIGINT NOT NULL, name STRING COMMENT 'who'\".",
        ) from None
    if refused := _unenforced(dataset, declared, spark):
        raise refused
    outgrown = [schemas.outgrown_error(declared, schema, dataset=str(dataset.name), where=dataset.where) for schema in found]
    if has_run and any(outgrown):
        raise next(filter(None, outgrown))
    problems = [p for schema in found for p in schemas.same_types(declared, schema)]
    if problems:
        raise LakeletError(
            "SCHEMA_MISMATCH",
            "the query does not fit the declared schema",
            where=dataset.where,
            dataset=str(dataset.name),
            why="\n".join(problems),
            todo="Change the schema argument or the query.",
        )
    return declared


def _unenforced(dataset: Dataset, declared: StructType, spark: SparkSession) -> LakeletError | None:
    """The error for NOT NULL where Delta cannot enforce it (TP-23); None where there is none, or the configuration says to leave it out."""
    found = list(unenforceable(declared))
    if not found or str(spark.conf.get(_UNENFORCED, "false")).lower() == "true":
        return None
    return LakeletError(
        "SCHEMA_MISMATCH",
        f"NOT NULL is declared for {', '.join(found)}, inside of an array or map, where Delta does not enforce it",
        dataset=str(dataset.name),
        where=dataset.where,
        todo="Leave it out of the schema and write an expectation, such as forall(items, x -> x.id IS NOT NULL). With "
        f"{_UNENFORCED}=true in the pipeline's configuration it is accepted, without effect.",
    )


def _check_columns(dataset: Dataset, schema: StructType) -> None:
    names = [f.name for f in schema.fields]
    problem = schemas.unstorable(schema, dataset.partition_cols)
    if problem:
        raise LakeletError("SCHEMA_MISMATCH", problem[0], where=dataset.where, dataset=str(dataset.name), todo=problem[1])
    if dataset.keeps_dropped:
        check_columns(schema, dataset=str(dataset.name), where=dataset.where)
    twice = schemas.duplicates(names)
    unknown = [c for c in (*dataset.partition_cols, *dataset.cluster_by) if c.lower() not in {n.lower() for n in names}]
    if twice or unknown:
        what = f"the query returns {twice[0]!r} twice" if twice else f"partition or clustering column {unknown[0]!r} is not in the query"
        raise LakeletError(
            "SCHEMA_MISMATCH",
            what,
            where=dataset.where,
            dataset=str(dataset.name),
            nearest=() if twice else nearest_names(unknown[0], names),
            todo="Column names of a table do not differ by case alone." if twice else None,
        )
    _check_personal_columns(dataset, names)


def _check_personal_columns(dataset: Dataset, names: Sequence[str]) -> None:
    """Refuse a personal column that the table does not have: a name that is misspelt would hide nothing. Raises PROPERTY_INVALID."""
    known = {name.lower() for name in names}
    unknown = next((name for name in dataset.personal_columns if name.lower() not in known), None)
    if unknown is not None:
        raise LakeletError(
            "PROPERTY_INVALID",
            f"{PERSONAL_COLUMNS} names {unknown!r}, which is not a column of the table",
            where=dataset.where,
            dataset=str(dataset.name),
            nearest=nearest_names(unknown, names),
            todo="Name columns of the table, with commas between them.",
        )


def mapping_notices(tables: Sequence[tuple[Dataset, StructType]]) -> list[Notice]:
    """Return notices about tables that have or get column mapping without declaring it, which Databricks requires."""
    found = [(d, list(column_mapping.odd_names(schema))) for d, schema in tables if column_mapping.automatic(d)]
    odd = {str(dataset.name): names for dataset, names in found if names}
    first = next((dataset.where for dataset, names in found if names), None)
    return [Notice(column_mapping.needed(odd), first)] if first is not None else []


_SEQUENCE = "SEQUENCE BY"


def part_of(flow: Flow, frame: DataFrame) -> DataFrame:
    """The rows of a flow's query that are for its table: those that the condition of REPLACE WHERE names, else all."""
    return frame.where(flow.replaces.where) if flow.replaces is not None and flow.replaces_part else frame


def check_replacement(dataset: Dataset, flow: Flow, replaces: Replacement, frame: DataFrame) -> None:
    """Refuse a replacement that the columns of the flow's query cannot make. Raises REPLACE_FLOW_INVALID.

    It is checked on the columns alone: stored rows know nothing of the tables that the query reads.
    """
    columns = without_rows(frame)

    def refused(what: str, todo: str, why: str | None = None, nearest: tuple[str, ...] = ()) -> LakeletError:
        return LakeletError("REPLACE_FLOW_INVALID", what, where=flow.where, dataset=str(dataset.name), why=why, todo=todo, nearest=nearest)

    def unknown(clause: str, name: str, near: Iterable[str]) -> LakeletError:
        what, todo = f"{clause} names {name!r}, which the query does not return", f"Its columns are: {_listed(frame)}"
        return refused(what, todo, nearest=tuple(nearest_names(name, near)))

    def type_of(clause: str, given: Any) -> T.DataType:
        try:
            value = F.expr(given) if isinstance(given, str) else given
            kind: T.DataType = columns.select(value).schema.fields[0].dataType
            if clause != _SEQUENCE and isinstance(kind, T.BooleanType):
                columns.where(value)  # refuses aggregates and the like
            return kind
        except (AnalysisException, ParseException) as problem:
            name = (problem.getMessageParameters() or {}).get("objectName", "").replace("`", "")
            if not (problem.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                todo = f"Write it over the columns that the query returns: {_listed(frame)}"
                raise refused(f"{clause} does not analyse: {given}", todo, without_proposal(first_line(problem))) from None
            raise unknown(clause, name, [*frame.columns, *proposed(problem)]) from None

    if not replaces.streams:
        kind = type_of(replaces.clause, replaces.where)
        if not isinstance(kind, T.BooleanType):
            raise refused(
                f"{replaces.clause} gives {kind.simpleString()}, not boolean: {replaces.where}",
                "Write a condition, for example day >= '2026-01-01'.",
            )
        return
    fields = {field.name.lower(): field for field in frame.schema.fields}
    for key in replaces.keys:
        if key.lower() not in fields:
            raise unknown(replaces.clause, key, frame.columns)
        kind = fields[key.lower()].dataType
        if is_unordered(kind):
            raise refused(
                f"the key column {key!r} is {kind.simpleString()}, whose values cannot be compared", "Name columns of other types."
            )
    kind = type_of(_SEQUENCE, replaces.sequence_by)
    if not _is_constant(columns, replaces.sequence_by):
        why = "The sequence of the rows that are stored is computed again with each micro-batch."
        raise refused("SEQUENCE BY gives another value each time", "Put it into a column of the query, and name that.", why)
    if is_unordered(kind):
        raise refused(f"SEQUENCE BY gives {kind.simpleString()}, whose values cannot be ordered", "Give a number, a time or text.")


def _listed(frame: DataFrame) -> str:
    return ", ".join(frame.columns[:20]) + (" …" if len(frame.columns) > 20 else "")


def _is_constant(columns: DataFrame, given: Any) -> bool:
    """Whether an expression over columns has one value for a row, whenever it is computed."""
    plan = analyzed(columns.select(F.expr(given) if isinstance(given, str) else given))
    return bool(plan.deterministic()) and not uses(columns.sparkSession, plan, "CURRENT_LIKE")


_SKIP = "skipchangecommits"
_TAKES_CHANGES = {_SKIP, "ignorechanges"}
_IN_A_VIEW = "as a batch, in a materialized view"


def check_streamed(
    dataset: Dataset, kind: Kind, flows: Sequence[Flow], options: Mapping[str, str], *, complete: bool, where: Location
) -> str | None:
    """Return the notice for a stream over the rows of `dataset`, or None. `complete`: the table is replaced by each of its micro-batches.

    Raises STREAM_SOURCE_UPDATED, at `where`, for a change table whose changes an option takes.
    """
    given = {key.lower() for key, value in options.items() if value.lower() == "true"}
    changes = next((f for f in flows if f.changes is not None), None)
    if changes is not None:
        why = f"it is the target of {changes.name}, whose change events update and delete rows; a stream reads added rows only"
        if given & _TAKES_CHANGES:
            raise LakeletError(
                "STREAM_SOURCE_UPDATED",
                f"it streams from {dataset.name}, whose rows are updated",
                where=where,
                why=f"{why}\nthe options skipChangeCommits and ignoreChanges do not go with such a table",
                todo=f"{remedies(str(dataset.name), batch=_IN_A_VIEW)}.",
            )
        return (
            f"{dataset.name} is the target of {changes.name}: the stream fails at the first commit that updates or deletes rows. "
            + remedies(str(dataset.name), batch=_IN_A_VIEW)
        )
    replacing = next((f.replaces.clause for f in flows if f.replaces is not None), None)
    if replacing is not None and not given & _TAKES_CHANGES:
        text = f"{dataset.name} is the target of a {replacing} flow: the stream fails at the first commit that takes rows away. "
        return text + remedies(str(dataset.name))
    if given & _TAKES_CHANGES:
        text = f"every commit of {dataset.name} replaces its rows; with skipChangeCommits a stream gets those it had first"
        return text if complete and _SKIP in given else None
    if complete:
        text = f"{dataset.name} aggregates without a watermark: the stream gets its first rows, and fails once they are replaced"
        return f"{text}. {remedies(str(dataset.name), batch='as a batch')}, or give its query a watermark: finished groups are added"
    if kind is Kind.MATERIALIZED_VIEW:
        text = f"{dataset.name} is a materialized view: the stream gets the rows that are added to it, and fails once one changes or goes"
        return f"{text}; with skipChangeCommits it goes on, without what that update brings"
    return None


def remedies(name: str, *, batch: str = _IN_A_VIEW) -> str:
    """Remedy for a stream over a table whose rows are updated."""
    feed = f'spark.readStream.option("readChangeFeed", "true").table("{name}")'
    return f"Read its changes with {feed}, or its rows {batch} (spark.read.table, dlt.read)"
