"""The columns of CSV files: the union of their headers in the order of first sight, with the types of their values (FS-9, FS-23)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.csv.blocks import BlockSplitter
from lakelet.autoloader.formats.csv.columns import ColumnReader
from lakelet.autoloader.formats.csv.rules import CsvRules, rules_of
from lakelet.autoloader.formats.csv.stream import CsvFile
from lakelet.autoloader.formats.csv.types import STRING, ColumnTypes, TypeFinder, to_spark
from lakelet.autoloader.formats.csv.values import reader_of, supported
from lakelet.autoloader.types.growth import is_hinted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.spec import ReaderSpec


class _Column:
    """One column of the result; `known`: its type in the schema that a batch did not fit, when only what does not fit it counts."""

    def __init__(self, name: str, finder: TypeFinder, rules: CsvRules, known: Any | None) -> None:
        self.name, self.known = name, known
        self.types = ColumnTypes(finder, every=known is not None)
        if known is not None:
            from pyspark.sql.pandas.types import to_arrow_type

            self._read = reader_of(known, rules)
            self._fits = ColumnReader(known, to_arrow_type(known, timezone="UTC"), rules)

    def add_column(self, texts: Any) -> None:
        if self.known is None:
            self.types.add_column(texts)
            return
        _, misfits = self._fits.convert(texts)
        if misfits is not None:
            self.add_texts(texts.filter(misfits).unique().to_pylist())

    def add_texts(self, texts: Sequence[str]) -> None:
        self.types.add_texts(texts if self.known is None else [text for text in texts if self._read(text) is None])

    def result(self) -> Any:
        return self.types.widened(self.known) if self.known is not None else to_spark(self.types.type() or STRING)


class CsvInference:
    """Collects columns, file after file; see `Format.infer` for `known`."""

    def __init__(self, spec: ReaderSpec, files: Files, known: StructType | None) -> None:
        self._spec, self._files, self._rules = spec, files, rules_of(spec)
        self._finder = TypeFinder(self._rules, decimals=spec.widens)
        self._columns: dict[str, _Column] = {}
        self._known = None if known is None else {field.name.lower(): field for field in known.fields}

    def add_file(self, path: str) -> None:
        file = CsvFile(self._files, path, self._rules)
        columns = [self._column(name) for name in file.head.names]
        wanted = [at for at, column in enumerate(columns) if column is not None]
        fresh = [column for column in columns if column is not None and column.name.lower() not in self._columns]
        if self._known is not None and not (wanted and self._has_rows(file, len(columns))):
            return
        self._columns |= {column.name.lower(): column for column in fresh}
        if not self._spec.infer_types:
            return
        splitter = BlockSplitter(self._rules, len(columns), wanted)
        for piece in file.pieces(splitter):
            for texts in piece.split.texts:
                for at in wanted:
                    self._of(columns[at]).add_column(texts.columns[at])
            for record in piece.split.records:
                for at, token in enumerate((record.tokens or ())[: len(columns)]):
                    column, text = columns[at], self._rules.value(token)
                    if column is not None and text is not None:
                        column.add_texts([text])
            if all(self._of(columns[at]).types.done for at in wanted):
                return

    def result(self) -> StructType:
        from pyspark.sql.types import StructField, StructType

        fields = []
        for column in self._columns.values():
            kind = column.result()
            if column.known is None or kind != column.known:
                fields.append(StructField(column.name, kind, True))
        return StructType(fields)

    @staticmethod
    def _of(column: _Column | None) -> _Column:
        assert column is not None
        return column

    def _column(self, name: str) -> _Column | None:
        """The column for a name in a header; None where it is of no interest."""
        there = self._columns.get(name.lower())
        if there is not None:
            return there if self._known is None or there.known is None or there.name == name else None
        if self._known is None:
            return _Column(name, self._finder, self._rules, None)
        field = self._known.get(name.lower())
        if field is None:
            return None if name == self._spec.rescued_column else _Column(name, self._finder, self._rules, None)
        same = field.name == name or not self._rules.case_sensitive
        hinted = is_hinted(field.name, frozenset(self._spec.hinted))
        if not (self._spec.widens and self._spec.infer_types and same and not hinted and supported(field.dataType)):
            return None
        return _Column(field.name, self._finder, self._rules, field.dataType)

    def _has_rows(self, file: CsvFile, width: int) -> bool:
        splitter = BlockSplitter(self._rules, width, [0])
        return any(piece.split.records or piece.split.texts for piece in file.pieces(splitter))


__all__ = ["CsvInference"]
