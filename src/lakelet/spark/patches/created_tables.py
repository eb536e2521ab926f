"""Tables that code creates, writes and opens by name: `CREATE TABLE a.b.c`, `INSERT INTO`, `saveAsTable`, `DeltaTable.forName`.

Source files are loaded by every command, also by those that write nothing. So tables that they create outside of dataset functions live as
long as one load, in Spark's own catalog under a schema of Lakelet's; the code creates them again next time (docs/decisions/0016). A name
that the user gave a path (`--table`) is that path instead. In a dataset's function a dataset is only read.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from delta.tables import DeltaTable
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from lakelet.autoloader.reader_arguments import reader_arguments
from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted, split_name
from lakelet.base.user_code import caller_location
from lakelet.config.named_tables import NamedTable, table_flag, table_format
from lakelet.jvm.frames import create_view
from lakelet.jvm.frames import save as save_at
from lakelet.jvm.sessions import java_session, plain_reader, plain_sql
from lakelet.language.registry import active_reader
from lakelet.language.sql_text import commands, table_names
from lakelet.language.sql_text.commands import Command
from lakelet.language.sql_text.tokens import edited
from lakelet.language.unsupported import unsupported
from lakelet.spark.names.catalog import parts_of
from lakelet.spark.names.lookup import NameTarget, open_resolved, resolve_name_outside
from lakelet.spark.names.outside import outside_tables, stored_tables
from lakelet.spark.names.paths import FILE_FORMATS, located, located_relation, with_local_locations
from lakelet.spark.patches.doors import Call, Rest, around, before
from lakelet.spark.settings import note
from lakelet.storage.information_schema import SCHEMA

# ------------------------------------------------------------------------------ datasets of the pipeline as DeltaTable


_WRITING_METHODS = (
    *("delete", "update", "merge", "optimize", "vacuum", "generate", "restoreToVersion", "restoreToTimestamp"),
    *("upgradeTableProtocol", "addFeatureSupport", "dropFeatureSupport"),
)
_COPYING_METHODS = ("clone", "cloneAtVersion", "cloneAtTimestamp")


class ReadOnlyDeltaTable(DeltaTable):
    """A dataset of the pipeline as a DeltaTable that is only read. `rows`: opens the dataset, and so makes it an input of the query."""

    def __init__(self, spark: SparkSession, name: str, rows: Callable[[], DataFrame]) -> None:
        self._spark, self._name, self._rows = spark, name, rows

    def toDF(self) -> DataFrame:
        return self._rows()

    def history(self, limit: int | None = None) -> DataFrame:
        found = self._spark.sql(f"DESCRIBE HISTORY {self._name}")
        return found if limit is None else found.limit(limit)

    def detail(self) -> DataFrame:
        return self._spark.sql(f"DESCRIBE DETAIL {self._name}")

    def alias(self, aliasName: str) -> ReadOnlyDeltaTable:
        return ReadOnlyDeltaTable(self._spark, self._name, lambda: self._rows().alias(aliasName))


def _refused_method(name: str) -> Callable[..., Any]:
    def call(self: ReadOnlyDeltaTable, *args: Any, **kwargs: Any) -> Any:
        raise LakeletError(
            "ACTION_IN_FUNCTION",
            f"DeltaTable.{name} writes to {self._name} inside a dataset's function",
            where=caller_location(),
            why="the function is called several times per update, also when nothing may be written",
            todo="Return the query: what it should write is the dataset itself. Change tables are written by create_auto_cdc_flow.",
        )

    return call


def _unsupported_method(name: str) -> Callable[..., Any]:
    def call(self: ReadOnlyDeltaTable, *args: Any, **kwargs: Any) -> Any:
        unsupported(f"DeltaTable.{name} of {self._name}, a dataset of the pipeline, inside a dataset's function")

    return call


for _name in _WRITING_METHODS:
    setattr(ReadOnlyDeltaTable, _name, _refused_method(_name))
for _name in _COPYING_METHODS:
    setattr(ReadOnlyDeltaTable, _name, _unsupported_method(_name))


_view_numbers = itertools.count()
Args = Mapping[str, Any] | None
"""Values of the named parameters of a SQL text."""

Target = Callable[[str, bool], str | None]
"""(name in SQL, whether the statement creates it) → SQL of the table that a command writes to; None leaves the name as it is."""


# ------------------------------------------------------------------------------------------------------------------- SQL


def sql_outside(spark: SparkSession, text: str, run: Callable[[str], DataFrame], args: Args = None) -> DataFrame:
    """Run SQL text of code that stands outside of dataset functions, with tables from outside and mapped paths.

    `args`: the values of its named parameters.

    Raises TABLE_NOT_KEPT, NOT_SUPPORTED_YET (for `USE` of another catalog or schema), and what opening a table or path raises.
    """
    if (kind := commands.container(text)) is not None:
        note(f"CREATE {kind} has no effect here: " + _CONTAINERS.get(kind, "tables may have any catalog and schema"))
        return run("SELECT 1 AS none WHERE false")
    if (use := commands.use(text)) is not None:
        _check_use(*use)
        return run("SELECT 1 AS none WHERE false")
    command = commands.command(text)
    if command is None and not outside_tables() and not stored_tables().paths and "`" not in text and SCHEMA not in text.lower():
        return run(text)
    try:
        if command is None:
            return _with_views(spark, text, run, args)
        return _run_command(spark, text, command, run, args)
    except ParseException:
        return run(text)  # Spark says it better


_CONTAINERS = {"VOLUME": "say where its files lie, with --map"}


def _check_use(kind: str, name: str) -> None:
    """Raise NOT_SUPPORTED_YET if `USE` names other than the pipeline's own catalog and schema."""
    own, parts = stored_tables().namespace, split_name(name)
    same = [own.catalog] if kind == "CATALOG" else [own.catalog, own.schema][-len(parts) :]
    if [part.lower() for part in parts] != [part.lower() for part in same]:
        flag = f"--catalog {parts[0]}" if kind == "CATALOG" else f"--schema {parts[-1]}"
        raise LakeletError(
            "NOT_SUPPORTED_YET",
            f"USE {name} in spark.sql is not supported: the session's names are completed by {own.catalog}.{own.schema}",
            where=caller_location(),
            todo=f"Write full names, or start with {flag}.",
        )


