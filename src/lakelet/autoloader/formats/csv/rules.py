"""The options of CSV, and what they mean for the readers of one source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.formats.option_tables import (
    DATE_PATTERNS,
    LOCALE,
    Option,
    char,
    encoding,
    flag,
    line_separator,
    number,
    ratio,
    text,
    word,
)
from lakelet.autoloader.session_settings import LOCAL_TIMESTAMPS

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import ReaderSpec

BACK_TO_DELIMITER, CLOSING_QUOTE = "BACK_TO_DELIMITER", "STOP_AT_CLOSING_QUOTE"
AT_DELIMITER, SKIP_VALUE, RAISE_ERROR = "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"
HANDLINGS = (BACK_TO_DELIMITER, CLOSING_QUOTE, AT_DELIMITER, SKIP_VALUE, RAISE_ERROR)
NONE = "\0"
"""The character that stands for "there is no such character" in options."""
BLANKS = "".join(map(chr, range(33)))


@dataclass(frozen=True)
class Dialect:
    """The characters of a CSV file. `line_ends`: where a record ends outside of quotes; empty when the text is one line.

    `newline`: what ends the lines of the file, and is read as LF wherever it stands; empty when every character is read as it is. A mere LF
    then ends a record too, except inside an unquoted value.
    """

    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    escape_of_escape: str = "\\"
    trim_left: bool = False
    trim_right: bool = False
    handling: str = AT_DELIMITER
    line_ends: frozenset[str] = frozenset()
    newline: str = ""


_LINE_END = re.compile(rb"\r\n|\n|\r")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}


def _separator(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _NAMED.get(m[2], m[2]), value)


OPTIONS = (
    flag("header", None),
    flag("enforceSchema", True),
    flag("mergeSchema", True, notice="the columns of all sampled files are joined, and each file is read by its own header"),
    flag("inferSchema", False, notice="cloudFiles.inferColumnTypes decides whether types are inferred"),
    ratio("samplingRatio", 1.0, notice="the whole sample is read"),
    char("charToEscapeQuoteEscaping", None),
    char("comment", NONE),
    text("emptyValue", ""),
    encoding("utf-8"),
    char("escape", "\\"),
    flag("failOnUnknownFields", False, only=False),
    flag("failOnWidenedFields", False, only=False),
    flag("ignoreLeadingWhiteSpace", False),
    flag("ignoreTrailingWhiteSpace", False),
    line_separator(most=2),
    LOCALE,
    number("maxCharsPerColumn", -1, least=-1),
    number("maxColumns", 20480, least=1),
    flag("multiLine", False),
    text("nanValue", "NaN"),
    text("negativeInf", "-Inf"),
    text("positiveInf", "Inf"),
    text("nullValue", ""),
    flag("parserCaseSensitive", None),
    flag("preferDate", True),
    char("quote", '"'),
    Option("sep", _separator, ",", aliases=("delimiter",)),
    number("skipRows", 0),
    word("unescapedQuoteHandling", AT_DELIMITER, HANDLINGS),
    text("singleVariantColumn", only=()),
    *DATE_PATTERNS,
)


@dataclass(frozen=True)
class CsvRules:
    """How the files of one source are read.

    line_separator: None: LF, CRLF or CR; with `multi_line` the one that comes first in a file.
    by_position: the columns of a file are those of the schema, whatever a header says.
    rounds: a DECIMAL takes digits beyond its scale.
    local: an inferred timestamp without zone is TIMESTAMP_NTZ.
    """

    dialect: Dialect
    comment: str | None
    line_separator: str | None
    encoding: str
    multi_line: bool
    header: bool
    skip_rows: int
    by_position: bool
    null_value: str
    empty_value: str
    nan: str
    infinity: str
    minus_infinity: str
    date_format: str | None
    timestamp_format: str | None
    ntz_format: str | None
    prefer_date: bool
    max_columns: int
    max_chars: int
    case_sensitive: bool
    zone: str
    rounds: bool = False
    local: bool = False

    @property
    def keeps_blanks(self) -> bool:
        """Whether a line of blanks is a record: with `multiLine`, unless leading blanks do not count (FF-43)."""
        return self.multi_line and not self.dialect.trim_left

    def of_file(self, head: bytes) -> CsvRules:
        """The rules for a file that begins with this text: with `multiLine` the first line end is the newline, as in Spark (FF-32)."""
        found = _LINE_END.search(head) if self.dialect.newline else None
        return self if found is None else replace(self, dialect=replace(self.dialect, newline=found[0].decode()))

    def value(self, token: str | None) -> str | None:
        """The text of a value as it counts: None for what stands for NULL."""
        if token is None:
            return None
        found = token or self.empty_value
        return None if found == self.null_value else found


def rules_of(spec: ReaderSpec) -> CsvRules:
    """The rules of a source. A header is assumed where the schema is inferred and nothing else was said (FF-11)."""
    given = spec.format_options
    header = given["header"] if given["header"] is not None else not spec.explicit
    quote, escape = given["quote"] or NONE, given["escape"] or NONE
    second = given["chartoescapequoteescaping"]
    line_end: str | None = given["linesep"]
    multi = given["multiline"]
    named = not spec.explicit or spec.rescued_column is not None or not given["enforceschema"]
    return CsvRules(
        dialect=Dialect(
            separator=given["sep"],
            quote=quote,
            escape=escape,
            escape_of_escape=second if second is not None else (NONE if quote == escape else escape),
            trim_left=given["ignoreleadingwhitespace"],
            trim_right=given["ignoretrailingwhitespace"],
            handling=given["unescapedquotehandling"],
            line_ends=frozenset({line_end or "\n"}) if multi else frozenset(),
            newline="\n" if multi and line_end is None else "",
        ),
        comment=given["comment"] if given["comment"] not in ("", NONE) else None,
        line_separator=line_end,
        encoding=given["encoding"],
        multi_line=multi,
        header=header,
        skip_rows=given["skiprows"],
        by_position=spec.explicit and not (header and named),
        null_value=given["nullvalue"],
        empty_value=given["emptyvalue"],
        nan=given["nanvalue"],
        infinity=given["positiveinf"],
        minus_infinity=given["negativeinf"],
        date_format=given["dateformat"],
        timestamp_format=given["timestampformat"],
        ntz_format=given["timestampntzformat"],
        prefer_date=given["preferdate"],
        max_columns=given["maxcolumns"],
        max_chars=given["maxcharspercolumn"],
        case_sensitive=spec.case_sensitive and given["parsercasesensitive"] is not False,
        zone=spec.time_zone,
        rounds=spec.rounds_decimals,
        local=spec.is_on(LOCAL_TIMESTAMPS),
    )


def problem_of(options: Mapping[str, Any]) -> str | None:
    """What is wrong with a combination of options, or None."""
    separator = options["sep"]
    quote = options["quote"] or NONE
    if quote != NONE and quote in separator:
        return f"option quote {quote!r} is part of the separator {separator!r}"
    if set(separator) & {"\n", "\r"}:
        return "option sep cannot hold a line end"
    if options["multiline"] and options["unescapedquotehandling"] == BACK_TO_DELIMITER:
        return f"option unescapedQuoteHandling {BACK_TO_DELIMITER} does not go with multiLine"
    return None
