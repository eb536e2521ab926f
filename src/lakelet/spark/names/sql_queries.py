"""A SQL text that a dataset's function passes to `spark.sql`, run with the pipeline's names and files.

Spark sees temporary views: of each table that the text names, and of each call of `read_files`, `cloud_files` and their kin. Where names
stand is found by `language.sql_text.table_names`, what they mean by `lookup`; `sql_rewriting` changes what Spark would refuse. SQL text
outside of functions is run by `spark.patches.created_tables`. `DESCRIBE HISTORY` and `DESCRIBE DETAIL` of a dataset are those of the stored
table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakelet.autoloader.data_source import open_files, read_files
from lakelet.autoloader.session_settings import source_settings
from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import all_quoted, quoted, split_name
from lakelet.base.user_code import caller_location
from lakelet.jvm.frames import analyzed, of_plan
from lakelet.jvm.sessions import has_view, java_session, plain_reader
from lakelet.language.model import Dataset
from lakelet.language.registry import Notice, names_used
from lakelet.language.sql_text import commands, table_names
from lakelet.language.sql_text.spark_sql import with_values
from lakelet.language.sql_text.tokens import begins_with, may_have
from lakelet.language.unsupported import unsupported
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.names import table_functions
from lakelet.spark.names.catalog import Catalog, is_missing_table, parts_of
from lakelet.spark.names.cloud_files_state import STATES, checkpoint_states
from lakelet.spark.names.from_json import in_text
from lakelet.spark.names.lookup import NameTarget, resolve_name
from lakelet.spark.names.outside import stored_tables
from lakelet.spark.names.paths import located, located_relation
from lakelet.spark.names.reader import TableReader
from lakelet.spark.names.sql_rewriting import Alias, ColumnPrefixes, on_text_too, with_own_functions
from lakelet.spark.names.table_functions import READ_KAFKA, TABLE_CHANGES, feed_of, kafka_options, open_kafka

# ------------------------------------------------------------ DESCRIBE HISTORY and DESCRIBE DETAIL of a dataset (NM-7)


HISTORY = (
    "version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING, operationParameters MAP<STRING, STRING>, "
    "job STRUCT<jobId: STRING, jobName: STRING, jobRunId: STRING, runId: STRING, jobOwnerId: STRING, triggerType: STRING>, "
    "notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT, isolationLevel STRING, isBlindAppend BOOLEAN, "
    "operationMetrics MAP<STRING, STRING>, userMetadata STRING, engineInfo STRING"
)
DETAIL = (
    "format STRING, id STRING, name STRING, description STRING, location STRING, createdAt TIMESTAMP, lastModified TIMESTAMP, "
    "partitionColumns ARRAY<STRING>, clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT, "
    "properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT, tableFeatures ARRAY<STRING>"
)
_DESCRIPTION_COLUMNS = {"HISTORY": HISTORY, "DETAIL": DETAIL}


def described_dataset(text: str, catalog: Catalog) -> tuple[Dataset, str] | None:
    """The dataset whose history or detail a text asks for, and which of the two; None for any other text."""
    found = commands.command(text)
    kind = found.verb.split()[-1] if found is not None else ""
    if found is None or kind not in _DESCRIPTION_COLUMNS:
        return None
    dataset = catalog.dataset(split_name(found.name))
    return None if dataset is None or dataset.is_temporary_view else (dataset, kind)


def description_of(spark: SparkSession, dataset: Dataset, kind: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """The rows of `DESCRIBE` HISTORY or DETAIL; none of a table that does not exist yet. `run`: what `spark.sql` does with a text."""
    path = stored_tables().path(dataset.name)
    return spark.createDataFrame([], _DESCRIPTION_COLUMNS[kind]) if path is None else run(f"DESCRIBE {kind} delta.{quoted(path)}")


# ----------------------------------------------------------------------------------------------------------- the query


_DESCRIBING = ("DESC", "DESCRIBE")
_HARMLESS = ("SET", "SHOW", *_DESCRIBING, "EXPLAIN")
_HIDDEN = ("_metadata", "input_file_name")


class SqlText:
    """One text on its way.

    Args:
        reader: opens what the text names.
        run: what `spark.sql` does with a text.
        args: the values of the text's named parameters, which `IDENTIFIER(…)` may use.
    """

    def __init__(self, reader: TableReader, run: Callable[[str], DataFrame], args: Mapping[str, Any] | None = None) -> None:
        self._reader, self._run, self._args = reader, run, args
        self._spark = reader.spark
        self._opened: dict[tuple[object, ...], str] = {}  # what was asked for → its view
        self._called: dict[table_names.CallRef, str] = {}  # call of a table function → its view
        self._files: dict[str, DataFrame] = {}  # view → rows of files
        self._unknown: list[tuple[str, ...]] = []
        self._prefixes = ColumnPrefixes(functools.partial(table_names.has_subqueries, self._spark))

    def answered(self, text: str) -> DataFrame:
        """The rows of the query. Raises QUERY_FAILED_ANALYSIS for a command, UNKNOWN_DATASET, and what opening a table raises."""
        text = with_values(text)
        try:
            text = in_text(text, self._spark, self._run, self._reader.inferred_json)
            if not self._reader.takes_commands and not table_names.is_query(self._spark, text) and not begins_with(text, _HARMLESS):
                raise _command_error(text)
            asked = described_dataset(text, self._reader.catalog) if begins_with(text, _DESCRIBING) else None
            if asked is not None:
                return self._describe_dataset(*asked)
            return self._prefixes.run(
                functools.partial(self._with_views, text),
                lambda one: with_own_functions(self._spark, one, lambda known: on_text_too(known, self._run_with_files)),
            )
        except MissingTable:
            raise
        except AnalysisException as problem:
            if is_missing_table(problem):
                said = problem.getMessageParameters() or {}
                name = (said.get("relationName") or said.get("identifier") or "").replace("`", "")
                if name and begins_with(text, _HARMLESS) and self._reader.catalog.dataset(parts_of(name)) is not None:
                    unsupported(f"{text.split()[0].upper()} of {name}, a dataset of the pipeline, inside a dataset's function")
                raise self._missing_table(name or ".".join(next(iter(self._unknown), ("?",)))) from problem
            raise
        finally:
            for view in (*self._opened.values(), *self._files):
                self._spark.catalog.dropTempView(view)

    def _missing_table(self, name: str) -> MissingTable:
        """The error for a table that nobody knows, with those for the others that the query names."""
        missing = self._reader.unknown(name)
        others = [parts for parts in dict.fromkeys(self._unknown) if ".".join(parts).lower() != name.lower()]
        gone = [".".join(parts) for parts in others if not self._spark.catalog.tableExists(all_quoted(parts))]
        missing.others = tuple(map(self._reader.unknown, gone))
        return missing

    def in_views(self, text: str) -> str:
        """The query with views for what it names, which stay until the reader is closed.

        Raises UNKNOWN_DATASET, and what opening a table raises.
        """
        found = self._prefixes.run(functools.partial(self._with_views, with_values(text)), lambda one: one)
        self._reader.kept_views += [*self._opened.values(), *self._files]
        for parts in self._unknown:
            try:
                self._spark.table(all_quoted(parts))
            except AnalysisException as problem:
                if is_missing_table(problem):
                    raise self._reader.unknown(".".join(parts)) from problem
        return found

    def _describe_dataset(self, dataset: Dataset, kind: str) -> DataFrame:
        """History or detail of a dataset, which is an input then: what this update does to it comes first."""
        if self._reader.flow.target.key != dataset.name.key:
            self._reader.noted(dataset, streaming=False)
        return description_of(self._spark, dataset, kind, self._run)

    def _with_views(self, text: str, alias: Alias) -> table_names.Edits:
        """The text with views of its tables and of its calls of table functions. Raises what opening them raises."""
        new = table_names.ReferenceReplacements(
            self._view_of_relation, self._view_of_files, table_functions.FUNCTIONS, alias, batches=self._reader.reads_batches
        )
        return table_names.replace_references(self._spark, text, new, self._args)

    # ------------------------------------------------------------------------------------------------------- tables

    def _view_of_relation(self, ref: table_names.RelationRef) -> str | None:
        """Return the replacement of a name, or None to leave it as written."""
        meant = resolve_name(ref.parts, self._reader.catalog, streaming=ref.streaming, spark=self._spark)
        if meant.place is NameTarget.NO_DATASET:
            raise self._reader.unknown(".".join(ref.parts))
        folder = _streamed_folder(ref) if meant.place is NameTarget.SPARK else None
        if meant.place is NameTarget.SPARK and folder is None:
            return self._replacement_of_unknown(ref)
        if not ref.has_alias:
            self._prefixes.add(ref.parts, meant.name)
        asked = (all_quoted(ref.parts), ref.streaming, *sorted(ref.options.items()))
        if asked not in self._opened:
            self._opened[asked] = self._reader.view(self._open_reference(ref, folder))
        return self._opened[asked]

    def _replacement_of_unknown(self, ref: table_names.RelationRef) -> str | None:
        """What Spark is asked for instead of a name that the pipeline does not know: files, or a name that `USE` completes."""
        files = located_relation(ref.parts)
        if files is not None:
            return files
        self._unknown.append(ref.parts)
        return self._completed_name(ref.parts)

    def _open_reference(self, ref: table_names.RelationRef, folder: str | None) -> DataFrame:
        """The table that the text names, or the Delta `folder`, read with the options of `WITH (…)`."""
        jreader = plain_reader(self._spark, streaming=ref.streaming, options=ref.options) if ref.options else None
        name = all_quoted(ref.parts)
        if folder is not None:
            self._reader.external[name] = None
            return self._reader.stored(folder, ref.streaming, jreader)
        return self._reader.relation(
            name, streaming=ref.streaming, jreader=jreader, otherwise=lambda: self._spark.table(name), options=ref.options
        )

    def _completed_name(self, parts: Sequence[str]) -> str | None:
        """What Spark is asked for instead of a name that `USE` completes; None where it is asked for the name as written."""
        used, own = names_used(), self._reader.catalog.namespace
        if used is None or len(parts) == 3 or "/" in parts[-1]:
            return None
        if len(parts) == 1 and has_view(java_session(self._spark), parts[0]):
            return None
        full = (used.catalog, used.schema, *parts) if len(parts) == 1 else (used.catalog, *parts)
        return all_quoted(full if used.catalog != own.catalog else full[1:])

    # -------------------------------------------------------------------------------------------------------- files

    def _view_of_files(self, call: table_names.CallRef) -> str:
        if call not in self._called:
            frame = self._files_of(call, table_functions.evaluated(self._run))
            self._called[call] = name = self._reader.view(frame)
            self._files[name] = frame
        return self._called[call]

    def _files_of(self, call: table_names.CallRef, evaluate: table_functions.Evaluate) -> DataFrame:
        where = caller_location()
        if call.name == table_functions.STATE:
            return self._file_states(table_functions.state_of(call, evaluate, where), where)
        if call.name == TABLE_CHANGES:
            return self._change_feed(call, evaluate, where)
        if call.name == READ_KAFKA:
            options = kafka_options(*table_functions.arguments_of(call, evaluate), where)
            return open_kafka(self._spark, options, streaming=call.streaming, where=where)
        if call.name == table_functions.EVENT_LOG:
            raise table_functions.no_event_log(where)
        spec = self._reader.placed(table_functions.source_of(call, self._spark, evaluate, where))
        if call.name == table_functions.CLOUD_FILES or call.streaming:
            return self._reader.stream_of(spec)
        description, notices = open_files(spec, source_settings(self._spark))
        self._reader.notices += [Notice(text, where) for text in notices]
        return read_files(self._spark, description)

    def _change_feed(self, call: table_names.CallRef, evaluate: table_functions.Evaluate, where: Location) -> DataFrame:
        name, options = feed_of(*table_functions.arguments_of(call, evaluate), where)
        reader = plain_reader(self._spark, streaming=call.streaming, options=options)
        return self._reader.relation(
            name, streaming=call.streaming, jreader=reader, otherwise=lambda: self._spark.table(name), options=options
        )

    def _file_states(self, asked: table_functions.FileStateCall, where: Location) -> DataFrame:
        if asked.checkpoint is not None:
            return self._spark.createDataFrame(checkpoint_states(asked.checkpoint, where).to_pylist(), STATES)
        dataset = self._reader.catalog.dataset(parts_of(asked.table or ""))
        if dataset is None:
            raise self._reader.unknown(asked.table or "")
        self._reader.noted(dataset, streaming=False)
        return self._reader.file_states(dataset)

    def _run_with_files(self, text: str) -> DataFrame:
        """Run a text with views. One that names `_metadata` of files gets their plans: a view would not let the column through."""
        if not self._files or not may_have(text, _HIDDEN):
            return self._run(text)
        plans = {name: analyzed(frame) for name, frame in self._files.items()}
        plan = table_names.in_place(self._spark, text, plans)
        return of_plan(self._spark, plan)


class QueryReader(TableReader):
    """Opens what a dataset's function reads, by name and in the text of `spark.sql`."""

    def sql(self, text: str, run: Callable[[str], DataFrame], args: Mapping[str, Any] | None = None) -> DataFrame:
        """Run SQL text with the pipeline's names: each becomes a temporary view of the flow's own session. `args`: its parameters."""
        return SqlText(self, run, args).answered(text)

    def in_views(self, text: str, run: Callable[[str], DataFrame]) -> str:
        """SQL text with views for what it names, for a column whose query is still to come. See `SqlText.in_views`."""
        return SqlText(self, run).in_views(text)


def _streamed_folder(ref: table_names.RelationRef) -> str | None:
    """The folder of `STREAM delta.`folder``, which Spark itself reads as a batch only; None for anything else."""
    return located(ref.parts[1]) if ref.streaming and len(ref.parts) == 2 and ref.parts[0].lower() == "delta" else None


def _command_error(text: str) -> LakeletError:
    return LakeletError(
        "QUERY_FAILED_ANALYSIS",
        f"spark.sql was given a command inside a dataset's function: {' '.join(text.split())[:80]}",
        where=caller_location(),
        why="the function is called several times per update, also when nothing may be written",
        todo="Return a query; what it should write is the dataset itself. Put other commands at the file's top level.",
    )


__all__ = ["QueryReader", "SqlText", "described_dataset", "description_of"]
