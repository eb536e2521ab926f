"""What `lakelet new` and `lakelet init` write runs: project, tables, and their own tests. One session for all of it."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakelet.cli.main import main
from lakelet.scaffold import new_project


def rows(capsys: pytest.CaptureFixture[str], query: str) -> list[Any]:
    capsys.readouterr()
    assert main(["sql", query, "--json"]) == 0
    return [list(row.values()) for row in json.loads(capsys.readouterr().out)]


def run_its_test(project: Path, name: str, spark: Any, load_pipeline: Callable[..., Any]) -> int:
    """Call the test functions of a file of the project as pytest would there; return how many there were."""
    tests = [test for title, test in runpy.run_path(str(project / "tests" / name)).items() if title.startswith("test_")]
    for test in tests:
        test(spark, lambda path, **given: load_pipeline(project / path, **given))
    return len(tests)


def follow(block: str, project: Path, spark: Any, load_pipeline: Callable[..., Any]) -> None:
    """Carry out the commands of a block of the project's README."""
    for line in block.splitlines():
        program, *words = shlex.split(line)
        assert program == "lakelet"
        if words == ["test"]:
            assert sum(run_its_test(project, test.name, spark, load_pipeline) for test in (project / "tests").glob("test_*.py")) == 1
        else:
            assert main(words) == 0


@pytest.mark.long
def test_a_new_project_and_new_tables_run_and_pass_their_own_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any, load_pipeline: Callable[..., Any]
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "expectations"]:  # of this checkout
        monkeypatch.delitem(sys.modules, name)
    project = new_project(tmp_path / "demo").folder
    monkeypatch.chdir(project)
    start, more = re.findall(r"^```sh\n(.*?)^```$", (project / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    follow(start, project, spark, load_pipeline)
    assert not (project / ".lakelet" / "report").exists()
    assert rows(capsys, "SELECT country, sum(orders), sum(revenue) FROM revenue_by_country GROUP BY 1 ORDER BY 1") == [
        ["DE", 6, "209.06"],
        ["FR", 9, "597.92"],
        ["PL", 3, "164.58"],
    ]
    assert rows(capsys, "SELECT count(*) FROM orders") == [[18]]

    refunds = ["--from", "bronze.events", "--where", "type = 'refund'"]
    follow(more, project, spark, load_pipeline)
    capsys.readouterr()
    assert main(["new", "table", "silver.returns", *refunds, "--sql", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == "pipelines/silver/returns.sql"
    assert main(["new", "table", "silver.every_order", "--from", "silver.orders"]) == 0
    assert main(["new", "table", "gold.big_orders", "--from", "silver.orders", "--where", "amount > 50"]) == 0
    before = sorted(project.rglob("*.*"))
    assert main(["new", "table", "gold.none", "--from", "orders", "--where", "amuont > 50"]) == 2
    assert "amount" in capsys.readouterr().err
    assert sorted(project.rglob("*.*")) == before

    assert main(["run"]) == 0
    wanted = rows(capsys, "SELECT count(*), sum(amount) FROM events WHERE type = 'refund'")
    assert wanted == [[4, str(Decimal("256.57"))]]
    for table in ("refunds", "returns"):
        assert rows(capsys, f"SELECT count(*), sum(amount) FROM {table}") == wanted
        assert run_its_test(project, f"test_{table}.py", spark, load_pipeline) == 1
    assert rows(capsys, "SELECT count(*) FROM big_orders") == rows(capsys, "SELECT count(*) FROM orders WHERE amount > 50")
    assert run_its_test(project, "test_big_orders.py", spark, load_pipeline) == 1
    assert run_its_test(project, "test_every_order.py", spark, load_pipeline) == 1
    code, its_test = project / "pipelines/silver/every_order.py", project / "tests/test_every_order.py"
    written, tested = code.read_text(), its_test.read_text()
    code.write_text(written.replace(".select(", ".where('amount < 0').select(", 1))
    with pytest.raises(AssertionError):
        run_its_test(project, "test_every_order.py", spark, load_pipeline)
    code.write_text(written)
    its_test.write_text(tested.replace("Decimal(0)", "Decimal(-1)"))
    with pytest.raises(AssertionError, match="amount_in_range"):
        run_its_test(project, "test_every_order.py", spark, load_pipeline)
    kept = rows(capsys, "SELECT DISTINCT dataset, failed_records FROM expectation_metrics WHERE dataset LIKE '%refunds'")
    assert kept == [["main.demo.refunds", 0]]


@pytest.mark.in_ci(every=4)
@pytest.mark.long
@pytest.mark.parametrize("name", ["audit", "contact-center", "factory", "web"])
def test_a_project_from_an_example_passes_its_own_tests(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    """pytest within pytest, in this process: the plugin's fixture `spark` finds the session that runs."""
    project = new_project(tmp_path / name, name).folder
    of_this_checkout = {"pipelines", "expectations", *(path.stem for path in project.glob("tests/test_*.py"))}
    for module in [module for module in sys.modules if module.split(".")[0] in of_this_checkout]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    options = ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:timeout", f"--basetemp={tmp_path / 'its own'}"]
    try:
        assert pytest.main(options) == pytest.ExitCode.OK
    finally:
        for module in {*sys.modules} - before:
            if str(getattr(sys.modules[module], "__file__", None)).startswith(str(project)):
                del sys.modules[module]


@pytest.mark.slow
def test_init_makes_a_running_pipeline_of_data_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    for name, text in {
        "customers.csv": "id,name\n1,Ada\n2,Zoë\n",
        "orders-2026-03-01.csv": "id;amount\n1;2\n",
        "orders-2026-03-02.csv": "id;amount\n2;3\n3;4\n",
        "clicks/a.json": '{"page": "/"}\n{"page": "/cart"}\n',
        "clicks/old/2025.json": '{"page": "/", "from": "tv"}\n',
        "report.json": '[\n{"day": 1},\n{"day": 2}\n]\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text().replace("[tool.lakelet]\n", "[tool.lakelet]\nreport = true\n"))
    assert main(["run"]) == 0
    assert f"Report: {tmp_path}/.lakelet/report/index.html\n" in capsys.readouterr().err
    assert "customers" in (tmp_path / ".lakelet" / "report" / "data" / "overview.js").read_text()
    query = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in ("clicks", "customers", "old", "orders", "report"))
    assert rows(capsys, f"{query} ORDER BY 1") == [["clicks", 2], ["customers", 2], ["old", 1], ["orders", 3], ["report", 2]]
    assert rows(capsys, "SELECT sum(amount) FROM orders") == [[9]]