def _run_command(spark: SparkSession, text: str, command: Command, run: Callable[[str], DataFrame], args: Args) -> DataFrame:
    name = stored_tables().full_name(command.name)
    table = outside_tables().by_key(name.key) if name else None
    if table is not None and command.verb.endswith("IF NOT EXISTS") and _has_files(table):
        return run("SELECT 1 AS none WHERE false")
    created = outside_tables().created
    known = set(created)
    try:
        target = functools.partial(_described_table if command.verb.startswith(_DESCRIBING) else _written_table, spark)
        result = _with_views(spark, with_target(text, target, command), run, args)
    except Exception:  # what the statement would have created is forgotten
        for key in created.keys() - known:
            del created[key]
        raise
    if name is not None and table is None:
        if command.creates:
            note(f"the table {command.name} lives as long as this command; {table_flag(command.name)} makes it last")
        elif command.verb.startswith("DROP"):
            created.pop(name.key, None)
    return result


_DESCRIBING = ("SHOW", "DESC")


def _written_table(spark: SparkSession, name: str, creating: bool) -> str | None:
    return target_of(spark, name, creating=creating)


def _described_table(spark: SparkSession, name: str, creating: bool) -> str | None:
    """What Spark calls a table that a command describes, which the storage may hold."""
    meant, target = resolve_name_outside(spark, parts_of(name), streaming=False), target_of(spark, name, creating=creating)
    if target is None and meant.place is NameTarget.STORED and meant.name is not None:
        return f"delta.{quoted(stored_tables().paths[meant.name.key])}"
    foreign = outside_tables().foreign.known(meant.name.key) if target is None and meant.name is not None else None
    return target if foreign is None else f"{foreign.format}.{quoted(foreign.path)}"


def with_target(text: str, target: Target, command: Command | None = None) -> str:
    """SQL text with the table that its command writes to as Spark names it; a text that is no such command comes back unchanged."""
    command = command or commands.command(text)
    new = target(command.name, command.creates) if command is not None else None
    return text if command is None or new is None else edited(text, [(command.start, command.stop, new)])


def _with_views(spark: SparkSession, text: str, run: Callable[[str], DataFrame], args: Args) -> DataFrame:
    """Run a text with a temporary view instead of each table from outside, or of the storage, that it reads."""
    views: dict[tuple[object, ...], str] = {}

    def replacement(ref: table_names.RelationRef) -> str | None:
        meant = resolve_name_outside(spark, ref.parts, streaming=ref.streaming)
        if meant.place is NameTarget.SPARK:
            return located_relation(ref.parts)
        key = (meant.name, ref.streaming, *sorted(ref.options.items()))
        if key not in views:
            reader = plain_reader(spark, streaming=ref.streaming, options=ref.options)
            frame = open_resolved(spark, meant, streaming=ref.streaming, jreader=reader)
            assert frame is not None
            views[key] = f"__lakelet_outside_{next(_view_numbers)}"
            create_view(frame, views[key])
        return views[key]

    rewritten = table_names.rewrite(spark, with_local_locations(text), replacement, args)
    try:
        return run(rewritten)
    finally:
        if not commands.makes_view(text):  # the text of a view is read again when the view is
            for view in views.values():
                spark.catalog.dropTempView(view)


# --------------------------------------------------------------------------------------------------------------- targets


