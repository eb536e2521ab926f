"""Tables of others that code reads by name: the catalogs of the settings say where they lie (PB-13 to PB-17). No Spark.

A catalog is asked only for a name that nobody else knows. What it says is used as though `--table` had said it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName
from lakelet.base.user_code import caller_location
from lakelet.config.named_tables import NamedTable, table_flag
from lakelet.files.reads import note_stale_reason
from lakelet.files.stores import scheme_of, stores_of
from lakelet.storage.catalogs.client import CatalogAddress, ForeignTable

_READABLE = ("delta", "parquet", "orc")
"""Formats whose files say all about the rows. Of the others the catalog has columns and options that a folder does not show."""
_SPARK_CATALOGS = ("hive_metastore", "spark_catalog")
"""What a metastore is called in names with three parts."""
_AWAY_SECONDS = 30


class ForeignTables:
    """What the catalogs have for names that nobody else knows. Each name is asked once in the life of the object, which is one update.

    Args:
        catalogs: in the order in which they are asked.
        owners: ids of the pipeline, whose own entries are not read.
        located: the path of this machine for a location; raises PATH_NOT_MAPPED.
    """

    def __init__(
        self, catalogs: Sequence[CatalogAddress] = (), owners: Collection[str] = (), located: Callable[[str], str] = lambda path: path
    ) -> None:
        self._catalogs, self._owners, self._located = catalogs, owners, located
        self._defined: frozenset[str] = frozenset()
        self._found: dict[str, NamedTable | None] = {}
        self._names: dict[tuple[str, str], TableName] = {}
        self._away: dict[str, tuple[LakeletError, float]] = {}
        self._lock = threading.RLock()

    def __bool__(self) -> bool:
        return bool(self._catalogs)

    @property
    def titles(self) -> str:
        """The catalogs with their addresses, in words; empty for none."""
        return " and ".join(catalog.title for catalog in self._catalogs)

    def define(self, places: Mapping[str, Location]) -> list[LakeletError]:
        """Say which tables the pipeline defines, and where: no catalog is asked for them. Return an error for each that was read before."""
        self._defined = frozenset(places)
        return [
            LakeletError(
                "CATALOG_TABLE_REFUSED",
                f"code outside of functions reads {table.given} from {table.catalog}, and the pipeline defines a table of that name",
                where=places[key],
                todo="Read it in the function of a dataset, where its own table is meant, or give the dataset another name.",
            )
            for key, table in self._found.items()
            if table is not None and key in places
        ]

    def known(self, key: str) -> NamedTable | None:
        """The table of a full name in lower case, if it was asked for and found."""
        return None if key in self._defined else self._found.get(key)

    def find(self, name: TableName) -> NamedTable | None:
        """The table that the first catalog has which has one; None for none, and for a name that no catalog can have.

        Raises CATALOG_UNREACHABLE, and CATALOG_TABLE_REFUSED for a table that cannot be read by its location.
        """
        parts = (name.catalog, name.schema, name.name)
        if not self._catalogs or name.key in self._defined or any(re.search(r"[./\s]", part) for part in parts):
            return None
        note_stale_reason(f"{caller_location()} reads {name}, and only a catalog knows where that lies")
        with self._lock:
            if name.key not in self._found:
                self._found[name.key] = self._asked(name)
            return self._found[name.key]

    def _asked(self, name: TableName) -> NamedTable | None:
        for catalog in self._catalogs:
            found = self._answer(catalog, name)
            if found is not None and (found.owner is None or found.owner not in self._owners):
                return self._named(catalog, name, found)
        return None

    def _answer(self, catalog: CatalogAddress, name: TableName) -> ForeignTable | None:
        """What a catalog says. One that did not answer is not asked again for a while: each time may take half a minute."""
        problem, since = self._away.get(catalog.kind, (None, 0.0))
        if problem is None or time.monotonic() - since > _AWAY_SECONDS:
            try:
                with catalog.connect() as client:
                    return client.foreign(name)
            except LakeletError as raised:
                problem = raised
                if problem.code == "CATALOG_UNREACHABLE":
                    self._away[catalog.kind] = (problem, time.monotonic())
        if problem.code == "CATALOG_UNREACHABLE":
            raise LakeletError(
                "CATALOG_UNREACHABLE",
                f"the query reads {name}, and {problem.what}",
                where=caller_location(),
                why=problem.why,
                todo=f"Start it, or correct its address in pyproject.toml. Or say where the table lies: {table_flag(str(name))}",
            )
        raise _refused(catalog, name, "it refuses to say what that is", str(problem.why)) from None

    def _named(self, catalog: CatalogAddress, name: TableName, found: ForeignTable) -> NamedTable:
        """The table as `--table` would name it."""
        if found.format not in _READABLE:
            why = f"Tables of catalogs are read by their location if they are {', '.join(_READABLE[:-1])} or {_READABLE[-1]}."
            raise _refused(catalog, name, f"it says: {_article(found.format)}", why)
        if found.partitions and found.format != "delta":
            why = "The types of columns that name folders are in the catalog alone."
            raise _refused(catalog, name, f"it says: {found.format}, partitioned by {', '.join(found.partitions)}", why)
        if not found.location:
            raise _refused(catalog, name, "it says no location", "Such tables are read by the catalog's own engine only.")
        if _has_credentials(found.location):
            raise _refused(catalog, name, "its location has a user, a password or a key in it", "It would be in errors and events.")
        if catalog.kind == "hive" and name.catalog.lower() not in _SPARK_CATALOGS:
            first = self._names.setdefault((catalog.kind, found.name), name)
            if first.key != name.key:
                why = f"A metastore has no catalogs: {found.name} is {first} to this pipeline already."
                raise _refused(catalog, name, f"it has one table for both {name} and {first}", why)
        return NamedTable(name, str(name), self._path(catalog, name, found.location), catalog.title, found.format)

    def _path(self, catalog: CatalogAddress, name: TableName, location: str) -> str:
        """The path of a location on this machine. Raises PATH_NOT_MAPPED."""
        if scheme_of(location) not in (None, "file"):
            path = location.rstrip("/")
        else:  # Hive's are plain text, Unity Catalog's are URIs, and some writers do it the other way
            plain = re.sub("^file:/+", "/", location).rstrip("/")
            path = next(filter(os.path.exists, (plain, unquote(plain))), plain)
        try:
            return self._located(path)
        except LakeletError as problem:
            problem.why = f"{catalog.title} says that {name} lies there."
            for kind in stores_of(path):
                flag = table_flag(str(name)).replace("=PATH", f"={path}")
                problem.todo = f"{problem.todo} Or read it where it lies, with Spark's connector for {kind.name}: {flag}"
            raise


def _refused(catalog: CatalogAddress, name: TableName, says: str, why: str) -> LakeletError:
    return LakeletError(
        "CATALOG_TABLE_REFUSED",
        f"the query reads {name}, which cannot be read from {catalog.title}: {says}",
        where=caller_location(),
        why=why,
        todo=f"Say where files with its rows lie: {table_flag(str(name))}",
    )


def _article(text: str) -> str:
    return "no format" if not text else f"a {text}" if text.endswith(("view", "Hive")) else text


def _has_credentials(location: str) -> bool:
    """Whether a location has a password, or a key as signed addresses have."""
    try:
        parts = urlsplit(location)
        return parts.password is not None or bool(parts.query) or bool(stores_of(location) and parts.username)
    except ValueError:
        return True


__all__ = ["ForeignTables"]
