"""`make factory`, `make audit`, `make web`: named where the examples are described, and the same commands as there. No Spark.

The commands themselves are executed, and their tables compared, in tests/spark/examples.
"""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.paths import ROOT

SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = ("factory", "audit", "web")


def shell_blocks(page: str) -> list[list[str]]:
    return [block.splitlines() for block in SH.findall((ROOT / page).read_text(encoding="utf-8"))]


def commands_of(target: str) -> list[str]:
    """What the target does after the set-up, one command each."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    done = subprocess.run(["make", "-n", "-o", "ready", target], cwd=ROOT, env=clean, capture_output=True, text=True, check=True)
    return re.split(r"\s*\\?\s+&& ", done.stdout.strip())


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_examples_target_runs_the_commands_of_its_readme_in_its_folder(example: str) -> None:
    folder, path, *commands = commands_of(example)
    assert folder == f"cd examples/{example}"
    assert path == f'PATH="{ROOT}/.venv/bin:$PATH"'
    assert commands == shell_blocks(f"examples/{example}/README.md")[0]
    assert [command.split()[1] for command in commands if command.startswith("lakelet")][:2] == ["run", "run"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_of_an_example_begins_with_its_target(example: str) -> None:
    assert shell_blocks(f"docs/{example}.md")[0] == [f"make {example}"]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/quick-start.md", "Makefile"])
def test_a_page_that_names_make_run_names_the_targets_of_the_examples(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "make run" in text
    assert [example for example in EXAMPLES if f"make {example}" not in text] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_readme_of_an_example_names_its_target(example: str) -> None:
    assert f"`make {example}`" in (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")
