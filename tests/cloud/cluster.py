"""A Spark cluster on loopback: the daemons that the pyspark package holds, and a worker environment with hardly anything in it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from lakelet.spark.launch.environment import spark_home

WORKER_PACKAGES = ("pyspark", "py4j", "pyarrow")
_MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
_REGISTERED = "Successfully registered with master"


def worker_environment(folder: Path, more: Sequence[str] = ()) -> Path:
    """An environment that holds pyspark, pyarrow and the packages in `more` (linked, not copied) and nothing else; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in (*WORKER_PACKAGES, *more):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        (packages / name).symlink_to(next(iter(spec.submodule_search_locations)))
    return folder / "bin" / "python"


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the URL of its master, and its workers, which have the folders `worker0`, `worker1`, … ."""

    master: str
    workers: Sequence[subprocess.Popen[bytes]]

    def kill(self, worker: int) -> None:
        """Kill a worker and its executors, as a machine that loses its power."""
        daemon = psutil.Process(self.workers[worker].pid)
        for process in (daemon, *daemon.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def cluster(folder: Path, environment: Mapping[str, str], workers: int = 2) -> Iterator[Cluster]:
    """Start a master and workers of one core each, and end them by their processes.

    `environment`: what the workers see beside the plainest variables of this process.
    """
    with ExitStack() as daemons:
        log = folder / "master.log"
        command = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = daemons.enter_context(_daemon(command, log, {}))
        url = _told(master, log, _MASTER.pattern)
        started = []
        for number in range(workers):
            log = folder / f"worker{number}.log"
            sizes = ["--cores", "1", "--memory", "2g", "--webui-port", "0", "--work-dir", str(folder / f"worker{number}")]
            command = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", *sizes, url]
            started.append(daemons.enter_context(_daemon(command, log, environment)))
            _told(started[-1], log, f"({_REGISTERED})")
        yield Cluster(url, started)


@contextmanager
def _daemon(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PYTHON", "PYSPARK", "LAKELET", "SPARK"))}
    sizes = {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
    with log.open("wb") as stream:
        start = [str(spark_home() / "bin" / "spark-class"), *command]
        process = subprocess.Popen(start, stdout=stream, stderr=stream, env={**own, **sizes, **environment}, cwd=log.parent)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"a daemon did not start: {log.read_text(errors='replace')[-3000:]}")
