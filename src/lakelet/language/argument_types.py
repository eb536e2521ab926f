"""Types of the arguments of `dlt` and `pyspark.pipelines`. The stubs for editors begin with the text of this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

F = TypeVar("F", bound=Callable[..., Any])
"""A function of the user's: a decorator gives it back with its own type."""

Settings: TypeAlias = "Mapping[str, Any]"
"""Names of settings or properties to their values: text, numbers or truth values."""

Expression: TypeAlias = "str | Column"
"""SQL text or a Column."""

Columns: TypeAlias = "Sequence[str | Column]"
"""Names of columns, as text or as `col("name")`."""

Schema: TypeAlias = "StructType | str"
"""Columns as a StructType or as DDL text, which may hold generated columns and constraints."""

Rules: TypeAlias = "Mapping[str, str | Column]"
"""Names of expectations to their constraints."""

ScdType: TypeAlias = 'Literal[1, 2, "1", "2", "bitemporal"]'
"""What a target keeps: current rows (1), history (2), or what was known when, too (bitemporal)."""

Snapshots: TypeAlias = "str | Callable[[Any], tuple[DataFrame, Any] | None] | tuple[DataFrame, Any]"
"""The name of a table or view; a function from the last version to the next (snapshot, version) or None; one (snapshot, version)."""
