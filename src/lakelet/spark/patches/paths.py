"""Paths in calls of user code, replaced by paths of this machine while an update runs.

`option("path", …)` is replaced when it is set, an argument when it is used, so nothing is mapped twice. Sources of `cloudFiles` are left to
`readers`, which sees them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lakelet.autoloader.loading import FORMAT as CLOUD_FILES
from lakelet.autoloader.loading import reader_arguments
from lakelet.base.patching import Patch, without_context
from lakelet.spark.names.outside import active_map
from lakelet.spark.names.paths import FILE_FORMATS, located
from lakelet.spark.patches import owners

_PATH_OPTIONS = ("path", "checkpointlocation", "basepath")
_UNCHECKED = "_lakelet_unchecked"  # of a stream writer: its paths as they are written, by the names of options


def _replaced(value: Any, *, writing: bool = False, files: bool = True) -> Any:
    """Return a path, or a list of paths, as paths of this machine; anything else (an RDD) unchanged."""
    if isinstance(value, str):
        return located(value, writing=writing, files=files)
    if isinstance(value, (list, tuple)):
        return type(value)([_replaced(item, writing=writing, files=files) for item in value])
    return value


def _path_argument(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], *, writing: bool = False, files: bool = True
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with the first one, `path` and `paths` as paths of this machine."""
    named = {k: _replaced(v, writing=writing, files=files) if k in ("path", "paths") else v for k, v in kwargs.items()}
    return (_replaced(args[0], writing=writing, files=files), *args[1:]) if args else args, named


def _reading(original: Any) -> Any:
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("format") or (args[1] if len(args) > 1 and original.__name__ == "load" else None)
        format = str(given or reader_arguments(self).get("format") or "").lower()
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
    """Map the option `path` of a stream that is not of cloudFiles, which was not possible when it was set. Raises like `located`."""
    for key, value in reader_arguments(reader).get("options", {}).items():
        if key.lower() == "path":
            located(value, files=False)


def _writing(original: Any) -> Any:
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _path_argument(args, kwargs, writing=True)
        return original(self, *args, **kwargs)

    return write


def _starting(original: Any) -> Any:
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        options = {key.lower(): value for key, value in kwargs.items() if key.lower() in _PATH_OPTIONS and isinstance(value, str)}
        for value in {**vars(self).get(_UNCHECKED, {}), **options}.values():
            located(value, writing=True, files=False)
        return original(self, *args, **kwargs)

    return start


def _option(original: Any) -> Any:
    def option(self: Any, *args: Any, **kwargs: Any) -> Any:
        key = kwargs.get("key", args[0] if args else "")
        if str(key).lower() in _PATH_OPTIONS:
            args = tuple(_option_value(self, key, item) if at == 1 else item for at, item in enumerate(args))
            kwargs = {k: _option_value(self, key, v) if k == "value" else v for k, v in kwargs.items()}
        return original(self, *args, **kwargs)

    return option


def _options(original: Any) -> Any:
    def options(self: Any, **kwargs: Any) -> Any:
        return original(self, **{k: _option_value(self, k, v) if k.lower() in _PATH_OPTIONS else v for k, v in kwargs.items()})

    return options


def _option_value(owner: Any, key: str, value: Any) -> Any:
    """Return the path of an option as a path of this machine.

    A stream reader may still become one of cloudFiles, which reads other schemes than Spark. A stream writer that is never started
    writes nowhere: its paths are looked at when it starts.
    """
    if not isinstance(value, str):
        return value
    if isinstance(owner, DataStreamWriter):
        vars(owner).setdefault(_UNCHECKED, {})[key.lower()] = value
    if isinstance(owner, DataStreamReader | DataStreamWriter):
        return active_map().mapped(value)
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


def _mapped(owner: str, make: Callable[[Any], Any], names: Mapping[str, str]) -> list[Patch]:
    """One patch for each method, with the version that brought it."""
    return [
        Patch(owner, name, without_context(make), "paths of user code lie elsewhere here (--map)", since) for name, since in names.items()
    ]


_READS = {"load": "1.4.0", "json": "1.4.0", "csv": "2.0.0", "parquet": "1.4.0", "orc": "1.5.0", "text": "1.6.0", "xml": "4.0.0"}
_STREAMS = {"load": "2.0.0", "json": "2.0.0", "csv": "2.0.0", "parquet": "2.0.0", "orc": "2.3.0", "text": "2.0.0", "xml": "4.0.0"}
_WRITES = {"save": "1.4.0", "json": "1.4.0", "csv": "2.0.0", "parquet": "1.4.0", "orc": "1.5.0", "text": "1.6.0", "xml": "4.0.0"}
_FILES_OF_CONTEXT = {
    "textFile": "0.7.0",
    "wholeTextFiles": "1.0.0",
    "binaryFiles": "1.3.0",
    "binaryRecords": "1.3.0",
    "sequenceFile": "1.3.0",
    "newAPIHadoopFile": "1.1.0",
    "hadoopFile": "1.1.0",
}
_WITH_OPTIONS = {
    owners.BATCH_READER: ("1.5.0", "1.4.0"),
    owners.STREAM_READER: ("2.0.0", "2.0.0"),
    owners.BATCH_WRITER: ("1.5.0", "1.4.0"),
    owners.STREAM_WRITER: ("2.0.0", "2.0.0"),
    owners.TABLE_WRITER: ("3.1.0", "3.1.0"),
}

PATHS: tuple[Patch, ...] = (
    *_mapped(owners.BATCH_READER, _reading, _READS),
    *_mapped(owners.STREAM_READER, _reading, _STREAMS),
    *_mapped(owners.BATCH_WRITER, _writing, _WRITES),
    *_mapped(owners.STREAM_WRITER, _writing, {"start": "2.0.0"}),
    *_mapped(owners.STREAM_WRITER, _starting, {"start": "2.0.0", "toTable": "3.1.0"}),
    *(patch for owner, (since, _) in _WITH_OPTIONS.items() for patch in _mapped(owner, _option, {"option": since})),
    *(patch for owner, (_, since) in _WITH_OPTIONS.items() for patch in _mapped(owner, _options, {"options": since})),
    *_mapped(owners.DELTA_TABLE, _of_delta, {"forPath": "0.4", "isDeltaTable": "0.4"}),
    *_mapped(owners.CONTEXT, _of_context, _FILES_OF_CONTEXT),
)
"""Patches that map the paths of user code."""

__all__ = ["PATHS"]
