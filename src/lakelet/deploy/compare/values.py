"""Results of a comparison, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Text = str | None
"""A value in its exact text (see `texts`), None for NULL."""


@dataclass(frozen=True)
class Sides:
    """Something that the two sides have differently; None for a side that does not have it."""

    local: Any
    hosted: Any


@dataclass(frozen=True)
class KeyDifference:
    """One key whose rows differ. `columns`: values by column, where each side has one row; `local_rows`, `hosted_rows`: how many it has."""

    key: Mapping[str, Text]
    local_rows: int
    hosted_rows: int
    columns: Mapping[str, Sides]


@dataclass(frozen=True)
class RowComparison:
    """Rows that were compared.

    Attributes:
        key: the columns that identify a row.
        compared: how many hosted rows were looked at.
        complete: whether all rows of both sides were compared; else only a sample of hosted keys was looked for in the local table.
        differing: how many keys differ.
        sample: the first of them.
        left_out: columns that were not compared: on one side only, or of a type without an exact text.
    """

    key: tuple[str, ...]
    compared: int
    complete: bool
    differing: int
    sample: tuple[KeyDifference, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class DatasetDifference:
    """One dataset on both sides.

    Attributes:
        name: full local name, or the hosted one where only that side has it.
        hosted_name: full name in the workspace.
        only: `local` or `hosted` where only that side has it.
        failed: why the workspace did not answer.
        columns: type texts of Spark, of the columns that differ.
        rows: numbers of rows.
        rules: (passed, failed) by expectation, where the two differ.
        rows_compared: None where rows were not compared.
        notes: what could not be compared, and why.
    """

    name: str
    hosted_name: str | None
    only: str | None = None
    failed: str | None = None
    columns: Mapping[str, Sides] | None = None
    rows: Sides | None = None
    rules: Mapping[str, Sides] | None = None
    rules_compared: int = 0
    rows_compared: RowComparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing that was compared differs."""
        counts = self.rows is None or self.rows.local == self.rows.hosted
        return (
            not self.only and not self.columns and not self.rules and counts and not (self.rows_compared and self.rows_compared.differing)
        )

    def as_json(self) -> dict[str, Any]:
        rows = self.rows_compared
        return {
            "dataset": self.name,
            "hosted": self.hosted_name,
            "equal": self.equal,
            "only": self.only,
            "failed": self.failed,
            "columns": {name: vars(sides) for name, sides in (self.columns or {}).items()},
            "rows": self.rows and vars(self.rows),
            "expectations": {name: vars(sides) for name, sides in (self.rules or {}).items()},
            "expectations_compared": self.rules_compared,
            "keys": rows
            and {
                "columns": list(rows.key),
                "compared_rows": rows.compared,
                "complete": rows.complete,
                "differing": rows.differing,
                "left_out": list(rows.left_out),
                "sample": [{**vars(one), "columns": {n: vars(s) for n, s in one.columns.items()}} for one in rows.sample],
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    """All datasets that were compared."""

    target: str
    pipeline: str
    datasets: tuple[DatasetDifference, ...]

    @property
    def equal(self) -> bool:
        return all(one.equal for one in self.datasets)

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON values, in the form of `lakelet diff --remote --json`."""
        return {"target": self.target, "pipeline": self.pipeline, "equal": self.equal, "datasets": [one.as_json() for one in self.datasets]}
