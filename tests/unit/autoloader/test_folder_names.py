"""Columns from folder names: decoded texts, the name for NULL, and types by inference or by a hint (FS-13, FS-18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoloading import INFER, Program


def test_folder_names_are_decoded_and_the_default_partition_is_null(tmp_path: Path) -> None:
    one = Program(tmp_path / "in", tmp_path, INFER)
    one.put("place=S%C3%A3o%20Paulo/a.json", '{"id":1}\n').put("place=__HIVE_DEFAULT_PARTITION__/b.json", '{"id":2}\n').run()
    assert sorted(one.rows("id", "place"), key=str) == [(1, "São Paulo"), (2, None)]


@pytest.mark.parametrize(
    ("options", "kind", "value"),
    [(INFER, "int", 1), ({}, "string", "01"), ({**INFER, "cloudFiles.schemaHints": "n STRING"}, "string", "01")],
)
def test_a_folder_name_has_the_type_that_is_inferred_or_hinted(
    tmp_path: Path, options: dict[str, str], kind: str, value: int | str
) -> None:
    one = Program(tmp_path / "in", tmp_path, options).put("n=01/a.json", '{"id":"x"}\n').run()
    assert (one.types()["n"], one.rows("n")) == (kind, [value])
