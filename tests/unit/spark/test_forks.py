"""The interpreter that Spark is given behaves as this one does, forked or not (docs/decisions/0013-fork-server.md)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from lakelet.spark.launch.forks import PLAIN_PYTHON, python_executable

REPORT = """
    import json, os, sys
    print(json.dumps({
        "argv": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "path": sys.path[0], "greeting": os.environ.get("GREETING"),
        "parent_only": os.environ.get("PARENT_ONLY"), "line": sys.stdin.readline(), "forked": "pyspark.worker" in sys.modules,
        "helper": __import__("helper").VALUE, "hash": hash("lakelet"),
    }))
    print("to stderr", file=sys.stderr)
    sys.exit(int(os.environ.get("CODE", "0")))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "report.py").write_text(textwrap.dedent(REPORT))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "helper.py").write_text("VALUE = 'from PYTHONPATH'\n")
    return tmp_path


def run(folder: Path, executable: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "PYTHONPATH": str(folder / "more"), **environment}
    given = arguments or ("-m", "report", "one", "two")
    return subprocess.run([executable, *given], cwd=folder, env=env, input="a line\n", capture_output=True, text=True, timeout=60)


def test_a_forked_process_has_the_arguments_environment_folder_and_streams_of_its_caller(folder, monkeypatch):
    monkeypatch.setenv("PARENT_ONLY", "not for the fork")
    done = run(folder, python_executable(), GREETING="hello", CODE="3")
    said = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (3, "to stderr\n")
    assert said.pop("forked") is True
    plain = run(folder, sys.executable, GREETING="hello", CODE="3")
    expected = json.loads(plain.stdout)
    assert expected.pop("forked") is False
    assert (said, done.stderr, done.returncode) == (expected, plain.stderr, plain.returncode)
    assert (said["argv"], said["greeting"], said["parent_only"], said["line"]) == (["one", "two"], "hello", None, "a line\n")


def test_what_is_not_a_module_and_another_hash_seed_get_an_interpreter_of_their_own(folder):
    code = run(folder, python_executable(), "-c", "import sys; print('pyspark.worker' in sys.modules, sys.argv)")
    assert code.stdout == "False ['-c']\n"
    assert json.loads(run(folder, python_executable(), PYTHONHASHSEED="7").stdout)["forked"] is False


def test_an_exception_ends_a_forked_process_as_it_ends_any_other(folder):
    (folder / "broken.py").write_text("raise ValueError('no such thing')\n")
    done = run(folder, python_executable(), "-m", "broken")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ValueError: no such thing")


def test_a_forked_process_ends_when_the_process_that_spark_knows_is_killed(folder):
    (folder / "endless.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    with subprocess.Popen([python_executable(), "-m", "endless"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as known:
        forked = psutil.Process(int(known.stdout.readline()))
        assert forked.pid != known.pid
        known.send_signal(signal.SIGKILL)
        forked.wait(timeout=30)


def test_the_executable_is_an_interpreter_before_during_and_after_the_server(folder):
    """A server that is killed, and a run that ends: in a process of its own, whose server is not the one of the other tests."""
    script = f"""
        import json, os, signal, subprocess, sys, time
        from lakelet.spark.launch import forks

        def forked():
            environment = {{**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": {str(folder / "more")!r}}}
            command = [forks.python_executable(), "-m", "report"]
            return json.loads(subprocess.run(command, cwd={str(folder)!r}, env=environment, capture_output=True).stdout)["forked"]

        assert not forks._servers, "it starts when it is asked for"
        answers = [forked(), forked()]
        print(forks._servers[0].pid)
        if sys.argv[1] == "kill":
            forks._servers[0].kill()
            forks._servers[0].wait()
            answers.append(forked())
        print(*answers)
    """
    for word, expected in (("kill", "True True False"), ("leave", "True True")):
        command = [sys.executable, "-c", textwrap.dedent(script), word]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        server, answers = done.stdout.splitlines()
        assert answers == expected
        _gone(int(server))


def test_the_server_can_start_before_it_is_asked(folder):
    script = f"""
        import json, os, subprocess, sys, time
        from lakelet.spark.launch import forks

        executable = forks.python_executable()
        for _ in range(2):
            forks.start_ahead()
        while not forks._servers:
            time.sleep(0.05)
        environment = {{**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": {str(folder / "more")!r}}}
        done = subprocess.run([executable, "-m", "report"], cwd={str(folder)!r}, env=environment, capture_output=True)
        forks.start_ahead()
        print(json.loads(done.stdout)["forked"], len(forks._servers), forks._servers[0].pid)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    forked, servers, server = done.stdout.split()
    assert (forked, servers) == ("True", "1")
    _gone(int(server))


def _gone(process: int) -> None:
    deadline = time.monotonic() + 30
    while psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server outlives the process it belongs to"
        time.sleep(0.05)


def test_the_fork_server_can_be_left_out(monkeypatch):
    monkeypatch.setenv(PLAIN_PYTHON, "1")
    assert python_executable.__wrapped__() == sys.executable
