"""`from_json` with an inferred schema (JC-1 to JC-9): the UDF that a call becomes, what its tasks find, the fields that its query expects.

The call becomes an Arrow UDF with the schema that is stored now. Fields that the schema does not know and that it takes in are rescued at
first, and their types added to an accumulator: who writes the rows asks `Growth` before the commit.

Before the first texts are seen, a query that uses fields of them does not analyse (JC-6). Spark's errors name these fields one after the
other; each is put into the schema with a type that lets the query pass (`ExpectedFields`), and the query is analysed again. No row is ever
written with these types: the first texts bring the schema, and the query is built again with it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary
from zlib import crc32

import pyarrow as pa
from pyspark import AccumulatorParam
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BooleanType, DataType, StringType, StructField, StructType

from lakelet.autoloader.evolving_from_json import KEY, JsonCall, JsonColumn, JsonTexts
from lakelet.autoloader.formats.json.inferred_types import Struct, Type, merge
from lakelet.autoloader.session_settings import source_settings
from lakelet.autoloader.source_spec import SchemaEvolution
from lakelet.base.user_code import caller_location
from lakelet.language.sql_text.tokens import Token, closing, edited, may_have, plain_tokens
from lakelet.spark.names.table_functions import evaluated

if TYPE_CHECKING:
    from lakelet.language.model import Flow
    from lakelet.storage.root import Storage

Found = Mapping[str, Type]
"""Location of a schema → the types of the fields that its texts have besides."""


class _MergedTypes(AccumulatorParam[dict[str, Type]]):
    """Joins what tasks have found."""

    def zero(self, value: dict[str, Type]) -> dict[str, Type]:
        return {}

    def addInPlace(self, value1: dict[str, Type], value2: dict[str, Type]) -> dict[str, Type]:
        return {place: merge(value1.get(place, Struct()), value2.get(place, Struct())) for place in {**value1, **value2}}


class _TextParser:
    """What a worker does with the texts of one call."""

    def __init__(self, column: JsonColumn, types: Any, start: str) -> None:
        self._spec, self._key, self._place = column.reader_spec(), column.call.key, start + column.location
        self._schema, self._pending, self._guessed, self._accumulators = column.public, column.pending, column.guessed, types
        self._texts: JsonTexts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_texts": None}

    def __call__(self, texts: pa.Array) -> pa.Array:
        if self._texts is None:
            self._texts = JsonTexts(self._spec, self._key, self._schema, self._pending, self._guessed)
        structs, types = self._texts.read(texts)
        if types is not None:
            self._accumulators.add({self._place: types})
        return structs


_accumulators: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By Spark context: the accumulator of all its queries, as pyspark keeps each one for ever."""


@dataclass
class Growth:
    """What the tasks of one query find about the texts of its calls.

    Attributes:
        changes: versions of schemas that were stored because of it; the query does not have them.
    """

    spark: SparkSession
    changes: list[SchemaEvolution] = field(default_factory=list)
    _start: str = field(default_factory=lambda: f"{uuid.uuid4().hex}:")

    def function_of(self, column: JsonColumn) -> Any:
        """The UDF that a call becomes."""
        return _udf_of(column, self._accumulator(), self._start)

    def found(self) -> Found:
        """What has been found since this was asked the last time."""
        value = self._accumulator().value
        return {place.removeprefix(self._start): value.pop(place) for place in list(value) if place.startswith(self._start)}

    def store(self, columns: Iterable[JsonColumn]) -> bool:
        """Store the next version of each schema that has to grow; whether there is one.

        Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN for a schema log that cannot be read.
        """
        found = self.found()
        to_store = [column for column in columns if column.grows and column.location in found]
        changes = [change for column in to_store if (change := column.store(found[column.location])) is not None]
        self.changes += changes
        return bool(changes)

    def _accumulator(self) -> Any:
        context = self.spark.sparkContext
        if context not in _accumulators:
            _accumulators[context] = context.accumulator({}, _MergedTypes())
        return _accumulators[context]


def without_growth(column: JsonColumn) -> Any:
    """The UDF that a call becomes where no task runs."""
    return _udf_of(column, None, "")


