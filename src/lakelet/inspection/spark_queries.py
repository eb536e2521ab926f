"""Queries over a storage that Spark answers: each table that a query names becomes a temporary view of the session."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakelet.base import sentences
from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import Namespace, TableName, all_quoted, split_name
from lakelet.files.delta_rs import open_or_none
from lakelet.files.paths import AnyPath
from lakelet.inspection.json_values import SPARK_TYPE, distinct_names
from lakelet.inspection.scripts import ScopedQuery, no_query, only_queries, script
from lakelet.inspection.table_lookup import find_stored, path_of, unknown_table, unwritten
from lakelet.inspection.unknown_names import name_starts, place_in, unknown_column, unknown_rows
from lakelet.language.sql_text.spark_sql import in_spark_sql
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.reading import open_log
from lakelet.storage.eventlog.views import EVENT_LOG
from lakelet.storage.information_schema import SCHEMA, RelationName, asked_for, described
from lakelet.storage.published_views import PublishedView, load_views
from lakelet.storage.root import Storage, StoredDataset, new_table_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lakelet.language.sql_text.table_names import CallRef, RelationRef


def collected(frame: Any) -> pa.Table:
    """The rows of a Spark data frame; types that arrow does not take become text (VARIANT as JSON), whose fields say so (`SPARK_TYPE`)."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    from lakelet.inspection.texts import readable

    plain, as_text = [], {}
    for position, (field, name) in enumerate(zip(frame.schema.fields, distinct_names(frame.columns), strict=True)):
        kind = field.dataType.typeName()
        column = F.col(f"_{position}")
        converted = F.to_json(column) if kind == "variant" else column.cast("string") if "interval" in kind else column
        plain.append(converted.alias(name))
        if converted is not column:
            as_text[name] = field.dataType.simpleString()
    renamed = frame.toDF(*(f"_{position}" for position in range(len(frame.columns))))
    table = readable(renamed.select(*plain).toArrow())
    if not as_text:
        return table
    return table.cast(pa.schema(f.with_metadata({SPARK_TYPE: as_text[f.name]}) if f.name in as_text else f for f in table.schema))


def spark_rows(spark: SparkSession, storage: AnyPath, sql: str, *, limit: int | None = None, space: Namespace | None = None) -> pa.Table:
    """Run a query with Spark. With a limit, at most one row more than that is read, which says that there are more.

    `space`: completes names, in place of the storage's namespace.

    Raises SQL_FAILED (not a query, failed analysis), UNKNOWN_TABLE, UNKNOWN_COLUMN, QUERY_FAILED.
    """
    from pyspark.errors import PySparkException

    from lakelet.jvm.errors import Py4JError
    from lakelet.language.sql_text import table_names as sqltext
    from lakelet.language.sql_text.tokens import may_have, plain_tokens
    from lakelet.spark.patches import session_functions

    asked, views = script(sql), _Views(spark, storage, space=space)
    if not plain_tokens(asked.query.query):
        raise no_query()
    if may_have(sql, (session_functions.SCHEMA_OF_JSON_AGG,)):
        session_functions.register_json_schemas(spark)
    try:
        if not all(sqltext.is_query(spark, in_spark_sql(one.query)) for one in (*(view for _, view in asked.views), asked.query)):
            raise only_queries()
        for name, view in asked.views:
            views.use(view)
            views.define(name, views.frame_of(view.query))
        views.use(asked.query)
        frame = views.frame_of(asked.query.query)
    except (PySparkException, Py4JError) as problem:  # Spark raises internal errors of Java for some queries that it cannot analyse
        raise _unknown_column(problem, sql, views) or _sql_error("SQL_FAILED", "the query does not analyse", problem) from problem
    try:
        return collected(frame if limit is None else frame.limit(limit + 1))
    except (PySparkException, Py4JError) as problem:
        raise _sql_error("QUERY_FAILED", "the query failed", problem) from problem


