"""The fields that a query takes from a `from_json` whose schema is not known yet (JC-6).

Before the first texts are seen, a query that uses fields of them does not analyse. Spark's errors name these fields one after the other;
each is put into the schema with a type that lets the query pass, and the query is analysed again. No row is ever written with these types:
the first texts bring the schema, and the query is built again with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql.types import ArrayType, BooleanType, DataType, StringType, StructField, StructType

from lakelet.language.model import Flow
from lakelet.storage.root import Storage

_NO_FIELD, _NO_EXTRACT, _NO_INDEX = "FIELD_NOT_FOUND", "INVALID_EXTRACT_BASE_FIELD_TYPE", "INVALID_EXTRACT_FIELD_TYPE"
_NO_COLUMN = "UNRESOLVED_COLUMN"  # of `doc.*`
_NOT_BOOLEAN = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
_WRONG_INPUT = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
_PART = re.compile(r"`((?:[^`]|``)*)`")
_NAME = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")
_LAST_NAME = re.compile(r"`?([^`.\[\]]+)`?((?:\[[^\]]*\])*)$")


@dataclass
class _Field:
    """A value in a text: text, unless `fields` (an object) or `element` (an array) is there, or it is `boolean`."""

    fields: dict[str, _Field] | None = None
    element: _Field | None = None
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

    def below(self, name: str = "") -> Iterator[tuple[str, _Field]]:
        """(name, value) of this value and of all inside it; an element has the name of its array with `[]`."""
        yield name, self
        for inner, value in (self.fields or {}).items():
            yield from value.below(inner)
        if self.element is not None:
            yield from self.element.below(name + "[]")


@dataclass
class ExpectedFields:
    """The fields of one call that its query uses."""

    _root: _Field = field(default_factory=lambda: _Field(fields={}))

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
            return self.add([parts[-1] for parts in _names(said.get("objectName", ""))])
        if condition == _NO_FIELD:
            name, beside = (list(map(".".join, _names(said.get(key, "")))) for key in ("fieldName", "fields"))
            return self._add("".join(name), beside, public)
        if condition == _NO_EXTRACT:
            return self._make(said.get("base", ""))
        if condition == _WRONG_INPUT and "ARRAY" in said.get("requiredType", ""):
            return self._make(said.get("inputSql", ""), array=True)
        if condition == _NOT_BOOLEAN:
            return self._make(said.get("filter", ""), boolean=True)
        if condition == _NO_INDEX and said.get("extraction", "").strip('"').isdigit():
            return self._make_empty_struct_array()
        return False

    def add(self, names: Sequence[str]) -> bool:
        """Add outermost fields; whether one of them is new."""
        assert self._root.fields is not None
        new = [name for name in names if name.lower() not in {known.lower() for known in self._root.fields}]
        self._root.fields.update((name, _Field()) for name in new)
        return bool(new)

    def _add(self, name: str, beside: list[str], public: StructType) -> bool:
        root = beside == public.fieldNames()
        objects = [value.fields for _, value in self._root.below() if value.fields is not None]
        targets = [self._root.fields] if root else [fields for fields in objects if list(fields) == beside]
        new = [fields for fields in targets if name and fields is not None and name not in fields]
        for fields in new:
            fields[name] = _Field()
        return bool(new)

    def _make(self, expression: str, *, array: bool = False, boolean: bool = False) -> bool:
        """Make an object, an array or a truth value of the value that an expression such as `doc.items[0]` names, which is text so far."""
        match = _LAST_NAME.search(expression.strip('"'))
        wanted = "" if match is None else match[1] + "[]" * match[2].count("[")
        values = [value for name, value in self._root.below() if name.lower() == wanted.lower() and value.is_text]
        elements = [value for name, value in self._root.below() if name.endswith("[]") and value.is_text]
        found = values or (elements if len(elements) == 1 else [])  # an element has another name where the array was exploded
        for value in found:
            value.boolean = boolean
            value.fields, value.element = (None, _Field()) if array else (None if boolean else {}, None)
        return bool(found)

    def _make_empty_struct_array(self) -> bool:
        """A number as the name of a field: what was taken for an object is an array."""
        found = [value for _, value in self._root.below() if value.fields == {} and value is not self._root]
        for value in found:
            value.fields, value.element = None, _Field()
        return bool(found)


@dataclass(frozen=True)
class JsonSchemas:
    """The schemas of the flows' calls of `from_json`, by their folders. `expected`: fields that queries use, of those not known yet."""

    storage: Storage
    expected: dict[str, ExpectedFields] = field(default_factory=dict)

    def place(self, flow: Flow, key: str) -> str:
        """Folder of the schema log of a flow's call with this `schemaLocationKey`."""
        return str(self.storage.json_schema(flow.target, flow.name, key))


def _names(text: str) -> list[list[str]]:
    """The names in a list such as "`id`, `a`.`b`", each by its parts. A dot inside a name makes parts, too, in Spark's words."""
    return [[part.replace("``", "`") for part in _PART.findall(name)] for name in _NAME.findall(text)]


__all__ = ["ExpectedFields", "JsonSchemas"]
