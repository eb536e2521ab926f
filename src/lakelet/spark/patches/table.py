"""The table of everything that Lakelet replaces in pyspark, Delta and Python, in sets that are put on and taken off together.

Each row says which attribute, by what, why, and since which version of pyspark or Delta the attribute exists. The order is that in which
they are put on: a later replacement of an attribute calls the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.autoloader.patches import STAND_ALONE
from lakelet.base.patching import Patch
from lakelet.files.reads import UNHEARD
from lakelet.language.dlt_modules import MODULES
from lakelet.spark.patches.actions import ACTIONS
from lakelet.spark.patches.columns_without_java import COLUMNS_WITHOUT_JAVA
from lakelet.spark.patches.current_names import CURRENT_NAMES
from lakelet.spark.patches.display import DISPLAY
from lakelet.spark.patches.expressions import EXPRESSIONS
from lakelet.spark.patches.function_names import FUNCTION_NAMES
from lakelet.spark.patches.given_inputs import GIVEN_INPUTS
from lakelet.spark.patches.grouped import GROUPED
from lakelet.spark.patches.groups import GROUPS
from lakelet.spark.patches.imports import PANDAS_UNTOUCHED
from lakelet.spark.patches.json_columns import JSON_COLUMNS
from lakelet.spark.patches.json_schemas import JSON_SCHEMAS
from lakelet.spark.patches.listing import LISTING
from lakelet.spark.patches.local_rows import LOCAL_ROWS
from lakelet.spark.patches.made_tables import TABLES
from lakelet.spark.patches.other_names import OTHER_NAMES
from lakelet.spark.patches.paths import PATHS
from lakelet.spark.patches.python_files import PYTHON_FILES
from lakelet.spark.patches.readers import READERS
from lakelet.spark.patches.secret_functions import SECRETS
from lakelet.spark.patches.session import CALL_SITES, REPORTED_LINES, SESSION
from lakelet.spark.patches.subqueries import SUBQUERIES
from lakelet.spark.patches.unrecorded import UNRECORDED
from lakelet.spark.patches.workers import DAEMON, WORKER

UPDATE: tuple[Patch, ...] = (
    *(*SESSION, *REPORTED_LINES, *PATHS, *LOCAL_ROWS, *READERS, *TABLES, *LISTING),
    *(*EXPRESSIONS, *CURRENT_NAMES, *OTHER_NAMES, *JSON_SCHEMAS, *GROUPS, *SECRETS, *SUBQUERIES, *DISPLAY, *GROUPED, *FUNCTION_NAMES),
    *JSON_COLUMNS,
    *(*UNRECORDED, *ACTIONS),  # actions ask who called them: they are the outermost
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

__all__ = ["SETS", "UPDATE"]
