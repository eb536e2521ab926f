"""Auto Loader without the Lakelet runtime: state and evolution of a query that the application runs (docs/cookbook.md, recipe 6).

The runtime gives each source a state folder and stores new schema versions in the driver. Alone, the state lies at the source's
`cloudFiles.schemaLocation` (or where the option `lakelet.state` says), and the reader that meets unknown fields stores the next version.

`load` in Python gives a stand-alone stream what a bare data source cannot: the hidden column `_metadata`, VARIANT columns and session
settings. Inside the Lakelet runtime, whose own replacements answer, the methods do what they did before.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.auto_loader_source import AutoLoaderSource
from lakelet.autoloader.discovery.path_patterns import fixed_folder
from lakelet.autoloader.reader_arguments import FORMAT, capturing, given_options, pop_path, reader_arguments, struct_of
from lakelet.autoloader.session_settings import source_settings
from lakelet.autoloader.source_options import AutoLoaderOptions, batch_usage
from lakelet.autoloader.source_schema import SourceSchema
from lakelet.autoloader.source_spec import SPEC_OPTION, ReaderSpec, SourceSpec, names_pattern
from lakelet.autoloader.state.source_moves import SourceReads, followed, note, noted
from lakelet.base.errors import LakeletError
from lakelet.base.patching import Patch, PatchSet, put_on, without_context
from lakelet.base.user_code import in_pipeline
from lakelet.files.moves import PROJECT, Folder, Move
from lakelet.files.remote import path_in_store, store_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from lakelet.autoloader.schema_growth import UnknownFieldNote
    from lakelet.autoloader.state.source_moves import SameNames


STATE_OPTION = "lakelet.state"
"""Folder of the state (ledger of seen files; schema log unless `cloudFiles.schemaLocation` names another path)."""
MOVED_OPTION = "lakelet.moved"
"""`OLD=NEW`: the files that the stream has read in a folder lie in another one now."""


def open_alone(
    path: str, options: Mapping[str, str], schema: StructType | None, confs: Mapping[str, str] | None = None
) -> AutoLoaderSource:
    """A source of a stream that Lakelet does not run. Options without effect become one Python warning.

    Args:
        path: what `load` was given.
        options: as written, `lakelet.state` among them; keys in any case.
        schema: the user's, or None.
        confs: session settings (`session_settings.source_settings`); a reader process has none.

    Raises:
        LakeletError: CF_FAILED_TO_INFER_SCHEMA or CF_INCORRECT_STREAM_USAGE when no option says where the state lies; what
            `AutoLoaderSource.open` raises; SOURCE_MOVED where only the user can tell whether the files are those that were read.
    """
    by_key = {key.lower(): value for key, value in options.items()}
    state = by_key.get(STATE_OPTION) or by_key.get("cloudfiles.schemalocation")
    if not state:
        raise _no_state(path, explicit=schema is not None)
    said = {key: value for key, value in options.items() if key.lower() not in (STATE_OPTION, MOVED_OPTION, "path")}
    spec = SourceSpec(path, said, schema)
    source = AutoLoaderSource.open(spec, state=state, confs=confs)
    _note_reads(source, spec, state, by_key.get(MOVED_OPTION))
    if source.notices:
        warnings.warn("cloudFiles: " + "; ".join(source.notices), stacklevel=3)
    return source


def _note_reads(source: AutoLoaderSource, spec: SourceSpec, state: str, told: str | None) -> None:
    """Note what the stream reads, and where the files lie that it has read: they may have been moved with the state."""
    before, now = noted(state), SourceReads(path_in_store(spec.path), names_pattern(spec), _folder_of(spec.path, state))

    def compared(old: Folder, new: Folder, moves: Sequence[Move]) -> SameNames:
        return source.same_names(old.path, new.path, moves)

    found = followed(before, now, compared, _moves_given(told), partial(_moved_or_other, state)).now
    if found != before:
        note(state, found)


def _folder_of(location: str, state: str) -> Folder:
    """The folder before the first wildcard; the state's own folder is what it is seen from."""
    store, path = store_name(location), fixed_folder(path_in_store(location))
    here = store_name(state) == ""
    return Folder(path, store, roots={PROJECT: path_in_store(state)} if here else {}, shown=fixed_folder(location) if store else path)


def _moves_given(text: str | None) -> tuple[Move, ...]:
    """What the option says was moved. Raises CF_INVALID_OPTION_VALUE."""
    if text is None:
        return ()
    old, sign, new = text.partition("=")
    if not (old and sign and new):
        what = f"{MOVED_OPTION} is {text!r}, not OLD=NEW"
        raise LakeletError("CF_INVALID_OPTION_VALUE", what, todo="Write the folder that was read, an equals sign, and the new folder.")
    return ((path_in_store(old), path_in_store(new)),)


def _moved_or_other(state: str, old: Folder, new: Folder, same: SameNames) -> LakeletError:
    return LakeletError(
        "SOURCE_MOVED",
        f"the stream with the state {state} has read {old.shown} so far and is to read {new.shown}, where {same.there:,} of the "
        f"{same.known:,} files that it has read lie under the same relative path",
        why=f"{same.sized:,} of them have the size that was read. The same files would come twice; others would be missing if they were "
        "taken for the same",
        todo=f'The same files in a new place: .option("{MOVED_OPTION}", "{old.shown}={new.shown}")\n'
        f"Other files: give the stream a new folder for {STATE_OPTION} (or cloudFiles.schemaLocation) and a new checkpoint.",
    )


