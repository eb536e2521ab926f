"""What pyspark's readers were told, and `load` of `cloudFiles` in Python outside the Lakelet runtime.

pyspark hands options to the JVM and forgets them. `remember` wraps the builder methods so that `load` knows them; `wrap_loading` uses that
to give a stand-alone stream what a bare data source cannot: the hidden column `_metadata`, VARIANT columns and session settings.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.alone import SOURCE_CONFS, open_alone
from lakelet.autoloader.options import batch_usage
from lakelet.autoloader.spec import SPEC_OPTION
from lakelet.base.active import in_pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = "cloudfiles"
_OURS = "_lakelet_loading"  # mark of a wrapped method
_numbers = itertools.count()


def said_to(reader: Any) -> dict[str, Any]:
    """What user code told a reader so far: format, schema, options."""
    said: dict[str, Any] = reader.__dict__.setdefault("_lakelet_said", {})
    return said


def remembering(name: str) -> Callable[[Any], Any]:
    """Wrap a builder method so that its argument is known when `load` is called."""

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            said = said_to(self)
            if name in ("format", "schema"):
                said[name] = args[0] if args else next(iter(kwargs.values()))
            else:
                given = kwargs if name == "options" else {_argument(args, kwargs, 0, "key"): _argument(args, kwargs, 1, "value")}
                said.setdefault("options", {}).update({k: option_text(v) for k, v in given.items() if v is not None})
            return original(self, *args, **kwargs)

        return method

    return make


def given_options(reader: Any, options: Mapping[str, Any]) -> dict[str, str]:
    """The options of a reader together with those of its `load` call."""
    return {**said_to(reader).get("options", {}), **{k: option_text(v) for k, v in options.items() if v is not None}}


def option_text(value: Any) -> str:
    """An option's value as Spark writes it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def pop_path(options: dict[str, str]) -> str | None:
    """Take the option `path` out of `options`."""
    key = next((k for k in options if k.lower() == "path"), None)
    return options.pop(key) if key else None


def struct_of(schema: Any, spark: SparkSession) -> StructType | None:
    """The StructType of a `schema` argument: a StructType, DDL text or None."""
    from pyspark.sql.types import StructType

    if schema is None or isinstance(schema, StructType):
        return schema
    jvm: Any = spark._jvm
    return StructType.fromJson(json.loads(jvm.org.apache.spark.sql.types.StructType.fromDDL(schema).json()))


def wrap_loading() -> None:
    """Make `readStream.format("cloudFiles").load` of this process know about Auto Loader; does nothing when it does already.

    Inside the Lakelet runtime, whose own wrapper answers, the methods do what they did before.
    """
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

    for name in ("format", "schema", "option", "options"):
        _wrap(DataStreamReader, name, remembering(name))
    _wrap(DataStreamReader, "load", _stream_load)
    _wrap(DataFrameReader, "format", remembering("format"))
    _wrap(DataFrameReader, "load", _batch_load)


def _wrap(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    if hasattr(original, _OURS):
        return
    wrapped = functools.wraps(original)(make(original))
    setattr(wrapped, _OURS, True)
    setattr(owner, name, wrapped)


def _argument(args: Sequence[Any], kwargs: Mapping[str, Any], index: int, name: str) -> Any:
    return args[index] if len(args) > index else kwargs[name]


def _stream_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        said, given = said_to(self), given_options(self, options)
        ours = str(format or said.get("format")).lower() == FORMAT and SPEC_OPTION not in given
        if not ours or in_pipeline():
            frame: DataFrame = original(self, path, format, schema, **options)
            return frame
        spark = self._spark
        confs = {k: v for k in (*SOURCE_CONFS, "spark.sql.session.timeZone") if (v := spark.conf.get(k, None)) is not None}
        declared = struct_of(schema if schema is not None else said.get("schema"), spark)
        source = open_alone(path or pop_path(given) or "", given, declared, confs)
        return source.read_stream(spark, name=f"lakelet_source_{next(_numbers)}", evolve_here=True)

    return load


def _batch_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        if str(format or said_to(self).get("format")).lower() == FORMAT and not in_pipeline():
            raise batch_usage()
        frame: DataFrame = original(self, path, format, schema, **options)
        return frame

    return load
