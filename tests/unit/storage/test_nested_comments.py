"""What of nested fields is part of their type."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T

from lakelet.storage.delta.schemas import same_types


def nested(kind: T.DataType, **metadata: Any) -> T.StructType:
    return T.StructType([T.StructField("m", T.ArrayType(T.StructType([T.StructField("comment", kind, True, metadata or None)])))])


@pytest.mark.parametrize("metadata", [{"comment": "who"}, {"comment": "who", "primaryKey": True}])
def test_comments_and_other_notes_are_no_part_of_it(metadata: dict[str, Any]) -> None:
    assert same_types(nested(T.StringType(), **metadata), nested(T.StringType())) == []


def test_a_collation_is() -> None:
    (problem,) = same_types(nested(T.StringType("UTF8_LCASE"), comment="who"), nested(T.StringType()))
    assert "collate UTF8_LCASE" in problem
