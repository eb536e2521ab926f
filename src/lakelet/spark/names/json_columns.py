"""`from_json` with an inferred schema (JC-1 to JC-9): the column that a call becomes, and how a batch that does not fit is looked through.

The call becomes an Arrow UDF with the schema that is stored now. Where a text has a field that the schema does not know, the UDF raises;
the batch is then read once more for nothing but the types of its texts (`types_found`), and the flow begins again with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.taskcontext import TaskContext

from lakelet.autoloader.alone import SOURCE_CONFS
from lakelet.autoloader.formats.json.inference import Struct, Type, merge
from lakelet.autoloader.json_columns.columns import KEY, JsonCall, JsonColumn
from lakelet.autoloader.json_columns.reading import JsonTexts, is_to_grow
from lakelet.autoloader.types.growth import texts_of
from lakelet.base.locations import caller_location
from lakelet.language.sql_text.tokens import Token, closing, edited, may_have, plain_tokens
from lakelet.spark.names.file_functions import evaluated

_COLLECTING = "lakelet.json_columns.collect"
"""Local property of the jobs that look for types only."""

_ZONE = "spark.sql.session.timeZone"

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

    def __init__(self, column: JsonColumn, found: Any) -> None:
        self._spec, self._key, self._place = column.reader_spec(), column.call.key, column.location
        self._schema, self._pending, self._found = column.public, column.pending, found
        self._texts: JsonTexts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_texts": None}

    def __call__(self, texts: pa.Array) -> pa.Array:
        if self._texts is None:
            self._texts = JsonTexts(self._spec, self._key, self._schema, self._pending)
        task = TaskContext.get()
        if task is None or not task.getLocalProperty(_COLLECTING):
            return self._texts.structs(texts)
        self._found.add({self._place: self._texts.unknown(texts)})
        return self._texts.structs(pa.nulls(len(texts), pa.string()))


def accumulated(spark: SparkSession) -> Any:
    """A place for what the tasks of one query find."""
    return spark.sparkContext.accumulator({}, _Merged())


def function_of(column: JsonColumn, found: Any) -> Any:
    """The UDF that a call becomes; `found`: see `accumulated`."""
    parser = _Parser(column, found)

    def parsed(texts: pa.Array) -> pa.Array:
        return parser(texts)

    made: Any = arrow_udf(parsed, column.public)  # type: ignore[call-overload]  # its hints know no structs
    made._name = "from_json"
    return made


def is_inferring(schema: Any, options: Mapping[str, Any] | None) -> bool:
    """Whether a call of `from_json` asks for an inferred schema."""
    return schema is None and any(str(name).lower() == KEY.lower() for name in options or {})


def call_of(spark: SparkSession, options: Mapping[str, Any]) -> JsonCall:
    """The call that user code is making, with its options checked. Raises as `JsonCall.of`."""
    confs = {name: value for name in (*SOURCE_CONFS, _ZONE) if (value := spark.conf.get(name, None)) is not None}
    return JsonCall.of(options, confs, caller_location())


# ----------------------------------------------------------------------------------------------------------------- SQL


def in_text(text: str, spark: SparkSession, run: Callable[[str], DataFrame], made: Callable[[Mapping[str, Any]], Any]) -> str:
    """SQL text with a function of the session instead of each call with an inferred schema.

    Args:
        run: runs a query; the options of a call may be any constant expression.
        made: options of a call → the UDF that it becomes.
    """
    if not may_have(text, [KEY]) or not may_have(text, ["from_json"]):
        return text
    while calls := list(_calls(text)):
        start, stop, argument, options = calls[-1]  # no other call is inside
        (given,) = evaluated(run)([options])
        function = made({} if given is None else given)
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


# -------------------------------------------------------------------------------------------------------------- growth


def has_new_fields(failure: BaseException) -> bool:
    """Whether a batch failed because texts have fields that a schema does not know and is to take in."""
    return any(map(is_to_grow, texts_of(failure)))


def types_found(batch: DataFrame, found: Any) -> Found:
    """Read a batch for the types of its texts, of all its calls; `found`: what their functions were made with."""
    found.value = {}
    with _collecting(batch.sparkSession):
        batch.write.format("noop").mode("overwrite").save()
    return dict(found.value)


@contextmanager
def _collecting(spark: SparkSession) -> Iterator[None]:
    context = spark.sparkContext
    context.setLocalProperty(_COLLECTING, "true")
    try:
        yield
    finally:
        context.setLocalProperty(_COLLECTING, None)  # type: ignore[arg-type]  # Java takes null for unset


__all__ = ["Found", "accumulated", "call_of", "function_of", "has_new_fields", "in_text", "is_inferring", "types_found"]
