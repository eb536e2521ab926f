"""`lakelet` as a process of its own, against a server that speaks S3's protocol. Everything here is marked `cloud`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.s3 import S3Server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cloud)


@dataclass
class Lake:
    """A project folder of this machine whose landing zone and storage lie on S3."""

    folder: Path
    s3: S3Server
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def storage(self) -> str:
        return self.s3.uri("lake")

    def write(self, source: str, name: str = "pipeline.py") -> None:
        (self.folder / name).write_text(textwrap.dedent(source))

    def attempt(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command on the storage to its end, whatever that is."""
        command = [sys.executable, "-m", "lakelet.cli.main", *words]
        environment = {**os.environ, **self.s3.environment, **self.environment}
        return subprocess.run(command, cwd=cwd or self.folder, env=environment, capture_output=True, text=True, timeout=900, check=False)

    def lakelet(self, *words: str, cwd: Path | None = None, expect: int = 0) -> str:
        """Run one command on the storage; its standard output. `expect`: the exit code."""
        done = self.attempt(*words, cwd=cwd)
        assert done.returncode == expect, f"{words}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
        return done.stdout

    def run(self, *words: str, cwd: Path | None = None) -> dict[str, str]:
        """One update; the last status of each flow by unqualified name."""
        out = self.lakelet("run", *words, "--json", "--storage", self.storage, *self.options, cwd=cwd)
        events = [json.loads(line) for line in out.splitlines()]
        states = [e["details"]["update_progress"]["state"] for e in events if e["event_type"] == "update_progress"]
        assert states[-1] == "COMPLETED", out[-5000:]
        flows = [e for e in events if e["event_type"] == "flow_progress"]
        return {e["origin"]["flow_name"].rsplit(".", 1)[-1]: e["details"]["flow_progress"]["status"] for e in flows}

    def rows(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.lakelet("show", name, "--json", "--storage", self.storage))
        return found


@pytest.fixture
def lake(tmp_path: Path, s3: S3Server) -> Lake:
    return Lake(tmp_path, s3)
