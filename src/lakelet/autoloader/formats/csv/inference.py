"""The columns of CSV files and the types of their texts, by Spark's rules for inference (FF-16, FS-9, FS-23).

Columns are the union of the headers in the order of first sight. A type is one of the words below or a `Decimal_`. The type of a column
does not depend on the order of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.csv.blocks import BlockSplitter
from lakelet.autoloader.formats.csv.file import CsvFile
from lakelet.autoloader.formats.csv.rules import BLANKS, CsvRules, rules_of
from lakelet.autoloader.formats.csv.values import ColumnReader, inferred_date_reader, ntz_reader, reader_of, supported, timestamp_reader
from lakelet.autoloader.formats.json.inferred_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal_,
    to_spark,
)
from lakelet.autoloader.schema_growth import is_hinted, wider

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import ReaderSpec


_MOMENTS = (DATE, TIMESTAMP_NTZ, TIMESTAMP)  # each takes the values of those before it
Type = str | Decimal_
_INTEGER = re.compile(r"[+-]?0*(\d+)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,9}))?", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|NaN|Infinity)", re.ASCII)
_AS_DECIMAL = {INT: Decimal_(10, 0), BIGINT: Decimal_(20, 0)}
_MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?"
_SHAPES: dict[Type, str] = {
    INT: r"^[+-]?\d{1,9}$",
    BIGINT: r"^-?\d{10,18}$",
    DOUBLE: r"^[+-]?\d+\.\d+$",
    DATE: r"^\d{4}-\d{2}-\d{2}$",
    TIMESTAMP_NTZ: rf"^{_MOMENT}$",
    TIMESTAMP: rf"^{_MOMENT}(?:Z|[+-]\d{{2}}:\d{{2}})?$",
    BOOLEAN: r"^(?:true|false|TRUE|FALSE|True|False)$",
}


class TypeFinder:
    """Types of single texts. `decimals`: fractions are decimals, not doubles (FS-29)."""

    def __init__(self, rules: CsvRules, *, decimals: bool) -> None:
        self.decimals = decimals
        self._date = inferred_date_reader(rules) if rules.prefer_date else None
        self._timestamp = timestamp_reader(rules)
        self._local = ntz_reader(rules) if rules.local else None
        self._doubles = {rules.nan, rules.infinity, rules.minus_infinity}
        self._plain_dates = rules.prefer_date and rules.date_format in (None, "yyyy-MM-dd")
        self._plain_timestamps = rules.timestamp_format is None and (rules.ntz_format is None or not rules.local)
        self.of = lru_cache(maxsize=65536)(self._of)

    def _of(self, text: str) -> Type:
        """The type of a text that is not NULL."""
        number = self._number_type(text)
        if number is not None:
            return number
        if self._date is not None and self._date(text) is not None:
            return DATE
        if self._local is not None and self._local(text) is not None:
            return TIMESTAMP_NTZ
        if self._timestamp(text) is not None:
            return TIMESTAMP
        return BOOLEAN if text.lower() in ("true", "false") else STRING

    def _number_type(self, text: str) -> Type | None:
        match = _INTEGER.fullmatch(text)
        if match is not None and len(match[1]) <= 19:
            value = int(text)
            if -(1 << 63) <= value < 1 << 63:
                return INT if -(1 << 31) <= value < 1 << 31 else BIGINT
        exact = _decimal_type(text, fractions=self.decimals)
        if exact is not None:
            return exact
        return DOUBLE if text in self._doubles or _DOUBLE.fullmatch(text.strip(BLANKS)) else None

    def sure(self) -> dict[Type, str]:
        """Regular expressions of texts whose type is seen by their shape alone (dates and timestamps: if they exist)."""
        shapes = dict(_SHAPES)
        if self.decimals:
            del shapes[DOUBLE]
        if not self._plain_dates:
            del shapes[DATE]
        if not self._plain_timestamps:
            del shapes[TIMESTAMP]
        if not self._plain_timestamps or self._local is None:
            del shapes[TIMESTAMP_NTZ]
        return shapes


def _decimal_type(text: str, *, fractions: bool) -> Decimal_ | None:
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        return None
    digits = (match[1] + (match[2] or "")).lstrip("0") or "0"
    scale = len(match[2] or "") - int(match[3] or 0)
    if scale < 0 or (scale > 0 and not fractions):
        return None
    precision = max(len(digits), scale)
    return Decimal_(precision, scale) if precision <= 38 else None


def merge(a: Type, b: Type) -> Type:
    """The narrowest type for values of both; STRING where there is none."""
    if a == b:
        return a
    if {a, b} == {INT, BIGINT}:
        return BIGINT
    if a in _MOMENTS and b in _MOMENTS:
        return max(a, b, key=_MOMENTS.index)
    left, right = (_AS_DECIMAL.get(kind, kind) if isinstance(kind, str) else kind for kind in (a, b))
    if isinstance(left, Decimal_) and isinstance(right, Decimal_):
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return Decimal_(whole + scale, scale) if whole + scale <= 38 else DOUBLE
    return DOUBLE if all(kind == DOUBLE or isinstance(kind, Decimal_) for kind in (left, right)) else STRING


class ColumnTypes:
    """The types that the values of one column have."""

    def __init__(self, finder: TypeFinder, *, every: bool) -> None:
        self._finder, self._every = finder, every
        self.found: set[Type] = set()

    @property
    def done(self) -> bool:
        """Whether further values make no difference."""
        return STRING in self.found and not self._every

    def add_texts(self, texts: Iterable[str]) -> None:
        for text in texts:
            if self.done:
                return
            self.found.add(self._finder.of(text))

    def add_column(self, texts: Any) -> None:
        """Take in a string array; NULL says nothing."""
        left = texts.drop_null()
        shapes = self._finder.sure()
        for kind in sorted(shapes, key=lambda kind: kind not in self.found):
            if not len(left) or self.done:
                return
            match = pc.match_substring_regex(left, shapes[kind])
            if pc.any(match).as_py() and self._are_dates(left.filter(match), kind):
                self.found |= _integer_types(left.filter(match)) if kind == BIGINT else {kind}
                left = left.filter(pc.invert(match))
        self.add_texts(left.unique().to_pylist())

    def _are_dates(self, texts: Any, kind: Type) -> bool:
        """Whether texts shaped like dates are dates of the calendar."""
        if kind not in _MOMENTS:
            return True
        try:
            pc.cast(pc.utf8_slice_codeunits(texts, 0, 10), pa.date32())
            clock = pc.utf8_slice_codeunits(texts, 11, 19)
            return kind == DATE or not pc.any(pc.match_substring_regex(clock, r"^(?:2[4-9]|[3-9])|:[6-9]")).as_py()
        except pa.ArrowInvalid:
            return False

    def type(self) -> Type | None:
        """The type of the column; None when it had no value."""
        result: Type | None = None
        for kind in sorted(self.found, key=str):
            result = kind if result is None else merge(result, kind)
        return result

    def widened(self, known: Any) -> Any:
        """`known`, widened by the values that it does not take (FS-29)."""
        order = [INT, BIGINT, *sorted((k for k in self.found if isinstance(k, Decimal_)), key=lambda k: (k.scale, k.precision)), DOUBLE]
        for kind in order:
            if kind in self.found:
                known = wider(known, to_spark(kind)) or known
        return known


def _integer_types(texts: Any) -> set[Type]:
    bounds = pc.min_max(pc.cast(texts, pa.int64())).as_py()
    low, high = -(1 << 31), (1 << 31) - 1
    return {INT} if low <= bounds["min"] and bounds["max"] <= high else {BIGINT}


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
        columns = [self._column_for(name) for name in file.head.names]
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

    def _column_for(self, name: str) -> _Column | None:
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
