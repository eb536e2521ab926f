"""The wheel holds what `lakelet new project` begins with: its projects are those of the checkout, file by file. No Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lakelet.project.editor import write_settings
from lakelet.scaffold import new_project, starting_points
from tests.paths import ROOT

pytestmark = pytest.mark.long

PROGRAM = """\
import json
import os
import sys

checkout, wheel, points = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in (checkout, os.path.join(checkout, "src"))]

from lakelet.cli.main import main

codes = {point: main(["new", "project", point, "--from", point]) for point in points}
origins = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "lakelet"]
print(json.dumps([codes, [file for file in origins if not file.startswith(wheel + os.sep)]]))
"""
"""Makes a project from each starting point; prints the exit codes, and modules of Lakelet that did not come from the wheel."""


def texts(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the wheel."""
    pytest.importorskip("hatchling", reason="hatchling is not installed (dependency group dev)")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "built")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (file,) = (folder / "built").glob("lakelet-*.whl")
    with zipfile.ZipFile(file) as packed:
        packed.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.slow
def test_projects_made_with_the_wheel_are_those_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    points = [*starting_points()]
    (tmp_path / "of-wheel").mkdir()
    command = [sys.executable, "-c", PROGRAM, str(ROOT), str(wheel), *points]
    environ = {**os.environ, "PYTHONPATH": str(wheel)}
    done = subprocess.run(command, cwd=tmp_path / "of-wheel", env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [dict.fromkeys(points, 0), []], done.stderr
    for point in points:
        write_settings(new_project(tmp_path / "of-checkout" / point, point).folder)
        assert texts(tmp_path / "of-wheel" / point) == texts(tmp_path / "of-checkout" / point)


def test_the_wheel_holds_lakelet_and_no_caches_or_tables(wheel: Path) -> None:
    found = {path.relative_to(wheel).as_posix() for path in wheel.rglob("*") if path.is_file()}
    assert found >= {f"lakelet/{name}" for name in ("dashboard/static/index.html", "spark/launch/log4j2.properties")}
    assert not [path for path in found if {"__pycache__", ".lakelet"} & {*path.split("/")}]
