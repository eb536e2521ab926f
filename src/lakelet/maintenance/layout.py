"""Whether a table gains by OPTIMIZE: what its properties ask for (MT-2, MT-4, MT-6), and the names and sizes of its files. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakelet.base.text import TextEnum, counted
from lakelet.config.delta_properties import seconds
from lakelet.config.properties import MANAGED, Z_ORDER, look_up

TARGET_BYTES = 256 << 20
"""Size of the files that OPTIMIZE makes, unless the table property delta.targetFileSize says another one."""
LEAST_SECONDS = 3600.0
"""So long a removed file is kept for those who read it now, even where the table declares less."""

_RETENTION, _WEEK = "delta.deletedFileRetentionDuration", 7 * 86_400.0
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class MaintenanceSettings:
    """How a table wants to be maintained.

    Attributes:
        optimized: whether OPTIMIZE may rewrite its files.
        target_bytes: size of the files that OPTIMIZE makes.
        z_order: columns to sort the rows by, as declared; none for compaction only.
        retention: seconds that a file is kept after a commit removed it.
    """

    optimized: bool = True
    target_bytes: int = TARGET_BYTES
    z_order: tuple[str, ...] = ()
    retention: float = _WEEK

    @classmethod
    def of(cls, properties: Mapping[str, str], least: float = LEAST_SECONDS) -> MaintenanceSettings:
        """Read them. `least`: seconds of retention that no property can shorten. Raises ValueError for a value that was set by hand."""
        columns = (look_up(properties, Z_ORDER) or "").split(",")
        target, kept = look_up(properties, "delta.targetFileSize"), look_up(properties, _RETENTION)
        return cls(
            optimized=(look_up(properties, MANAGED) or "true").strip().lower() != "false",
            target_bytes=TARGET_BYTES if target is None else size(target),
            z_order=tuple(name.strip().strip("`") for name in columns if name.strip()),
            retention=max(least, _WEEK if kept is None else seconds(kept)),
        )


def size(text: str) -> int:
    """Bytes of a size as Databricks writes it: `104857600`, `100mb`, `1 GB`. Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    if not found or int(found[1]) == 0:
        raise ValueError(f"delta.targetFileSize is {text!r}: a size is expected, for example 104857600 or '100mb'")
    return int(found[1]) * _UNITS[found[2]]


WORTH_FILES = 8
"""A table is left alone where OPTIMIZE would save fewer files, or sort fewer new ones."""


class OptimizeKind(TextEnum):
    """What OPTIMIZE does: puts small files together, or sorts all rows (ZORDER) or the new ones (clustering) too."""

    COMPACT = "compact"
    ZORDER = "zorder"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class DataFile:
    """A file of a table's newest version: its path as in the log, decoded; bytes; the values of its partition as text."""

    path: str
    size: int
    partition: str = ""


@dataclass(frozen=True)
class OptimizeJob:
    """What OPTIMIZE is to do with a table; `columns` to sort by; `files`: how many the table will have, about."""

    how: OptimizeKind
    columns: tuple[str, ...]
    files: int
    why: str


def job_for(
    files: Sequence[DataFile],
    *,
    target: int,
    how: OptimizeKind = OptimizeKind.COMPACT,
    columns: Sequence[str] = (),
    unsorted: Collection[str] = (),
) -> OptimizeJob | str:
    """The job, or why the table is left alone.

    Args:
        target: size of the files that OPTIMIZE makes.
        how, columns: the layout that is declared for the table.
        unsorted: paths of files that were written since the table was laid out like that.
    """
    if how is not OptimizeKind.COMPACT:
        new = [file for file in files if file.path in unsorted]
        bytes_of_new = sum(file.size for file in new)
        if len(files) > 1 and new and (len(new) >= WORTH_FILES or bytes_of_new >= target):
            why = f"{counted(len(new), 'file')} not sorted by {', '.join(columns)}"
            return OptimizeJob(how, tuple(columns), _sorted_files(files, target), why)
    saved = saved_files(files, target)
    if saved >= WORTH_FILES and how is not OptimizeKind.ZORDER:
        return OptimizeJob(how, tuple(columns), len(files) - saved, f"saves {saved} of {counted(len(files), 'file')}")
    if saved >= WORTH_FILES:
        return OptimizeJob(OptimizeKind.COMPACT, (), len(files) - saved, f"saves {saved} of {counted(len(files), 'file')}")
    if not files:
        return "it has no rows"
    if saved == 0:
        return f"{counted(len(files), 'file')}, none to put together"
    return f"OPTIMIZE would save {counted(saved, 'file')}; it is done from {WORTH_FILES} on"


def saved_files(files: Sequence[DataFile], target: int) -> int:
    """How many files fewer there are when those below half of `target` are put together up to it, in each partition."""
    sizes = defaultdict[str, list[int]](list)
    for file in files:
        if file.size < small(target):
            sizes[file.partition].append(file.size)
    return sum(len(found) - _bins(sorted(found), target) for found in sizes.values())


def small(target: int) -> int:
    """A file below this size is put together with others."""
    return max(target // 2, 1)


def _bins(sizes: Sequence[int], most: int) -> int:
    bins, filled = 0, most + 1
    for one in sizes:
        if filled + one > most:
            bins, filled = bins + 1, 0
        filled += one
    return bins


def _sorted_files(files: Sequence[DataFile], target: int) -> int:
    sizes = defaultdict[str, int](int)
    for file in files:
        sizes[file.partition] += file.size
    return sum(max(1, -(-found // target)) for found in sizes.values())
