"""The file formats of Auto Loader, one module each; looked up by the value of `cloudFiles.format`."""

from __future__ import annotations

import importlib
from functools import cache

from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader, UnknownFields, WiderType

_MODULES = {
    "avro": "typed.avro.AvroFormat",
    "binaryfile": "text_and_binary.BinaryFormat",
    "csv": "csv.format.CsvFormat",
    "json": "json.format.JsonFormat",
    "orc": "typed.orc.OrcFormat",
    "parquet": "typed.parquet.ParquetFormat",
    "text": "text_and_binary.TextFormat",
    "xml": "xml.format.XmlFormat",
}
NAMES = ("avro", "binaryFile", "csv", "json", "orc", "parquet", "text", "xml")


@cache
def format_of(name: str) -> Format | None:
    """The format called `name` (any case); None when this version does not read it."""
    path = _MODULES.get(name.lower())
    if path is None:
        return None
    module, _, kind = path.rpartition(".")
    made: Format = getattr(importlib.import_module(f"lakelet.autoloader.formats.{module}"), kind)()
    return made


__all__ = ["NAMES", "Chunk", "DataField", "Format", "FormatReader", "UnknownFields", "WiderType", "format_of"]