def _sql_error(code: str, what: str, problem: Exception) -> LakeletError:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    text = lines[: next((i for i, line in enumerate(lines) if sentences.PLAN.is_in(line)), 8)]
    return LakeletError(code, what, why="\n".join(text[:8]))


def _unknown_column(problem: Exception, sql: str, views: _Views) -> LakeletError | None:
    """The error for a column that Spark did not find, as `unknown_names` has it; None for any other error of Spark's."""
    from lakelet.spark.errors.conditions import parameter
    from lakelet.spark.errors.diagnosis import proposed

    if star := parameter(problem, "targetString", condition="CANNOT_RESOLVE_STAR_EXPAND"):
        return unknown_rows(split_name(star), nearest_names(split_name(star)[-1], [*views.tables(), *views.columns()]))
    joined_by = parameter(problem, "colName", condition="UNRESOLVED_USING_COLUMN_FOR_JOIN")
    found = joined_by or parameter(problem, "objectName", condition="UNRESOLVED_COLUMN")
    if found is None:
        return None
    suggested = parameter(problem, "suggestion", condition="UNRESOLVED_USING_COLUMN_FOR_JOIN")
    known = (suggested or "").split(", ") if joined_by else [*views.columns(), *proposed(problem)]
    parts, columns = split_name(found), list(dict.fromkeys(split_name(name)[-1] for name in known if name))
    error = unknown_column(parts, "the tables of the query", nearest_names(parts[-1], columns), columns)
    at = name_starts(sql, parts)
    if len(at) == 1:
        error.where = place_in(sql, at[0])
    return error


