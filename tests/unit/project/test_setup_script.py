"""`scripts/setup.sh`: what it installs, and on machines without Java the one command that it tells. Only made-up tools are on its path."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.paths import ROOT

REPOSITORY = ROOT
TOOLS = ("sh", "cat", "cksum", "cp", "dirname", "head", "ls", "mkdir", "sed", "test")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the script in a checkout of its own, as user 1000, with the usual small tools and these fake ones."""
    checkout, tools = tmp_path / "checkout", tmp_path / "tools"
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(REPOSITORY / "scripts" / "setup.sh", checkout / "scripts")
    for depended_on in ("pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / depended_on, checkout)
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name) or pytest.skip(f"no {name}"))

    def start(fakes: Mapping[str, str], *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        for name, script in {"id": "echo 1000", **fakes}.items():
            (tools / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
            (tools / name).chmod(0o755)
        command = [str(tools / "sh"), str(checkout / "scripts" / "setup.sh"), *arguments]
        return subprocess.run(command, env={"PATH": str(tools), **variables}, capture_output=True, text=True, timeout=30, check=False)

    return start


@pytest.fixture
def machine(tmp_path: Path) -> Mapping[str, str]:
    """A Java 17, a Python that makes environments, and a uv that writes down what it is asked for."""
    asked = tmp_path / "asked"
    makes = 'mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/lakelet'
    python = f'case "$1$2" in -mvenv) {makes};; *) echo "$*" >>{asked};; esac'
    return {"java": "echo 'openjdk version \"17.0.9\"' >&2", "python3": python, "uv": f'echo "uv $*" >>{asked}'}


def installed(tmp_path: Path) -> list[str]:
    """What was asked of uv and of the warm-up, in order."""
    lines = (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []
    (tmp_path / "asked").unlink(missing_ok=True)
    return ["warm-up" if "warmup" in line else line.partition("--editable ")[2] for line in lines if "uv pip" in line or "warmup" in line]


def test_running_needs_no_tools_of_developers_and_what_is_there_stays(run: Run, machine: Mapping[str, str], tmp_path: Path) -> None:
    done = run(machine, "running")
    assert (done.returncode, installed(tmp_path)) == (0, [".[quality] --group examples"]), done.stderr
    assert "about 1.4 GB" in done.stderr
    assert (run(machine, "running").stderr, installed(tmp_path)) == ("", [])
    assert "about 2.3 GB" in run(machine).stderr
    assert installed(tmp_path) == [". --group dev", "warm-up"]
    assert (run(machine, "running").stderr, run(machine).stderr, installed(tmp_path)) == ("", "", [])
    (tmp_path / "checkout" / "constraints.txt").write_text("")
    run(machine, "running")
    assert installed(tmp_path) == [". --group dev", "warm-up"]


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "sudo apt-get install -y openjdk-17-jre-headless"),
        ("dnf", "sudo dnf install -y java-17-openjdk-headless"),
        ("brew", "brew install openjdk@17"),
        ("none", "export JAVA_HOME="),
    ],
)
def test_without_java_and_without_root_the_one_command_is_told(run: Run, manager: str, command: str) -> None:
    done = run({manager: "echo called >&2; exit 1"})
    assert done.returncode == 3
    assert done.stderr.startswith("setup: Java 17 or newer is needed. Type: " if manager != "none" else "setup: Java 17 or newer is needed")
    assert command in done.stderr
    assert "called" not in done.stderr
    assert done.stdout == ""


def test_an_old_java_is_told_with_its_version(run: Run) -> None:
    done = run({"java": "echo 'openjdk version \"1.8.0_392\"' >&2", "apt-get": "exit 1"})
    assert done.returncode == 3
    assert "Java 17 or newer is needed, here is 8." in done.stderr


def test_a_wrong_java_home_is_told_as_such(run: Run) -> None:
    done = run({"java": "echo 'openjdk version \"17.0.9\"' >&2"}, JAVA_HOME="/nowhere")
    assert done.returncode == 3
    assert "JAVA_HOME=/nowhere is not Java 17 or newer" in done.stderr


def test_root_on_debian_gets_java_installed_and_told(run: Run, tmp_path: Path) -> None:
    install = f'echo "$*" >> {tmp_path}/asked'
    done = run({"id": "echo 0", "apt-get": install})
    assert "setup: installing Java: apt-get install openjdk-17-jre-headless" in done.stderr
    assert "install -y --no-install-recommends openjdk-17-jre-headless" in (tmp_path / "asked").read_text()


def test_the_script_is_plain_sh() -> None:
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("no dash here")
    assert subprocess.run([dash, "-n", str(REPOSITORY / "scripts" / "setup.sh")], check=False).returncode == 0
