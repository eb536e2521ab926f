"""Checks that the columns of a change flow exist in its source, during analysis (CD-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.language.model import ChangeSpec, ColumnPath
from lakelet.spark.errors.diagnosis import first_line, proposed, without_proposal

_LISTS = ("column_list", "except_column_list", "track_history_column_list", "track_history_except_column_list", "ignore_null_columns")
_CONDITIONS = ("apply_as_deletes", "apply_as_truncates", "where")
_UNORDERED = ("map", "variant", "interval", "geometry", "geography")


def check(spec: ChangeSpec, source: DataFrame) -> None:
    """Refuse a change flow whose arguments do not fit the columns of its source.

    Raises CDC_UNKNOWN_COLUMN, CDC_KEY_TYPE, CDC_SEQUENCE_TYPE, CDC_CONDITION_TYPE, or QUERY_FAILED_ANALYSIS for an expression that is wrong
    in another way. A list may name a column that except_column_list removes, but none that the source does not have.
    """
    same = _spelling(source)
    for path in spec.keys:
        kind = _type_of("keys", path, source, same)
        if is_unordered(kind):
            raise _wrong("CDC_KEY_TYPE", f"the key column {path[0]!r} is {kind.simpleString()}, whose values cannot be compared", spec)
    for name in _LISTS:
        for path in getattr(spec, name) or ():
            _type_of(name, path, source, same)
    if spec.columns_to_update is not None:
        kind = _type_of("columns_to_update", spec.columns_to_update, source, same)
        if not (isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StringType)):
            what = f"columns_to_update {spec.columns_to_update[0]!r} is {kind.simpleString()}; it must be array<string>"
            raise LakeletError("ARGUMENT_INVALID", what, todo="Its elements name the columns that an event sets.")
    if spec.snapshots is None:
        for name in ("sequence_by", *(("system_sequence_by",) if spec.bitemporal else ())):
            kind = _analysed(name, getattr(spec, name), source)
            if is_unordered(kind):
                raise _wrong("CDC_SEQUENCE_TYPE", f"{name} gives {kind.simpleString()}, whose values cannot be ordered", spec)
    for name in _CONDITIONS:
        given = getattr(spec, name)
        kind = T.BooleanType() if given is None else _analysed(name, given, source)
        if not isinstance(kind, T.BooleanType | T.NullType):
            raise _wrong("CDC_CONDITION_TYPE", f"{name} gives {kind.simpleString()}, not boolean: {given}", spec)


def columns_named(spec: ChangeSpec) -> list[str]:
    """The columns that keys and lists of columns name."""
    lists = [spec.keys, *(getattr(spec, name) or () for name in _LISTS)]
    return list(dict.fromkeys(path[0] for paths in lists for path in paths))


def _spelling(source: DataFrame) -> Callable[[str, str], bool]:
    """Whether two names mean one column, as the session's `spark.sql.caseSensitive` says."""
    if source.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return lambda a, b: a == b
    return lambda a, b: a.lower() == b.lower()


def _type_of(argument: str, path: ColumnPath, source: DataFrame, same: Callable[[str, str], bool]) -> T.DataType:
    """The type of a column or field of the source. Raises CDC_UNKNOWN_COLUMN with the nearest names."""
    kind: T.DataType = source.schema
    for depth, part in enumerate(path):
        fields = kind.fields if isinstance(kind, T.StructType) else []
        found = next((f for f in fields if same(f.name, part)), None)
        if found is None:
            raise _unknown(argument, ".".join(path), [".".join((*path[:depth], f.name)) for f in fields], source)
        kind = found.dataType
    return kind


def _analysed(argument: str, given: Any, source: DataFrame) -> T.DataType:
    """The type of an expression over the source's columns, selected or not."""
    try:
        return source.select(F.expr(given) if isinstance(given, str) else given).schema.fields[0].dataType
    except (AnalysisException, ParseException) as problem:
        name = (problem.getMessageParameters() or {}).get("objectName", "").replace("`", "")
        if (problem.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise _unknown(argument, name, [*source.columns, *proposed(problem)], source) from problem
        raise LakeletError(
            "QUERY_FAILED_ANALYSIS",
            f"{argument} does not analyse: {given}",
            why=without_proposal(first_line(problem)),
            todo="Write it over the columns of the source, for example \"op = 'DELETE'\".",
        ) from None


def is_unordered(kind: T.DataType) -> bool:
    """Whether values of a type cannot be compared and ordered."""
    if isinstance(kind, T.StructType):
        return any(is_unordered(f.dataType) for f in kind.fields)
    if isinstance(kind, T.ArrayType):
        return is_unordered(kind.elementType)
    return str(kind.typeName()).startswith(_UNORDERED)


def _unknown(argument: str, name: str, known: Iterable[str], source: DataFrame) -> LakeletError:
    columns: Sequence[str] = source.columns
    return LakeletError(
        "CDC_UNKNOWN_COLUMN",
        f"{argument} names {name!r}, which the source does not have",
        nearest=nearest_names(name, known),
        todo=f"Its columns are: {', '.join(columns[:20])}{' …' if len(columns) > 20 else ''}",
    )


def _wrong(code: str, what: str, spec: ChangeSpec) -> LakeletError:
    todo = {
        "CDC_KEY_TYPE": "Name plain columns, or structs of them.",
        "CDC_SEQUENCE_TYPE": "Give a number, a time, text, or a struct of them.",
        "CDC_CONDITION_TYPE": "Write a condition, for example \"op = 'DELETE'\".",
    }
    return LakeletError(code, f"changes from {spec.source or 'snapshots'}: {what}", todo=todo[code])
