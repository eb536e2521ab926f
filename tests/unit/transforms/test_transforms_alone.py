"""`lakelet.transforms` is usable as a copied folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


def test_the_copied_folder_needs_pyspark_and_nothing_of_lakelet(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "lakelet" / "transforms", tmp_path / "steps", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys, steps; print(steps.flatten(separator='.')); print({'lakelet', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["flatten(separator='.', levels=None, on_collision='error')", "set()"]
