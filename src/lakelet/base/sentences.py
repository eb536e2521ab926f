"""The English sentences of Spark, Delta, Java and Python workers that Lakelet recognises in error messages.

Where Spark gives an error condition, that is read instead (`lakelet.spark.errors.conditions`). A sentence is here because its error has no
condition, or because the condition reaches Python inside a text only, or for a value that no parameter of the condition holds. One test
each makes the real Spark say it (`tests/spark/spark/test_sentences.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """A sentence in the error messages of another program.

    Attributes:
        name: identifies the sentence in tests.
        says: the program that writes it.
        pattern: finds it in a message; its groups are the values.
        why: why no error condition is read instead.
    """

    name: str
    says: str
    pattern: re.Pattern[str]
    why: str

    def find(self, text: str) -> re.Match[str] | None:
        """Return the first occurrence in a message, or None."""
        return self.pattern.search(text)

    def is_in(self, text: str) -> bool:
        """Whether a message contains the sentence."""
        return self.find(text) is not None


def _sentence(name: str, says: str, pattern: str, why: str, flags: int = 0) -> Sentence:
    return Sentence(name, says, re.compile(pattern, flags), why)


_NONE = "the error has no condition"
_TEXT = "the error of a query or worker reaches Python as text"

# ------------------------------------------------------------------------------------------------------ any message

CODE = _sentence(
    "code", "Spark, Delta and Lakelet", r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]", "it is the condition, in the text of an outer error"
)
"""`[CONDITION.SUBCONDITION]`; group 1: the condition."""

CODED_LINE = _sentence(
    "coded line",
    "Spark and Delta",
    r"^(?:Caused by: |: )?(?:[\w.$]+: )?(\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*\] .+)$",
    "it is the condition, in the text of an outer error",
    re.MULTILINE,
)
"""A line that begins with a condition, or with the name of a Java class and a condition; group 1: the line from the condition on."""

SQLSTATE = _sentence("SQLSTATE", "Spark", r"(?:\A| )SQLSTATE: ?", "it ends the sentence that a user reads")
JAVA_SAYS = _sentence("Java says", "py4j", r"\AAn error occurred while calling [^\n]*\n: ", "it comes before the message of Java")

NOISE = _sentence(
    "noise",
    "Spark, Java and Python",
    r"\A(?:Traceback|File |at |Caused by|JVM stacktrace|Driver stacktrace|=== Streaming|Identifier:|Current |Thread State|Logical Plan"
    r"|~|\+- )",
    "such lines are left out",
)
"""The beginning of a line of a stack trace, or of Spark's description of a query."""

PLAN = _sentence("plan", "Spark", r"\A(?:JVM stacktrace|'Project|'Global)", "a message is cut off there")
"""The beginning of the stack trace or of the plan after a message."""

# -------------------------------------------------------------------------------------------------- Spark's analysis

PROPOSAL = _sentence(
    "proposal", "Spark", r"\s*Did you mean one of the following\? \[(.*?)\]\.?", "it is left out of a text that names the columns itself"
)
"""Group 1: names of columns."""

POSITION = _sentence("position", "Spark", r"\bline (\d+),? pos (\d+)", "the position is in no parameter")
"""Groups: line, from 1; column, from 0."""

NOT_VARIANT = _sentence(
    "not VARIANT",
    "Spark",
    r"COLUMN_IS_NOT_VARIANT_TYPE",
    "Spark 4.2 lacks the text of this condition and raises INTERNAL_ERROR, whose text names it",
)

PATH_OF_ALL = _sentence(
    "path of all elements",
    "Spark",
    r"Invalid usage of '\*' in expression `unresolvedextractvalue`",
    "the error of a query in a function of the user reaches Lakelet as text",
)
"""What Spark says to a path into JSON with `[*]`."""

FORMAT_MISSING = _sentence(
    "format missing",
    "Spark",
    r"Failed to find (?:the )?data source: (?P<name>[\w-]+(?:\.[\w-]+)*)",
    "DATA_SOURCE_NOT_FOUND comes as a plain Java error, and the formats that Spark knows by name have no condition",
)
NO_DRIVER = _sentence("no driver", "Java", r"(?P<name>No suitable (?:JDBC )?driver)", _NONE)
DRIVER_CLASS_MISSING = _sentence("driver class missing", "Java", r"ClassNotFoundException: (?P<name>[\w.$]*[Dd]river[\w$]*)", _NONE)
JAVA_CLASS_MISSING = _sentence("Java class missing", "py4j", r"'JavaPackage' object is not callable", _NONE)

# --------------------------------------------------------------------------------------------------- Python workers

