"""Inference over records and files: vectorised per block, record by record where a block does not fit (FF-9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.json.arrow_parser import BlockParser
from lakelet.autoloader.formats.json.inferred_types import (
    NULL,
    STRING,
    Array,
    Struct,
    Type,
    TypeRules,
    UncertainType,
    finish,
    fold_spellings,
    from_arrow,
    merge,
    to_spark,
    type_of,
)
from lakelet.autoloader.formats.json.records import RecordLayout, document_records, separated_records
from lakelet.autoloader.formats.json.rows import RowReader, RowRules, readable_start, wider_type
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, Obj, first_value, objects_of, records_of
from lakelet.autoloader.formats.text_blocks import has_lone_cr, read_blocks
from lakelet.autoloader.schema_growth import grow


class RecordInference:
    """Collects the types of records.

    Args:
        rules: how the records are read; their typing says how values get their types.
        known: schema whose columns are left out; then only what it does not know is collected (evolution), and the wider types of
            numbers that it does not take, where the mode widens types.
    """

    def __init__(self, rules: RowRules, *, known: Any | None = None) -> None:
        self._rules, self._known = rules, known
        self._typing = rules.typing
        self._prune = None if known is None else RowReader([(f.name, f.dataType) for f in known.fields], rules).unknown_part
        self._parser = BlockParser(None)
        self._found: Type = Struct()
        self._wide = known

    @property
    def found(self) -> Type:
        """The type of everything collected, unfinished: it can be merged with that of other records."""
        return self._found

    def result(self) -> Any:
        """The finished Spark schema of everything collected; without columns when there was nothing."""
        kind = self._found
        if self._typing.all_text and isinstance(kind, Struct):
            names = fold_spellings((name, STRING) for name, inner in kind.fields.items() if name and self._has_content(inner))
            found = to_spark(Struct(dict.fromkeys(sorted(names), STRING)))
        else:
            found = schema_of(self._found, self._typing)
        return found if self._wide is None or self._wide is self._known else grow(self._wide, found)[0]

    def add_block(self, block: bytes) -> None:
        """Take in a block of lines, one record each. Broken ones say nothing about the schema."""
        singly = (self._rules.widens and self._known is not None) or not self._rules.syntax.non_numeric
        if singly or (self._rules.cr_ends_line and has_lone_cr(block)):
            self.add_lines(block.split(b"\n"))
            return
        tables, lines = self._parser.pieces(block)
        kinds = [self._from_table(table) for table in tables]
        if None in kinds:
            self.add_lines(block.split(b"\n"))
            return
        for kind in kinds:
            self._add_type(kind if kind is not None else Struct())
        self.add_lines(lines)

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Take in the records of single lines."""
        for line in lines:
            self.add_line(line)

    def add_line(self, line: bytes) -> None:
        """Take in the text of one record, line ends inside included."""
        for record in self._records_of_line(line):
            part = record if self._prune is None else self._prune(record)
            kind = type_of(part, self._typing)
            if isinstance(kind, Struct):
                self._add_type(kind if self._known is None else unknown_types(kind, self._known, fold=not self._rules.case_sensitive))
            if self._rules.widens and self._wide is not None:
                self._wide = widened(self._wide, part, self._rules)

    def _has_content(self, kind: Type) -> bool:
        return not self._typing.drop_all_null or finish(kind, self._typing) is not None

    def _add_type(self, kind: Type) -> None:
        self._found = merge(self._found, kind)

    def _from_table(self, table: Any | None) -> Type | None:
        if table is None:
            return None
        try:
            kind = Struct({name: self._column_type(table.column(name)) for name in table.column_names})
        except UncertainType:
            return None
        return kind if self._known is None else unknown_types(kind, self._known, fold=not self._rules.case_sensitive)

    def _column_type(self, column: Any) -> Type:
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return from_arrow(array, self._typing)

    def _records_of_line(self, line: bytes) -> list[Obj]:
        if not line.strip():
            return []
        if self._rules.cr_ends_line and b"\r" in line.strip(b"\r"):
            return [record for part in line.split(b"\r") for record in self._records_of_line(part)]
        try:
            node, _ = first_value(readable_start(line)[0], self._rules.syntax)
            return list(objects_of(node) if self._known is None else records_of(node))
        except BrokenText:
            return []


