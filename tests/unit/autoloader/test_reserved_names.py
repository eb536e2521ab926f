"""A field of the data that is called like the rescued column: its values are rescued, whatever their type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoloading import Program


@pytest.mark.parametrize("infer", ["true", "false"])
@pytest.mark.parametrize(
    ("format", "text"),
    [("csv", "name,_rescued_data\nann,1\nbob,2\n"), ("json", '{"name":"ann","_rescued_data":1}\n{"name":"bob","_rescued_data":2}\n')],
)
def test_its_values_are_in_the_rescued_column(format: str, text: str, infer: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.{format}").write_text(text)
    one = Program(tmp_path / "in", tmp_path, {"cloudFiles.format": format, "header": "true", "cloudFiles.inferColumnTypes": infer}).run()
    assert one.types() == {"name": "string", "_rescued_data": "string"}
    found = [(name, str(json.loads(rescued)["_rescued_data"])) for name, rescued in one.rows("name", "_rescued_data")]
    assert found == [("ann", "1"), ("bob", "2")]
