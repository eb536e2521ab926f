"""`from_json` with an inferred schema (JC-1 to JC-9): the column that a call becomes, and what its tasks find.

The call becomes an Arrow UDF with the schema that is stored now. Fields that the schema does not know and is to take in are rescued for the
moment, and their types added to an accumulator: who writes the rows asks `Growth` before the commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import pyarrow as pa
from pyspark import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from lakelet.autoloader.formats.json.inference import Struct, Type, merge
from lakelet.autoloader.json_columns.columns import KEY, JsonCall, JsonColumn
from lakelet.autoloader.json_columns.reading import JsonTexts
from lakelet.autoloader.settings import source_settings
from lakelet.autoloader.spec import SchemaChange
from lakelet.base.user_code import caller_location
from lakelet.language.sql_text.tokens import Token, closing, edited, may_have, plain_tokens
from lakelet.spark.names.file_functions import evaluated

Found = Mapping[str, Type]
"""Location of a schema → the types of the fields that its texts have besides."""


class _Merged(AccumulatorParam[dict[str, Type]]):
    """Joins what tasks have found."""

    def zero(self, value: dict[str, Type]) -> dict[str, Type]:
        return {}

    def addInPlace(self, value1: dict[str, Type], value2: dict[str, Type]) -> dict[str, Type]:
        return {place: merge(value1.get(place, Struct()), value2.get(place, Struct())) for place in {**value1, **value2}}


class _Parser:
    """What a worker does with the texts of one call."""

    def __init__(self, column: JsonColumn, types: Any, start: str) -> None:
        self._spec, self._key, self._place = column.reader_spec(), column.call.key, start + column.location
        self._schema, self._pending, self._guessed, self._types = column.public, column.pending, column.guessed, types
        self._texts: JsonTexts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_texts": None}

    def __call__(self, texts: pa.Array) -> pa.Array:
        if self._texts is None:
            self._texts = JsonTexts(self._spec, self._key, self._schema, self._pending, self._guessed)
        structs, types = self._texts.read(texts)
        if types is not None:
            self._types.add({self._place: types})
        return structs


_types: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By Spark context: the accumulator of all its queries, as pyspark keeps each one for ever."""


@dataclass
class Growth:
    """What the tasks of one query find about the texts of its calls.

    Attributes:
        changes: versions of schemas that were stored because of it; the query does not have them.
    """

    spark: SparkSession
    changes: list[SchemaChange] = field(default_factory=list)
    _start: str = field(default_factory=lambda: f"{uuid.uuid4().hex}:")

    def function_of(self, column: JsonColumn) -> Any:
        """The UDF that a call becomes."""
        return _function(column, self._accumulator(), self._start)

    def found(self) -> Found:
        """What has been found since this was asked the last time."""
        value = self._accumulator().value
        return {place.removeprefix(self._start): value.pop(place) for place in list(value) if place.startswith(self._start)}

    def store(self, columns: Iterable[JsonColumn]) -> bool:
        """Store the next version of each schema that has to grow; whether there is one.

        Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read.
        """
        found = self.found()
        growing = [column for column in columns if column.grows and column.location in found]
        changes = [change for column in growing if (change := column.store(found[column.location])) is not None]
        self.changes += changes
        return bool(changes)

    def _accumulator(self) -> Any:
        context = self.spark.sparkContext
        if context not in _types:
            _types[context] = context.accumulator({}, _Merged())
        return _types[context]


def without_growth(column: JsonColumn) -> Any:
    """The UDF that a call becomes where no task runs."""
    return _function(column, None, "")


def _function(column: JsonColumn, types: Any, start: str) -> Any:
    parser = _Parser(column, types, start)

    def parsed(texts: pa.Array) -> pa.Array:
        return parser(texts)

    made: Any = arrow_udf(parsed, column.public)  # type: ignore[call-overload]  # its hints know no structs
    made._name = "from_json"
    return made


def is_inferring(schema: Any, options: Mapping[str, Any] | None) -> bool:
    """Whether a call of `from_json` asks for an inferred schema."""
    return schema is None and any(str(name).lower() == KEY.lower() for name in options or {})


def call_of(spark: SparkSession, options: Mapping[str, Any], argument: str) -> JsonCall:
    """The call that user code is making, with its options checked; `argument`: the text of its column. Raises as `JsonCall.of`."""
    return JsonCall.of(options, source_settings(spark), caller_location(), argument)


# ----------------------------------------------------------------------------------------------------------------- SQL


def in_text(text: str, spark: SparkSession, run: Callable[[str], DataFrame], made: Callable[[Mapping[str, Any], str], Any]) -> str:
    """SQL text with a function of the session instead of each call with an inferred schema.

    Args:
        run: runs a query; the options of a call may be any constant expression.
        made: options of a call and the text of its column → the UDF that it becomes.
    """
    if not may_have(text, [KEY]) or not may_have(text, ["from_json"]):
        return text
    while calls := list(_calls(text)):
        start, stop, argument, options = calls[-1]  # no other call is inside
        (given,) = evaluated(run)([options])
        function = made({} if given is None else given, argument)
        name = f"__lakelet_from_json_{crc32(repr(given).encode()):08x}"
        spark.udf.register(name, function)
        text = edited(text, [(start, stop, f"{name}({argument})")])
    return text


def _calls(text: str) -> Iterator[tuple[int, int, str, str]]:
    """(start, stop, text of the first argument, text of the third) of each `from_json(…, NULL, …)`."""
    words = plain_tokens(text)
    for at, word in enumerate(words[:-1]):
        if word.value.lower() != "from_json" or words[at + 1].upper != "(":
            continue
        end = closing(words, at + 1)
        parts = list(_arguments(words, at + 2, end))
        if len(parts) == 3 and [token.upper for token in parts[1]] == ["NULL"]:
            first, third = (text[part[0].start : part[-1].stop] for part in (parts[0], parts[2]))
            yield word.start, words[end].stop, first, third


def _arguments(words: Sequence[Token], at: int, end: int) -> Iterator[Sequence[Token]]:
    begin = at
    while at < end:
        if words[at].upper in ("(", "["):
            at = closing(words, at)
        elif words[at].upper == ",":
            yield words[begin:at]
            begin = at + 1
        at += 1
    if begin < end:
        yield words[begin:end]


__all__ = ["Found", "Growth", "call_of", "in_text", "is_inferring", "without_growth"]
