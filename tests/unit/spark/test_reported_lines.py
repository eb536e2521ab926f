"""The lines that pyspark reports to Java during an update are those that it finds itself."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
from pyspark.errors import utils

from lakelet.base.patching import patched_with
from lakelet.spark.patches.session_patches import REPORTED_LINES


@pytest.mark.parametrize("depth", [1, 3])
def test_they_are_found_without_a_search_for_ipython(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    finders = [utils._capture_call_site]
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with patched_with(REPORTED_LINES):
        finders.append(utils._capture_call_site)
        pysparks, ours = [find(depth) for find in finders]
        assert ours == pysparks
        assert ours.startswith(f"{__file__}:")
        assert ours.count("\n") == depth - 1
        with monkeypatch.context() as changed:
            changed.setattr("builtins.__import__", refuse)
            finders[1](depth)
        for name in ("IPython", "ipykernel"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
            monkeypatch.setattr(sys.modules[name], "__file__", f"/of/{name}/__init__.py", raising=False)
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(execution_count=7), raising=False)
        pysparks, ours = [find(depth) for find in finders]
        assert ours == pysparks
        assert "in cell [7]" in ours


def refuse(name: str, *_: object) -> None:
    raise AssertionError(f"{name} is imported")
