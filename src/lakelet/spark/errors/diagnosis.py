"""Failures of Spark, read for what a user needs: the sentence that matters, the line of their own file, the remedy.

For rows that Spark without ANSI mode turns into NULL, the remedy names the expression, its line, and what its owner chooses between.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark
from pyspark.errors.exceptions.base import PySparkException

from lakelet.base import sentences
from lakelet.base.errors import CODES, LakeletError, Location, nearest_names
from lakelet.base.names import split_name
from lakelet.base.user_code import code_location, is_library
from lakelet.files.durable import storage_failure
from lakelet.spark.errors.conditions import conditions, java_class, parameter
from lakelet.spark.expectations.violations import violation_in
from lakelet.storage.delta import schemas

_LAKELET_ERRORS = {"LakeletError", *(kind.__name__ for kind in LakeletError.__subclasses__())}
_FUNCTION_PACKAGES = ("AVRO", "PROTOBUF")
_NO_DELTA = ("DELTA_SCHEMA_NOT_SET", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST")
_OUTER_CONDITIONS = ("[TASK_WRITE_FAILED]", "[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")
_STORE_AWAY_TODO = "Look at the network, the endpoint and the credentials; the next update goes on from what is committed."
BROKER_AWAY_TODO = (
    "Start the broker, or correct kafka.bootstrap.servers and the options of its security; the next update goes on from there."
)
"""What to do where a broker does not answer."""
_NOT_NULL_TODO = "Filter such rows out before the flow, give the column a value there, or leave NOT NULL out of the schema."


def run_failure(problem: BaseException, *, dataset: str, where: Location, what: str) -> LakeletError:
    """Return the error that ended a flow while it ran as a coded error of `dataset`; `what` is used if nothing better is known."""
    if isinstance(problem, schemas.Incompatible):
        return schemas.incompatible_error(problem, dataset=dataset, where=where)
    if isinstance(problem, LakeletError):
        problem.dataset, problem.where = problem.dataset or dataset, problem.where or where
        return problem
    if refused := storage_failure(problem):
        refused.dataset, refused.where, refused.__cause__ = dataset, where, problem
        return refused
    text = str(problem)
    if away := sentences.STORE_AWAY.find(text):
        silent = LakeletError(
            "STORE_FAILED", "the store does not answer", dataset=dataset, where=where, why=away[0].strip(), todo=_STORE_AWAY_TODO
        )
        silent.__cause__ = problem
        return silent
    if lost := sentences.BROKER_AWAY.find(text):
        why, what = _without_state(lost[1]).strip(), "a broker of Kafka does not answer, or refuses"
        refusing = LakeletError("KAFKA_UNREACHABLE", what, dataset=dataset, where=where, why=why, todo=BROKER_AWAY_TODO)
        refusing.__cause__ = problem
        return refusing
    code, why, todo = "FLOW_FAILED", essence(text) or java_class(problem) or type(problem).__name__, remedy(problem)
    if broken := violation_in(text, dataset):
        broken.__cause__ = problem
        return broken
    if missing := sentences.VALUE_MISSING.find(text):
        what = f"a row has no {missing[1]}, which is declared NOT NULL; nothing was written"
        return LakeletError("NOT_NULL_VIOLATED", what, dataset=dataset, where=where, todo=_NOT_NULL_TODO)
    if known := next((c for c in sentences.CODE.pattern.findall(text) if c in CODES), None):
        code, what = known, _sentence_after(text, known) or what
    if tolerant := tolerant_choice(conditions(problem), text, where):
        where, todo = expression_location(text) or where, tolerant
    said = None if why in (what, f"[{code}] {what}") else why
    worker = _worker_location(text)
    if reported := _error_of_worker(text, code):
        said, todo = reported
    elif todo is None and worker:
        todo = "Correct the function; nothing of its rows was written, and the next update reads them again."
    error = LakeletError(code, what, dataset=dataset, where=worker or where, why=said, todo=todo)
    error.__cause__ = problem
    return error


def essence(text: str) -> str:
    """The sentences of a Spark or worker message that a user needs; at most four lines."""
    text = sentences.STREAM_ENDED.pattern.sub("", text)
    if not_started := _worker_not_started(text):
        return not_started
    raised = sentences.RAISED.pattern.findall(text)
    if not raised and sentences.TRACEBACK.is_in(text):
        raised = sentences.PYTHON_ERROR.pattern.findall(text)
    if raised:
        name, message = raised[-1]
        return message if name in _LAKELET_ERRORS else f"{name}: {message}" if message else name
    if sentences.WORKER_GONE.is_in(text):
        fatal = sentences.WORKER_CRASH.find(text)
        return f"the Python process of a UDF ended: {fatal[1] if fatal else 'os._exit in its code, a crash of a library, or no memory'}"
    coded = [line for line in sentences.CODED_LINE.pattern.findall(text) if not line.startswith(_OUTER_CONDITIONS)]
    if coded and (text.lstrip().startswith(_OUTER_CONDITIONS) or sentences.JAVA_SAYS.is_in(text.lstrip())):
        return _without_state(str(coded[-1]))
    lines = [line.strip() for line in text.splitlines()]
    lines_shown = [line for line in lines if line and not sentences.NOISE.is_in(line)]
    return "\n".join(filter(None, map(_without_state, lines_shown[:4])))


def first_line(error: BaseException) -> str:
    """Spark's message without plan, stack and SQLSTATE suffix; what Java says where pyspark only says which call it was."""
    message = sentences.JAVA_SAYS.pattern.sub("", str(error).strip())
    line = _worker_not_started(message) or message.split("\n")[0]
    return _without_state(line).strip()


