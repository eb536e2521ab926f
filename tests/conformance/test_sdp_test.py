"""The files of sdp-test 0.4 run here unchanged: the examples of its description, and its verdicts on `tests/yaml_test_cases.py`.

Runs where `make corpus` could download the package. Nothing of it is in this repository, and it is not installed: its plugin would take
the collection of tests over.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakelet.testing.unit_tests import read_tests
from tests.conformance.corpus import SDP_TEST
from tests.paths import ROOT
from tests.yaml_test_cases import CASES

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not SDP_TEST.present, reason=f"{SDP_TEST.name} is not in {SDP_TEST.folder}; fetch it: make corpus"),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODELS = {
    "stg_customers.sql": "SELECT id AS customer_id, concat_ws(' ', first_name, last_name) AS customer_name\n"
    "FROM ${bronze_schema}.raw_customers",
    "order_items.sql": "SELECT order_id, supply_cost\n"
    "FROM ${silver_schema}.stg_order_items JOIN ${silver_schema}.stg_supplies USING (product_id)",
}
"""What the description tests without showing it, in our words."""


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str]]:
    """Language and text of each block of the description."""
    (package,) = metadata.distributions(path=[str(SDP_TEST.folder)])
    return BLOCK.findall(str(package.metadata.get_payload() or package.metadata["Description"]))


def with_(blocks: list[tuple[str, str]], language: str, *words: str) -> list[str]:
    """The blocks of a language that hold all these words."""
    return [text for kind, text in blocks if kind == language and all(word in text for word in words)]


class Outcomes:
    """The outcome of each test, by its name without pipeline and file."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome == "failed":
            self.found.append((report.nodeid.rpartition("::")[2], report.outcome, report.longreprtext))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            self.found.append((report.nodeid, report.outcome, report.longreprtext))


def run(*arguments: str) -> list[tuple[str, str, str]]:
    outcomes = Outcomes()
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:timeout", "--rootdir=.", *arguments], plugins=[outcomes])
    return outcomes.found


@pytest.mark.spark
def test_the_examples_of_its_description_pass_under_its_own_settings(
    blocks: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    (definition,) = with_(blocks, "yaml", "database:", "transformations/**")
    (settings,) = with_(blocks, "toml", "[tool.sdp-test]", "testpaths")
    (resources,) = with_(blocks, "yaml", "resources/my_pipeline.pipeline.yml", "libraries:")
    folder = tmp_path / "transformations"
    files = {"spark-pipeline.yml": definition, "pyproject.toml": settings, "resources/my_pipeline.pipeline.yml": resources}
    for place, text in files.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    (tmp_path / "tests").mkdir()
    folder.mkdir()
    shown = {kind: with_(blocks, kind, "stg_products")[0] for kind in ("sql", "python")}
    expected = set()
    for number, text in enumerate(with_(blocks, "yaml", "tests:", "given:", "expect:")):
        tree = yaml.safe_load(text)
        (model,) = {test["model"] for test in tree["tests"]}
        if "pipeline" in tree or model not in (*MODELS, "stg_products.sql", "stg_products.py"):
            continue
        own = f"CREATE MATERIALIZED VIEW model AS {MODELS[model]}" if model in MODELS else None
        (folder / model).write_text(own or shown["python" if model.endswith(".py") else "sql"])
        (folder / f"example{number}.unit_tests.yml").write_text(text)
        expected |= {test["name"] for test in tree["tests"]}
    (union,), (given,) = with_(blocks, "sql", "cat_a.sales.orders", "UNION"), with_(blocks, "yaml", "cat_a.sales.orders")
    (folder / "both.sql").write_text(f"CREATE MATERIALIZED VIEW both AS\n{union}")
    entry = "".join(f"    {line}\n" for line in given.splitlines())
    rows = "    expect: {rows: [{id: a1, src: a}, {id: b1, src: b}]}\n"
    (folder / "both.unit_tests.yml").write_text(f"tests:\n  - name: two catalogs\n    model: both.sql\n{entry}{rows}")
    monkeypatch.chdir(tmp_path)
    found = run()
    assert sorted(found) == sorted((name, "passed", "") for name in {*expected, "two catalogs"}), found
    assert len(expected) >= 4


def test_its_files_of_pipeline_tests_and_its_definitions_are_read(blocks: list[tuple[str, str]], tmp_path: Path) -> None:
    (resources,) = with_(blocks, "yaml", "resources/my_pipeline.pipeline.yml", "libraries:")
    (whole,) = with_(blocks, "yaml", "bundle:", "defaults:", "tests:")
    (forms,) = with_(blocks, "yaml", "pipeline:", "ref:", "key:")
    (definition,) = with_(blocks, "yaml", "database:", "transformations/**")
    model = next(test["model"] for test in yaml.safe_load(whole)["tests"])
    for place, text in {
        "databricks.yml": "bundle: {name: shop}\ninclude: [resources/my_pipeline.pipeline.yml]\n",
        "resources/my_pipeline.pipeline.yml": resources,
        "resources/my_pipeline.yml": resources,
        "spark-pipeline.yml": definition,
        f"tests/{model}": "SELECT 1",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    file = tmp_path / "tests" / "shop_pipeline_tests.yml"
    file.write_text(whole)
    [(name, test)] = read_tests(file, tmp_path)
    assert (name, test.steps[0].given[0].name, test.settings.pipeline) == ("inline_test", "bronze.raw_data", "my_pipeline")
    pieces = [piece for piece in re.split(r"\n\s*\n", forms) if "pipeline:" in piece]
    assert len(pieces) == 4
    for piece in pieces:
        file.write_text(f"{piece}\ntests: [{{model: {model}, given: [{{table: '${{silver_schema}}.a'}}]}}]\n")
        [(_, test)] = read_tests(file, tmp_path)
        assert test.steps[0].given[0].name == "silver.a", piece


def test_the_verdicts_that_our_cases_record_are_those_of_the_package(tmp_path: Path) -> None:
    pytest.importorskip("pydantic", reason="sdp-test needs pydantic")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(SDP_TEST.folder)])
    command = [sys.executable, "-m", "tests.conformance.sdp_test_verdicts", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {name: case.verdict for name, case in CASES.items()}
