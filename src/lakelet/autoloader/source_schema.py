"""The columns of one source: stored in a schema log, declared or inferred; and how they grow (FS-1, FS-21, FS-23).

The log is `<location>/_schemas/0`, `1`, …, one small text file per version. A file holds the line `v1` and one JSON object with
`dataSchemaJson` and `partitionSchemaJson` (Spark's struct JSON as text). People read and edit these files, so white space and further
members do not matter. `SourceSchema` runs in the driver, and without a Spark session also in the process of a reader (a source that Lakelet
does not look after).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.session_settings import LOCAL_TIMESTAMPS
from lakelet.autoloader.source_options import AutoLoaderOptions
from lakelet.autoloader.source_spec import Columns, ReaderSpec, SchemaEvolution, SourceSpec
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.schema_growth import UnknownFieldNote
    from lakelet.base.errors import Location


_HEADER = "v1"


@dataclass(frozen=True)
class SchemaLogVersion:
    """One version: its number, the data columns, the partition columns, and how it came about."""

    number: int
    data: StructType
    partitions: StructType
    origin: Mapping[str, Any] = field(default_factory=dict)


class SchemaLog:
    """The versions under one schema location."""

    def __init__(self, location: str) -> None:
        self._files, root = files_for(location)
        self._folder = root.rstrip("/") + "/_schemas"

    def latest(self) -> SchemaLogVersion | None:
        """The current version, None when nothing was ever stored. Raises CF_STATE_DAMAGED or FORMAT_UNKNOWN."""
        numbers = [int(name) for name in self._files.names(self._folder) if name.isdigit()]
        return self._read_version(max(numbers)) if numbers else None

    def history(self) -> list[SchemaLogVersion]:
        """All versions, oldest first. Raises like `latest`."""
        return [self._read_version(number) for number in sorted(int(name) for name in self._files.names(self._folder) if name.isdigit())]

    def append(self, number: int, data: StructType, partitions: StructType, origin: dict[str, Any]) -> SchemaLogVersion:
        """Store version `number`; when another process stored it first, that one counts and is returned."""
        content = {"dataSchemaJson": data.json(), "partitionSchemaJson": partitions.json(), "origin": origin}
        reached("schema_log.before")
        self._files.create(self._version_path(number), f"{_HEADER}\n{json.dumps(content)}\n".encode())
        reached("schema_log.written")
        return self._read_version(number)

    def _version_path(self, number: int) -> str:
        return f"{self._folder}/{number}"

    def _read_version(self, number: int) -> SchemaLogVersion:
        from pyspark.sql.types import StructType

        path = self._version_path(number)
        header, _, body = self._files.read(path).decode("utf-8", errors="replace").strip().partition("\n")
        if header.strip() != _HEADER:
            if header.strip()[:1] == "v" and header.strip()[1:].isdigit():
                raise unknown_format(f"schema log {path}", header.strip()[1:], int(_HEADER[1:]))
            raise LakeletError("CF_STATE_DAMAGED", f"schema log {path} starts with {header[:20]!r}, not {_HEADER!r}")
        try:
            content = json.loads(body)
            data = StructType.fromJson(json.loads(content["dataSchemaJson"]))
            partitions = StructType.fromJson(json.loads(content.get("partitionSchemaJson") or '{"type":"struct","fields":[]}'))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LakeletError(
                "CF_STATE_DAMAGED", f"schema log {path} cannot be read", why=f"{type(error).__name__}: {error}", todo="Correct the file."
            ) from None
        origin = content.get("origin")
        return SchemaLogVersion(number, data, partitions, origin if isinstance(origin, dict) else {})


class SourceSchema:
    """Finds the columns of a source once, and keeps them in the schema log.

    Args:
        location: folder of the schema log; None: dry run, nothing is written.
        seed: columns that an earlier dry run inferred; stored as version 0 instead of sampling the files again.
    """

    def __init__(
        self, spec: SourceSpec, options: AutoLoaderOptions, location: str | None, *, store: bool, seed: Columns | None = None
    ) -> None:
        self._spec, self._options, self._location, self._store, self._seed = spec, options, location, store, seed
        self._columns: Columns | None = None

    def columns(self) -> Columns:
        """The columns. Raises CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE when there is nothing to infer from."""
        if self._columns is None:
            self._columns = self._declared_columns() if self._spec.schema is not None else self._logged_columns()
        return self._columns

    def public(self) -> StructType:
        """Data, partition and rescued column."""
        from pyspark.sql.types import StringType, StructField, StructType

        columns = self.columns()
        fields = [*columns.data.fields, *columns.partitions.fields]
        rescued = self._options.reader.rescued_column
        if rescued is not None and rescued not in [f.name for f in fields]:
            fields.append(StructField(rescued, StringType(), True))
        return StructType(fields)

    def partition_names(self) -> tuple[str, ...]:
        """Names for `ReaderSpec.partitions`."""
        if self._spec.schema is None:
            return tuple(self.columns().partitions.fieldNames())
        listed = self._options.reader.partition_columns
        names = self.columns().data.fieldNames()
        return tuple(names if listed is None else (n for n in names if n.lower() in {name.lower() for name in listed}))

    def evolve(self, note: UnknownFieldNote, paths: Sequence[str]) -> SchemaEvolution | None:
        """Store the version that the files of a failed micro-batch need; None when they bring nothing new.

        Raises CF_STATE_DAMAGED when the log is gone.
        """
        from lakelet.autoloader.schema_growth import grow

        if not self._options.reader.grows:
            return None
        self.columns()
        before = self._schema_log().latest()
        if before is None:
            raise LakeletError("CF_STATE_DAMAGED", f"the schema log of {self._spec.path} is gone", todo="Do a full refresh of the dataset.")
        seen = self._infer_from_files(paths, known=_data_and_partitions(before.data, before.partitions))
        seen = _without_names(seen, before.partitions.fieldNames())
        hinted = self.hinted_names() if self._options.reader.widens else None
        wider, added, widened = grow(before.data, seen, unless_hinted=hinted)
        if not added and not widened:
            return None
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        origin = {
            "first_file": note.file,
            "added": [{"name": path, "type": kind} for path, kind in added],
            "widened": [{"name": path, "from": old, "to": new} for path, old, new in widened],
            "at": at,
        }
        after = self._schema_log().append(before.number + 1, wider, before.partitions, origin)
        self._columns = Columns(after.data, after.partitions)
        return SchemaEvolution(self._spec.path, before.number, after.number, added, widened, note.file)

    def changes(self, since: str) -> list[SchemaEvolution]:
        """Return what `evolve` has stored since `since` (ISO 8601, UTC)."""
        if self._spec.schema is not None or self._location is None:
            return []
        return [
            SchemaEvolution(
                self._spec.path,
                version.number - 1,
                version.number,
                tuple((column["name"], column["type"]) for column in version.origin["added"]),
                tuple((column["name"], column["from"], column["to"]) for column in version.origin.get("widened", ())),
                version.origin["first_file"],
            )
            for version in self._schema_log().history()
            if version.origin.get("at", "") >= since and "added" in version.origin
        ]

    # --- inside ---

    def _declared_columns(self) -> Columns:
        from pyspark.sql.types import StructType

        from lakelet.autoloader.formats.json.values import readable

        return Columns(readable(self._spec.schema), StructType([]))

    def _logged_columns(self) -> Columns:
        stored = self._schema_log().latest() if self._location is not None else None
        if stored is None:
            found, origin, number = self._seed or self._with_hints(self._inferred_columns()), {"reason": "inferred"}, 0
        else:
            known = Columns(stored.data, stored.partitions)
            found, origin, number = self._with_hints(known), {"reason": "schema hints changed"}, stored.number + 1
            if found == known:
                return known
        if not self._store:
            return found
        origin["at"] = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        version = self._schema_log().append(number, found.data, found.partitions, origin)
        return Columns(version.data, version.partitions)

    def _with_hints(self, found: Columns) -> Columns:
        from lakelet.autoloader.schema_hints import apply_hints

        hints = hints_of(self._options, self._spec.where)
        partitions = {name.lower() for name in found.partitions.fieldNames()}
        of_folders = {name: kind for name, kind in hints.items() if name.lower() in partitions}
        of_files = {name: kind for name, kind in hints.items() if name.lower() not in partitions}
        return Columns(apply_hints(found.data, of_files), apply_hints(found.partitions, of_folders))

    def hinted_names(self) -> frozenset[str]:
        """Lower-case paths of the columns and fields whose types are hinted; of an explicit schema none, hints do not count there."""
        if self._spec.schema is not None:
            return frozenset()
        return frozenset(name.lower().replace("`", "") for name in hints_of(self._options, self._spec.where))

    def _schema_log(self) -> SchemaLog:

        if self._location is None:
            raise LakeletError("INTERNAL", "a source without state has no schema log")
        return SchemaLog(self._location)

    def _inferred_columns(self) -> Columns:
        """Columns of the sample: the newest files first, up to the sample size (FS-1)."""
        from pyspark.sql.types import StructField, StructType, VariantType

        from lakelet.autoloader.discovery.listing import files_elsewhere, files_of, filters_of
        from lakelet.autoloader.schema_hints import apply_hints, parse_hints

        format = self._options.format
        table = files_of(self._options.reader, file_allowed=self._spec.batch).table
        paths: list[str] = []
        size = 0
        for at in range(len(table) - 1, -1, -1):
            if len(paths) >= self._options.sample_files or size >= self._options.sample_bytes:
                break
            path, length = table["path"][at].as_py(), table["size"][at].as_py()
            if length:
                paths.append(path)
                size += length
        partitions = self._folder_columns(paths)
        if format.fixed_schema is not None:
            return Columns(apply_hints(StructType([]), parse_hints(format.fixed_schema)), partitions)
        variant = self._options.reader.format_options.get("singlevariantcolumn")
        if variant:
            return Columns(StructType([StructField(variant, VariantType(), True)]), partitions)
        if not format.infers:
            raise LakeletError(
                "CF_UNSUPPORTED_FORMAT_FOR_SCHEMA_INFERENCE",
                f"the columns of {format.name} files are not inferred",
                where=self._spec.where,
                todo="Give the reader a schema: .schema('id BIGINT, name STRING').",
            )
        from lakelet.autoloader.formats.undecodable_bytes import first_broken

        seen = self._infer_from_files(paths, None) if paths else None
        if seen is None or (not seen.fields and not self._options.hints):
            broken = first_broken(self._options.reader, format, paths)
            if broken is not None:
                what = f"every record of the files of {self._spec.path} is broken, so no schema is inferred"
                todo = "Correct the records, or give the reader the options with which they can be read, or a schema."
                raise LakeletError("CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE", what, where=self._spec.where, why=broken, todo=todo)
            raise LakeletError(
                "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
                f"{self._spec.path} has no file with records to infer a schema from",
                where=self._spec.where,
                why=None if paths else files_elsewhere(self._spec.path, filters_of(self._options.reader)),
                todo="Put a first file there, or give the reader a schema.",
            )
        rescued = self._options.reader.rescued_column
        # A field that is called like the rescued column is rescued: the name is taken.
        return Columns(_without_names(seen, [*partitions.fieldNames(), *([rescued] if rescued is not None else [])]), partitions)

    def _infer_from_files(self, paths: Sequence[str], known: StructType | None) -> StructType:
        from lakelet.autoloader.discovery.files import files_for

        files, _ = files_for(self._spec.path)
        reader = replace(self._options.reader, hinted=tuple(sorted(self.hinted_names())))
        return self._options.format.infer(reader, files, paths, known)

    def _folder_columns(self, paths: Sequence[str]) -> StructType:
        """The partition columns: listed ones, or those that every file's folders have (FS-18)."""
        from pyspark.sql.types import StringType, StructField, StructType

        from lakelet.autoloader.discovery.partition_folders import folder_type, folder_values, source_root

        reader = self._options.reader
        if reader.recursive or reader.partition_columns == ():
            return StructType([])
        root = source_root(reader.path)
        found = [folder_values(path, root) for path in reversed(paths)]
        if reader.partition_columns is not None:
            names = list(reader.partition_columns)
        else:
            common = set.intersection(*(set(values) for values in found)) if found else set()
            names = [name for name in (found[0] if found else ()) if name in common]
        typed = self._options.typed_folders and (reader.infer_types or self._options.format.typed)
        fields = []
        for name in names:
            values = [text for one in found if (text := one.get(name)) is not None]
            kind = folder_type(values, reader.time_zone, local=reader.is_on(LOCAL_TIMESTAMPS)) if typed else StringType()
            fields.append(StructField(name, kind, True))
        return StructType(fields)


def hints_of(options: AutoLoaderOptions, where: Location | None = None) -> Mapping[str, Any]:
    """The schema hints of a source; see `parse_hints`."""
    from lakelet.autoloader.schema_hints import parse_hints

    return parse_hints(options.hints or "", where, local=options.reader.is_on(LOCAL_TIMESTAMPS))


def _data_and_partitions(data: StructType, partitions: StructType) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([*data.fields, *partitions.fields])


def _without_names(schema: StructType, names: Sequence[str]) -> StructType:
    """The value in the path wins over a value of the same name in the file (FS-20)."""
    from pyspark.sql.types import StructType

    taken = {name.lower() for name in names}
    return StructType([field for field in schema.fields if field.name.lower() not in taken])


def reader_spec(options: AutoLoaderOptions, schema: SourceSchema | None, **more: Any) -> ReaderSpec:
    """The description for readers; without `schema` only what discovery needs is in it."""
    if schema is None:
        return replace(options.reader, **more)
    hinted = tuple(sorted(schema.hinted_names()))
    return replace(options.reader, schema_json=schema.public().json(), partitions=schema.partition_names(), hinted=hinted, **more)
