"""`load` of `cloudFiles` in Python outside the Lakelet runtime.

It gives a stand-alone stream what a bare data source cannot: the hidden column `_metadata`, VARIANT columns and session settings. Inside
the Lakelet runtime, whose own replacements answer, the methods do what they did before.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.alone import open_alone
from lakelet.autoloader.loading import FORMAT, capturing, given_options, pop_path, reader_arguments, struct_of
from lakelet.autoloader.options import batch_usage
from lakelet.autoloader.settings import source_settings
from lakelet.autoloader.spec import SPEC_OPTION
from lakelet.base.patching import Patch, PatchSet, put_on, without_context
from lakelet.base.user_code import in_pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        """End the registration; with the last one that is open pyspark is as before."""
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
    Patch("pyspark.core.context.SparkContext", "stop", without_context(_stop), "the replacements end with the application", "0.7.0"),
)
"""What a stand-alone application's `load` needs."""

__all__ = ["STAND_ALONE", "Registration", "opened"]
