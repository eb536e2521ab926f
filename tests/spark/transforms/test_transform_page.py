"""docs/transforms.md names every function, and its blocks print what they show."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelet import transforms
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "transforms.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_function_is_in_the_table_and_no_other() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {re.match(r"\w+", call)[0] for row in rows for call in re.findall(r"`([^`]+)`", row)}  # type: ignore[index]
    functions = {name for name in transforms.__all__ if inspect.isfunction(getattr(transforms, name)) and name != "recording"}
    assert named == functions


def test_the_blocks_print_what_they_show(spark: Any) -> None:
    found = BLOCKS.findall(PAGE)
    assert len(found) == PAGE.count("```python") == 4
    names: dict[str, Any] = {"spark": spark}
    for code, shown in found:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "docs/transforms.md", "exec"), names)
        assert printed.getvalue().strip() == shown.strip()


def test_the_folder_copied_under_a_new_name_transforms_frames(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "src" / "lakelet" / "transforms", tmp_path / "steps", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.syspath_prepend(tmp_path)
    try:
        steps = importlib.import_module("steps")
        frame = spark.createDataFrame([(("ann@example.com", "7"),), (("bo@example.com", "7.5"),)], "who STRUCT<mail: STRING, age: STRING>")
        for step in (
            steps.flatten(),
            steps.mask_email("who_mail"),
            steps.alter_types({"who_age": "INT"}),
            steps.tokenize("who_mail", key=b"k" * 16),
        ):
            frame = frame.transform(step)
        assert [(row.who_age, row._misfits) for row in frame.collect()] == [(7, None), (None, {"who_age": "7.5"})]
        with pytest.raises(steps.TransformError, match="TRANSFORM_UNKNOWN_COLUMN"):
            frame.transform(steps.drop("nothing"))
        assert not issubclass(steps.TransformError, transforms.TransformError)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "steps"]:
            del sys.modules[name]
