"""The example in each docstring of `lakelet.transforms` runs and gives what it shows."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest
from pyspark.sql import functions as F

from lakelet import transforms
from tests.paths import ROOT

FUNCTIONS = [name for name in transforms.__all__ if inspect.isfunction(getattr(transforms, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_the_docstring_gives_what_it_shows(name: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = doctest.DocTestFinder(recurse=False).find(getattr(transforms, name), name, globs={"spark": spark, "F": F}, module=False)
    assert found
    assert found[0].examples, f"{name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(found[0], out=said.append)
    assert result.failed == 0, "".join(said)
