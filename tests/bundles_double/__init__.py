"""A double of the package databricks-bundles, which is the user's own and not installed here, and environments that have it.

`databricks/bundles/` speaks the package's protocol (two phases, JSON in and out, diagnostics and places as lines of JSON) and has the few
names of its API that the tests' bundles use. Tests that take `interpreters` run with the real package too where
`LAKELET_TEST_BUNDLES_PYTHON` names an interpreter that has it.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REAL = os.environ.get("LAKELET_TEST_BUNDLES_PYTHON")
interpreters = pytest.mark.parametrize(
    "interpreter",
    ["double", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="no interpreter with databricks-bundles is named"))],
)


def environment(folder: Path, interpreter: str = "double") -> Path:
    """Make a folder that looks like a virtual environment and has the package, the real one or the double."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    path = "" if interpreter == "real" else f"PYTHONPATH={shlex.quote(str(HERE))} "
    python.write_text(f'#!/bin/sh\n{path}exec {shlex.quote(REAL or "" if interpreter == "real" else sys.executable)} "$@"\n')
    python.chmod(0o755)
    return folder
