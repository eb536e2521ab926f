"""Failures in Spark's words, read for what a user needs: the sentence that matters, the line of their own file, the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors.exceptions.base import PySparkException

from lakelet.base.errors import CODES, LakeletError, Location, nearest_names
from lakelet.base.locations import code_location
from lakelet.base.user_code import is_library
from lakelet.files.durable import storage_failure
from lakelet.language.loader import data_source_hint
from lakelet.storage.delta import schemas

_ANSI = (
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "INVALID_ARRAY_INDEX",
    "ARITHMETIC_OVERFLOW",
)
_TEXT_AS_NUMBER = re.compile(r"\[DATATYPE_MISMATCH\.BINARY_OP_WRONG_TYPE\].* not \"STRING\"")
_NO_DELTA = ("DELTA_SCHEMA_NOT_SET", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST")
_CODE = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]")
_CONDITION = re.compile(r"^(?:Caused by: |: )?(?:[\w.$]+: )?(\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*\] .+)$", re.MULTILINE)
_STREAM_FAILED = re.compile(r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_WRAPPERS = ("[TASK_WRITE_FAILED]", "[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]")
_PYTHON_ERROR = re.compile(r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
# The line behind a traceback, of whatever class: SystemExit and a user's own names do not end in Error or Exception.
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?:[\w.<>]+\.)?(\w+)(?:: (.*))?$", re.MULTILINE)
_WORKER_GONE = "Python worker exited unexpectedly"
_FATAL = re.compile(r"Fatal Python error: (.+)")
_WORKER_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_NOISE = (
    *("Traceback", "File ", "at ", "Caused by", "JVM stacktrace", "Driver stacktrace"),
    *("=== Streaming", "Identifier:", "Current ", "Thread State", "Logical Plan", "~"),
)
_ROUTINE = re.compile(r"\[UNRESOLVED_ROUTINE\] Cannot resolve routine `(\w+)`")
_PROPOSED = re.compile(r"\s*Did you mean one of the following\? \[(.*?)\]\.?")


def run_failure(problem: BaseException, *, dataset: str, where: Location, what: str) -> LakeletError:
    """What ended a flow while it ran, as a coded error of `dataset`; `what` if nothing better is known."""
    if isinstance(problem, schemas.Incompatible):
        return schemas.incompatible_error(problem, dataset=dataset, where=where)
    if isinstance(problem, LakeletError):
        problem.dataset, problem.where = problem.dataset or dataset, problem.where or where
        return problem
    if refused := storage_failure(problem):
        refused.dataset, refused.where, refused.__cause__ = dataset, where, problem
        return refused
    text = str(problem)
    code, why, todo = "FLOW_FAILED", essence(text) or type(problem).__name__, remedy(problem)
    if known := next((c for c in _CODE.findall(text) if c in CODES), None):
        code, what = known, _told(text, known) or what
    worker = _worker_location(text)
    if todo is None and worker:
        todo = "Correct the function; nothing of its rows was written, and the next update reads them again."
    error = LakeletError(code, what, dataset=dataset, where=worker or where, why=why if why != what else None, todo=todo)
    error.__cause__ = problem
    return error


def essence(text: str) -> str:
    """The sentences of a Spark or worker message that tell a user something; at most four lines."""
    text = _STREAM_FAILED.sub("", text)
    raised = _RAISED.findall(text) or ("Traceback" in text and _PYTHON_ERROR.findall(text))
    if raised:
        name, message = raised[-1]
        return message if name == "LakeletError" else f"{name}: {message}" if message else name
    if _WORKER_GONE in text:
        fatal = _FATAL.search(text)
        return f"the Python process of a UDF ended: {fatal[1] if fatal else 'os._exit in its code, a crash of a library, or no memory'}"
    conditions = [c for c in _CONDITION.findall(text) if not c.startswith(_WRAPPERS)]
    if conditions and text.lstrip().startswith(("An error occurred", *_WRAPPERS)):
        return str(conditions[-1]).split(" SQLSTATE:")[0]
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line and not line.startswith(_NOISE)]
    return "\n".join(line.split(" SQLSTATE:")[0] for line in telling[:4])


def first_line(error: BaseException) -> str:
    """Spark's message without plan, stack and SQLSTATE suffix; what Java says where pyspark only says which call it was."""
    lines = str(error).strip().split("\n")
    line = lines[1][2:] if len(lines) > 1 and lines[1].startswith(": ") else lines[0]
    return line.split(" SQLSTATE:")[0].strip()