def _worker_not_started(text: str) -> str | None:
    """The last line of what a Python worker printed that ended before it served; None for any other failure."""
    ended = sentences.WORKER_NOT_STARTED.find(text)
    return f"a Python process of Spark ended at its start: {ended[1].strip().splitlines()[-1].strip()}" if ended else None


def remedy(error: BaseException) -> str | None:
    """Return the remedy of an error of Spark, None where there is no single one."""
    found = conditions(error)
    columns = proposed(error)
    if columns:
        return f"Columns with similar names: {', '.join(columns)}."
    if routine := parameter(error, "routineName", condition="UNRESOLVED_ROUTINE"):
        name = split_name(routine)[-1].lower()
        return (
            "If it is a function of Databricks or of a catalog, a source file of its own can give the pipeline one of that name: "
            f'spark.udf.register("{name}", function, "string")'
        )
    if missing := sentences.FORMAT_MISSING.find(str(error)):
        return f"Put the jars of the package that has {missing['name']!r}, for this Spark, into the folder `jars` of pyspark."
    if library := next((name for name in _FUNCTION_PACKAGES if f"{name}_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE" in found), None):
        package = f"org.apache.spark:spark-{library.lower()}_2.13:{pyspark.__version__}"
        return f"The functions are in a package of Spark's that is not here. Put the jar of {package} into the folder `jars` of pyspark."
    if "SQL_CONF_NOT_FOUND" in found:
        key = parameter(error, "sqlConf", condition="SQL_CONF_NOT_FOUND") or "KEY"
        return f"Set it in the pipeline's configuration, or with --param {key}=VALUE."
    if tolerant := tolerant_choice(found, str(error)):
        return tolerant
    if "STORE_FAILED" in found:
        return "Make room, or bring the disk or store back; the next update goes on from there."
    if parameter(error, "actualDataType", condition="DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE") == "STRING":
        return (
            'Cast the columns, or have their types inferred ("cloudFiles.inferColumnTypes"). Databricks without ANSI mode takes text for '
            'numbers; "spark.sql.ansi.enabled": "false" in the pipeline\'s configuration does it here.'
        )
    if parameter(error, "left", condition="DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES") is not None:
        return (
            "Cast one side to the type of the other. Databricks without ANSI mode does it by itself, and so does "
            '"spark.sql.ansi.enabled": "false" in the pipeline\'s configuration here.'
        )
    if "FAILED_READ_FILE" in found:
        if " is missing" not in str(error):
            return "Repair the file; the next update goes on from there."
        gone = 'if it is gone for good, the reader\'s .option("ignoreMissingFiles", "true") goes on without it'
        return f"Put the file back; the next update goes on from there; {gone}."
    if "NOT_NULL_VIOLATED" in found:
        return _NOT_NULL_TODO
    if any(c in _NO_DELTA for c in found):
        return "The folder holds no Delta table yet, or the path means another folder."
    if "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES" in found:
        return 'Rename the column, or give the table table_properties={"delta.columnMapping.mode": "name"}.'
    return None


def proposed(error: BaseException) -> list[str]:
    """Spark's list of column names, which need not look like the missing name."""
    found = parameter(error, "proposal")
    if found is None and (match := sentences.PROPOSAL.find(str(error))):
        found = match[1]
    return [name.strip().strip("`").replace("`.`", ".") for name in found.split(", ")] if found else []


def unresolved_name(error: BaseException) -> str | None:
    """Return the last part of the name of the column or routine that Spark could not resolve; None for any other error."""
    found = parameter(error, "objectName") or parameter(error, "routineName")
    return split_name(found)[-1] if found else None


def unresolved_nearest(error: PySparkException, columns: Sequence[str]) -> tuple[str, ...]:
    """Those of `columns` that look like the name which Spark could not resolve."""
    name = (error.getMessageParameters() or {}).get("objectName", "").replace("`", "")
    return nearest_names(name, columns) if name else ()


def without_proposal(text: str) -> str:
    """Return a message of Spark's without its list of column names."""
    return sentences.PROPOSAL.pattern.sub("", text)


