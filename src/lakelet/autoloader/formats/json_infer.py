"""Inference over files: vectorised per block, record by record where a block does not fit (spec 2.1, 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lakelet.autoloader.files import Files
from lakelet.autoloader.formats.json_parse import BlockParser
from lakelet.autoloader.formats.json_text import BrokenText, Obj, parse, records_of
from lakelet.autoloader.infer import STRING, Array, Struct, Type, Uncertain, finish, fold_spellings, from_arrow, merge, to_spark, type_of
from lakelet.autoloader.lines import read_blocks

Prune = Callable[[Obj], Obj]


class FileInference:
    """Collects the types of records, file after file.

    Args:
        files: file system of the paths.
        all_text: every column is STRING, only names count (no `inferColumnTypes`).
        known: schema whose columns are left out; then only what it does not know is collected (evolution).
        prune: the part of a record that `known` does not know; goes with `known`.
    """

    def __init__(self, files: Files, *, all_text: bool = False, known: Any | None = None, prune: Prune | None = None) -> None:
        self._files, self._all_text, self._known, self._prune = files, all_text, known, prune
        self._parser = BlockParser(None)
        self._found: Type = Struct()

    def add_file(self, path: str) -> None:
        """Take in the records of one file. Broken lines say nothing about the schema."""
        for block in read_blocks(self._files, path):
            tables, lines = self._parser.pieces(block)
            kinds = [self._from_table(table) for table in tables]
            if None in kinds:
                self._add_lines(block.split(b"\n"))
                continue
            for kind in kinds:
                self._add(kind if kind is not None else Struct())
            self._add_lines(lines)

    def result(self) -> Any:
        """The finished Spark schema of everything collected; without columns when there was nothing."""
        kind: Type | None = self._found
        if self._all_text and isinstance(kind, Struct):
            names = fold_spellings((name, STRING) for name in kind.fields if name)
            kind = Struct(dict.fromkeys(sorted(names), STRING))
        else:
            kind = finish(self._found)
        return to_spark(kind if kind is not None else Struct())

    def _add(self, kind: Type) -> None:
        self._found = merge(self._found, kind)

    def _from_table(self, table: Any | None) -> Type | None:
        if table is None:
            return None
        try:
            kind = Struct({name: _column_type(table.column(name)) for name in table.column_names})
        except Uncertain:
            return None
        return kind if self._known is None else unknown_types(kind, self._known)

    def _add_lines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            for record in _records(line):
                part = record if self._prune is None else self._prune(record)
                kind = type_of(part)
                if isinstance(kind, Struct):
                    self._add(kind)


def _column_type(column: Any) -> Type:
    return from_arrow(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())


def _records(line: bytes) -> list[Obj]:
    if not line.strip():
        return []
    try:
        return list(records_of(parse(line.decode("utf-8"))))
    except (UnicodeDecodeError, BrokenText):
        return [record for part in line.split(b"\r") for record in _records(part)] if b"\r" in line.strip(b"\r") else []


def unknown_types(kind: Struct, known: Any) -> Struct:
    """The part of a type that a Spark struct type does not know; names that differ by case only count as known."""
    by_name = {field.name: field.dataType for field in known.fields}
    lower = {name.lower() for name in by_name}
    fields: dict[str, Type] = {}
    for name, inner in kind.fields.items():
        if name in by_name:
            part = _unknown_inside(inner, by_name[name])
            if part is not None:
                fields[name] = part
        elif name.lower() not in lower:
            fields[name] = inner
    return Struct(fields)


def _unknown_inside(kind: Type, known: Any) -> Type | None:
    name = known.typeName()
    if name == "struct" and isinstance(kind, Struct):
        part = unknown_types(kind, known)
        return part if part.fields else None
    if name == "array" and isinstance(kind, Array):
        element = _unknown_inside(kind.element, known.elementType)
        return None if element is None else Array(element)
    return None