SLOW_WORKER = _sentence("slow worker", "Spark", r"Python worker failed to connect back", _NONE)
"""A busy machine: Spark gives a new Python process ten seconds, fixed."""

WORKER_GONE = _sentence("worker gone", "Spark", r"Python worker exited unexpectedly", _NONE)
WORKER_NOT_STARTED = _sentence("worker not started", "Spark", r"Error from python worker:\n((?s:.+?))\nPYTHONPATH was:", _NONE)
"""A Python process that ended before it served rows; group 1: what it printed, each line after two blanks."""

WORKER_CRASH = _sentence("worker crash", "a Python worker", r"Fatal Python error: (.+)", _NONE)

TRACEBACK = _sentence("traceback", "a Python worker", r"Traceback \(most recent call last\):", _TEXT)
RAISED = _sentence(
    "raised",
    "a Python worker",
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?:[\w.<>]+\.)?(\w+)(?:: (.*))?$",
    _TEXT,
    re.MULTILINE,
)
"""The line after a traceback, of whatever class: SystemExit and a user's own names do not end in Error or Exception."""

PYTHON_ERROR = _sentence("Python error", "a Python worker", r"^\s*(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)$", _TEXT, re.MULTILINE)
WORKER_LINE = _sentence("worker line", "a Python worker", r'File "([^"]+)", line (\d+)', _TEXT)

FRAME_CONTEXT = _sentence(
    "frame context",
    "Spark",
    r'== DataFrame ==\s*\n"(?P<fragment>[^"\n]*)" was called from\s*\n(?P<file>[^\n]+):(?P<line>\d+)',
    _TEXT,
)
"""The call of a column function whose expression failed on a row."""

SQL_CONTEXT = _sentence(
    "SQL context",
    "Spark",
    r"== SQL[^\n]*==\n(?:[^\n]*\n)*?(?P<sql>[^\n]*)\n(?P<before> *)(?P<marks>\^+)",
    _TEXT,
)
"""The piece of a query that failed on a row, with marks below it."""

# ---------------------------------------------------------------------------------------------------------- streams

STREAM_ENDED = _sentence(
    "stream ended",
    "Spark",
    r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ",
    "the cause follows it",
)
VALUE_MISSING = _sentence(
    "value missing",
    "Delta",
    r"\[DELTA_NOT_NULL_CONSTRAINT_VIOLATED\] NOT NULL constraint violated for column: (.+?)\.?(?:\n| SQLSTATE|\Z)",
    _TEXT,
)
"""Group 1: the column that a table declares NOT NULL."""

CHANGED_VERSION = _sentence("changed version", "Delta", r"at version (\d+)", _TEXT)
CHANGED_PATH = _sentence("changed path", "Delta", r"can be found at path (?:file:)?(.+?)\.?(?=\s+SQLSTATE|\s*$)", _TEXT, re.MULTILINE)
SOURCES_COUNTED = _sentence(
    "sources counted", "Spark", r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\]", _NONE
)
OFFSET_OF_DELTA = _sentence("offset of Delta", "Java", r'For input string: "\{', _NONE)
"""A source that counts rows finds the offset of a Delta table."""
OFFSET_BEFORE_FILES = _sentence("offset before files", "json4s", r"No usable value for logOffset\b", _NONE)
"""Spark's own source of files finds the offset of another source."""

OPERATORS_NOW = _sentence("operators now", "Spark", r"Stateful operators in current batch", _TEXT)
OPERATOR = _sentence("operator", "Spark", r"OperatorName: (\w+)", _TEXT)

# ------------------------------------------------------------------------------------------------------------ disks

DISK_FULL = _sentence("disk full", "Java, Rust", r"no space left on device|disk quota exceeded|os error (28|122)\b", _NONE, re.IGNORECASE)
READ_ONLY = _sentence("read-only", "Java, Rust", r"read-only file system|os error 30\b", _NONE, re.IGNORECASE)

STORE_AWAY = _sentence(
    "store away",
    "the clients of S3, of Google's and Azure's stores and of HDFS in Java",
    r"[^\n]*(?:Unable to execute HTTP request|(?:Error [a-z]+|Upload failed for) '?gs://|"
    r"Error writing request body to server|Unexpected end of file from server|"
    r"Status code: -1 error code: null|End of File Exception between local host|Call From \S+ to \S+ failed on|"
    r"Name node is in safe mode)[^\n]*",
    _NONE,
)
"""The store does not answer; the match is the whole line."""

BROKER_AWAY = _sentence(
    "broker away",
    "Kafka's client",
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|\w*Auth\w*)Exception: ([^\n]+)",
    _NONE,
)
SENTENCES: tuple[Sentence, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Sentence))
"""All of them."""
