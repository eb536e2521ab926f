"""The table of everything that Lakelet replaces in pyspark, Delta and Python, in sets that are put on and taken off together.

Each attribute is in a set once. Methods of pyspark and Delta are doors: each row says what happens behind it, the first step first, and
since which version the method exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.autoloader.standalone import STAND_ALONE
from lakelet.base.patching import Patch
from lakelet.files.reads import UNHEARD
from lakelet.language.api import MODULES
from lakelet.spark.patches import created_tables as written
from lakelet.spark.patches import owners
from lakelet.spark.patches import path_arguments as on_path
from lakelet.spark.patches import readers as read
from lakelet.spark.patches import session_catalog as catalog
from lakelet.spark.patches.actions import ASKING, RDD, WRITING, note_call, note_top_level_call, refuse_write, report_action
from lakelet.spark.patches.doors import Door, doors
from lakelet.spark.patches.function_exports import COLUMNS_WITHOUT_JAVA, FUNCTION_NAMES
from lakelet.spark.patches.inputs_of_tests import GIVEN_INPUTS
from lakelet.spark.patches.python_files import PYTHON_FILES
from lakelet.spark.patches.python_processes import DAEMON, PANDAS_UNTOUCHED, WORKER
from lakelet.spark.patches.session_functions import register_functions
from lakelet.spark.patches.session_patches import CALL_SITES, DISPLAY, REPORTED_LINES, SESSION, convert_rows
from lakelet.spark.patches.sql_expressions import convert_text_paths, from_json, give_own_columns, infer_json_schemas, resolve_subqueries

_FILES = {"json": "1.4.0", "csv": "2.0.0", "parquet": "1.4.0", "orc": "1.5.0", "text": "1.6.0", "xml": "4.0.0"}
_STREAMS = {"json": "2.0.0", "csv": "2.0.0", "parquet": "2.0.0", "orc": "2.3.0", "text": "2.0.0", "xml": "4.0.0"}
_CONTEXT = {
    **dict.fromkeys(("binaryFiles", "binaryRecords", "sequenceFile"), "1.3.0"),
    **dict.fromkeys(("newAPIHadoopFile", "hadoopFile"), "1.1.0"),
    "textFile": "0.7.0",
    "wholeTextFiles": "1.0.0",
}
_CURRENT = dict.fromkeys(catalog.CURRENT_NAME_FUNCTIONS, "3.5.0")
_GROUPINGS = dict.fromkeys(("agg", "count", "avg", "mean", "max", "min", "sum"), "1.3.0")

DOORS: tuple[Door, ...] = (
    Door(
        *(owners.SESSION, "sql", "2.0.0"),
        (
            note_top_level_call,
            register_functions,
            catalog.answer_listing,
            read.name_parameters,
            read.name_frames,
            read.resolve_names,
            convert_text_paths,
        ),
    ),
    Door(owners.SESSION, "table", "2.0.0", (note_top_level_call, read.resolve_session_table)),
    Door(owners.SESSION, "createDataFrame", "2.0.0", (convert_rows,)),
    Door(owners.SESSION, "stop", "2.0.0", (read.ignore_stop,)),
    Door(owners.CONTEXT, "stop", "0.7.0", (read.ignore_stop,)),
    *doors(owners.CONTEXT, _CONTEXT, on_path.map_read_paths),
    # what is read
    Door(owners.BATCH_READER, "table", "1.4.0", (note_top_level_call, read.resolve_reader_table)),
    Door(owners.BATCH_READER, "load", "1.4.0", (note_call, read.refuse_batch_load, on_path.map_load_paths)),
    Door(owners.BATCH_READER, "jdbc", "1.4.0", (note_call,)),
    Door(owners.BATCH_READER, "format", "1.4.0", (read.remember_arguments,)),
    Door(owners.BATCH_READER, "option", "1.5.0", (read.remember_arguments, read.name_kafka_classes, on_path.map_option)),
    Door(owners.BATCH_READER, "options", "1.4.0", (read.remember_arguments, read.name_kafka_classes, on_path.map_options)),
    *doors(owners.BATCH_READER, _FILES, note_call, on_path.map_read_paths),
    Door(owners.STREAM_READER, "table", "3.1.0", (read.resolve_reader_table,)),
    Door(owners.STREAM_READER, "load", "2.0.0", (read.load_stream, on_path.map_load_paths)),
    *doors(owners.STREAM_READER, {"format": "2.0.0", "schema": "2.0.0"}, read.remember_arguments),
    Door(owners.STREAM_READER, "option", "2.0.0", (read.remember_arguments, read.name_kafka_classes, on_path.map_option)),
    Door(owners.STREAM_READER, "options", "2.0.0", (read.remember_arguments, read.name_kafka_classes, on_path.map_options)),
    *doors(owners.STREAM_READER, _STREAMS, on_path.map_stream_paths),
    # what is written
    *doors(owners.BATCH_WRITER, {"save": "1.4.0", **_FILES}, refuse_write, note_call, on_path.map_written_paths),
    Door(owners.BATCH_WRITER, "jdbc", "1.4.0", (refuse_write, note_call)),
    Door(owners.BATCH_WRITER, "saveAsTable", "1.4.0", (refuse_write, note_call, written.save_by_name)),
    Door(owners.BATCH_WRITER, "insertInto", "1.4.0", (refuse_write, note_call, written.name_inserted_table)),
    Door(owners.BATCH_WRITER, "format", "1.4.0", (read.remember_arguments,)),
    Door(owners.BATCH_WRITER, "option", "1.5.0", (read.name_kafka_classes, on_path.map_option)),
    Door(owners.BATCH_WRITER, "options", "1.4.0", (read.name_kafka_classes, on_path.map_options)),
    *doors(owners.TABLE_WRITER, WRITING[owners.TABLE_WRITER], refuse_write, note_call),
    Door(owners.TABLE_WRITER, "option", "3.1.0", (on_path.map_option,)),
    Door(owners.TABLE_WRITER, "options", "3.1.0", (on_path.map_options,)),
    Door(owners.STREAM_WRITER, "start", "2.0.0", (refuse_write, note_call, on_path.check_started_paths, on_path.map_written_paths)),
    Door(owners.STREAM_WRITER, "toTable", "3.1.0", (refuse_write, note_call, on_path.check_started_paths)),
    Door(owners.STREAM_WRITER, "option", "2.0.0", (read.name_kafka_classes, on_path.map_option)),
    Door(owners.STREAM_WRITER, "options", "2.0.0", (read.name_kafka_classes, on_path.map_options)),
    *doors(owners.DELTA_TABLE, {"forPath": "0.4", "isDeltaTable": "0.4"}, on_path.map_written_paths),
    Door(owners.DELTA_TABLE, "forName", "0.7", (written.open_delta_table,)),
    # data frames
    Door(owners.FRAME, "selectExpr", "1.3.0", (infer_json_schemas, resolve_subqueries, register_functions, convert_text_paths)),
    Door(owners.FRAME, "filter", "1.3.0", (resolve_subqueries, register_functions, convert_text_paths)),  # `where` calls it
    Door(owners.FRAME, "writeTo", "3.1.0", (written.name_created_table,)),
    Door(owners.FRAME, "mergeInto", "4.0.0", (written.name_merged_table,)),
    *doors(owners.FRAME, WRITING[owners.FRAME], refuse_write, note_call),
    *doors(owners.FRAME, ASKING, report_action, note_call),
    Door(owners.GROUPED, "pivot", "1.6.0", (report_action,)),
    *doors(owners.GROUPED, _GROUPINGS, give_own_columns),
    # functions
    *(
        door
        for owner in (owners.FUNCTIONS, owners.BUILTIN)
        for door in (
            Door(owner, "expr", "1.5.0", (infer_json_schemas, resolve_subqueries, register_functions, convert_text_paths)),
            Door(owner, "from_json", "2.1.0", (from_json,)),
            *doors(owner, _CURRENT, catalog.use_current_names),
        )
    ),
    # the session catalog
    Door(owners.CATALOG, "tableExists", "3.3.0", (read.table_exists,)),
    Door(owners.CATALOG, "currentCatalog", "3.4.0", (catalog.answer_current_name,)),
    Door(owners.CATALOG, "currentDatabase", "2.0.0", (catalog.answer_current_name,)),
    Door(owners.CATALOG, "listTables", "2.0.0", (catalog.list_tables,)),
    Door(owners.CATALOG, "listDatabases", "2.0.0", (catalog.list_databases,)),
    Door(owners.CATALOG, "listCatalogs", "3.4.0", (catalog.list_catalogs,)),
    Door(owners.CATALOG, "databaseExists", "3.3.0", (catalog.database_exists,)),
)
"""Methods and functions of pyspark and Delta while an update runs."""

UPDATE: tuple[Patch, ...] = (
    *(*SESSION, *REPORTED_LINES, *DISPLAY, *FUNCTION_NAMES, RDD),
    *(door.patch() for door in DOORS),
)
"""For the life of an update."""

SETS: Mapping[str, tuple[Patch, ...]] = {
    "an update": UPDATE,
    "an update with a map of paths": PYTHON_FILES,
    "the record of what an update reads": UNHEARD,
    "the analysis of an update": CALL_SITES,
    "loading source files and calling their functions": MODULES,
    "lakelet.testing": GIVEN_INPUTS,
    "Auto Loader in an application of its own": STAND_ALONE,
    "the start of a session": PANDAS_UNTOUCHED,
    "Spark's Python daemon": DAEMON,
    "a Python worker of Spark's": WORKER,
    "the process in which lakelet init loads source files": COLUMNS_WITHOUT_JAVA,
}
"""All sets, by what they are on for; the last three end with their process."""

__all__ = ["DOORS", "SETS", "UPDATE"]
