"""Paths of user code as paths of this machine, by the path map of the update that runs in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.names import quoted
from lakelet.base.user_code import caller_location
from lakelet.config.path_map import CLOUD_SCHEMES, only_on_databricks
from lakelet.files.stores import is_set_up, scheme_of
from lakelet.jvm.frames import loaded
from lakelet.jvm.hadoop import has_file_system
from lakelet.jvm.sessions import active_context, plain_reader
from lakelet.language.sql_text.tokens import edited, literal, may_have, plain_tokens
from lakelet.spark.names.outside import active_map

FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "text", "xml", "avro", "binaryfile", "delta"})
_SCHEMA_LOG = "cloudfiles.schemalocation"
_SOURCE_OPTIONS = ("cloudfiles.cleansource.movedestination", _SCHEMA_LOG)


def located(path: str, *, writing: bool = False, files: bool = True) -> str:
    """Return the path under which Spark finds a path of user code; relative paths of `files` may begin in the project.

    Raises PATH_NOT_MAPPED or MAP_TARGET_MISSING.
    """
    found = active_map().located(path, readable=_spark_reads, writing=writing, where=caller_location())
    return active_map().anchored(found) if files else found


def located_source(spec: SourceSpec) -> SourceSpec:
    """A cloudFiles source with mapped paths: its own, the folder that files are moved to, that of the schema log. Raises like `located`."""
    path = active_map().anchored(active_map().located(spec.path, readable=is_set_up, where=spec.where))
    options = {
        k: active_map().mapped(v) if k.lower() in _SOURCE_OPTIONS else v
        for k, v in spec.options.items()
        if k not in unusable_schema_location(spec)
    }
    return replace(spec, path=path, options=options)


def unusable_schema_location(spec: SourceSpec) -> Mapping[str, str]:
    """Return a source's cloudFiles.schemaLocation if this machine cannot write there; the schema log is in the storage then."""
    given = {k: v for k, v in spec.options.items() if k.lower() == _SCHEMA_LOG and active_map().entry(v) is None}
    return {
        k: v
        for k, v in given.items()
        if only_on_databricks(v) or ((scheme := scheme_of(v)) in CLOUD_SCHEMES and not is_set_up(scheme or ""))
    }


def located_relation(parts: Sequence[str]) -> str | None:
    """SQL for the files that a name such as ``json.`path` `` means, where they lie here; None for any other name. Raises like `located`."""
    if len(parts) != 2 or parts[0].lower() not in FILE_FORMATS:
        return None
    path = located(parts[1])
    return None if path == parts[1] else f"{parts[0]}.{quoted(path)}"


def open_relation(spark: SparkSession, parts: Sequence[str], *, streaming: bool, jreader: Any) -> DataFrame | None:
    """The rows of ``json.`path` `` and the like whose path is mapped, with the options of `jreader`; None for any other name.

    Raises like `located`.
    """
    if located_relation(parts) is None:
        return None
    return loaded(spark, jreader or plain_reader(spark, streaming=streaming), parts[0], located(parts[1]))


def with_local_locations(text: str) -> str:
    """Return SQL text with the paths of `LOCATION '…'` as paths of this machine. Raises PATH_NOT_MAPPED."""

    if not may_have(text, ("LOCATION",)):
        return text
    edits = []
    for word, path in pairwise(plain_tokens(text)):
        if word.upper == "LOCATION" and path.kind == "string":
            target = located(path.value, writing=True)
            edits += [(path.start, path.stop, literal(target))] if target != path.value else []
    return edited(text, edits)


def _spark_reads(scheme: str) -> bool:
    """Whether Spark's Java has a file system for a scheme."""
    context = active_context()
    return context is not None and has_file_system(context, scheme)
