"""A SQL text that a dataset's function hands to `spark.sql`, run with the pipeline's names and files.

Spark sees temporary views: of each table that the text names, and of each call of `read_files`, `cloud_files` and their kin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lakelet.autoloader.batch import open_files, read_files
from lakelet.autoloader.settings import source_settings
from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import caller_location
from lakelet.base.names import all_quoted
from lakelet.jvm.frames import analyzed, of_plan
from lakelet.jvm.sessions import has_view, java_session, plain_reader
from lakelet.language.model import Dataset
from lakelet.language.registry import Notice, names_used
from lakelet.language.sql_text import table_names
from lakelet.language.sql_text.spark_words import with_values
from lakelet.language.sql_text.tokens import begins_with, may_have
from lakelet.language.unsupported import unsupported
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.names import file_functions
from lakelet.spark.names.catalog import is_missing_table, parts_of
from lakelet.spark.names.catalog_functions import with_own_functions
from lakelet.spark.names.change_functions import TABLE_CHANGES, feed_of
from lakelet.spark.names.column_prefixes import Alias, ColumnPrefixes
from lakelet.spark.names.described import asked_about, facts
from lakelet.spark.names.file_states import STATES, checkpoint_states
from lakelet.spark.names.json_columns import in_text
from lakelet.spark.names.json_paths import on_text_too
from lakelet.spark.names.kafka_functions import READ_KAFKA, kafka_options, open_kafka
from lakelet.spark.names.lookup import Place, meaning
from lakelet.spark.names.paths import located, located_relation
from lakelet.spark.names.reader import TableReader

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
            asked = asked_about(text, self._reader.catalog) if begins_with(text, _DESCRIBING) else None
            if asked is not None:
                return self._described(*asked)
            return self._prefixes.run(
                functools.partial(self._with_views, text),
                lambda one: with_own_functions(self._spark, one, lambda known: on_text_too(known, self._rows)),
            )
        except MissingTable:
            raise
        except AnalysisException as problem:
            if is_missing_table(problem):
                said = problem.getMessageParameters() or {}
                name = (said.get("relationName") or said.get("identifier") or "").replace("`", "")
                if name and begins_with(text, _HARMLESS) and self._reader.catalog.dataset(parts_of(name)) is not None:
                    unsupported(f"{text.split()[0].upper()} of {name}, a dataset of the pipeline, inside a dataset's function")
                raise self._missing(name or ".".join(next(iter(self._unknown), ("?",)))) from problem
            raise
        finally:
            for view in (*self._opened.values(), *self._files):
                self._spark.catalog.dropTempView(view)

    def _missing(self, name: str) -> MissingTable:
        """The error for a table that nobody knows, with those for the others that the query names."""
        missing = self._reader.unknown(name)
        others = [parts for parts in dict.fromkeys(self._unknown) if ".".join(parts).lower() != name.lower()]
        gone = [".".join(parts) for parts in others if not self._spark.catalog.tableExists(_name(parts))]
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
                self._spark.table(_name(parts))
            except AnalysisException as problem:
                if is_missing_table(problem):
                    raise self._reader.unknown(".".join(parts)) from problem
        return found

    def _described(self, dataset: Dataset, kind: str) -> DataFrame:
        """History or detail of a dataset, which is an input then: what this update does to it comes first."""
        if self._reader.flow.target.key != dataset.name.key:
            self._reader.noted(dataset, streaming=False)
        return facts(self._spark, dataset, kind, self._run)

    def _with_views(self, text: str, alias: Alias) -> table_names.Edits:
        """The text with views of its tables and of its calls of table functions. Raises what opening them raises."""
        new = table_names.Replacing(
            self._replacement, self._view_of_files, file_functions.FUNCTIONS, alias, batches=self._reader.reads_batches
        )
        return table_names.replacing(self._spark, text, new, self._args)

    # ------------------------------------------------------------------------------------------------------- tables

    def _replacement(self, ref: table_names.RelationRef) -> str | None:
        """Return the replacement of a name, or None to leave it as written."""
        meant = meaning(ref.parts, self._reader.catalog, streaming=ref.streaming)
        if meant.place is Place.NO_DATASET:
            raise self._reader.unknown(".".join(ref.parts))
        folder = _streamed_folder(ref) if meant.place is Place.SPARK else None
        if meant.place is Place.SPARK and folder is None:
            return self._elsewhere(ref)
        if not ref.has_alias:
            self._prefixes.add(ref.parts, meant.name)
        asked = (_name(ref.parts), ref.streaming, *sorted(ref.options.items()))
        if asked not in self._opened:
            self._opened[asked] = self._reader.view(self._referred(ref, folder))
        return self._opened[asked]

    def _elsewhere(self, ref: table_names.RelationRef) -> str | None:
        """What Spark is asked for instead of a name that the pipeline does not know: files, or a name that `USE` completes."""
        files = located_relation(ref.parts)
        if files is not None:
            return files
        self._unknown.append(ref.parts)
        return self._completed(ref.parts)

    def _referred(self, ref: table_names.RelationRef, folder: str | None) -> DataFrame:
        """The table that the text names, or the Delta `folder`, read with the options of `WITH (…)`."""
        jreader = plain_reader(self._spark, streaming=ref.streaming, options=ref.options) if ref.options else None
        name = _name(ref.parts)
        if folder is not None:
            self._reader.external[name] = None
            return self._reader.stored(folder, ref.streaming, jreader)
        return self._reader.relation(
            name, streaming=ref.streaming, jreader=jreader, otherwise=lambda: self._spark.table(name), options=ref.options
        )

    def _completed(self, parts: Sequence[str]) -> str | None:
        """What Spark is asked for instead of a name that `USE` completes; None where it is asked for the name as written."""
        used, own = names_used(), self._reader.catalog.namespace
        if used is None or len(parts) == 3 or "/" in parts[-1]:
            return None
        if len(parts) == 1 and has_view(java_session(self._spark), parts[0]):
            return None
        full = (used.catalog, used.schema, *parts) if len(parts) == 1 else (used.catalog, *parts)
        return _name(full if used.catalog != own.catalog else full[1:])

    # -------------------------------------------------------------------------------------------------------- files

    def _view_of_files(self, call: table_names.CallRef) -> str:
        if call not in self._called:
            frame = self._files_of(call, file_functions.evaluated(self._run))
            self._called[call] = name = self._reader.view(frame)
            self._files[name] = frame
        return self._called[call]

    def _files_of(self, call: table_names.CallRef, evaluate: file_functions.Evaluate) -> DataFrame:
        where = caller_location()
        if call.name == file_functions.STATE:
            return self._states(file_functions.state_of(call, evaluate, where), where)
        if call.name == TABLE_CHANGES:
            return self._changes(call, evaluate, where)
        if call.name == READ_KAFKA:
            names, texts = [name for name, _ in call.arguments], [text for _, text in call.arguments]
            options = kafka_options(names, evaluate(texts) if texts else [], where)
            return open_kafka(self._spark, options, streaming=call.streaming, where=where)
        if call.name == file_functions.EVENT_LOG:
            raise file_functions.no_event_log(where)
        spec = self._reader.placed(file_functions.source_of(call, self._spark, evaluate, where))
        if call.name == file_functions.CLOUD_FILES or call.streaming:
            return self._reader.stream_of(spec)
        description, notices = open_files(spec, source_settings(self._spark))
        self._reader.notices += [Notice(text, where) for text in notices]
        return read_files(self._spark, description)

    def _changes(self, call: table_names.CallRef, evaluate: file_functions.Evaluate, where: Location) -> DataFrame:
        names, texts = [name for name, _ in call.arguments], [text for _, text in call.arguments]
        name, options = feed_of(names, evaluate(texts) if texts else [], where)
        reader = plain_reader(self._spark, streaming=call.streaming, options=options)
        return self._reader.relation(
            name, streaming=call.streaming, jreader=reader, otherwise=lambda: self._spark.table(name), options=options
        )

    def _states(self, asked: file_functions.StateOf, where: Location) -> DataFrame:
        if asked.checkpoint is not None:
            return self._spark.createDataFrame(checkpoint_states(asked.checkpoint, where).to_pylist(), STATES)
        dataset = self._reader.catalog.dataset(parts_of(asked.table or ""))
        if dataset is None:
            raise self._reader.unknown(asked.table or "")
        self._reader.noted(dataset, streaming=False)
        return self._reader.file_states(dataset)

    def _rows(self, text: str) -> DataFrame:
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


def _name(parts: Sequence[str]) -> str:
    return all_quoted(parts)


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
