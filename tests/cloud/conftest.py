"""`lakelet` as a process of its own, against a server that speaks the protocol of a store. Everything here is marked `cloud`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.azurite import AzureServer
from tests.cloud.cluster import Cluster, cluster, worker_environment
from tests.gcs import GoogleServer
from tests.hdfs import HdfsServer
from tests.s3 import S3Server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cloud)


Store: TypeAlias = S3Server | GoogleServer | AzureServer | HdfsServer


@dataclass
class Lake:
    """A project folder of this machine whose landing zone and storage lie on a store."""

    folder: Path
    store: Store
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    cluster: Cluster | None = None
    in_folders: bool = False
    """Landing zone and storage are folders of this machine instead."""

    @property
    def storage(self) -> str:
        return str(self.folder / "lake") if self.in_folders else self.store.uri("lake")

    @property
    def landing(self) -> str:
        return str(self.folder / "landing") if self.in_folders else self.store.uri("landing")

    def deliver(self, name: str, text: str) -> None:
        """Put a file into the landing zone, as somebody else would."""
        if self.in_folders:
            (self.folder / "landing").mkdir(exist_ok=True)
            (self.folder / "landing" / name).write_text(text)
        else:
            self.store.put(f"landing/{name}", text)

    def write(self, source: str, name: str = "pipeline.py") -> None:
        (self.folder / name).write_text(textwrap.dedent(source))

    def start(self, *words: str, failpoint: str | None = None) -> subprocess.Popen[str]:
        """Start an update in a process group of its own; with a failpoint, which kills the group."""
        command = [sys.executable, "-m", "lakelet.cli.main", "run", *words, "--json", "--storage", self.storage, *self.options]
        environment = {
            **os.environ,
            **self.store.environment,
            **self.environment,
            **({"LAKELET_FAILPOINT": failpoint} if failpoint else {}),
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def attempt(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command on the storage to its end, whatever that is."""
        command = [sys.executable, "-m", "lakelet.cli.main", *words]
        environment = {**os.environ, **self.store.environment, **self.environment}
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


@contextmanager
def lake_on_cluster(folder: Path, store: Store) -> Iterator[Lake]:
    """A lake whose updates are sent to a cluster of two workers, which hold the packages that its store needs."""
    python = worker_environment(folder / "worker-environment", store.packages)
    (folder / "conf").mkdir()
    with cluster(folder, store.environment) as running:
        variables = {"LAKELET_WORKER_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(folder / "conf")}
        yield Lake(folder, store, ["--master", running.master], variables, running)


@pytest.fixture
def on_cluster(s3: S3Server, tmp_path: Path) -> Iterator[Lake]:
    """A lake on S3, with updates sent to the cluster."""
    with lake_on_cluster(tmp_path, s3) as lake:
        yield lake
