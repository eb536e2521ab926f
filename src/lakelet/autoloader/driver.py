"""Driver side of one Auto Loader source: schema, pending files, the streaming DataFrame, and evolution (spec 2, 3).

pyspark is imported inside the functions that need it, so that `lakelet.autoloader` stays cheap to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.options import ADD, Options, parse_options
from lakelet.autoloader.spec import SPEC_OPTION, Pending, ReaderSpec, SchemaChange, SourceSpec
from lakelet.errors import LakeletError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakelet.autoloader.schema_log import Version


class AutoLoaderSource:
    """One source of one flow. Make it with `open`."""

    def __init__(self, spec: SourceSpec, options: Options, state: str | None, seed: StructType | None = None) -> None:
        self._spec, self._options, self._state, self._seed = spec, options, state, seed
        self._data: StructType | None = None
        self._version = -1

    @classmethod
    def open(
        cls, spec: SourceSpec, *, state: str | None, confs: Mapping[str, str] | None = None, seed: StructType | None = None
    ) -> AutoLoaderSource:
        """Check a reader call and attach it to its state folder.

        Args:
            spec: what the user wrote.
            state: folder of this source (schema log, ledger); None = dry run, nothing is written anywhere.
            confs: session settings (`spark.sql.session.timeZone` and the three of spec section 1.1).
            seed: the `data_schema()` of an earlier dry run; stored as version 0 instead of sampling the files again.

        Raises:
            LakeletError: an option is unknown, wrong or not supported yet; the path is a file or cannot be read here.
        """
        from lakelet.autoloader.discovery import source_folder
        from lakelet.autoloader.hints import parse_hints

        options = parse_options(spec, confs or {})
        source = cls(spec, options, state, seed)
        try:
            source_folder(spec.path)
        except LakeletError as error:
            raise _at(error, spec) from None
        if options.hints and spec.schema is None:
            _check_types(parse_hints(options.hints, spec.where).items(), spec)
        if spec.schema is not None:
            _check_types([(f.name, f.dataType) for f in spec.schema.fields], spec)
        if state is not None and not options.include_existing:
            source._skip_existing(state)
        return source

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences about options that are accepted without effect, for one warning each."""
        return self._options.notices

    def schema(self) -> StructType:
        """Columns of the stream: data, partition columns, rescued column. Stored schema, else inferred now (and stored).

        Raises:
            LakeletError: CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE when there is nothing to infer from.
        """
        from pyspark.sql.types import StringType, StructField, StructType

        fields = list(self._data_schema().fields)
        rescued = self._options.rescued_column
        if rescued is not None and rescued not in [f.name for f in fields]:
            fields.append(StructField(rescued, StringType(), True))
        return StructType(fields)

    def pending(self, committed: str | None) -> Pending:
        """Count the files that no batch up to the Spark offset `committed` holds. Never writes."""
        import pyarrow.compute as pc

        from lakelet.autoloader.discovery import list_files
        from lakelet.autoloader.ledger import Ledger
        from lakelet.autoloader.planning import batch_of, filters_of

        listing = list_files(self._spec.path, filters_of(self._reader_spec("")))
        waiting = listing.table
        if self._state is not None:
            waiting = Ledger(self._state).unseen(waiting, batch_of(committed))
        return Pending(len(waiting), pc.sum(waiting["size"]).as_py() or 0, len(listing.table), listing.seconds)

    def read_stream(self, spark: SparkSession, *, name: str) -> DataFrame:
        """The streaming DataFrame with `schema()`, hidden `_metadata`, and an observation called `name`.

        The observation has the fields records, rescued, corrupt, first_file, first_line. The data source must be registered.
        """
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        from lakelet.autoloader.metadata import hide_metadata, observe

        if self._state is None:
            raise LakeletError("INTERNAL", f"{self._spec.path}: a source without state cannot be read as a stream")
        reader: Any = spark._jsparkSession
        description = self._reader_spec(self.schema().json(), parallelism=spark.sparkContext.defaultParallelism).to_json()
        frame = ClassicDataFrame(reader.readStream().format("cloudFiles").option(SPEC_OPTION, description).load(), spark)
        return hide_metadata(observe(frame, name), spark)

    def evolve(self, failure: BaseException) -> SchemaChange | None:
        """After a failed query: when a reader of this source met unknown fields and the mode adds columns, store a wider schema.

        Infers over the whole planned micro-batch that failed. Returns what changed, None when the failure is something else.
        """
        from lakelet.autoloader.evolve import grow, note_of
        from lakelet.autoloader.ledger import Ledger

        note = note_of(failure)
        if note is None or note.state != self._state or self._options.mode != ADD:
            return None
        self._data_schema()
        before = self._log().latest()
        if before is None:
            raise LakeletError("CF_STATE_DAMAGED", f"the schema log of {self._spec.path} is gone", todo="Do a full refresh of the dataset.")
        planned = Ledger(note.state).planned(note.after, note.up_to)
        seen = self._infer(planned["path"].to_pylist(), known=before.data)
        wider, added = grow(before.data, seen)
        if not added:
            return None
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        origin = {"first_file": note.file, "added": [{"name": path, "type": kind} for path, kind in added], "at": at}
        after = self._log().append(before.number + 1, wider, before.partitions, origin)
        self._adopt(after)
        return SchemaChange(self._spec.path, before.number, after.number, added, (), note.file)

    def changes(self, since: str) -> list[SchemaChange]:
        """What `evolve` stored from the moment `since` (ISO 8601, UTC) on."""
        if self._spec.schema is not None or (self._options.schema_location or self._state) is None:
            return []
        return [
            SchemaChange(
                self._spec.path,
                version.number - 1,
                version.number,
                tuple((column["name"], column["type"]) for column in version.origin["added"]),
                (),
                version.origin["first_file"],
            )
            for version in self._log().history()
            if version.origin.get("at", "") >= since and "added" in version.origin
        ]

    def data_schema(self) -> StructType:
        """`schema()` without the rescued column."""
        return self._data_schema()

    # --- inside ---

    def _data_schema(self) -> StructType:
        from lakelet.autoloader.hints import apply_hints, parse_hints

        if self._data is not None:
            return self._data
        if self._spec.schema is not None:
            from lakelet.autoloader.json_rows import readable

            self._data = readable(self._spec.schema)
            return self._data
        hints = parse_hints(self._options.hints or "")
        location = self._options.schema_location or self._state
        stored = self._log().latest() if location is not None else None
        if stored is None:
            data, origin = self._seed or apply_hints(self._inferred(), hints), {"reason": "inferred"}
        else:
            data, origin = apply_hints(stored.data, hints), {"reason": "schema hints changed"}
            if data == stored.data:
                self._adopt(stored)
                return stored.data
        if self._state is None:
            self._data, self._version = data, 0 if stored is None else stored.number
            return data
        from pyspark.sql.types import StructType

        number, partitions = (0, StructType([])) if stored is None else (stored.number + 1, stored.partitions)
        self._adopt(self._log().append(number, data, partitions, origin))
        return data if self._data is None else self._data

    def _adopt(self, version: Version) -> None:
        self._data, self._version = version.data, version.number

    def _log(self) -> Any:
        from lakelet.autoloader.schema_log import SchemaLog

        location = self._options.schema_location or self._state
        if location is None:
            raise LakeletError("INTERNAL", "a source without state has no schema log")
        return SchemaLog(location)

    def _inferred(self) -> StructType:
        """Schema of the sample: the newest files first, up to the sample size (2.1)."""
        from lakelet.autoloader.discovery import list_files
        from lakelet.autoloader.planning import filters_of

        table = list_files(self._spec.path, filters_of(self._reader_spec(""))).table
        paths: list[str] = []
        size = 0
        for at in range(len(table) - 1, -1, -1):
            if len(paths) >= self._options.sample_files or size >= self._options.sample_bytes:
                break
            path, length = table["path"][at].as_py(), table["size"][at].as_py()
            if length:
                paths.append(path)
                size += length
        self._refuse_partition_folders(paths)
        seen = self._infer(paths) if paths else None
        if seen is None or (not seen.fields and not self._options.hints):
            raise LakeletError(
                "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
                f"{self._spec.path} has no file with records to infer a schema from",
                where=self._spec.where,
                todo="Put a first file there, or give the reader a schema.",
            )
        return seen

    def _refuse_partition_folders(self, paths: list[str]) -> None:
        if not self._ignores_partition_folders() and any("=" in segment for path in paths for segment in path.split("/")[:-1]):
            raise LakeletError(
                "NOT_SUPPORTED_YET",
                f"{self._spec.path} has folders named key=value; partition columns are not read yet",
                where=self._spec.where,
                todo='Set cloudFiles.partitionColumns to "" to leave them out.',
            )

    def _ignores_partition_folders(self) -> bool:
        """Whether `partitionColumns` is given; the only value that is accepted yet is the empty one."""
        return any(key.lower() == "cloudfiles.partitioncolumns" for key in self._spec.options)

    def _infer(self, paths: list[str], known: StructType | None = None) -> Any:
        from lakelet.autoloader.files import files_for
        from lakelet.autoloader.infer_files import FileInference
        from lakelet.autoloader.json_rows import RowReader
        from lakelet.autoloader.source import rules_of

        files, _ = files_for(self._spec.path)
        prune = None
        if known is not None:
            prune = RowReader([(f.name, f.dataType) for f in known.fields], rules_of(self._reader_spec(""))).unknown_part
        inference = FileInference(files, all_text=not self._options.infer_types, known=known, prune=prune)
        for path in paths:
            inference.add_file(path)
        return inference.result()

    def _skip_existing(self, state: str) -> None:
        from lakelet.autoloader.discovery import list_files
        from lakelet.autoloader.ledger import Ledger
        from lakelet.autoloader.planning import filters_of

        ledger = Ledger(state)
        if not ledger.exists():
            ledger.skip_existing(list_files(self._spec.path, filters_of(self._reader_spec(""))).table)

    def _reader_spec(self, schema_json: str, parallelism: int = 1) -> ReaderSpec:
        options = self._options
        return ReaderSpec(
            path=self._spec.path,
            state=self._state or "",
            schema_json=schema_json,
            mode=options.mode,
            rescued_column=options.rescued_column,
            corrupt_column=options.corrupt_column,
            case_sensitive=options.case_sensitive,
            infer_types=options.infer_types or self._spec.schema is not None,
            time_zone=options.time_zone,
            file_path_in_rescued=options.file_path_in_rescued,
            max_files=options.max_files,
            max_bytes=options.max_bytes,
            name_glob=options.name_glob,
            hidden_segments=options.hidden_segments,
            modified_after=options.modified_after,
            modified_before=options.modified_before,
            parallelism=parallelism,
            refuse_path_columns=self._spec.schema is not None and not self._ignores_partition_folders(),
        )


def register(spark: SparkSession) -> None:
    """Make `format("cloudFiles")` known to a session."""
    from lakelet.autoloader.source import CloudFilesDataSource

    spark.dataSource.register(CloudFilesDataSource)


def _check_types(fields: Any, spec: SourceSpec) -> None:
    from lakelet.autoloader.json_rows import supported

    for name, kind in fields:
        if not supported(kind):
            raise LakeletError("NOT_SUPPORTED_YET", f"column {name}: {kind.simpleString()} is not read from JSON yet", where=spec.where)


def _at(error: LakeletError, spec: SourceSpec) -> LakeletError:
    return LakeletError(error.code, error.what, where=error.where or spec.where, why=error.why, todo=error.todo, nearest=error.nearest)
