"""Driver side of one Auto Loader source: schema, pending files, the streaming DataFrame, and evolution (FS-1, FS-23).

pyspark is imported inside the functions that need it, so that `lakelet.autoloader` stays cheap to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.formats.option_tables import DROP
from lakelet.autoloader.source_options import AutoLoaderOptions, parse_options
from lakelet.autoloader.source_schema import SourceSchema, hints_of, reader_spec
from lakelet.autoloader.source_spec import LOCATION_FILE, SPEC_OPTION, Columns, PendingFiles, ReaderSpec, SchemaEvolution, SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.jvm.frames import loaded
from lakelet.jvm.sessions import plain_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lakelet.autoloader.state.source_cleanup import CleanupResult
    from lakelet.autoloader.state.source_moves import SameNames
    from lakelet.files.moves import Move


_REMEMBERED_FILES = 100_000
"""Of more files the last listing is not kept: it would take more memory than it saves time."""


class AutoLoaderSource:
    """One source of one flow. Make it with `open`."""

    def __init__(self, spec: SourceSpec, options: AutoLoaderOptions, state: str | None, seed: Columns | None = None) -> None:
        self._spec, self._options, self._state = spec, options, state
        location = options.schema_location or state
        self._schema = SourceSchema(spec, options, location, store=state is not None, seed=seed)
        self._nothing_new: tuple[str | None, Any] | None = None  # offset and files of the last listing

    @classmethod
    def open(
        cls, spec: SourceSpec, *, state: str | None, confs: Mapping[str, str] | None = None, seed: Columns | None = None
    ) -> AutoLoaderSource:
        """Check a reader call and attach it to its state folder.

        Args:
            spec: what the user wrote.
            state: folder of this source (schema log, ledger); None = dry run, nothing is written anywhere.
            confs: session settings (`session_settings.source_settings`).
            seed: the `columns()` of an earlier dry run; stored as version 0 instead of sampling the files again.

        Raises:
            LakeletError: an option is unknown, wrong or not supported yet; the path is a file or cannot be read here.
        """
        from lakelet.autoloader.discovery.listing import source_folder
        from lakelet.autoloader.format_detection import with_format

        try:
            source_folder(spec.path)
        except LakeletError as error:
            raise _with_place(error, spec) from None
        spec = with_format(spec, state, confs or {})
        options = parse_options(spec, confs or {})
        source = cls(spec, options, state, seed)
        check_types(options, spec)
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
        return self._schema.public()

    def columns(self) -> Columns:
        """`schema()` without the rescued column, in its parts."""
        return self._schema.columns()

    def pending(self, committed: str | None, moves: Sequence[Move] | None = None) -> PendingFiles:
        """Count the files that no batch up to the Spark offset `committed` holds. Never writes.

        The state is not read where the files are those of the last listing, of which none was new. `moves`: see `Ledger`.
        """
        import pyarrow.compute as pc

        from lakelet.autoloader.discovery.listing import files_of
        from lakelet.autoloader.state.ledger import Ledger, batch_of

        listing = files_of(self._options.reader)
        if self._nothing_new is not None and self._nothing_new[0] == committed and listing.found.equals(self._nothing_new[1]):
            return PendingFiles(0, 0, len(listing.found), listing.seconds)
        unseen = listing.found
        if self._state is not None:
            unseen = Ledger(self._state, moves=moves).unseen(unseen, batch_of(committed), by_time=self._options.reader.allow_overwrites)
        self._nothing_new = None if len(unseen) or len(listing.found) > _REMEMBERED_FILES else (committed, listing.found)
        return PendingFiles(len(unseen), pc.sum(unseen["size"]).as_py() or 0, len(listing.found), listing.seconds)

    def same_names(self, old: str, new: str, moves: Sequence[Move]) -> SameNames:
        """Compare the files that the source knows below the folder `old` with the others that it finds below `new`. Never writes."""
        from lakelet.autoloader.discovery.listing import files_of
        from lakelet.autoloader.state.ledger import Ledger, same_names

        ledger = Ledger(self._state or "", moves=moves)
        return same_names(ledger, files_of(self._options.reader).found, old, new)

    def read_stream(
        self,
        spark: SparkSession,
        *,
        name: str,
        evolve_here: bool = False,
        committed: str | None = None,
        changing: bool = False,
        rounds: str = "",
        texts: bool = False,
        metadata: bool = True,
    ) -> DataFrame:
        """The streaming DataFrame with `schema()`, hidden `_metadata`, and an observation called `name`.

        The observation has the fields of `SourceRecords` but the source. The data source must be registered.
        `evolve_here`: nobody calls `evolve` when the query fails; its readers store the next schema version. `committed`: the Spark offset
        up to which the table has the rows. `changing`: files changed under earlier starts of the query (`ReaderSpec.changing`). `rounds`:
        where the update says when a round begins (`ReaderSpec.rounds`). `texts`: the observation has the texts of the first records that do
        not fit. `metadata`: false for a stream without `_metadata`, which is read in less time.
        """

        from lakelet.autoloader.metadata_column import hide_metadata, observe, without_left_out
        from lakelet.autoloader.state.ledger import batch_of

        if self._state is None:
            raise LakeletError("INTERNAL", f"{self._spec.path}: a source without state cannot be read as a stream")
        self._note_location(self._state)
        description = self.reader_spec(
            parallelism=spark.sparkContext.defaultParallelism,
            counted=True,
            evolve_here=evolve_here,
            committed=batch_of(committed),
            changing=changing,
            rounds=rounds,
            metadata=metadata,
        )
        reader = plain_reader(spark, streaming=True, options={SPEC_OPTION: description.to_json()})
        kept = [column for column in (description.corrupt_column, description.rescued_column) if column and texts]
        observed = observe(loaded(spark, reader, "cloudFiles"), name, kept)
        leaves_out = description.bad_records or description.record_mode == DROP or description.ignore_corrupt
        return hide_metadata(without_left_out(observed) if leaves_out else observed, self.schema(), metadata=metadata)

    def reader_spec(self, **more: Any) -> ReaderSpec:
        """What readers get; `more` are further fields of `ReaderSpec`."""
        return reader_spec(self._options, self._schema, state=self._state or "", **more)

    @property
    def unit(self) -> str:
        """What the numbers of the observed records count: `line` or `record`."""
        return self._options.format.unit(self._options.reader.format_options)

    def explained(self, uri: str, line: int) -> str | None:
        """Which bytes of a file, from a line on, are not of its encoding, and which encoding they look like; None where all are."""
        from lakelet.autoloader.formats.undecodable_bytes import explain_bytes

        return explain_bytes(self._options.reader, self._options.format, uri, line)

    def evolve(self, failure: BaseException) -> SchemaEvolution | None:
        """Store the next schema version when a query failed because its files brought new columns or wider types.

        Infers over the whole planned micro-batch that failed. Returns what changed, None when the failure is something else.
        """
        from lakelet.autoloader.schema_growth import note_of
        from lakelet.autoloader.state.ledger import Ledger

        note = note_of(failure)
        if note is None or note.state != self._state:
            return None
        return self._schema.evolve(note, Ledger(note.state).planned(note.after, note.up_to)["path"].to_pylist())

    def clean(self, committed: str | None) -> CleanupResult | None:
        """Note that everything up to the Spark offset `committed` is committed, then move or delete what the options say (AL-25).

        Called when a flow is drained. Returns what was done, None when the options ask for nothing. Raises LakeletError or OSError when the
        state cannot be read or written; files that cannot be moved or deleted are reported in the result.
        """
        from lakelet.autoloader.state.ledger import Ledger, batch_of
        from lakelet.autoloader.state.source_cleanup import clean_files

        if self._state is None or committed is None:
            return None
        batch = batch_of(committed)
        Ledger(self._state).mark_committed(batch)
        rule = self._options.clean
        return None if rule is None else clean_files(self._spec.path, self._state, rule, batch)

    def changes(self, since: str) -> list[SchemaEvolution]:
        """Return what `evolve` has stored since `since` (ISO 8601, UTC)."""
        return self._schema.changes(since)

    def _note_location(self, state: str) -> None:
        """Record the location of the schema log in the state, for inspection."""
        from lakelet.autoloader.discovery.files import files_for

        files, folder = files_for(state)
        file = f"{folder.rstrip('/')}/{LOCATION_FILE}"
        location = (self._options.schema_location or state).encode()
        known = files.read(file) if files.is_file(file) else state.encode()
        if known != location:
            files.write(file, location)

    def _skip_existing(self, state: str) -> None:
        from lakelet.autoloader.discovery.listing import files_of
        from lakelet.autoloader.state.ledger import Ledger

        ledger = Ledger(state)
        if not ledger.exists():
            ledger.skip_existing(files_of(self._options.reader).found)


def check_types(options: AutoLoaderOptions, spec: SourceSpec) -> None:
    """Raise NOT_SUPPORTED_YET for a declared or hinted column that the format cannot read."""
    from pyspark.sql.types import StructType

    from lakelet.autoloader.schema_hints import apply_hints

    schema = spec.schema if spec.schema is not None else apply_hints(StructType([]), hints_of(options, spec.where))
    for name, kind in ((field.name, field.dataType) for field in schema.fields):
        if not options.format.supports(kind):
            what = f"column {name}: {kind.simpleString()} is not read from {options.format.name} files yet"
            raise LakeletError("NOT_SUPPORTED_YET", what, where=spec.where)


def _with_place(error: LakeletError, spec: SourceSpec) -> LakeletError:
    return LakeletError(error.code, error.what, where=error.where or spec.where, why=error.why, todo=error.todo, nearest=error.nearest)
