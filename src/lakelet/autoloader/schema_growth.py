"""Growing a schema: new columns and new fields of structs at the end, existing types untouched (FS-23)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelet.storage.delta.schemas import wider as wider

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_MARK = "lakelet-source:"
_NOTE = re.compile(re.escape(_MARK) + r"(\{.*?\})" + re.escape(":end"), re.DOTALL)
_BLOB_LIMIT = 4000
_MAX_CAUSES = 20


@dataclass(frozen=True)
class UnknownFieldNote:
    """What a failed reader reports to the driver: whose state, which planned batches, which file brought unknown fields."""

    state: str
    after: int
    up_to: int
    file: str


class UnknownFieldException(Exception):
    """A record has fields that the schema does not know. The text carries the vendor's phrase and our note (AL-6)."""

    def __init__(
        self,
        blob: str,
        *,
        retry: bool,
        line: int,
        note: UnknownFieldNote,
        kind: str = "NEW_FIELDS_IN_RECORD_WITH_FILE_PATH",
        unit: str = "line",
    ) -> None:
        shown = blob if len(blob) <= _BLOB_LIMIT else blob[:_BLOB_LIMIT] + "…"
        what = "unknown fields and type changes" if "WIDENED" in kind else "unknown fields"
        location = f"{note.file}, {unit} {line}" if line else note.file
        super().__init__(
            f"[UNKNOWN_FIELD_EXCEPTION.{kind}] Encountered {what} during parsing: {shown}, "
            f"which can be fixed by an automatic retry: {str(retry).lower()}\n"
            f"{location}. UnknownFieldException: Encountered unknown field(s) during parsing. SQLSTATE: KD003\n"
            f"{_MARK}{json.dumps(asdict(note))}:end"
        )


def note_of(failure: BaseException) -> UnknownFieldNote | None:
    """The note inside a failure that passed through Spark; None when it is another failure or cannot be retried."""
    for text in texts_of(failure):
        found = _NOTE.search(text)
        if found is not None and "fixed by an automatic retry: true" in text:
            try:
                return UnknownFieldNote(**json.loads(found[1]))
            except (ValueError, TypeError):
                return None
    return None


def texts_of(failure: BaseException) -> Iterator[str]:
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


Grown: TypeAlias = "tuple[StructType, tuple[tuple[str, str], ...], tuple[tuple[str, str, str], ...]]"


def grow(known: StructType, seen: StructType, *, unless_hinted: frozenset[str] | None = None) -> Grown:
    """`known` with what only `seen` has; the added paths with their types; the widened ones with both types.

    Names that differ by case only are not new. Types grow only where `unless_hinted` is given: the lower-case paths of columns and fields
    whose types were hinted and stay as they are (FS-29).
    """
    growth = _Growth(unless_hinted)
    return growth.struct(known, seen, ""), tuple(growth.added), tuple(growth.widened)


def is_hinted(path: str, hinted: frozenset[str]) -> bool:
    """Whether a dotted path, or something above it, has a hinted type."""
    parts = path.lower().split(".")
    return any(".".join(parts[: i + 1]) in hinted for i in range(len(parts)))


class _Growth:
    def __init__(self, unless_hinted: frozenset[str] | None) -> None:
        self._fixed = unless_hinted
        self.added: list[tuple[str, str]] = []
        self.widened: list[tuple[str, str, str]] = []

    def struct(self, known: Any, seen: Any, prefix: str) -> Any:
        from pyspark.sql.types import StructField, StructType

        fresh = {field.name: field for field in seen.fields}
        fields = []
        for field in known.fields:
            other = fresh.get(field.name)
            kind = field.dataType if other is None else self._grown_type(field.dataType, other.dataType, f"{prefix}{field.name}")
            fields.append(field if kind is field.dataType else StructField(field.name, kind, field.nullable, field.metadata))
        taken = {field.name.lower() for field in known.fields}
        for field in seen.fields:
            if field.name.lower() not in taken:
                fields.append(field)
                self.added.append((f"{prefix}{field.name}", field.dataType.simpleString()))
        grown = len(fields) > len(known.fields) or any(a is not b for a, b in zip(fields, known.fields, strict=False))
        return StructType(fields) if grown else known

    def _grown_type(self, known: Any, seen: Any, path: str) -> Any:
        from pyspark.sql.types import ArrayType, StructType

        if isinstance(known, StructType) and isinstance(seen, StructType):
            return self.struct(known, seen, path + ".")
        if isinstance(known, ArrayType) and isinstance(seen, ArrayType):
            element = self._grown_type(known.elementType, seen.elementType, path + ".element")
            return known if element is known.elementType else ArrayType(element, known.containsNull)
        if self._fixed is None or is_hinted(path, self._fixed):
            return known
        wide = wider(known, seen)
        if wide is None or wide == known:
            return known
        self.widened.append((path, known.simpleString(), wide.simpleString()))
        return wide
