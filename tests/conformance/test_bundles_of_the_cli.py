"""Variables of the test bundles of the Databricks CLI have the values that the CLI printed for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lakelet.config.bundle_files import bundle_file, read_bundle_files
from lakelet.config.yaml_tree import Problems, plain, scalar
from lakelet.deploy.bundle.references import DeploymentReferences, with_defaults
from lakelet.deploy.desired_state import User
from tests.conformance.corpus import SOURCES

pytestmark = pytest.mark.conformance

FOLDER = SOURCES["bundles"].folder / SOURCES["bundles"].paths[0]
CALL = re.compile(r">>> (.*?\[CLI\] bundle validate.*)|^\$CLI (bundle validate.*)", re.MULTILINE)
TARGET = re.compile(r"(?:-t|--target)[ =](\S+)")
GIVEN = re.compile(r"""(?:--var[ =]"?|BUNDLE_VAR_)(\w+)=([^"\s]*)""")
OTHERWISE = {
    "git-branch": "its script makes a repository",
    "complex": "a key is written twice there, which is refused here",
    "cycle": "an error there and here",
}


def printed(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each call of the CLI and the variables that it printed: by name a mapping with `value`."""
    script = (folder / "script").read_text(encoding="utf-8")
    for out in sorted(folder.glob("out*")):
        text, decoder, at = "\n" + out.read_text(encoding="utf-8"), json.JSONDecoder(), 0
        while (at := text.find("\n{", at)) >= 0:
            calls = ["".join(call) for call in CALL.findall(text[:at])] or ["".join(call) for call in CALL.findall(script)]
            at += 1
            try:
                found, size = decoder.raw_decode(text[at:])
            except ValueError:
                continue
            at += size - 1
            variables = found.get("variables", found)
            if calls and variables and all(isinstance(one, dict) and "value" in one for one in variables.values()):
                yield calls[-1], variables


def values(folder: Path, call: str, names: list[str]) -> dict[str, Any]:
    """The values that Lakelet gives to variables of a bundle."""
    target, problems, user = TARGET.search(call), Problems(), User("[USERNAME]", "[USERNAME]")
    file = bundle_file(folder)
    assert file is not None
    read = read_bundle_files(file, target[1] if target else None, cwd=folder, problems=problems)
    tree = with_defaults(read.tree, read.root)
    given = dict(GIVEN.findall((folder / "script").read_text(encoding="utf-8") + call))
    references = DeploymentReferences(tree, target=read.target, user=user, given=given, lookup=lambda kind, name: "0", problems=problems)
    return {name: plain(references.filled(scalar(f"${{var.{name}}}", tree), ("bundle", "var", "workspace"))) for name in names}


def test_variables_have_the_values_that_the_cli_gives_them() -> None:
    if not SOURCES["bundles"].present:
        pytest.skip("no sources; `make corpus` fetches them")
    wrong, compared = [], 0
    for folder in sorted(file.parent for file in FOLDER.glob("*/databricks.yml") if file.parent.name not in OTHERWISE):
        for call, variables in printed(folder):
            found = values(folder, call, list(variables))
            compared += len(variables)
            wrong += [(folder.name, name, found[name], one["value"]) for name, one in variables.items() if found[name] != one["value"]]
    assert not wrong, "\n".join(map(str, wrong))
    assert compared > 15
