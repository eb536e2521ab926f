"""A table as it is wanted: columns, partitions, properties, and the record of what its definition declares about it.

A definition comes in; out come the properties, comment and NOT NULL columns that a stored table gets, where others may have set some too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import types as T


@dataclass(frozen=True)
class IdentityColumn:
    """A column whose numbers are `start`, `start + step`, …; `always`: queries do not return it, else a number of theirs is kept."""

    name: str
    start: int
    step: int
    always: bool

    @property
    def key(self) -> str:
        return self.name.lower()

    def after(self, number: int) -> int:
        """The first number of the column that lies behind `number`, in the direction of its steps."""
        return self.start + (max((number - self.start) // self.step, -1) + 1) * self.step


@dataclass(frozen=True)
class TableSpec:
    """How a table is made: its columns and everything that is declared about it.

    `declared`: what the definition says, of which the table keeps a record; None where a caller changes a stored table in another way.
    `identities`: columns whose numbers its rows get when they are written.
    """

    schema: T.StructType
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    comment: str | None = None
    declared: Declaration | None = None
    identities: tuple[IdentityColumn, ...] = ()


CHANGE_FEED = "delta.enableChangeDataFeed"
"""Table property: Delta keeps which rows each commit changed."""
EPOCH = "lakelet.epoch"
"""Table property: the reset epoch its rows belong to. A spec with a newer one replaces the rows in its first commit."""


RECORD = "lakelet.declared"
"""Table property: the description that the table was given last by its pipeline, as JSON."""
_COMMENT = "comment"

Path = tuple[str, ...]


@dataclass(frozen=True)
class Declaration:
    """Everything that a definition says about a table besides its partition columns.

    columns: comments by dotted path; not_null: dotted paths of columns and nested fields.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    cluster_by: Sequence[str] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str], comment: str | None, schema: T.StructType | None, cluster_by: Sequence[str]) -> Declaration:
        """What is declared; `schema`: as declared, None for columns that are inferred."""
        fields = list(_fields(schema)) if schema is not None else []
        comments = {_dotted(path): f.metadata[_COMMENT] for path, f in fields if (f.metadata or {}).get(_COMMENT)}
        return cls(properties, comment or None, comments, [_dotted(path) for path, f in fields if not f.nullable], list(cluster_by))

    def record(self) -> dict[str, str]:
        """The property that keeps it; none where nothing is declared."""
        kept: dict[str, object] = {"properties": dict(self.properties), _COMMENT: self.comment, "columns": dict(self.columns)}
        kept |= {"not_null": list(self.not_null), "cluster_by": list(self.cluster_by)}
        return {RECORD: json.dumps(kept, sort_keys=True)} if any(kept.values()) else {}

    @classmethod
    def recorded(cls, properties: Mapping[str, str] | None) -> Declaration | None:
        """The record among a table's properties; None where there is none, as in tables of earlier versions."""
        text = (properties or {}).get(RECORD)
        return None if text is None else cls(**json.loads(text))


def properties(current: Mapping[str, str], wanted: Mapping[str, str], now: Declaration | None) -> dict[str, str]:
    """The properties of a table that has `current` and is given `wanted`, with the record of `now`.

    What was declared once and is declared no more goes; a property that was set by hand to another value since then stays. `now` None:
    the caller does not speak for the definition, and nothing goes.
    """
    before = Declaration.recorded(current)
    gone = {} if before is None or now is None else {k: v for k, v in before.properties.items() if k not in wanted}
    found = {**{k: v for k, v in current.items() if gone.get(k) != v}, **wanted}
    if now is not None:
        found.pop(RECORD, None)
        found |= now.record()
    return found


def comment(current: str | None, before: Declaration | None, now: Declaration | None, given: str | None) -> str | None:
    """The comment of a table that has `current` and is given `given`."""
    if given or now is None:
        return given or None
    return None if before is not None and before.comment == current else current


