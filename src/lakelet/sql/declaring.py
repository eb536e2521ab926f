"""Declares what the SQL text of one source says into the active registry. Layer 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.errors import Location
from lakelet.later import unsupported
from lakelet.registry import display_path


@dataclass(frozen=True)
class Cell:
    """A part of a source: its SQL text, and the line of the file on which it begins (1-based). Statements do not cross cells.

    `number`: the cell's position in a Jupyter notebook, where `line` is within the cell; it belongs into every location (`Location.cell`).
    """

    text: str
    line: int = 1
    number: int | None = None


def declare(cells: Sequence[Cell], file: Path, *, configuration: Mapping[str, str], session: Any) -> bool:
    """Declare the statements of the cells, in order, into the active registry.

    Args:
        cells: the SQL of one source file; `SET` and `USE` of one cell act on the later ones.
        file: the source file, for locations.
        configuration: the pipeline's parameters, for `${key}` and `:key`.
        session: the session that the declared queries run on, when they are called.

    Mistakes are added to the registry's errors. Returns whether every statement was understood.
    """
    unsupported("SQL", Location(display_path(str(file)), cells[0].line if cells else 1, cell=cells[0].number if cells else None))
