"""A folder's listing as values, local or remote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scan:
    """Part of a folder's listing: names of files with sizes and modification times (microseconds since 1970), and names of folders.

    links: those of the folders that are links to other folders.
    """

    names: Sequence[str]
    sizes: Sequence[int]
    modified: Sequence[int]
    folders: Sequence[str] = ()
    links: frozenset[str] = frozenset()
