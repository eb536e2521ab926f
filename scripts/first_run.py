"""Records the way from nothing to a passed test: `python scripts/first_run.py [--wheel]` prints commands, what they say, and times.

In an empty folder, with an empty cache of Lakelet and none of pip. With `--wheel` a wheel is built of this checkout and installed in a new
virtual environment, so that nothing of the checkout is read; otherwise the `lakelet` beside the interpreter that runs this is used. Java
must be there, and a way to a package index and to Maven Central, or what replaces them (`LAKELET_MAVEN`, pip's settings).
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHOWN = "/tmp/first"
COMMANDS = (
    "lakelet new project demo",
    "cd demo",
    "lakelet run",
    "lakelet show revenue_by_country",
    "lakelet test",
    "lakelet run",
)
INSTALLATION = ("python3 -m venv .venv", "pip install -q {wheel}")
KEPT = ("PATH", "JAVA_HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "LAKELET_MAVEN", "LAKELET_JARS")
"""Variables of the caller that a command gets, beside those of pip and proxies: no other setting of this shell has a part in it."""


@dataclass(frozen=True)
class Step:
    """A command that was typed: seconds on the clock, and of processor, its children's included; 0 for `cd`."""

    command: str
    seconds: float
    processor: float
    code: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", action="store_true", help="build a wheel and install it in a new virtual environment")
    with tempfile.TemporaryDirectory() as place:
        steps = record(Path(place).resolve(), wheel=parser.parse_args().wheel)
    return max(step.code for step in steps)


def record(place: Path, *, wheel: bool) -> list[Step]:
    """Type the commands one after the other, until one fails; print everything."""
    folder, environ = place / "first", environment(place, wheel=wheel)
    folder.mkdir()
    installed = "the wheel, in a new virtual environment" if wheel else "an environment that has Lakelet"
    print(f"From nothing to a passed test: {installed}, an empty folder, empty caches.")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, {platform.system()}.")
    commands = [*([line.format(wheel=built(place).name) for line in INSTALLATION] if wheel else ()), *COMMANDS]
    steps: list[Step] = []
    for command in commands:
        print(f"\n$ {command}", flush=True)
        if command.startswith("cd "):
            folder /= command.removeprefix("cd ")
            continue
        typed = command.replace(" lakelet-", f" {place / 'dist'}/lakelet-")
        steps.append(typed_in(folder, typed, environ, place, shown=command))
        if steps[-1].code:
            break
    print("\n" + "\n".join(summary(steps)))
    return steps


def environment(place: Path, *, wheel: bool) -> dict[str, str]:
    """The variables of the commands: an empty home folder, and the programs of one environment before all others."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("PIP_") or name.lower().endswith("_proxy")}
    programs = place / "first" / ".venv" / "bin" if wheel else Path(sys.executable).parent
    home = place / "home"
    home.mkdir()
    return {
        **kept,
        "PATH": f"{programs}:{sys.base_prefix}/bin:{kept.get('PATH', os.defpath)}",
        "HOME": str(home),
        "LAKELET_CACHE": str(home / ".cache" / "lakelet"),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONUNBUFFERED": "1",
    }


def built(place: Path) -> Path:
    """A wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(place / "dist"), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next((place / "dist").glob("lakelet-*.whl"))


def typed_in(folder: Path, command: str, environ: Mapping[str, str], place: Path, *, shown: str) -> Step:
    """Run a command; print its lines as they come, with the seconds since it began."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(shlex.split(command), cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in lines_of(process):
        said = line.replace(str(place / "first"), SHOWN).replace(str(place), "/tmp")
        print(f"{time.monotonic() - began:7.1f}  {said}".rstrip(), flush=True)
    code = process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    step = Step(shown, time.monotonic() - began, processor, code)
    print(f"{step.seconds:7.1f}  exit code {code}", flush=True)
    return step


def lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield re.sub(r"\bhttps?://\S+", "URL", line.rstrip("\n"))


def summary(steps: list[Step]) -> list[str]:
    """A table of the commands; the sum of all up to the first test."""
    rows = [f"{step.seconds:8.1f}  {step.processor:9.1f}  {step.command}" for step in steps]
    tested = next((number for number, step in enumerate(steps, 1) if step.command == "lakelet test"), len(steps))
    needed = steps[:tested]
    total = f"{sum(s.seconds for s in needed):8.1f}  {sum(s.processor for s in needed):9.1f}  until the test has passed"
    return [" seconds  processor  command", *rows, total]


if __name__ == "__main__":
    sys.exit(main())