def _udf_of(column: JsonColumn, types: Any, start: str) -> Any:
    parser = _TextParser(column, types, start)

    def parsed(texts: pa.Array) -> pa.Array:
        return parser(texts)

    udf: Any = arrow_udf(parsed, column.public)  # type: ignore[call-overload]  # its hints know no structs
    udf._name = "from_json"
    return udf


def is_inferring(schema: Any, options: Mapping[str, Any] | None) -> bool:
    """Whether a call of `from_json` asks for an inferred schema."""
    return schema is None and any(str(name).lower() == KEY.lower() for name in options or {})


def call_of(spark: SparkSession, options: Mapping[str, Any], argument: str) -> JsonCall:
    """The call that user code is making, with its options checked; `argument`: the text of its column. Raises as `JsonCall.of`."""
    return JsonCall.of(options, source_settings(spark), caller_location(), argument)


# ----------------------------------------------------------------------------------------------------------------- SQL


def in_text(text: str, spark: SparkSession, run: Callable[[str], DataFrame], udf_of: Callable[[Mapping[str, Any], str], Any]) -> str:
    """SQL text with a function of the session instead of each call with an inferred schema.

    Args:
        run: runs a query; the options of a call may be any constant expression.
        udf_of: options of a call and the text of its column → the UDF that it becomes.
    """
    if not may_have(text, [KEY]) or not may_have(text, ["from_json"]):
        return text
    while calls := list(_inferring_calls(text)):
        start, stop, argument, options = calls[-1]  # no other call is inside
        (given,) = evaluated(run)([options])
        function = udf_of({} if given is None else given, argument)
        name = f"__lakelet_from_json_{crc32(repr(given).encode()):08x}"
        spark.udf.register(name, function)
        text = edited(text, [(start, stop, f"{name}({argument})")])
    return text


def _inferring_calls(text: str) -> Iterator[tuple[int, int, str, str]]:
    """(start, stop, text of the first argument, text of the third) of each `from_json(…, NULL, …)`."""
    words = plain_tokens(text)
    for at, word in enumerate(words[:-1]):
        if word.value.lower() != "from_json" or words[at + 1].upper != "(":
            continue
        end = closing(words, at + 1)
        parts = list(_call_arguments(words, at + 2, end))
        if len(parts) == 3 and [token.upper for token in parts[1]] == ["NULL"]:
            first, third = (text[part[0].start : part[-1].stop] for part in (parts[0], parts[2]))
            yield word.start, words[end].stop, first, third


def _call_arguments(words: Sequence[Token], at: int, end: int) -> Iterator[Sequence[Token]]:
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


# ----------------------------------------------------- fields that a query uses before the first texts are seen (JC-6)


_NO_FIELD, _NO_EXTRACT, _NO_INDEX = "FIELD_NOT_FOUND", "INVALID_EXTRACT_BASE_FIELD_TYPE", "INVALID_EXTRACT_FIELD_TYPE"
_NO_COLUMN = "UNRESOLVED_COLUMN"  # of `doc.*`
_NOT_BOOLEAN = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
_WRONG_INPUT = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
_QUOTED_PART = re.compile(r"`((?:[^`]|``)*)`")
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")
_LAST_NAME = re.compile(r"`?([^`.\[\]]+)`?((?:\[[^\]]*\])*)$")


@dataclass
class _ExpectedValue:
    """A value in a text: text, unless `fields` (an object) or `element` (an array) is there, or it is `boolean`."""

    fields: dict[str, _ExpectedValue] | None = None
    element: _ExpectedValue | None = None
    boolean: bool = False

    @property
    def is_text(self) -> bool:
        return self.fields is None and self.element is None and not self.boolean

    def type(self) -> DataType:
        if self.element is not None:
            return ArrayType(self.element.type())
        if self.fields is not None:
            return StructType([StructField(name, inner.type()) for name, inner in self.fields.items()])
        return BooleanType() if self.boolean else StringType()

    def below(self, name: str = "") -> Iterator[tuple[str, _ExpectedValue]]:
        """(name, value) of this value and of all inside it; an element has the name of its array with `[]`."""
        yield name, self
        for inner, value in (self.fields or {}).items():
            yield from value.below(inner)
        if self.element is not None:
            yield from self.element.below(name + "[]")