class _Views:
    """Makes a temporary view for each stored table that a query names, and gives the view's name."""

    def __init__(
        self, spark: SparkSession, storage: AnyPath, within: tuple[PublishedView, ...] = (), *, space: Namespace | None = None
    ) -> None:
        from lakelet.language.sql_text.table_names import has_subqueries
        from lakelet.spark.names.sql_rewriting import ColumnPrefixes

        self._spark = spark
        self._storage = Storage(storage)
        self._registry = self._storage.registry()
        self._files = itertools.count()
        self._named: list[tuple[str, str]] = []  # last part of the name, view
        self._made: dict[str, str] = {}  # views of the event log
        self._defined: dict[str, str] = {}  # views of the text itself
        self._prefixes = ColumnPrefixes(lambda text: has_subqueries(spark, text))
        self._own = space or self._registry.namespace
        self._space = Namespace(within[-1].catalog, within[-1].schema) if within else self._own
        self._within = within  # the published views whose query this is, the outermost first

    def frame_of(self, query: str) -> DataFrame:
        """What a query gives. Paths into JSON text are put into Spark's words where Spark does not take the query as it is."""
        from pyspark.errors import ParseException, PySparkException

        from lakelet.jvm.errors import Py4JError

        try:
            return self._analysed(query)
        except (PySparkException, Py4JError) as problem:
            in_words = in_spark_sql(query)
            if in_words == query:
                raise
            if isinstance(problem, ParseException):
                return self._analysed(in_words)
            with suppress(PySparkException, Py4JError):
                return self._analysed(in_words)
            raise

    def _analysed(self, query: str) -> DataFrame:
        from lakelet.language.sql_text import table_names as sqltext
        from lakelet.spark.names.sql_rewriting import on_text_too
        from lakelet.spark.names.table_functions import FUNCTIONS

        return self._prefixes.run(
            lambda alias: sqltext.replace_references(
                self._spark, query, sqltext.ReferenceReplacements(self, self.of_files, FUNCTIONS, alias)
            ),
            lambda one: on_text_too(one, self._spark.sql),
        )

    def tables(self) -> list[str]:
        """The last parts of the names of the tables that the query has named."""
        return [last for last, _ in self._named]

    def columns(self) -> list[str]:
        """The columns of these tables."""
        return [column for _, view in self._named for column in self._spark.table(view).columns]

    def use(self, query: ScopedQuery) -> None:
        """Complete names as the query wants them. Raises SQL_FAILED for a USE of too many parts."""
        try:
            self._space = query.namespace(self._own)
        except ValueError as problem:
            raise LakeletError("SQL_FAILED", str(problem)) from None

    def define(self, name: tuple[str, ...], frame: DataFrame) -> None:
        """Let a name mean the rows of a data frame; one of several parts is completed like that of a table.

        Raises SQL_FAILED for a name of more than three.
        """
        try:
            key = name[0].lower() if len(name) == 1 else self._space.resolve(all_quoted(name)).key
        except ValueError as problem:
            raise LakeletError("SQL_FAILED", f"CREATE VIEW: {problem}") from None
        view = _plain(f"view.{len(self._defined)}.{key}")
        frame.createOrReplaceTempView(view)
        self._defined[key] = view

    def of_files(self, call: CallRef) -> str:
        """The view for a call of a table function, such as `read_files`. Raises CF_UNSUPPORTED_CLOUD_FILES_SQL_FUNCTION for streams."""
        from lakelet.autoloader import register
        from lakelet.autoloader.data_source import open_files, read_files
        from lakelet.autoloader.session_settings import source_settings
        from lakelet.spark.names import table_functions as filecalls
        from lakelet.spark.names.cloud_files_state import STATES, checkpoint_states, dataset_states
        from lakelet.spark.names.table_functions import TABLE_CHANGES

        evaluate = filecalls.evaluated(self._spark.sql)
        if call.name == filecalls.EVENT_LOG:  # of whatever it is asked for: a storage has one log
            return self._of_events(event_views.SOURCE)
        if call.name == "read_kafka":
            raise LakeletError("SQL_FAILED", "read_kafka is a source of pipelines", todo="Declare a streaming table that reads it.")
        if call.name == filecalls.STATE:
            asked = filecalls.state_of(call, evaluate, None)
            if asked.checkpoint is not None:
                states = checkpoint_states(asked.checkpoint, None)
            else:
                stored = self._stored(asked.table or "")
                states = dataset_states(self._storage, TableName(*split_name(stored.name)))
            frame = self._spark.createDataFrame(states.to_pylist(), STATES)
        elif call.name == TABLE_CHANGES and call.streaming:
            raise LakeletError("SQL_FAILED", f"{TABLE_CHANGES} is a stream here, which only a pipeline can run: leave STREAM out")
        elif call.streaming or call.name == filecalls.CLOUD_FILES:
            what = f"{call.name} is a stream here, which only a pipeline can run"
            raise LakeletError("CF_UNSUPPORTED_CLOUD_FILES_SQL_FUNCTION", what, todo="Use read_files without STREAM.")
        elif call.name == TABLE_CHANGES:
            frame = self._changes([name for name, _ in call.arguments], evaluate([text for _, text in call.arguments]))
        else:
            register(self._spark, wrap=False)
            source = filecalls.source_of(call, self._spark, evaluate, None)
            frame = read_files(self._spark, open_files(source, source_settings(self._spark))[0])
        name = f"lakelet_files_{next(self._files)}"
        frame.createOrReplaceTempView(name)
        return name

    def _changes(self, names: Sequence[str | None], values: Sequence[Any]) -> DataFrame:
        """The change feed of a stored table (`table_changes`)."""
        from lakelet.spark.names.table_functions import feed_of

        name, options = feed_of(names, values, None)
        stored = self._stored(name)
        return self._spark.read.options(**options).format("delta").load(str(path_of(self._storage.root, stored)))

    def _stored(self, name: str) -> StoredDataset:
        """The stored dataset of a name, completed as the query wants it. Raises UNKNOWN_TABLE."""
        found = None
        with suppress(ValueError):  # a name of too many parts is unknown as well
            found = find_stored(self._registry, self._space.resolve(name))
        if found is None:
            raise unknown_table(name, self._registry)
        return found

    def __call__(self, ref: RelationRef) -> str | None:
        """The view for a table that the query names; None for files that Spark reads itself. Raises UNKNOWN_TABLE, SQL_FAILED."""
        found = self._view_of(ref)
        if found is not None and (named := (ref.parts[-1], found)) not in self._named:
            self._named.append(named)
        return found

    def _view_of(self, ref: RelationRef) -> str | None:
        from lakelet.language.sql_text.table_names import names_of

        if len(ref.parts) == 1 and ref.parts[0].lower() in self._defined:
            return self._defined[ref.parts[0].lower()]
        parts = ref.parts[1:] if len(ref.parts) > 1 and ref.parts[0].lower() == "live" else ref.parts
        if not 1 <= len(parts) <= 3:
            raise unknown_table(names_of([ref])[0], self._registry)
        full = TableName(*(self._space.catalog, self._space.schema)[: 3 - len(parts)], *parts)
        if not ref.has_alias:
            self._prefixes.add(ref.parts, full)
        if full.key in self._defined:
            return self._defined[full.key]
        stored = find_stored(self._registry, full)
        if stored is not None:
            return self._view(full.key, path_of(self._storage.root, stored), stored.name, ref.options)
        view = load_views(self._storage).get(full.key)
        if view is not None and view not in self._within:
            if ref.travel is not None:
                raise LakeletError("SQL_FAILED", f"{full} is a view, which has no versions", todo="Name the table that it reads.")
            return self._published(full.key, view)
        if len(parts) == 2 and parts[0].lower() in ("delta", "parquet", "json", "csv", "text", "orc"):
            return None
        if open_or_none(self._storage.at(new_table_path(full))) is not None:  # written by a sink
            return self._view(full.key, self._storage.at(new_table_path(full)), str(full), ref.options)
        of_events = event_views.relation_of(tuple(parts))
        if of_events is not None:
            return self._of_events(of_events, ref.options)
        asked = asked_for(full)
        if asked is not None:
            return self._described(asked)
        raise unknown_table(names_of([ref])[0], self._registry)

    def _published(self, key: str, view: PublishedView) -> str:
        """The query of a published view, in whose place names mean what they mean where it was declared."""
        within = _Views(self._spark, self._storage.root, (*self._within, view))
        within.frame_of(view.query).createOrReplaceTempView(_plain(key))
        return _plain(key)

    def _of_events(self, name: str, options: Mapping[str, str] | None = None) -> str:
        """The event log, or a view of it, in whose query names mean the event log's own views whatever the storage holds."""
        from lakelet.language.sql_text import table_names as sqltext

        if name == event_views.SOURCE:
            open_log(self._storage.events)
            return self._view(EVENT_LOG, self._storage.events, "the event log", options)
        if name not in self._made:
            query = event_views.event_view(name).query
            text = sqltext.rewrite(self._spark, query, lambda ref: self._of_events(ref.parts[0].lower()))
            self._made[name] = _plain(f"{EVENT_LOG}.{name}")
            self._spark.sql(text).createOrReplaceTempView(self._made[name])
        return self._made[name]

    def _described(self, asked: RelationName) -> str:
        """A relation of the information schema."""
        from lakelet.spark.names.lookup import frame_of

        name = _plain(f"{SCHEMA}.{asked.relation}.{asked.catalog}")
        frame_of(self._spark, asked, described(self._storage)).createOrReplaceTempView(name)
        return name

    def _view(self, key: str, path: AnyPath, shown: str, options: Mapping[str, str] | None = None) -> str:
        if open_or_none(path) is None:
            raise unwritten(shown)
        asked = options or {}
        name = _plain(".".join([key, *(f"{option}={asked[option]}" for option in sorted(asked))]))
        self._spark.read.options(**asked).format("delta").load(str(path)).createOrReplaceTempView(name)
        return name


def _plain(key: str) -> str:
    """The name of the temporary view for a table."""
    return "lakelet_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in key)
