"""Growing a schema: new columns and new fields of structs at the end, existing types untouched (spec 3.1, 3.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_MARK = "lakelet-source:"
_NOTE = re.compile(re.escape(_MARK) + r"(\{.*?\})" + re.escape(":end"), re.DOTALL)
_BLOB_LIMIT = 4000
_MAX_CAUSES = 20


@dataclass(frozen=True)
class UnknownFieldNote:
    """What a failed reader tells the driver: whose state, which planned batches, which file brought unknown fields."""

    state: str
    after: int
    up_to: int
    file: str


class UnknownFieldException(Exception):
    """A record has fields that the schema does not know. The text carries the vendor's phrase and our note (spec 7)."""

    def __init__(self, blob: str, *, retry: bool, line: int, note: UnknownFieldNote) -> None:
        shown = blob if len(blob) <= _BLOB_LIMIT else blob[:_BLOB_LIMIT] + "…"
        super().__init__(
            "[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_RECORD_WITH_FILE_PATH] Encountered unknown fields during parsing: "
            f"{shown}, which can be fixed by an automatic retry: {str(retry).lower()}\n"
            f"{note.file}, line {line}. UnknownFieldException: Encountered unknown field(s) during parsing. SQLSTATE: KD003\n"
            f"{_MARK}{json.dumps(asdict(note))}:end"
        )


def note_of(failure: BaseException) -> UnknownFieldNote | None:
    """The note inside a failure that passed through Spark; None when it is another failure or cannot be retried."""
    for text in _texts(failure):
        found = _NOTE.search(text)
        if found is not None and "fixed by an automatic retry: true" in text:
            try:
                return UnknownFieldNote(**json.loads(found[1]))
            except (ValueError, TypeError):
                return None
    return None


def _texts(failure: BaseException) -> Iterator[str]:
    """Messages of an exception and of its causes, on the Python and on the Java side.

    Spark's own text of a failed query stops before the worker's error when the failed step is a write.
    """
    waiting: list[Any] = [failure]
    seen: set[int] = set()
    while waiting:
        error = waiting.pop(0)
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield str(error)
        waiting += [getattr(error, name, None) for name in ("__cause__", "__context__", "_cause")]
        java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        for _ in range(_MAX_CAUSES):
            if java is None:
                break
            yield str(java.getMessage())
            java = java.getCause()


def grow(known: StructType, seen: StructType) -> tuple[StructType, tuple[tuple[str, str], ...]]:
    """`known` with what only `seen` has, and the added paths with their types. Names that differ by case only are not new."""
    added: list[tuple[str, str]] = []
    return _grow_struct(known, seen, "", added), tuple(added)


def _grow_struct(known: Any, seen: Any, prefix: str, added: list[tuple[str, str]]) -> Any:
    from pyspark.sql.types import StructField, StructType

    fresh = {field.name: field for field in seen.fields}
    fields = []
    for field in known.fields:
        other = fresh.get(field.name)
        kind = field.dataType if other is None else _grow_type(field.dataType, other.dataType, f"{prefix}{field.name}", added)
        fields.append(field if kind is field.dataType else StructField(field.name, kind, field.nullable, field.metadata))
    taken = {field.name.lower() for field in known.fields}
    for field in seen.fields:
        if field.name.lower() not in taken:
            fields.append(field)
            added.append((f"{prefix}{field.name}", field.dataType.simpleString()))
    grown = len(fields) > len(known.fields) or any(a is not b for a, b in zip(fields, known.fields, strict=False))
    return StructType(fields) if grown else known


def _grow_type(known: Any, seen: Any, path: str, added: list[tuple[str, str]]) -> Any:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(known, StructType) and isinstance(seen, StructType):
        return _grow_struct(known, seen, path + ".", added)
    if isinstance(known, ArrayType) and isinstance(seen, ArrayType):
        element = _grow_type(known.elementType, seen.elementType, path + ".element", added)
        return known if element is known.elementType else ArrayType(element, known.containsNull)
    return known
