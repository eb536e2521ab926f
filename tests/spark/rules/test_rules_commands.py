"""The commands of `lakelet rules` as a terminal sees them: what goes to stdout and to stderr, exit codes, `--json`. One update for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import lakelet
from lakelet.cli.main import main
from tests.spark.rules.test_rules_of_a_project import LOADER

pytestmark = [pytest.mark.spark, pytest.mark.long]

TABLE = "main.default.readings"
PIPELINE = """\
import dlt
from rules_of_readings import rules


@dlt.table
@dlt.expect_all(rules("readings", "warn"))
@dlt.expect_all_or_drop(rules("readings", "drop"))
def readings():
    return spark.range(400).selectExpr(
        "id",
        "IF(id = 7, -1, CAST(id % 50 AS INT)) AS value",
        "CASE WHEN id IN (8, 9) THEN 'purchse' WHEN id % 2 = 0 THEN 'refund' ELSE 'purchase' END AS kind",
        "IF(id < 3, NULL, CAST(id % 90 AS STRING)) AS shop",
    )
"""
RULES = """\
datasets:
  readings:
    warn:
      positive: value > -1
    drop:
      has_id: {constraint: id IS NOT NULL, tags: [keys], owner: keys@example.com}
    checks:
      one_each: {unique: id, severity: warning}
"""


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Path:
    folder = tmp_path_factory.mktemp("readings")
    (folder / "expectations").mkdir()
    (folder / "expectations" / "readings.yml").write_text(RULES)
    (folder / "rules_of_readings.py").write_text(LOADER)
    (folder / "pipeline.py").write_text(PIPELINE)
    result = lakelet.load(folder / "pipeline.py", storage=folder / ".lakelet", spark=spark).run()
    assert result.state == "COMPLETED", result.errors
    return folder


@pytest.fixture
def folder(updated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(updated)
    return updated


def test_list_and_check_print_the_rules_and_what_is_wrong_with_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "list", "pipeline.py"]) == 0
    out, _ = capsys.readouterr()
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "dataset rule action owner constraint",
        "readings positive warn - value > -1 expectations/readings.yml, line 4",
        "readings has_id drop keys@example.com id IS NOT NULL expectations/readings.yml, line 6",
    ]
    assert main(["rules", "list", "pipeline.py", "--owner", "keys@example.com"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["rule", "has_id"]
    assert main(["rules", "list", "pipeline.py", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["dataset"], one["rule"], one["line"], one["tags"], one["used"]) for one in listed] == [
        (TABLE, "positive", 4, [], True),
        (TABLE, "has_id", 6, ["keys"], True),
    ]

    assert main(["rules", "check", "pipeline.py"]) == 0
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", "0 errors, 0 warnings")
    (folder / "expectations" / "wrong.yml").write_text("datasets:\n  readings:\n    wran: {}\n")
    assert main(["rules", "check", "pipeline.py"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "expectations/wrong.yml, line 3: error: " in err
    assert "did you mean 'warn'?" in err
    assert err.splitlines()[-1] == "1 error, 0 warnings"
    assert main(["rules", "check", "pipeline.py", "--json"]) == 2
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["severity"], found["file"], found["line"], found["nearest"]) == ("error", "expectations/wrong.yml", 3, ["warn"])
    (folder / "expectations" / "wrong.yml").unlink()


@pytest.mark.slow
def test_test_prints_the_rows_that_break_a_rule_and_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "test", "positive", "readings"]) == 1
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()] == [["id", "value", "kind", "shop"], ["7", "-1", "purchase", "7"]]
    assert err.splitlines()[-1] == f"1 of 400 rows of {TABLE} break positive: value > -1."
    assert main(["rules", "test", "value < 50", "readings", "--json"]) == 0
    (judged,) = json.loads(capsys.readouterr().out)
    assert judged == {
        "dataset": TABLE, "rule": None, "constraint": "value < 50", "file": None, "line": None, "rows": 400, "failed": 0, "examples": [],
    }  # fmt: skip
    assert main(["rules", "test", "shop IS NOT NULL", "readings", "--limit", "1"]) == 1
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err.splitlines()[-1]) == (
        2,
        f"3 of 400 rows of {TABLE} break the rule: shop IS NOT NULL. The first 1 are shown.",
    )
    assert main(["rules", "test", "positve", "readings"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "[RULE_UNKNOWN]" in err
    assert 'Did you mean "positive"?' in err


@pytest.mark.slow
def test_suggest_prints_yaml_with_the_rows_that_each_rule_would_have_dropped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "suggest", "readings"]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out)["datasets"]["readings"]["warn"] == {
        "value_in_range": "value BETWEEN -1 AND 49",
        "value_not_negative": "value >= 0",
        "kind_known": "kind IN ('purchase', 'purchse', 'refund')",
        "kind_common": "kind IN ('purchase', 'refund')",
    }
    assert "      has_shop: shop IS NOT NULL  # today 3 of 400 rows dropped" in out.splitlines()
    assert "8 suggestions, 1 of which would have dropped rows." in err
    assert main(["rules", "suggest", "readings", "--json"]) == 0
    found = {one["rule"]: (one["action"], one["rows"], one["dropped"]) for one in json.loads(capsys.readouterr().out)}
    assert found == {
        "id_unique": ("checks", 400, 0),
        "has_value": ("drop", 400, 0),
        "value_in_range": ("warn", 400, 0),
        "value_not_negative": ("warn", 400, 1),
        "has_kind": ("drop", 400, 0),
        "kind_known": ("warn", 400, 0),
        "kind_common": ("warn", 400, 2),
        "has_shop": ("drop", 400, 3),
    }


@pytest.mark.slow
def test_convert_prints_each_form_and_names_what_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "convert", "expectations/readings.yml", "--to", "sql"]) == 0
    out, err = capsys.readouterr()
    assert "CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW" in out
    assert "not carried over: " in err
    assert "one_each" in err
    assert main(["rules", "convert", "expectations/readings.yml", "--to", "gx"]) == 0
    suite, err = capsys.readouterr()
    assert err == ""
    (folder / "suite.json").write_text(suite)
    assert main(["rules", "convert", "suite.json", "--to", "yaml"]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out) == yaml.safe_load(RULES)
    assert err == ""
    assert main(["rules", "convert", "pipeline.py", "--to", "gx"]) == 2
    assert "[RULE_FILE_INVALID]" in capsys.readouterr().err
