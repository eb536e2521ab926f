"""What pyspark's readers were given: pyspark hands options to the JVM and forgets them, and `load` has to know them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lakelet.base.text import option_text
from lakelet.jvm.sessions import ddl_as_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FORMAT = "cloudfiles"


def reader_arguments(reader: Any) -> dict[str, Any]:
    """Return what user code gave a reader so far: format, schema, options."""
    arguments: dict[str, Any] = reader.__dict__.setdefault("_lakelet_arguments", {})
    return arguments


_PARAMETERS = {"format": ("source",), "schema": ("schema",), "option": ("key", "value"), "options": ()}


def capturing(name: str) -> Callable[[Any], Any]:
    """Wrap a builder method so that its argument is known when `load` is called."""

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            given = {"options": kwargs} if name == "options" else {**dict(zip(_PARAMETERS[name], args, strict=False)), **kwargs}
            remember(self, name, given)
            return original(self, *args, **kwargs)

        return method

    return make


def remember(reader: Any, name: str, given: Mapping[str, Any]) -> None:
    """Keep the arguments of a builder method, which are given by the names of its parameters, with the reader."""
    seen = reader_arguments(reader)
    if name in ("format", "schema"):
        seen[name] = next(iter(given.values()))
    else:
        options = given.get("options", {}) if name == "options" else {given["key"]: given["value"]}
        seen.setdefault("options", {}).update({k: option_text(v) for k, v in options.items() if v is not None})


def given_options(reader: Any, options: Mapping[str, Any]) -> dict[str, str]:
    """The options of a reader together with those of its `load` call."""
    return {**reader_arguments(reader).get("options", {}), **{k: option_text(v) for k, v in options.items() if v is not None}}


def pop_path(options: dict[str, str]) -> str | None:
    """Take the option `path` out of `options`."""
    key = next((k for k in options if k.lower() == "path"), None)
    return options.pop(key) if key else None


def struct_of(schema: Any, spark: SparkSession) -> StructType | None:
    """The StructType of a `schema` argument: a StructType, DDL text or None."""
    from pyspark.sql.types import StructType

    if schema is None or isinstance(schema, StructType):
        return schema
    return StructType.fromJson(json.loads(ddl_as_json(spark, schema)))
