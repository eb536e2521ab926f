"""Converts exceptions raised by dataset functions into coded errors with the line of the user's file."""

from __future__ import annotations

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAssertionError,
    PySparkAttributeError,
    PySparkKeyError,
    PySparkTypeError,
    PySparkValueError,
    SparkNoSuchElementException,
)
from pyspark.errors.exceptions.base import PySparkException

from lakelet.base import sentences
from lakelet.base.errors import LakeletError, Location
from lakelet.base.raised import import_remedy, innermost_location, name_remedy, near_names
from lakelet.base.user_code import class_and_text, original_error
from lakelet.config.path_map import python_path_hint
from lakelet.language.loader import without_connector
from lakelet.language.model import Dataset, Flow
from lakelet.spark.errors.beginners import in_plain_words
from lakelet.spark.errors.conditions import parameter
from lakelet.spark.errors.diagnosis import first_line, proposed, remedy, unresolved_name, unresolved_nearest, without_proposal

_DATA_CONDITIONS = (
    *("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE"),
    *("DELTA_PATH_DOES_NOT_EXIST", "DELTA_SCHEMA_NOT_SET", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE"),
)
# What pyspark raises for an invalid query; all other exceptions are caused by data or by the user's own code.
_MISTAKES = (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAssertionError,
    PySparkAttributeError,
    PySparkKeyError,
    PySparkTypeError,
    PySparkValueError,
    SparkNoSuchElementException,
)

_SOURCES_OF_DATABRICKS = frozenset({"read_kinesis", "read_pubsub", "read_pulsar", "read_eventhubs", "read_statestore"})

NO_ROWS = (
    "Correct the function. If it looks at rows (collect, first): tables that are not there yet have none; a query would not ask for them."
)
"""The remedy of a failure that may be for want of rows."""
RUN_AGAIN = "Correct the function, or what it needs; the next update runs it again."
"""The remedy of a failure of which no more is known."""


_PATH_TODO = "Write get_json_object(column, '$.path') in place of column:path."
_COLUMN_TODO = "Make the column in the dataset's function, each time that it is called."


def coded(error: Exception, dataset: Dataset, flow: Flow) -> LakeletError:
    """Return the exception that the function of `dataset` raised as a LakeletError."""
    if isinstance(error, LakeletError):
        error.dataset = error.dataset or str(dataset.name)
        error.where = error.where or flow.where
        return error
    found = _missing_connector(error)
    if found is not None:
        found.where, found.dataset = _user_location(error, flow), str(dataset.name)
        return found
    if isinstance(error, _MISTAKES):
        return _analysis_error(error, dataset, flow)
    if sentences.NOT_VARIANT.is_in(str(error)):
        what = "the query takes a path out of a column that is text"
        return _refused(error, dataset, flow, what, "A path in F.expr outside of a dataset's function is one into VARIANT.", _PATH_TODO)
    return user_error(error, dataset, flow)


def _refused(error: BaseException, dataset: Dataset, flow: Flow, what: str, why: str, todo: str) -> LakeletError:
    """The error for a query that Spark refuses for a reason that Lakelet knows better."""
    where = _user_location(error, flow)
    return LakeletError("QUERY_FAILED_ANALYSIS", what, where=where, dataset=str(dataset.name), why=why, todo=todo)


def _analysis_error(error: PySparkException, dataset: Dataset, flow: Flow) -> LakeletError:
    condition = error.getCondition() or ""
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND") and "__lakelet_" in str(error):
        what = "the query has a column with a subquery that was made in another call of a function"
        return _refused(error, dataset, flow, what, "The tables that F.expr names are those of the call in which it stands.", _COLUMN_TODO)
    if words := in_plain_words(error, flow.query):
        return LakeletError(
            "QUERY_FAILED_ANALYSIS",
            words.what,
            where=_user_location(error, flow),
            dataset=str(dataset.name),
            why=words.why,
            nearest=words.nearest,
            todo=words.todo,
        )
    data = condition.startswith(_DATA_CONDITIONS)
    message = first_line(error)
    nearest = unresolved_nearest(error, proposed(error)) or near_names(error)
    return LakeletError(
        "FLOW_FAILED" if data else "QUERY_FAILED_ANALYSIS",
        "the data it reads cannot be opened" if data else "the query does not analyse",
        where=_user_location(error, flow),
        dataset=str(dataset.name),
        why=without_proposal(message),
        nearest=nearest,
        todo=remedy(error) or ("Check the path." if data else "Correct the query at this line."),
    )


def _missing_connector(error: BaseException) -> LakeletError | None:
    """SOURCE_FORMAT_MISSING where Spark would need a package to read what the code asks for; None for any other failure."""
    function = (parameter(error, "name", condition="UNRESOLVABLE_TABLE_VALUED_FUNCTION") or "").strip("`")
    return without_connector(error, function if function.lower() in _SOURCES_OF_DATABRICKS else None)


def user_error(error: BaseException, dataset: Dataset, flow: Flow) -> LakeletError:
    """The failure of a dataset's function, with the line of the user's file that raised."""
    error = original_error(error)
    nearest = near_names(error)
    on_rows = isinstance(error, TypeError | AttributeError | IndexError) and not nearest
    known = NO_ROWS if on_rows else python_path_hint(error) or import_remedy(error) or name_remedy(error) or remedy(error)
    result = LakeletError(
        "USER_FUNCTION_FAILED",
        f"its function raised {class_and_text(error, first_line(error))}",
        where=_user_location(error, flow),
        dataset=str(dataset.name),
        nearest=nearest,
        todo=known or RUN_AGAIN,
    )
    result.__cause__ = error
    return result


def _user_location(error: BaseException, flow: Flow) -> Location:
    location: Location | None = getattr(error, "lakelet_where", None)  # a query of a SQL source knows line and column
    return location or innermost_location(error, name=unresolved_name(error)) or flow.where