def target_of(spark: SparkSession, name: str, *, creating: bool) -> str | None:
    """What Spark calls the table that a command outside of dataset functions names; None leaves the name as it is.

    With `creating`, an unknown table gets a name. Raises TARGET_KIND for a `--table` that is not a Delta table.
    """
    parts = split_name(name)
    if len(parts) == 2 and parts[0].lower() in FILE_FORMATS and "/" in parts[1]:
        return f"{parts[0]}.{quoted(located(parts[1], writing=True))}"
    full = stored_tables().full_name(name)
    if full is None:
        return None
    table = outside_tables().by_key(full.key)
    if table is not None:
        return f"delta.{quoted(path_to_write(table))}"
    created = outside_tables().created
    if full.key not in created and creating:
        schema = outside_tables().schema_of(full)
        plain_sql(java_session(spark), f"CREATE SCHEMA IF NOT EXISTS {schema}")
        created[full.key] = f"spark_catalog.{schema}.{outside_tables().spark_name(full)}"
    return created.get(full.key)


def path_to_write(table: NamedTable) -> str:
    """Return the path of a named table that rows are written to. Raises TARGET_KIND if it holds anything but Delta."""
    if _has_files(table) and table_format(table, caller_location()).format != "delta":
        raise LakeletError(
            "TARGET_KIND",
            f"the table {table.given} lies at {table.path}, which is not a Delta table; it can only be read",
            where=caller_location(),
            todo=f"Name a folder with a Delta table, or one that does not exist yet: {table_flag(table.given)}",
        )
    return table.path


def _has_files(table: NamedTable) -> bool:
    try:
        table_format(table)
    except LakeletError as problem:
        return problem.code != "TABLE_PLACE_MISSING"
    return True


# ----------------------------------------------------------------------------------------------------------------- steps


def _target_of_call(spark: SparkSession, name: object, *, creating: bool) -> str | None:
    """What Spark calls the table that a call writes to; None leaves the name as it is."""
    if not isinstance(name, str):
        return None
    answer = getattr(active_reader(), "target_of", None)  # the function of a sink may write
    if answer is not None:
        return str(found) if (found := answer(name)) is not None else None
    catalog = getattr(active_reader(), "catalog", None)
    if catalog is None:
        return target_of(spark, name, creating=creating)
    found, own = catalog.find(split_name(name)), catalog.dataset(split_name(name))
    table = outside_tables().by_key(found.key) if found else None
    if table is not None:
        return f"delta.{quoted(path_to_write(table))}"
    path = catalog.other_tables.get(found.key) if found and own is None else None
    return None if path is None else f"delta.{quoted(path)}"


_WRITING_WHY = "tables of the pipeline and from outside (--table) are written to by their names"


@around(_WRITING_WHY)
def save_by_name(call: Call, rest: Rest) -> Any:
    """`saveAsTable`: save in the folder of the table that the name means."""
    writer, given = call.target, call.get
    target = _target_of_call(writer._spark, given("name"), creating=True)
    if target is None:
        return rest(call)
    if target.startswith("spark_catalog."):
        return rest(call.changed(name=target))
    asked = given("format") or reader_arguments(writer).get("format") or "delta"
    writer.mode(given("mode")).format(asked).options(**given("options", {}))
    if given("partitionBy") is not None:
        writer.partitionBy(given("partitionBy"))
    save_at(writer, split_name(target)[1])


def _with_target(call: Call, parameter: str, *, creating: bool = False) -> Call:
    spark = getattr(call.target, "_spark", None) or call.target.sparkSession
    target = _target_of_call(spark, call.get(parameter), creating=creating)
    return call if target is None else call.changed(**{parameter: target})


@before(_WRITING_WHY)
def name_created_table(call: Call) -> Call:
    """`writeTo`: the table that the name means, which may not exist yet."""
    return _with_target(call, "table", creating=True)


@before(_WRITING_WHY)
def name_merged_table(call: Call) -> Call:
    """`mergeInto`: the table that the name means."""
    return _with_target(call, "table")


@before(_WRITING_WHY)
def name_inserted_table(call: Call) -> Call:
    """`insertInto`: the table that the name means."""
    return _with_target(call, "tableName")


@around("datasets, --table and tables that code created have names")
def open_delta_table(call: Call, rest: Rest) -> Any:
    """`DeltaTable.forName`: the table that the name means; a dataset of the pipeline can only be read."""
    reader, spark, name = active_reader(), call.get("sparkSession"), call.get("tableOrViewName")
    opened = getattr(reader, "own_table", None)  # handlers of sinks read and write tables beside the pipeline
    rows = opened(name) if opened is not None and not hasattr(reader, "target_of") else None
    if rows is not None:
        return ReadOnlyDeltaTable(spark, name, rows)
    return rest(call.changed(tableOrViewName=_target_of_call(spark, name, creating=False) or name))


__all__ = [
    "Args",
    "ReadOnlyDeltaTable",
    "Target",
    "name_created_table",
    "name_inserted_table",
    "name_merged_table",
    "open_delta_table",
    "path_to_write",
    "save_by_name",
    "sql_outside",
    "target_of",
    "with_target",
]
