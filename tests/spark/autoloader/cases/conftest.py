"""`make`: a program over a fresh folder. With the parameter `spark` (see `both`) it runs on Spark, otherwise on the reader alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoloading import Program, SparkProgram

Make = Callable[..., Program]


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """`make(options, schema, confs=…, over=…)`; `over`: read this folder (or pattern) instead of an empty one of its own."""
    spark: Any = request.getfixturevalue("spark") if getattr(request, "param", "") == "spark" else None
    made: list[Program] = []

    def program(
        options: dict[str, str] | None = None,
        schema: str | None = None,
        *,
        confs: dict[str, str] | None = None,
        over: Path | str | None = None,
    ) -> Program:
        root = tmp_path / str(len(made))
        folder = root / "in" if over is None else over
        if over is None:
            (root / "in").mkdir(parents=True)
        arguments = (folder, root, options or {}, schema, confs)
        made.append(Program(*arguments) if spark is None else SparkProgram(spark, *arguments))
        return made[-1]

    return program
