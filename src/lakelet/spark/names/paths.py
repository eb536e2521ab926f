"""Paths in calls of user code, replaced by their places on this machine while an update works.

The map is process-wide for the life of `mapping_paths()`: handlers of micro-batches and helper modules run outside of every dataset's
function, some of them on other threads. `option("path", …)` is replaced when it is set, an argument when it is used, so nothing is mapped
twice. Sources of `cloudFiles` are left to `reads`, which sees them whole.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from delta.tables import DeltaTable
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lakelet.autoloader.loading import FORMAT as CLOUD_FILES
from lakelet.autoloader.loading import said_to
from lakelet.autoloader.spec import SourceSpec
from lakelet.base.locations import caller_location
from lakelet.config.path_map import CLOUD_SCHEMES, PathMap, is_hosted
from lakelet.files.remote import is_set_up, scheme_of

Wrap = Callable[[Any, str, Callable[[Any], Any]], None]
"""(owner, name of a method, maker): puts what the maker makes of the method in its place, for the life of an update."""

FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "text", "xml", "avro", "binaryfile", "delta"})
_READS = ("load", "json", "csv", "parquet", "orc", "text", "xml")
_WRITES = ("save", "json", "csv", "parquet", "orc", "text", "xml")
_FILES_OF_CONTEXT = ("textFile", "wholeTextFiles", "binaryFiles", "binaryRecords", "sequenceFile", "newAPIHadoopFile", "hadoopFile")
_PATH_OPTIONS = ("path", "checkpointlocation", "basepath")
_SCHEMA_LOG = "cloudfiles.schemalocation"
_SOURCE_OPTIONS = ("cloudfiles.cleansource.movedestination", _SCHEMA_LOG)
_LOCATION = re.compile(
    r"(?P<skip>--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`)|(?P<head>\bLOCATION\s+)(?P<quote>['\"])(?P<path>(?:(?!(?P=quote))[^\\]|\\.)*)(?P=quote)"
    r"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"",
    re.IGNORECASE | re.DOTALL,
)

_active = PathMap()


def active_map() -> PathMap:
    """The map of the update that works in this process; an empty one outside of updates."""
    return _active


def located(path: str, *, writing: bool = False, files: bool = True) -> str:
    """Where Spark finds a path of user code; relative paths of `files` may begin in the project.

    Raises PATH_NOT_MAPPED or MAP_TARGET_MISSING.
    """
    found = _active.located(path, readable=_spark_reads, writing=writing, where=caller_location())
    return _active.anchored(found) if files else found


def located_source(spec: SourceSpec) -> SourceSpec:
    """A cloudFiles source with its places: its path, the folder that files are moved to, that of the schema log. Raises like `located`."""
    path = _active.anchored(_active.located(spec.path, readable=is_set_up, where=spec.where))
    options = {k: _active.mapped(v) if k.lower() in _SOURCE_OPTIONS else v for k, v in spec.options.items() if k not in homeless_log(spec)}
    return replace(spec, path=path, options=options)


def homeless_log(spec: SourceSpec) -> Mapping[str, str]:
    """The option of a cloudFiles source that puts its schema log where nothing of this machine lies; the storage has one anyway."""
    given = {k: v for k, v in spec.options.items() if k.lower() == _SCHEMA_LOG and _active.entry(v) is None}
    return {k: v for k, v in given.items() if is_hosted(v) or ((scheme := scheme_of(v)) in CLOUD_SCHEMES and not is_set_up(scheme or ""))}


def located_relation(parts: Sequence[str]) -> str | None:
    """SQL for the files that a name such as ``json.`path` `` means, at their place; None for any other name. Raises like `located`."""
    if len(parts) != 2 or parts[0].lower() not in FILE_FORMATS:
        return None
    path = located(parts[1])
    return None if path == parts[1] else f"{parts[0]}.`{path.replace('`', '``')}`"


def open_relation(spark: SparkSession, parts: Sequence[str], *, streaming: bool, jreader: Any) -> DataFrame | None:
    """The rows of ``json.`path` `` and the like whose path has a place, with the options of `jreader`; None for any other name.

    Raises like `located`.
    """
    if located_relation(parts) is None:
        return None
    session: Any = spark._jsparkSession
    reader = jreader or (session.readStream() if streaming else session.read())
    return DataFrame(reader.format(parts[0]).load(located(parts[1])), spark)


def located_locations(text: str) -> str:
    """SQL text with the places of `LOCATION '…'`. Raises PATH_NOT_MAPPED."""

    def place(found: re.Match[str]) -> str:
        if found["head"] is None:
            return found[0]
        path = located(found["path"], writing=True)
        return found["head"] + found["quote"] + path.replace(found["quote"], "\\" + found["quote"]) + found["quote"]

    return _LOCATION.sub(place, text)


def _spark_reads(scheme: str) -> bool:
    """Whether Spark's Java has a file system for a scheme."""
    context: Any = SparkContext._active_spark_context
    try:
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, context._jsc.hadoopConfiguration())
    except Py4JError:
        return False
    return True


