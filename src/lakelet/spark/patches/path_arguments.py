"""Paths in calls of user code, replaced by paths of this machine while an update runs.

`option("path", …)` is replaced when it is set, an argument when it is used, so nothing is mapped twice. Sources of `cloudFiles` are left to
`readers`, which sees them whole.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lakelet.autoloader.reader_arguments import FORMAT as CLOUD_FILES
from lakelet.autoloader.reader_arguments import reader_arguments
from lakelet.spark.names.outside import active_map
from lakelet.spark.names.paths import FILE_FORMATS, located
from lakelet.spark.patches.doors import Call, before

_WHY = "paths of user code lie elsewhere here (--map)"
_PARAMETERS = ("path", "paths", "name", "identifier")
_PATH_OPTIONS = ("path", "checkpointlocation", "basepath")
_UNCHECKED = "_lakelet_unchecked"  # of a stream writer: its paths as they are written, by the names of options


def _mapped_value(value: Any, *, writing: bool = False, files: bool = True) -> Any:
    """Return a path, or a list of paths, as paths of this machine; anything else (an RDD) unchanged."""
    if isinstance(value, str):
        return located(value, writing=writing, files=files)
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped_value(item, writing=writing, files=files) for item in value])
    return value


def _with_paths(call: Call, *, writing: bool = False, files: bool = True) -> Call:
    """Return the call with its paths as paths of this machine."""
    given = {name: _mapped_value(call.arguments[name], writing=writing, files=files) for name in _PARAMETERS if name in call.arguments}
    return call.changed(**given)


@before(_WHY)
def map_read_paths(call: Call) -> Call:
    """Map the paths that a reader or a context is given. Raises like `located`."""
    return _with_paths(call)


@before(_WHY)
def map_load_paths(call: Call) -> Call:
    """Map the path of `load`, unless it is that of cloudFiles. Raises like `located`."""
    format = str(call.get("format") or reader_arguments(call.target).get("format") or "").lower()
    if format == CLOUD_FILES:
        return call
    _check_option(call)
    return _with_paths(call, files=not format or format in FILE_FORMATS)


@before(_WHY)
def map_stream_paths(call: Call) -> Call:
    """Map the path of a stream of files. Raises like `located`."""
    _check_option(call)
    return _with_paths(call)


def _check_option(call: Call) -> None:
    """Map the option `path` of a stream that is not of cloudFiles, which was not possible when it was set. Raises like `located`."""
    if call.get("path") is None and isinstance(call.target, DataStreamReader):
        for key, value in reader_arguments(call.target).get("options", {}).items():
            if key.lower() == "path":
                located(value, files=False)


@before(_WHY)
def map_written_paths(call: Call) -> Call:
    """Map the path that a call writes to. Raises like `located`."""
    return _with_paths(call, writing=True)


@before(_WHY)
def check_started_paths(call: Call) -> Call:
    """Check the paths in the options of a stream that starts. Raises like `located`."""
    options = {key.lower(): value for key, value in call.get("options", {}).items() if key.lower() in _PATH_OPTIONS}
    for value in {**vars(call.target).get(_UNCHECKED, {}), **options}.values():
        if isinstance(value, str):
            located(value, writing=True, files=False)
    return call


@before(_WHY)
def map_option(call: Call) -> Call:
    """Map the value of an option that is a path. Raises like `located`."""
    key = str(call.get("key"))
    return call.changed(value=_option_value(call.target, key, call.get("value"))) if key.lower() in _PATH_OPTIONS else call


@before(_WHY)
def map_options(call: Call) -> Call:
    """Map the values of options that are paths. Raises like `located`."""
    given = call.get("options", {})
    return call.changed(options={k: _option_value(call.target, k, v) if k.lower() in _PATH_OPTIONS else v for k, v in given.items()})


def _option_value(owner: Any, key: str, value: Any) -> Any:
    """Return the path of an option as a path of this machine.

    A stream reader may still become one of cloudFiles, which reads other schemes than Spark. A stream writer that is never started
    writes nowhere: its paths are checked when it starts.
    """
    if not isinstance(value, str):
        return value
    if isinstance(owner, DataStreamWriter):
        vars(owner).setdefault(_UNCHECKED, {})[key.lower()] = value
    if isinstance(owner, DataStreamReader | DataStreamWriter):
        return active_map().mapped(value)
    return located(value, writing=not isinstance(owner, DataFrameReader), files=False)


__all__ = ["check_started_paths", "map_load_paths", "map_option", "map_options", "map_read_paths", "map_stream_paths", "map_written_paths"]