@dataclass
class ExpectedFields:
    """The fields of one call that its query uses."""

    _root: _ExpectedValue = field(default_factory=lambda: _ExpectedValue(fields={}))

    @property
    def schema(self) -> StructType:
        """The fields, with types that let the query pass."""
        found = self._root.type()
        assert isinstance(found, StructType)
        return found

    def take_in(self, problem: AnalysisException, public: StructType) -> bool:
        """Add what an error says to be missing in a struct of the type `public`; whether it says so."""
        said: dict[str, Any] = dict(problem.getMessageParameters() or {})
        condition = problem.getCondition()
        if (condition or "").startswith(_NO_COLUMN):
            return self.add([parts[-1] for parts in _quoted_names(said.get("objectName", ""))])
        if condition == _NO_FIELD:
            name, beside = (list(map(".".join, _quoted_names(said.get(key, "")))) for key in ("fieldName", "fields"))
            return self._add_field("".join(name), beside, public)
        if condition == _NO_EXTRACT:
            return self._give_type(said.get("base", ""))
        if condition == _WRONG_INPUT and "ARRAY" in said.get("requiredType", ""):
            return self._give_type(said.get("inputSql", ""), array=True)
        if condition == _NOT_BOOLEAN:
            return self._give_type(said.get("filter", ""), boolean=True)
        if condition == _NO_INDEX and said.get("extraction", "").strip('"').isdigit():
            return self._give_empty_struct_array()
        return False

    def add(self, names: Sequence[str]) -> bool:
        """Add outermost fields; whether one of them is new."""
        assert self._root.fields is not None
        new = [name for name in names if name.lower() not in {known.lower() for known in self._root.fields}]
        self._root.fields.update((name, _ExpectedValue()) for name in new)
        return bool(new)

    def _add_field(self, name: str, beside: list[str], public: StructType) -> bool:
        root = beside == public.fieldNames()
        objects = [value.fields for _, value in self._root.below() if value.fields is not None]
        targets = [self._root.fields] if root else [fields for fields in objects if list(fields) == beside]
        new = [fields for fields in targets if name and fields is not None and name not in fields]
        for fields in new:
            fields[name] = _ExpectedValue()
        return bool(new)

    def _give_type(self, expression: str, *, array: bool = False, boolean: bool = False) -> bool:
        """Make an object, an array or a truth value of the value that an expression such as `doc.items[0]` names, which is text so far."""
        match = _LAST_NAME.search(expression.strip('"'))
        wanted = "" if match is None else match[1] + "[]" * match[2].count("[")
        values = [value for name, value in self._root.below() if name.lower() == wanted.lower() and value.is_text]
        elements = [value for name, value in self._root.below() if name.endswith("[]") and value.is_text]
        found = values or (elements if len(elements) == 1 else [])  # an element has another name where the array was exploded
        for value in found:
            value.boolean = boolean
            value.fields, value.element = (None, _ExpectedValue()) if array else (None if boolean else {}, None)
        return bool(found)

    def _give_empty_struct_array(self) -> bool:
        """A number as the name of a field: what was taken for an object is an array."""
        found = [value for _, value in self._root.below() if value.fields == {} and value is not self._root]
        for value in found:
            value.fields, value.element = None, _ExpectedValue()
        return bool(found)


@dataclass(frozen=True)
class JsonSchemas:
    """The schemas of the flows' calls of `from_json`, by their folders. `expected`: fields that queries use, of those not known yet."""

    storage: Storage
    expected: dict[str, ExpectedFields] = field(default_factory=dict)

    def place(self, flow: Flow, key: str) -> str:
        """Folder of the schema log of a flow's call with this `schemaLocationKey`."""
        return str(self.storage.json_schema(flow.target, flow.name, key))


def _quoted_names(text: str) -> list[list[str]]:
    """The names in a list such as "`id`, `a`.`b`", each by its parts. A dot inside a name makes parts, too, in Spark's words."""
    return [[part.replace("``", "`") for part in _QUOTED_PART.findall(name)] for name in _QUOTED_NAME.findall(text)]


__all__ = ["ExpectedFields", "Found", "Growth", "JsonSchemas", "call_of", "in_text", "is_inferring", "without_growth"]
