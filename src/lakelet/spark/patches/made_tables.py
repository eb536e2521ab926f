"""Tables that code makes and fills by name outside of dataset functions: `CREATE TABLE a.b.c`, `INSERT INTO`, `saveAsTable`.

Source files are loaded by every command, also by those that write nothing. So the tables that they make live as long as one load, in
Spark's own catalog under a schema of Lakelet's, whatever their catalog is called; the code makes them again next time
(docs/decisions/0016). A name that the user gave a path (`--table`) is that path instead.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from lakelet.autoloader.loading import reader_arguments
from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName, quoted, split_name
from lakelet.base.user_code import caller_location
from lakelet.config.named_tables import NamedTable, table_flag, table_format
from lakelet.jvm.frames import create_view
from lakelet.jvm.frames import save as save_at
from lakelet.jvm.sessions import java_session, plain_reader, plain_sql
from lakelet.language.registry import active_reader
from lakelet.language.sql_text import commands, table_names
from lakelet.language.sql_text.commands import Command
from lakelet.language.sql_text.tokens import edited
from lakelet.spark.names.catalog import parts_of
from lakelet.spark.names.lookup import Place, meaning_outside, opened_outside
from lakelet.spark.names.named_tables import named
from lakelet.spark.names.outside import held
from lakelet.spark.names.paths import FILE_FORMATS, located, located_relation, with_local_locations
from lakelet.spark.patches.doors import Call, Rest, around, before
from lakelet.spark.patches.own_tables import OwnTable
from lakelet.spark.settings import note
from lakelet.storage.information_schema import SCHEMA

_numbers = itertools.count()
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
    if command is None and not named() and not held().paths and "`" not in text and SCHEMA not in text.lower():
        return run(text)
    try:
        if command is None:
            return _with_views(spark, text, run, args)
        return _commanded(spark, text, command, run, args)
    except ParseException:
        return run(text)  # Spark says it better


_CONTAINERS = {"VOLUME": "say where its files lie, with --map"}


def _check_use(kind: str, name: str) -> None:
    """Raise NOT_SUPPORTED_YET if `USE` names other than the pipeline's own catalog and schema."""
    own, parts = named().namespace, split_name(name)
    same = [own.catalog] if kind == "CATALOG" else [own.catalog, own.schema][-len(parts) :]
    if [part.lower() for part in parts] != [part.lower() for part in same]:
        flag = f"--catalog {parts[0]}" if kind == "CATALOG" else f"--schema {parts[-1]}"
        raise LakeletError(
            "NOT_SUPPORTED_YET",
            f"USE {name} in spark.sql is not supported: the session's names are completed by {own.catalog}.{own.schema}",
            where=caller_location(),
            todo=f"Write full names, or start with {flag}.",
        )


def _commanded(spark: SparkSession, text: str, command: Command, run: Callable[[str], DataFrame], args: Args) -> DataFrame:
    name = _resolved(command.name)
    table = named().by_key(name.key) if name else None
    if table is not None and command.verb.endswith("IF NOT EXISTS") and _exists(table):
        return run("SELECT 1 AS none WHERE false")
    known = set(named().made)
    try:
        target = functools.partial(_looked_at if command.verb.startswith(_LOOKING) else _target, spark)
        result = _with_views(spark, with_target(text, target, command), run, args)
    except Exception:  # what the statement would have made is forgotten
        named().made = {key: made for key, made in named().made.items() if key in known}
        raise
    if name is not None and table is None:
        if command.creates:
            note(f"the table {command.name} lives as long as this command; {table_flag(command.name)} makes it last")
        elif command.verb.startswith("DROP"):
            named().made.pop(name.key, None)
    return result


_LOOKING = ("SHOW", "DESC")


def _target(spark: SparkSession, name: str, creating: bool) -> str | None:
    return target_of(spark, name, creating=creating)


def _looked_at(spark: SparkSession, name: str, creating: bool) -> str | None:
    """What Spark calls a table that a command describes, which the storage may hold."""
    meant, target = meaning_outside(spark, parts_of(name), streaming=False), target_of(spark, name, creating=creating)
    if target is None and meant.place is Place.STORED and meant.name is not None:
        return f"delta.{quoted(held().paths[meant.name.key])}"
    return target


def with_target(text: str, target: Target, command: Command | None = None) -> str:
    """SQL text with the table that its command writes to in the words of Spark; a text that is no such command comes back unchanged."""
    command = command or commands.command(text)
    new = target(command.name, command.creates) if command is not None else None
    return text if command is None or new is None else edited(text, [(command.start, command.stop, new)])


