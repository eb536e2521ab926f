"""CI and the nightly workflow together run every test, each on one list that lies in the Makefile."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from typing import Any

import yaml

from lakelet.config.tool_settings import tomllib
from tests.paths import ROOT


def workflow(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github/workflows" / f"{name}.yml").read_text(encoding="utf-8"))


def targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def caps() -> dict[str, int]:
    """The parts of CI with their caps in minutes."""
    said = subprocess.run(["make", "-s", "ci-parts"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: int(minutes) for name, _, minutes in (part.partition(":") for part in said.split())}


def commands(jobs: Any) -> list[str]:
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_the_parts_of_ci_are_targets_and_end_within_ninety_minutes() -> None:
    assert targets() >= caps().keys()
    assert sum(caps().values()) < 90


def test_no_two_files_of_tests_outside_of_packages_have_one_name() -> None:
    """pytest imports them as modules of one space of names: it collects the first one only, and fails."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert sorted(name for name, count in Counter(path.name for path in files).items() if count > 1) == []


def test_the_workflow_and_the_script_run_the_parts_of_the_makefile() -> None:
    jobs = workflow("ci")["jobs"]
    assert "make -s ci-parts" in "".join(commands({"parts": jobs["parts"]}))
    assert commands({"part": jobs["part"]}) == ["make ${{ matrix.part }}"]
    assert "make -s ci-parts" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    made = {word for command in commands(jobs) for word in re.findall(r"^make (?!-)(\S+)", command) if "$" not in word}
    assert made <= targets()


def test_the_workflow_runs_on_each_python_and_system_that_is_promised() -> None:
    promised = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    jobs = workflow("ci")["jobs"]
    action = yaml.safe_load((ROOT / ".github/actions/lakelet/action.yml").read_text(encoding="utf-8"))
    pythons = {*jobs["python"]["strategy"]["matrix"]["python"], action["inputs"]["python"]["default"]}
    assert pythons == {name.rpartition(" ")[2] for name in promised if re.search(r":: 3\.\d+$", name)}
    systems = {"macos" if "MacOS" in name else "ubuntu" for name in promised if name.startswith("Operating System")}
    assert systems == {job["runs-on"].removesuffix("-latest") for job in jobs.values()}


def test_what_ci_leaves_out_runs_by_night() -> None:
    assert set(workflow("nightly")["jobs"]["part"]["strategy"]["matrix"]["part"]) == {
        *(target for target in targets() if target.startswith("test-slow-")),
        "test-adaptive",
        "test-spark",
        "test-cloud",
    }
    assert commands(workflow("nightly")["jobs"]) == ["make ${{ matrix.part }}"]