def _sentence_after(text: str, code: str) -> str | None:
    """Return the sentence after `[code]`; None where the text has no such code."""
    found = re.search(rf"\[{code}(?:\.[A-Z0-9_.]+)?\] (.+)", text)
    return _without_state(found[1]).strip() if found else None


def _error_of_worker(text: str, code: str) -> tuple[str, str | None] | None:
    """Return cause and remedy of an error of Lakelet's own, as a worker printed them; the remedy is the last of several lines."""
    found = re.search(rf"^lakelet\.[\w.]+: \[{code}\] .+\n((?: {{2}}\S.*(?:\n|$))+)", text, re.MULTILINE)
    if not found:
        return None
    *cause, last = [line.strip() for line in found[1].splitlines()]
    return ("\n".join(cause), last) if cause else (last, None)


def _without_state(text: str) -> str:
    """A sentence of Spark's up to its SQLSTATE."""
    return sentences.SQLSTATE.pattern.split(text)[0]


def _worker_location(text: str) -> Location | None:
    """The innermost line of the user's files in the traceback of a worker."""
    lines = [(file, line) for file, line in sentences.WORKER_LINE.pattern.findall(text) if not is_library(file)]
    return code_location(lines[-1][0], int(lines[-1][1])) if lines else None


# ------------------------------------------------------------------- rows that Spark without ANSI mode turns into NULL


TOLERANT = {
    "ARITHMETIC_OVERFLOW": "try_add, try_subtract or try_multiply",
    "CANNOT_PARSE_TIMESTAMP": "try_to_date or try_to_timestamp",
    "CAST_INVALID_INPUT": "try_cast",
    "CAST_OVERFLOW": "try_cast",
    "DATETIME_FIELD_OUT_OF_BOUNDS": "try_make_timestamp or try_to_timestamp",
    "DIVIDE_BY_ZERO": "try_divide",
    "INVALID_ARRAY_INDEX": "get",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "try_element_at",
    "NUMERIC_VALUE_OUT_OF_RANGE": "try_cast",
    "REMAINDER_BY_ZERO": "try_mod",
}
"""The functions that give NULL where the condition would stop the update."""

_ANSI_OFF = 'spark.sql.ansi.enabled: "false"'


@dataclass(frozen=True)
class _FailedExpression:
    """The expression of a query that failed on a row. `where`: its line, where Spark knows it."""

    text: str
    where: Location | None = None


def tolerant_choice(conditions: list[str], text: str, where: Location | None = None) -> str | None:
    """One line: what to write instead of which expression, or what to set in the bundle; None for other conditions.

    Args:
        conditions: those of the error.
        text: the message of Spark, with the place in the query.
        where: the declaration of the dataset, in whose file SQL text is looked for.
    """
    found = next((TOLERANT[one] for one in conditions if one in TOLERANT), None)
    if found is None:
        return None
    expression = _expression_of_frame(text) or _expression_of_sql(text, where)
    place = f" instead of `{expression.text}`" if expression else ""
    place += f" at {expression.where}" if expression and expression.where else ""
    return f"Choose: {found}{place}, which gives NULL for such rows; or {_ANSI_OFF} in the pipeline's configuration, for all its queries."


def expression_location(text: str) -> Location | None:
    """The line of user code that made the expression, where Spark says it."""
    found = _expression_of_frame(text)
    return found.where if found else None


def _expression_of_frame(text: str) -> _FailedExpression | None:
    match = sentences.FRAME_CONTEXT.find(text)
    if match is None or is_library(match["file"]):
        return None
    line = linecache.getline(match["file"], int(match["line"])).strip()
    where = code_location(match["file"], int(match["line"]))
    expression = line.removeprefix("return ").rstrip(",;")
    return _FailedExpression(expression or match["fragment"], replace(where, source=line or None))


def _expression_of_sql(text: str, where: Location | None) -> _FailedExpression | None:
    match = sentences.SQL_CONTEXT.find(text)
    if match is None:
        return None
    begin, length = len(match["before"]), len(match["marks"])
    fragment = match["sql"][begin : begin + length].strip() or match["sql"].strip()
    return _FailedExpression(fragment, _in_source_file(fragment, where))


def _in_source_file(fragment: str, where: Location | None) -> Location | None:
    """The line of a source file, at or after the declaration, that holds the fragment."""
    if where is None or not where.line or where.cell is not None or not Path(where.file).is_file():
        return None
    lines = Path(where.file).read_text(encoding="utf-8", errors="replace").splitlines()
    plain = re.sub(r"\s+", "", fragment).lower()
    hit = next((at for at in range(where.line - 1, len(lines)) if plain in re.sub(r"\s+", "", lines[at]).lower()), None)
    return None if hit is None else Location(where.file, hit + 1)