def _with_views(spark: SparkSession, text: str, run: Callable[[str], DataFrame], args: Args) -> DataFrame:
    """Run a text with a temporary view instead of each table from outside, or of the storage, that it reads."""
    views: dict[tuple[object, ...], str] = {}

    def replacement(ref: table_names.RelationRef) -> str | None:
        meant = meaning_outside(spark, ref.parts, streaming=ref.streaming)
        if meant.place is Place.SPARK:
            return located_relation(ref.parts)
        key = (meant.name, ref.streaming, *sorted(ref.options.items()))
        if key not in views:
            reader = plain_reader(spark, streaming=ref.streaming, options=ref.options)
            frame = opened_outside(spark, meant, streaming=ref.streaming, jreader=reader)
            assert frame is not None
            views[key] = f"__lakelet_outside_{next(_numbers)}"
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

    With `creating`, one that is not known yet gets a name. Raises TARGET_KIND for a `--table` that is not a Delta table.
    """
    parts = split_name(name)
    if len(parts) == 2 and parts[0].lower() in FILE_FORMATS and "/" in parts[1]:
        return f"{parts[0]}.{quoted(located(parts[1], writing=True))}"
    full = _resolved(name)
    if full is None:
        return None
    table = named().by_key(full.key)
    if table is not None:
        return f"delta.{quoted(path_to_write(table))}"
    made = named().made
    if full.key not in made and creating:
        schema = named().schema_of(full)
        plain_sql(java_session(spark), f"CREATE SCHEMA IF NOT EXISTS {schema}")
        made[full.key] = f"spark_catalog.{schema}.{named().spark_name(full)}"
    return made.get(full.key)


def path_to_write(table: NamedTable) -> str:
    """Return the path of a named table that rows are written to. Raises TARGET_KIND if it holds anything but Delta."""
    if _exists(table) and table_format(table, caller_location()).format != "delta":
        raise LakeletError(
            "TARGET_KIND",
            f"the table {table.given} lies at {table.path}, which is not a Delta table; it can only be read",
            where=caller_location(),
            todo=f"Name a folder with a Delta table, or one that does not exist yet: {table_flag(table.given)}",
        )
    return table.path


def _exists(table: NamedTable) -> bool:
    try:
        table_format(table)
    except LakeletError as problem:
        return problem.code != "TABLE_PLACE_MISSING"
    return True


def _resolved(name: str) -> TableName | None:
    try:
        return named().namespace.resolve(name)
    except ValueError:
        return None


# ----------------------------------------------------------------------------------------------------------------- steps


def _written(spark: SparkSession, name: object, *, creating: bool) -> str | None:
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
    table = named().by_key(found.key) if found else None
    if table is not None:
        return f"delta.{quoted(path_to_write(table))}"
    path = catalog.other_tables.get(found.key) if found and own is None else None
    return None if path is None else f"delta.{quoted(path)}"


_WHY = "tables of the pipeline and from outside (--table) are written to by their names"


@around(_WHY)
def saved(call: Call, rest: Rest) -> Any:
    """`saveAsTable`: save in the folder of the table that the name means."""
    writer, given = call.target, call.get
    target = _written(writer._spark, given("name"), creating=True)
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
    target = _written(spark, call.get(parameter), creating=creating)
    return call if target is None else call.changed(**{parameter: target})


@before(_WHY)
def created(call: Call) -> Call:
    """`writeTo`: the table that the name means, which may not exist yet."""
    return _with_target(call, "table", creating=True)


@before(_WHY)
def merged(call: Call) -> Call:
    """`mergeInto`: the table that the name means."""
    return _with_target(call, "table")


@before(_WHY)
def inserted(call: Call) -> Call:
    """`insertInto`: the table that the name means."""
    return _with_target(call, "tableName")


@around("datasets, --table and tables that code made have names")
def of_name(call: Call, rest: Rest) -> Any:
    """`DeltaTable.forName`: the table that the name means; a dataset of the pipeline can only be read."""
    reader, spark, name = active_reader(), call.get("sparkSession"), call.get("tableOrViewName")
    opened = getattr(reader, "own_table", None)  # handlers of sinks read and write tables beside the pipeline
    rows = opened(name) if opened is not None and not hasattr(reader, "target_of") else None
    if rows is not None:
        return OwnTable(spark, name, rows)
    return rest(call.changed(tableOrViewName=_written(spark, name, creating=False) or name))
