"""Spark's short names of the types in a schema's JSON. No Spark."""

from __future__ import annotations

from typing import Any

_SPARK_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def spark_type_text(kind: Any) -> str:
    """A type of a Delta or Spark schema in its JSON form, as Spark writes it in short: `array<struct<a:int>>`."""
    if isinstance(kind, str):
        return _SPARK_NAMES.get(kind, kind)
    if kind["type"] == "struct":
        return "struct<" + ",".join(f"{f['name']}:{spark_type_text(f['type'])}" for f in kind["fields"]) + ">"
    if kind["type"] == "array":
        return f"array<{spark_type_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{spark_type_text(kind['keyType'])},{spark_type_text(kind['valueType'])}>"
    return str(kind.get("type"))


__all__ = ["spark_type_text"]
