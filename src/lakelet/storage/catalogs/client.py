"""What publishing asks of a catalog: the seam between its decisions and the kinds of catalogs. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName

if TYPE_CHECKING:
    from lakelet.storage.catalogs.published_tables import PublishedTable

OWNER = "lakelet.pipeline_id"
"""Property of a registered table: the id of the pipeline that it belongs to."""
_TITLES = {"hive": "the Hive metastore", "uc": "Unity Catalog at"}


@dataclass(frozen=True)
class CatalogEntry:
    """A table as a catalog has it, or as it would have it.

    `columns`: name, type and comment of each. `location`: as the catalog writes it. `owner`: the property OWNER, None without it.
    """

    name: str
    location: str
    columns: tuple[tuple[str, str, str], ...]
    comment: str
    owner: str | None


@dataclass(frozen=True)
class ForeignTable:
    """A table that a reader asks for. `name`: what the catalog calls it; `location`: as the catalog writes it, empty for none.

    `format`: of its files, in lower case, or what it is instead of a table, such as `view`; `partitions`: the columns that its folders
    are named after; `owner`: the property OWNER.
    """

    name: str
    location: str
    format: str
    partitions: tuple[str, ...]
    owner: str | None


class CatalogClient(Protocol):
    """A connection to one catalog. What asks it raises CATALOG_UNREACHABLE, or PUBLISH_FAILED where it refuses."""

    def entry(self, table: PublishedTable) -> CatalogEntry:
        """How the catalog would have a table."""

    def find(self, name: str) -> CatalogEntry | None:
        """What the catalog has under a name of its own, None for nothing."""

    def foreign(self, name: TableName) -> ForeignTable | None:
        """What the catalog has under a name of the code, for a reader; None for nothing."""

    def create(self, table: PublishedTable) -> None:
        """Register a table, with the schema that it lies in."""

    def update(self, table: PublishedTable) -> None:
        """Register a table in place of the one of that name."""

    def remove(self, name: str) -> None:
        """Remove a table from the catalog. Its files stay."""


@dataclass(frozen=True)
class CatalogAddress:
    """A catalog of the settings. `kind`: `hive` or `uc`; `connect`: opens a connection, or raises CATALOG_UNREACHABLE."""

    kind: str
    address: str
    connect: Callable[[], AbstractContextManager[CatalogClient]]

    @property
    def title(self) -> str:
        """The catalog with its address, in words."""
        return f"{_TITLES[self.kind]} {self.address}"


def unreachable(catalog: str, why: str) -> LakeletError:
    """The error CATALOG_UNREACHABLE of a catalog, which is named with its address."""
    todo = "Start it, or correct `publish` in pyproject.toml. Then type: lakelet publish"
    return LakeletError("CATALOG_UNREACHABLE", f"{catalog} does not answer", why=why, todo=todo)


__all__ = ["OWNER", "CatalogAddress", "CatalogClient", "CatalogEntry", "ForeignTable", "unreachable"]