def commented(schema: T.StructType, before: Declaration | None, now: Declaration | None) -> T.StructType:
    """The columns with the comments that are declared, and without those that were."""
    if now is None or not (now.columns or (before is not None and before.columns)):
        return schema

    def change(path: Path, found: T.StructField) -> T.StructField:
        name, own = _dotted(path), (found.metadata or {}).get(_COMMENT)
        text = now.columns.get(name, None if before is not None and before.columns.get(name) == own else own)
        if text == own:
            return found
        rest = {k: v for k, v in (found.metadata or {}).items() if k != _COMMENT}
        return T.StructField(found.name, found.dataType, found.nullable, rest | ({_COMMENT: text} if text else {}))

    return _mapped(schema, change)


def required(schema: T.StructType, before: Declaration | None, now: Declaration | None, *, whole: bool = False) -> T.StructType:
    """The columns with NOT NULL where that is declared, and without it where it was.

    `whole`: of fields only those whose structs are declared so too; others are NULL with their struct, which not every reader takes.
    """
    loosened = set() if before is None or now is None else set(before.not_null) - set(now.not_null)
    if now is None or not (now.not_null or loosened):
        return schema

    def change(path: Path, found: T.StructField) -> T.StructField:
        above = [_dotted(path[:depth]) for depth in range(1, len(path))] if whole else []
        declared = all(name in now.not_null for name in (*above, _dotted(path)))
        nullable = not declared and (found.nullable or _dotted(path) in loosened)
        return T.StructField(found.name, found.dataType, nullable, found.metadata)

    return _mapped(schema, change)


def tightened(before: T.StructType, after: T.StructType) -> list[Path]:
    """Columns and nested fields that `after` lets be NULL no more."""
    nullable = {_dotted(path): f.nullable for path, f in _fields(before)}
    return [path for path, f in _fields(after) if not f.nullable and nullable.get(_dotted(path), True)]


def _fields(schema: T.DataType, above: Path = ()) -> Iterator[tuple[Path, T.StructField]]:
    """Columns and fields of structs, with their paths; what lies in arrays and maps has no path that Delta could enforce."""
    for found in schema.fields if isinstance(schema, T.StructType) else ():
        yield (*above, found.name), found
        yield from _fields(found.dataType, (*above, found.name))


def _mapped(schema: T.StructType, change: Callable[[Path, T.StructField], T.StructField], above: Path = ()) -> T.StructType:
    fields = []
    for found in schema.fields:
        path = (*above, found.name)
        if isinstance(found.dataType, T.StructType):
            found = T.StructField(found.name, _mapped(found.dataType, change, path), found.nullable, found.metadata)
        fields.append(change(path, found))
    return T.StructType(fields)


def _dotted(path: Path) -> str:
    """The name that a path has in the record, where case does not count."""
    return ".".join(part.replace("\\", "\\\\").replace(".", "\\.") for part in path).lower()


def unenforceable(schema: T.DataType, above: str = "", *, inside: bool = False) -> Iterator[str]:
    """Dotted paths of the fields that are NOT NULL inside of arrays and maps, where Delta enforces nothing (TP-23)."""
    if isinstance(schema, T.StructType):
        for found in schema.fields:
            path = f"{above}.{found.name}" if above else found.name
            if inside and not found.nullable:
                yield path
            yield from unenforceable(found.dataType, path, inside=inside)
    elif isinstance(schema, T.ArrayType):
        yield from unenforceable(schema.elementType, f"{above}.element", inside=True)
    elif isinstance(schema, T.MapType):
        yield from unenforceable(schema.keyType, f"{above}.key", inside=True)
        yield from unenforceable(schema.valueType, f"{above}.value", inside=True)


def paths(schema: T.StructType, names: Sequence[str]) -> list[Path]:
    """The paths in `schema` that a record names."""
    return [path for path, _ in _fields(schema) if _dotted(path) in names]
