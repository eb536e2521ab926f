"""`Reading`: how files are read, as a value; `Combination`: one file read so; and how few of them cover every pair of choices.

A grid has dimensions (time zone, mode, encoding …), each with some choices; a choice is a `Part` of a reading. Not the whole product of the
dimensions is tried, but rows in which every two choices of two dimensions meet at least once. Chance is seeded: a grid always has the same
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations as subsets
from random import Random

Items = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """What one choice adds to a reading.

    Args:
        options: options that both readers take.
        loader: options that only Auto Loader has.
        settings: settings of the session.
        schema: the declared columns as DDL; None where this choice says nothing.
        more: a further declared column.
        charset: Python's name of the charset in which the files are written.
        ends: the end of each line of the files.
    """

    options: Mapping[str, str] | None = None
    loader: Mapping[str, str] | None = None
    settings: Mapping[str, str] | None = None
    schema: str | None = None
    more: str | None = None
    charset: str | None = None
    ends: str | None = None


Grid = Mapping[str, Mapping[str, Part]]


@dataclass(frozen=True)
class Reading:
    """How files of one format are written and read."""

    format: str
    labels: tuple[str, ...] = ()
    options: Items = ()
    loader: Items = ()
    settings: Items = ()
    schema: str | None = None
    charset: str = "utf-8"
    ends: str = "\n"

    @property
    def name(self) -> str:
        return ",".join(label for label in self.labels if label) or "default"

    def get(self, option: str, default: str = "") -> str:
        """The value of an option of either reader, of Auto Loader's first."""
        return dict(self.options + self.loader).get(option, default)

    @property
    def rescues(self) -> bool:
        """Whether the reading has a rescued data column."""
        inferred = (
            self.schema is None and self.get("cloudFiles.schemaEvolutionMode") != "none" and self.format not in ("text", "binaryFile")
        )
        return bool(self.get("rescuedDataColumn")) or inferred

    @property
    def ignores_damage(self) -> bool:
        """Whether damaged files are skipped."""
        return "true" in (self.get("ignoreCorruptFiles"), dict(self.settings).get("spark.sql.files.ignoreCorruptFiles"))


@dataclass(frozen=True)
class Combination:
    """One file of a kind, read in one way."""

    reading: Reading
    kind: str

    @property
    def id(self) -> str:
        return f"{self.reading.format}-{self.kind}-{self.reading.name}"


def reading(format: str, chosen: Iterable[tuple[str, Part]]) -> Reading:
    """The reading that these choices make together, with their labels."""
    options: dict[str, str] = {}
    loader: dict[str, str] = {}
    settings: dict[str, str] = {}
    labels: list[str] = []
    columns: list[str] = []
    more: list[str] = []
    charset, ends = "utf-8", "\n"
    for label, part in chosen:
        labels += [label] if label else []
        options.update(part.options or {})
        loader.update(part.loader or {})
        settings.update(part.settings or {})
        columns += [part.schema] if part.schema else []
        more += [part.more] if part.more else []
        charset, ends = part.charset or charset, part.ends or ends
    schema = ", ".join(columns + more) if columns else None
    if schema is None and more:
        loader["cloudFiles.schemaHints"] = ", ".join(more)
    return Reading(format, tuple(labels), _items(options), _items(loader), _items(settings), schema, charset, ends)


def _items(values: Mapping[str, str]) -> Items:
    return tuple(sorted(values.items()))


def rows(grid: Grid, seed: int = 0) -> Iterator[dict[str, str]]:
    """Rows with one label per dimension; every two labels of two dimensions are in at least one row."""
    chance = Random(seed)
    names = list(grid)
    missing = {((one, a), (other, b)) for one, other in subsets(names, 2) for a in grid[one] for b in grid[other]}
    while missing:
        (one, a), (other, b) = min(missing)
        best, gain = {}, -1
        for _ in range(24):
            row = {name: chance.choice(list(grid[name])) for name in names} | {one: a, other: b}
            found = sum(pair in missing for pair in subsets(row.items(), 2))
            if found > gain:
                best, gain = row, found
        missing -= set(subsets(best.items(), 2))
        yield best


def readings(format: str, grid: Grid, seed: int = 0) -> list[Reading]:
    """The readings of a grid, each once."""
    made = [reading(format, [(label, grid[name][label]) for name, label in row.items()]) for row in rows(grid, seed)]
    return list(dict.fromkeys(made))


def picked(format: str, grid: Grid, labels: str) -> Reading:
    """The reading with these choices, joined by commas, and the first choice of each other dimension."""
    wanted = labels.split(",")
    row = {name: next((label for label in choices if label in wanted), next(iter(choices))) for name, choices in grid.items()}
    return reading(format, [(label, grid[name][label]) for name, label in row.items()])
