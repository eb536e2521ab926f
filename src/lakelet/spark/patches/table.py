"""The table of everything that Lakelet replaces in pyspark, Delta and Python, in sets that are put on and taken off together.

Each attribute is in a set once. Methods of pyspark and Delta are doors: each row says what happens behind it, the first step first, and
since which version the method exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.autoloader.standalone import STAND_ALONE
from lakelet.base.patching import Patch
from lakelet.files.reads import UNHEARD
from lakelet.language.dlt_modules import MODULES
from lakelet.spark.patches import current_names as current
from lakelet.spark.patches import listing, owners
from lakelet.spark.patches import made_tables as made
from lakelet.spark.patches import paths as on_path
from lakelet.spark.patches import readers as read
from lakelet.spark.patches.actions import ASKING, RDD, WRITING, refused, reported
from lakelet.spark.patches.columns_without_java import COLUMNS_WITHOUT_JAVA
from lakelet.spark.patches.display import DISPLAY
from lakelet.spark.patches.doors import Door, doors
from lakelet.spark.patches.expressions import subqueries, text_paths
from lakelet.spark.patches.function_names import FUNCTION_NAMES
from lakelet.spark.patches.given_inputs import GIVEN_INPUTS
from lakelet.spark.patches.grouped import own_columns
from lakelet.spark.patches.imports import PANDAS_UNTOUCHED
from lakelet.spark.patches.json_columns import from_json, inferred
from lakelet.spark.patches.local_rows import converted
from lakelet.spark.patches.python_files import PYTHON_FILES
from lakelet.spark.patches.session import CALL_SITES, REPORTED_LINES, SESSION
from lakelet.spark.patches.text_functions import functions
from lakelet.spark.patches.unrecorded import noted, noted_outside
from lakelet.spark.patches.workers import DAEMON, WORKER

_FILES = {"json": "1.4.0", "csv": "2.0.0", "parquet": "1.4.0", "orc": "1.5.0", "text": "1.6.0", "xml": "4.0.0"}
_STREAMS = {"json": "2.0.0", "csv": "2.0.0", "parquet": "2.0.0", "orc": "2.3.0", "text": "2.0.0", "xml": "4.0.0"}
_CONTEXT = {
    **dict.fromkeys(("binaryFiles", "binaryRecords", "sequenceFile"), "1.3.0"),
    **dict.fromkeys(("newAPIHadoopFile", "hadoopFile"), "1.1.0"),
    "textFile": "0.7.0",
    "wholeTextFiles": "1.0.0",
}
_CURRENT = dict.fromkeys(current.NAMES, "3.5.0")
_GROUPINGS = dict.fromkeys(("agg", "count", "avg", "mean", "max", "min", "sum"), "1.3.0")

DOORS: tuple[Door, ...] = (
    Door(
        *(owners.SESSION, "sql", "2.0.0"),
        (noted_outside, functions, listing.listed, read.parameters, read.frames, read.names, text_paths),
    ),
    Door(owners.SESSION, "table", "2.0.0", (noted_outside, read.session_table)),
    Door(owners.SESSION, "createDataFrame", "2.0.0", (converted,)),
    Door(owners.SESSION, "stop", "2.0.0", (read.stopped,)),
    Door(owners.CONTEXT, "stop", "0.7.0", (read.stopped,)),
    *doors(owners.CONTEXT, _CONTEXT, on_path.read_paths),
    # what is read
    Door(owners.BATCH_READER, "table", "1.4.0", (noted_outside, read.reader_table)),
    Door(owners.BATCH_READER, "load", "1.4.0", (noted, read.batch_load, on_path.load_paths)),
    Door(owners.BATCH_READER, "jdbc", "1.4.0", (noted,)),
    Door(owners.BATCH_READER, "format", "1.4.0", (read.remembered,)),
    Door(owners.BATCH_READER, "option", "1.5.0", (read.remembered, on_path.option_path)),
    Door(owners.BATCH_READER, "options", "1.4.0", (read.remembered, on_path.options_paths)),
    *doors(owners.BATCH_READER, _FILES, noted, on_path.read_paths),
    Door(owners.STREAM_READER, "table", "3.1.0", (read.reader_table,)),
    Door(owners.STREAM_READER, "load", "2.0.0", (read.stream_load, on_path.load_paths)),
    *doors(owners.STREAM_READER, {"format": "2.0.0", "schema": "2.0.0"}, read.remembered),
    Door(owners.STREAM_READER, "option", "2.0.0", (read.remembered, on_path.option_path)),
    Door(owners.STREAM_READER, "options", "2.0.0", (read.remembered, on_path.options_paths)),
    *doors(owners.STREAM_READER, _STREAMS, on_path.stream_paths),
    # what is written
    *doors(owners.BATCH_WRITER, {"save": "1.4.0", **_FILES}, refused, noted, on_path.written_paths),
    Door(owners.BATCH_WRITER, "jdbc", "1.4.0", (refused, noted)),
    Door(owners.BATCH_WRITER, "saveAsTable", "1.4.0", (refused, noted, made.saved)),
    Door(owners.BATCH_WRITER, "insertInto", "1.4.0", (refused, noted, made.inserted)),
    Door(owners.BATCH_WRITER, "format", "1.4.0", (read.remembered,)),
    Door(owners.BATCH_WRITER, "option", "1.5.0", (on_path.option_path,)),
    Door(owners.BATCH_WRITER, "options", "1.4.0", (on_path.options_paths,)),
    *doors(owners.TABLE_WRITER, WRITING[owners.TABLE_WRITER], refused, noted),
    Door(owners.TABLE_WRITER, "option", "3.1.0", (on_path.option_path,)),
    Door(owners.TABLE_WRITER, "options", "3.1.0", (on_path.options_paths,)),
    Door(owners.STREAM_WRITER, "start", "2.0.0", (refused, noted, on_path.started_paths, on_path.written_paths)),
    Door(owners.STREAM_WRITER, "toTable", "3.1.0", (refused, noted, on_path.started_paths)),
    Door(owners.STREAM_WRITER, "option", "2.0.0", (on_path.option_path,)),
    Door(owners.STREAM_WRITER, "options", "2.0.0", (on_path.options_paths,)),
    *doors(owners.DELTA_TABLE, {"forPath": "0.4", "isDeltaTable": "0.4"}, on_path.written_paths),
    Door(owners.DELTA_TABLE, "forName", "0.7", (made.of_name,)),
    # data frames
    Door(owners.FRAME, "selectExpr", "1.3.0", (inferred, subqueries, functions, text_paths)),
    Door(owners.FRAME, "filter", "1.3.0", (subqueries, functions, text_paths)),  # `where` calls it
    Door(owners.FRAME, "writeTo", "3.1.0", (made.created,)),
    Door(owners.FRAME, "mergeInto", "4.0.0", (made.merged,)),
    *doors(owners.FRAME, WRITING[owners.FRAME], refused, noted),
    *doors(owners.FRAME, ASKING, reported, noted),
    Door(owners.GROUPED, "pivot", "1.6.0", (reported,)),
    *doors(owners.GROUPED, _GROUPINGS, own_columns),
    # functions
    *(
        door
        for owner in (owners.FUNCTIONS, owners.BUILTIN)
        for door in (
            Door(owner, "expr", "1.5.0", (inferred, subqueries, functions, text_paths)),
            Door(owner, "from_json", "2.1.0", (from_json,)),
            *doors(owner, _CURRENT, current.named),
        )
    ),
    # the session catalog
    Door(owners.CATALOG, "tableExists", "3.3.0", (read.exists,)),
    Door(owners.CATALOG, "currentCatalog", "3.4.0", (current.answered,)),
    Door(owners.CATALOG, "currentDatabase", "2.0.0", (current.answered,)),
    Door(owners.CATALOG, "listTables", "2.0.0", (listing.list_tables,)),
    Door(owners.CATALOG, "listDatabases", "2.0.0", (listing.list_databases,)),
    Door(owners.CATALOG, "listCatalogs", "3.4.0", (listing.list_catalogs,)),
    Door(owners.CATALOG, "databaseExists", "3.3.0", (listing.database_exists,)),
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
