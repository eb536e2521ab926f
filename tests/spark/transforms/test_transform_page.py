"""docs/transforms.md names every function, and its blocks print what they show."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from typing import Any

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
