"""The built page in the package is what its sources in `frontend/` build to."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lakelet.dashboard.page import assets
from tests.paths import ROOT

FRONTEND = ROOT / "frontend"


def test_the_build_names_the_sources_that_are_there() -> None:
    digest = hashlib.sha256()
    for path in sorted([*(f"src/{p.name}" for p in (FRONTEND / "src").iterdir()), "build.mjs", "package.json"]):
        digest.update(f"{path}\0".encode() + (FRONTEND / path).read_bytes() + b"\0")
    for name in ("page.js", "page.css"):
        found = re.search(r"/\* sources ([0-9a-f]{64})", assets()[name].decode()[:200])
        assert found, name
        assert found[1] == digest.hexdigest(), "the page was not built again: cd frontend && npm install && npm run build"


@pytest.mark.skipif(
    not (FRONTEND / "node_modules").exists() or not shutil.which("node"), reason="no Node, or `npm install` was not run in frontend/"
)
def test_building_again_gives_the_same_files(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=FRONTEND, check=True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {n: c for n, c in assets().items() if n != "__init__.py"}


def test_sources_are_formatted_so_that_they_can_be_read() -> None:
    lines = {path.name: path.read_text().splitlines() for path in [*(FRONTEND / "src").glob("*.ts"), FRONTEND / "build.mjs"]}
    assert len(lines) > 20
    assert [(name, n) for name, found in lines.items() for n, line in enumerate(found, 1) if len(line) > 120] == []
    assert [name for name, found in lines.items() if len(found) > 300] == []


def test_nothing_records_where_packages_came_from() -> None:
    assert [p.name for p in FRONTEND.iterdir() if "lock" in p.name or p.name == ".npmrc"] == []
    versions = re.findall(r'"[\w@/-]+": "([^"]+)"', (FRONTEND / "package.json").read_text().partition('"dependencies"')[2])
    assert versions
    assert [version for version in versions if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_the_licences_of_what_is_built_in_are_beside_it() -> None:
    text = assets()["LICENSES.txt"].decode()
    for name in ("uplot 1.6.32 (MIT)", "@dagrejs/dagre 3.1.3 (MIT)", "Permission is hereby granted"):
        assert name in text