def remedy(error: BaseException) -> str | None:
    """What to do about an error of Spark's, where there is one answer."""
    conditions = _CODE.findall(str(error))
    if isinstance(error, PySparkException):
        conditions.append((error.getCondition() or "").split(".")[0])
    columns = proposed(error)
    if columns:
        return f"Columns that are there: {', '.join(columns)}."
    if missing := _ROUTINE.search(str(error)):
        name = missing[1].lower()
        return (
            "If it is a function of the service or of a catalog, a source file of its own can give the pipeline one of that name: "
            f'spark.udf.register("{name}", function, "string")'
        )
    if hint := data_source_hint(str(error)):
        return hint
    if "SQL_CONF_NOT_FOUND" in conditions:
        key = re.search(r'SQL config "([^"]+)"', str(error))
        return f"Set it in the pipeline's configuration, or with --param {key[1] if key else 'KEY'}=VALUE."
    if any(c in _ANSI for c in conditions):
        return 'Use try_cast and the like, or set "spark.sql.ansi.enabled": "false" in the pipeline\'s configuration.'
    if "STORE_FAILED" in conditions:
        return "Make room, or bring the disk or store back; the next update goes on from there."
    if _TEXT_AS_NUMBER.search(str(error)):
        return (
            'Cast the columns, or have their types inferred ("cloudFiles.inferColumnTypes"). Databricks without ANSI mode takes text for '
            'numbers; "spark.sql.ansi.enabled": "false" in the pipeline\'s configuration does it here.'
        )
    if "FAILED_READ_FILE" in conditions:
        if " is missing" not in str(error):
            return "Repair the file; the next update goes on from there."
        gone = 'if it is gone for good, the reader\'s .option("ignoreMissingFiles", "true") goes on without it'
        return f"Put the file back; the next update goes on from there; {gone}."
    if any(c in _NO_DELTA for c in conditions):
        return "The folder holds no Delta table yet, or the path means another folder."
    if "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES" in conditions:
        return 'Rename the column, or give the table table_properties={"delta.columnMapping.mode": "name"}.'
    return None


def proposed(error: BaseException) -> list[str]:
    """Spark's list of column names, which need not look like the one that is missing."""
    found = _PROPOSED.search(str(error))
    return [name.strip().strip("`").replace("`.`", ".") for name in found[1].split(", ")] if found else []


def unresolved_nearest(error: PySparkException, columns: Sequence[str]) -> tuple[str, ...]:
    """Those of `columns` that look like the name which Spark could not resolve."""
    name = (error.getMessageParameters() or {}).get("objectName", "").replace("`", "")
    return nearest_names(name, columns) if name else ()


def without_proposal(text: str) -> str:
    return _PROPOSED.sub("", text)


def _told(text: str, code: str) -> str | None:
    """The sentence behind `[code]`."""
    found = re.search(rf"\[{code}(?:\.[A-Z0-9_.]+)?\] (.+)", text)
    return found[1].split(" SQLSTATE:")[0].strip() if found else None


def _worker_location(text: str) -> Location | None:
    """The innermost line of the user's files in the traceback of a worker."""
    lines = [(file, line) for file, line in _WORKER_LINE.findall(text) if not is_library(file)]
    return code_location(lines[-1][0], int(lines[-1][1])) if lines else None
