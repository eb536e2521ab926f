"""Other people's pipelines under the stubs that `lakelet init` writes: pyright complains about no name of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.project.editor import write_settings
from tests.conformance.corpus import SOURCES

pytestmark = pytest.mark.conformance


def test_pyright_knows_every_name_that_they_use(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright", reason="basedpyright is not installed (dependency group dev)")
    files = {file for source in SOURCES.values() if source.present for path in source.files for file in python_files(source.folder / path)}
    if not files:
        pytest.skip("no sources; `make corpus` fetches them")
    write_settings(tmp_path)
    roots = {str((source.folder / path).parent) for source in SOURCES.values() for path in source.files}
    settings = {
        "include": sorted(map(str, files)),
        "extraPaths": sorted(roots),
        "typeCheckingMode": "standard",
        "reportMissingModuleSource": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    line = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path), "--pythonpath", sys.executable]
    found = json.loads(subprocess.run(line, capture_output=True, text=True, cwd=tmp_path).stdout)
    told = [d for d in found["generalDiagnostics"] if d["severity"] == "error"]
    assert [f"{d['file']}:{d['range']['start']['line'] + 1}: {d['message']}" for d in told] == []
    assert found["summary"]["filesAnalyzed"] == len(files)


def python_files(path: Path) -> list[Path]:
    found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [file for file in found if file.suffix == ".py"]
