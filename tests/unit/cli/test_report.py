"""`lakelet report`, `lakelet dashboard`, and the report that an update writes at its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from lakelet.cli import report
from lakelet.cli.main import main
from lakelet.config.update_config import load_config
from tests.event_logs import shop, store
from tests.unit.cli.test_diff_texts import FOUND


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project with a storage that holds three updates."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAKELET_STORAGE", raising=False)
    (tmp_path / "pyproject.toml").write_text("[tool.lakelet]\nreport = true\n")
    (tmp_path / "a.py").write_text("import dlt\n")
    store(tmp_path / ".lakelet", [row for row in shop(3).rows if row["event_type"] not in ("column_lineage", "table_check")])
    return tmp_path


def test_a_report_lies_in_the_storage_and_says_where(project, capsys) -> None:
    assert main(["report"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Wrote {project}/.lakelet/report/index.html: 10 datasets, 3 updates\n")
    assert main(["report", "--json", "--out", "public"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(project / "public")
    assert (told["update"]["state"], told["update"]["violations"], told["update"]["broken_rules"]) == ("FAILED", 3424, 6)
    assert [(f["dataset"], f.get("rule") or f.get("check"), f["owner"], f["updates"]) for f in told["failing"]][:3] == [
        ("main.silver.payments", None, "orders@example.com", 1),
        ("main.silver.payments", "paid_not_negative", "finance@example.com", 1),
        ("main.silver.customers", "has_email", "orders@example.com", 3),
    ]
    assert (project / "public" / "index.html").is_file()
    assert (project / "public" / "data" / "update-2.js").is_file()


def test_a_difference_is_on_the_page_that_names_its_file_and_on_no_other(project, capsys) -> None:
    (project / "change.json").write_text(json.dumps(FOUND.as_json()))
    assert main(["report", "--diff", "change.json", "--out", "public"]) == 0
    assert '"name":"main.shop.orders"' in (project / "public" / "data" / "change.js").read_text()
    assert main(["report", "--out", "public"]) == 0
    assert not (project / "public" / "data" / "change.js").exists()
    assert '"change"' not in (project / "public" / "data" / "overview.js").read_text()


def test_a_file_without_a_difference_is_refused_before_anything_is_written(project, capsys) -> None:
    assert main(["report", "--diff", "pyproject.toml", "--out", "public"]) == 2
    assert "[USAGE] --diff pyproject.toml: this file is not a result of lakelet diff" in capsys.readouterr().err
    assert not (project / "public").exists()
    assert main(["dashboard", "--diff", "nothing.json"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_folder_with_other_files_is_refused(project, capsys) -> None:
    assert main(["report", "--out", "."]) == 2
    assert "is not a report" in capsys.readouterr().err
    assert (project / "a.py").read_text() == "import dlt\n"


def test_a_place_that_cannot_be_written_is_named(project, capsys) -> None:
    (project / "file").write_text("")
    assert main(["report", "--out", "file/report"]) == 2
    assert "the report cannot be written to" in capsys.readouterr().err


def test_an_update_writes_the_report_if_the_project_asks_for_it(project, capsys) -> None:
    report.write_after_update(load_config(["a.py"]))
    assert capsys.readouterr().err == f"Report: {project}/.lakelet/report/index.html\n"
    (project / "pyproject.toml").write_text("[tool.lakelet]\nreport = false\n")
    report.write_after_update(load_config(["a.py"]))
    assert capsys.readouterr().err == ""


def test_a_report_that_cannot_be_written_after_an_update_is_a_warning(project, capsys) -> None:
    (project / ".lakelet" / "report").mkdir()
    (project / ".lakelet" / "report" / "mine.txt").write_text("keep")
    report.write_after_update(load_config(["a.py"]))
    assert capsys.readouterr().err.startswith("The report was not written: [USAGE]")
    assert (project / ".lakelet" / "report" / "mine.txt").read_text() == "keep"


def test_the_setting_is_true_or_false(project, capsys) -> None:
    (project / "pyproject.toml").write_text('[tool.lakelet]\nreport = "yes"\n')
    assert main(["report"]) == 2
    assert "pyproject.toml, line 2" in capsys.readouterr().err


def test_the_dashboard_says_its_address_and_ends_at_ctrl_c_with_a_sentence(project) -> None:
    (project / "change.json").write_text(json.dumps(FOUND.as_json()))
    command = [sys.executable, "-m", "lakelet", "dashboard", "--port", "0", "--json", "--diff", "change.json"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            url = json.loads(running.stdout.readline())["url"]
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{url}data/overview.js", timeout=10) as answer:
                assert b'"live":true' in answer.read()
            with urllib.request.urlopen(f"{url}data/change.js", timeout=10) as answer:
                assert answer.read().startswith(b'lakelet("change",')
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=20)
        finally:
            running.kill()
    assert (running.returncode, err) == (130, "The dashboard has ended. Nothing was changed.\n")


def test_a_port_that_is_taken_is_named_with_the_way_out(project, capsys) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["dashboard", "--port", str(taken.getsockname()[1])]) == 2
    assert "--port 0" in capsys.readouterr().err