class FileInference(RecordInference):
    """Collects the types of records, file after file.

    Args:
        files: file system of the paths.
        layout: how files are cut into records.
        rules, known: see `RecordInference`.
    """

    def __init__(self, files: Files, rules: RowRules, layout: RecordLayout, *, known: Any | None = None) -> None:
        super().__init__(rules, known=known)
        self._files, self._layout = files, layout

    def add_file(self, path: str) -> None:
        """Take in the records of one file."""
        if self._layout.multi_line:
            for record in document_records(self._files, path, self._layout, self._rules.syntax):
                self.add_line(record.text)
        elif not self._layout.is_lines:
            self._add_separated(path, self._layout)
        else:
            for number, block in enumerate(read_blocks(self._files, path)):
                if not number and not (layout := self._layout.of_file(block[:4])).is_lines:
                    self._add_separated(path, layout)
                    return
                self.add_block(block)

    def _add_separated(self, path: str, layout: RecordLayout) -> None:
        for lines in separated_records(self._files, path, layout):
            self.add_lines(lines)


def schema_of(found: Type, typing: TypeRules) -> Any:
    """The finished Spark schema of the type of records; without columns where they have none."""
    kind = finish(found, typing)
    return to_spark(kind if kind is not None else Struct())


def widened(known: Any, value: Any, rules: RowRules, path: str = "") -> Any:
    """A type in which the numbers of a value that it does not take have their wider types."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    kind = known.typeName()
    if kind == "struct" and isinstance(value, Obj):
        found = dict(value) if rules.case_sensitive else {name.lower(): inner for name, inner in value}
        fields = []
        for field in known.fields:
            name = field.name if rules.case_sensitive else field.name.lower()
            inner = widened(field.dataType, found[name], rules, f"{path}{field.name}.") if name in found else field.dataType
            fields.append(field if inner is field.dataType else StructField(field.name, inner, field.nullable, field.metadata))
        return known if all(a is b for a, b in zip(fields, known.fields, strict=True)) else StructType(fields)
    if kind == "array" and isinstance(value, list) and not isinstance(value, Obj):
        element = known.elementType
        for item in value:
            element = widened(element, item, rules, path + "element.")
        return known if element is known.elementType else ArrayType(element, known.containsNull)
    wide = wider_type(value, known, rules, path.rstrip("."))
    return known if wide is None else wide


def unknown_types(kind: Struct, known: Any, *, fold: bool = False) -> Struct:
    """The part of a type that a Spark struct type does not know; names that differ by case only count as known.

    `fold`: what is inside them then counts as inside the known field (`readerCaseSensitive` false).
    """
    by_name = {(field.name.lower() if fold else field.name): field for field in known.fields}
    lower = {field.name.lower() for field in known.fields}
    fields: dict[str, Type] = {}
    for name, inner in kind.fields.items():
        field = by_name.get(name.lower() if fold else name)
        if field is not None:
            part = _unknown_inside(inner, field.dataType, fold)
            if part is not None:
                fields[field.name] = merge(fields.get(field.name, NULL), part)
        elif name.lower() not in lower:
            fields[name] = inner
    return Struct(fields)


def _unknown_inside(kind: Type, known: Any, fold: bool) -> Type | None:
    name = known.typeName()
    if name == "struct" and isinstance(kind, Struct):
        part = unknown_types(kind, known, fold=fold)
        return part if part.fields else None
    if name == "array" and isinstance(kind, Array):
        element = _unknown_inside(kind.element, known.elementType, fold)
        return None if element is None else Array(element)
    return None