# ------------------------------------------------------------------------------------------------- wrapping pyspark


@contextmanager
def wrapping() -> Iterator[Wrap]:
    """Gives the function that wraps methods; all is as it was when the block ends."""
    replaced: list[tuple[Any, str, Any]] = []

    def wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
        replaced.append((owner, name, original))
        if isinstance(original, classmethod):
            setattr(owner, name, classmethod(functools.wraps(original.__func__)(make(original.__func__))))
        else:
            setattr(owner, name, functools.wraps(original)(make(original)))

    try:
        yield wrap
    finally:
        for owner, name, original in reversed(replaced):
            setattr(owner, name, original)


@contextmanager
def mapping_paths(paths: PathMap, wrap: Wrap) -> Iterator[None]:
    """Map the paths of user code for the life of the block."""
    global _active
    before, _active = _active, paths
    for owner in (DataFrameReader, DataStreamReader):
        for name in _READS:
            wrap(owner, name, _reading)
    for name in _WRITES:
        wrap(DataFrameWriter, name, _writing)
    wrap(DataStreamWriter, "start", _writing)
    for owner in (DataFrameReader, DataStreamReader, DataFrameWriter, DataStreamWriter, DataFrameWriterV2):
        wrap(owner, "option", _option)
        wrap(owner, "options", _options)
    for name in ("forPath", "isDeltaTable"):
        wrap(DeltaTable, name, _of_delta)
    for name in _FILES_OF_CONTEXT:
        wrap(SparkContext, name, _of_context)
    try:
        yield
    finally:
        _active = before


def _replaced(value: Any, *, writing: bool = False, files: bool = True) -> Any:
    """A path or a list of paths with their places; anything else (an RDD) as it is."""
    if isinstance(value, str):
        return located(value, writing=writing, files=files)
    if isinstance(value, (list, tuple)):
        return type(value)([_replaced(item, writing=writing, files=files) for item in value])
    return value


def _path_argument(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], *, writing: bool = False, files: bool = True
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments whose first one, `path` or `paths` is a path, with its place."""
    named = {k: _replaced(v, writing=writing, files=files) if k in ("path", "paths") else v for k, v in kwargs.items()}
    return (_replaced(args[0], writing=writing, files=files), *args[1:]) if args else args, named


def _reading(original: Any) -> Any:
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("format") or (args[1] if len(args) > 1 and original.__name__ == "load" else None)
        format = str(given or said_to(self).get("format") or "").lower()
        if original.__name__ == "load" and format == CLOUD_FILES:
            return original(self, *args, **kwargs)
        if original.__name__ == "parquet":  # any number of paths
            return original(self, *_replaced(args), **kwargs)
        if (args[0] if args else kwargs.get("path")) is None and isinstance(self, DataStreamReader):
            _check_option(self)
        args, kwargs = _path_argument(args, kwargs, files=original.__name__ != "load" or not format or format in FILE_FORMATS)
        return original(self, *args, **kwargs)

    return read


def _check_option(reader: Any) -> None:
    """Raise for the option `path` of a stream that is no cloudFiles what was left open when it was set."""
    for key, value in said_to(reader).get("options", {}).items():
        if key.lower() == "path":
            located(value, files=False)


def _writing(original: Any) -> Any:
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _path_argument(args, kwargs, writing=True)
        return original(self, *args, **kwargs)

    return write


def _option(original: Any) -> Any:
    def option(self: Any, *args: Any, **kwargs: Any) -> Any:
        key = kwargs.get("key", args[0] if args else "")
        if str(key).lower() in _PATH_OPTIONS:
            args = tuple(_option_value(self, item) if at == 1 else item for at, item in enumerate(args))
            kwargs = {k: _option_value(self, v) if k == "value" else v for k, v in kwargs.items()}
        return original(self, *args, **kwargs)

    return option


def _options(original: Any) -> Any:
    def options(self: Any, **kwargs: Any) -> Any:
        return original(self, **{k: _option_value(self, v) if k.lower() in _PATH_OPTIONS else v for k, v in kwargs.items()})

    return options


def _option_value(owner: Any, value: Any) -> Any:
    """The place of a path in an option. A stream reader may yet turn out to be of cloudFiles, which knows other places than Spark."""
    if not isinstance(value, str):
        return value
    if isinstance(owner, DataStreamReader):
        return _active.mapped(value)
    return located(value, writing=not isinstance(owner, DataFrameReader), files=False)


def _of_delta(original: Any) -> Any:
    def call(cls: Any, sparkSession: Any, *args: Any, **kwargs: Any) -> Any:
        named = {k: _replaced(v, writing=True) if k in ("path", "identifier") else v for k, v in kwargs.items()}
        if args:
            args = (_replaced(args[0], writing=True), *args[1:])
        return original(cls, sparkSession, *args, **named)

    return call


def _of_context(original: Any) -> Any:
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        named = {k: _replaced(v) if k in ("name", "path") else v for k, v in kwargs.items()}
        return original(self, *((_replaced(args[0]), *args[1:]) if args else args), **named)

    return read