def reader_alone(path: str, options: Mapping[str, str], schema: StructType | None) -> ReaderSpec:
    """The description of a source for the bare data source, which has neither hidden columns nor a driver. Raises like `open_alone`."""
    source = open_alone(path, options, schema)
    _check_bare(source.schema(), schema)
    return source.reader_spec(internal=False, evolve_here=True, parallelism=os.cpu_count() or 1)


def evolve_in_reader(spec: ReaderSpec, note: UnknownFieldNote) -> None:
    """Store the schema version that the failed micro-batch needs, unless another reader of the query has done so (FS-23).

    Raises CF_STATE_DAMAGED when log or ledger are gone.
    """
    from lakelet.autoloader.formats import format_of
    from lakelet.autoloader.state.ledger import Ledger

    format = format_of(spec.format)
    assert format is not None
    location = spec.schema_location or spec.state
    options = AutoLoaderOptions(format, spec, location, spec.hints or None, include_existing=True, sample_files=0, sample_bytes=0)
    schema = SourceSchema(SourceSpec(spec.path, {}), options, location, store=True)
    if schema.public().json() == spec.schema_json:
        schema.evolve(note, Ledger(spec.state).planned(note.after, note.up_to)["path"].to_pylist())


def _no_state(path: str, *, explicit: bool) -> LakeletError:
    if explicit:
        return LakeletError(
            "CF_INCORRECT_STREAM_USAGE",
            f"{path}: outside a pipeline a cloudFiles stream needs a folder where it remembers the files it has seen",
            todo=f"Set the option {STATE_OPTION} (or cloudFiles.schemaLocation) to a folder of this stream's own.",
        )
    return LakeletError(
        "CF_FAILED_TO_INFER_SCHEMA",
        f"[CF_FAILED_TO_INFER_SCHEMA.OTHER] {path}: the option cloudFiles.schemaLocation is missing, and no schema was given",
        todo="Set cloudFiles.schemaLocation to a folder of this stream's own; the schema and the list of seen files are kept there.",
    )


def _check_bare(columns: StructType, given: StructType | None) -> None:
    """A schema that Spark was given is final: the bare data source can neither add a column to it nor make a variant."""
    if given is None:
        return
    missing = [name for name in columns.fieldNames() if name not in given.fieldNames()]
    if missing:
        raise LakeletError(
            "CF_INCONSISTENT_OPTIONS",
            f"rescuedDataColumn is {missing[0]}, which the schema does not have",
            todo=f"Add `{missing[0]} STRING` to the schema, or load in Python after lakelet.autoloader.register(spark).",
        )
    variants = [field.name for field in given.fields if field.dataType.typeName() == "variant"]
    if variants:
        raise LakeletError(
            "NOT_SUPPORTED_YET",
            f"column {variants[0]} is VARIANT, which the bare data source cannot return",
            todo="Load in Python after lakelet.autoloader.register(spark), or declare it STRING and use parse_json.",
        )


_numbers = itertools.count()


def _stream_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        said, given = reader_arguments(self), given_options(self, options)
        ours = str(format or said.get("format")).lower() == FORMAT and SPEC_OPTION not in given
        if not ours or in_pipeline():
            frame: DataFrame = original(self, path, format, schema, **options)
            return frame
        spark = self._spark
        declared = struct_of(schema if schema is not None else said.get("schema"), spark)
        source = open_alone(path or pop_path(given) or "", given, declared, source_settings(spark))
        return source.read_stream(spark, name=f"lakelet_source_{next(_numbers)}", evolve_here=True)

    return load


def _batch_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        if str(format or reader_arguments(self).get("format")).lower() == FORMAT and not in_pipeline():
            raise batch_usage()
        frame: DataFrame = original(self, path, format, schema, **options)
        return frame

    return load


def _stop(original: Any) -> Any:
    def stop(self: Any) -> None:
        try:
            original(self)
        finally:
            while _open:  # close() takes it out of the list
                _open[-1].close()

    return stop


class Registration:
    """Auto Loader's replacements in this process, from `register` until `close`, the end of a `with` block or the stop of Spark."""

    def close(self) -> None:
        """End the registration. When no registration is open any more, pyspark is as before."""
        if self in _open:
            _open.remove(self)
        if not _open and _on:
            _on.pop().take_off()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_open: list[Registration] = []
_on: list[PatchSet] = []  # the set that is on; at most one


def opened() -> Registration:
    """Put the replacements on, if they are not on already."""
    if _on and not _on[0].is_on:  # an update that has ended took them off
        _on.clear()
        _open.clear()
    if not _on:
        _on.append(put_on(STAND_ALONE))
    _open.append(registration := Registration())
    return registration


_READER, _STREAM = "pyspark.sql.readwriter.DataFrameReader", "pyspark.sql.streaming.readwriter.DataStreamReader"
_KNOWS = "pyspark hands it to Java and forgets it; `load` has to know it"

STAND_ALONE: tuple[Patch, ...] = (
    *(Patch(_STREAM, name, without_context(capturing(name)), _KNOWS, "2.0.0") for name in ("format", "schema", "option", "options")),
    Patch(_STREAM, "load", without_context(_stream_load), "a stream of cloudFiles has _metadata and VARIANT columns", "2.0.0"),
    Patch(_READER, "format", without_context(capturing("format")), _KNOWS, "1.4.0"),
    Patch(_READER, "load", without_context(_batch_load), "cloudFiles cannot be read as a batch", "1.4.0"),
    Patch(
        "pyspark.core.context.SparkContext",
        "stop",
        without_context(_stop),
        "the replacements end with the application",
        "0.7.0",
    ),
)
"""What a stand-alone application's `load` needs."""
