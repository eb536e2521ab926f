"""The command line: options, exit codes, manners. The pipeline behind it is replaced by a small one; nothing here starts Spark."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lakelet.base.errors import DefinitionErrors, LakeletError, Location
from lakelet.base.names import TableName
from lakelet.cli.help import GROUPS
from lakelet.cli.main import app, main
from lakelet.language.model import Kind
from lakelet.language.registry import Notice
from lakelet.pipeline import Checked
from lakelet.plan.decisions import Plan, PlanStep, Strategy
from lakelet.plan.graph import Graph, GraphNode
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import UpdateState
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from lakelet.update.result import UpdateResult

NAME = TableName("main", "default", "orders")
NODE = GraphNode(NAME, Kind.STREAMING_TABLE, (), (), (str(NAME),), (("id", "bigint"),), (), Location("a.py", 3))
STEP = PlanStep(str(NAME), Kind.STREAMING_TABLE, str(NAME), Strategy.STREAM, "it has not run yet", ())


@dataclass(frozen=True)
class Result(UpdateResult):
    update_id: str = "abcdef12"
    state: UpdateState = UpdateState.COMPLETED
    errors: tuple[LakeletError, ...] = ()
    seconds: float = 1.0
    steps: tuple[PlanStep, ...] = (STEP,)


class FakePipeline:
    """Answers like the facade; a test sets `result`, an exception to raise among them."""

    result: object = Result()
    notices: tuple = ()
    seen: tuple = ()

    def __init__(self, config) -> None:
        self.config = config

    def _answer(self, request, value):
        type(self).seen = (self.config, request)
        if isinstance(self.result, BaseException):
            raise self.result
        return value

    def validate(self, request):
        return self._answer(request, Graph((NODE,)))

    def check(self, request, *, new_process):
        return Checked(self.validate(request), self.notices)

    def states(self):
        return {}

    def plan(self, request, *, new_process):
        return self._answer(request, Plan((STEP,)))

    def run(self, request, *, listeners, new_process):
        assert new_process
        self._answer(request, None)
        origin = Origin("p", "shop", "abcdef12", str(NAME), str(NAME))
        for number, status in enumerate(("STARTING", "COMPLETED"), 1):
            event = Event("flow_progress", f"{status}.", origin, {"flow_progress": {"status": status}}, sequence=number)
            for listener in listeners:
                listener(event)
        return self._answer(request, self.result)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with one source file, current, and the fake behind the facade."""
    (tmp_path / "a.py").write_text("import dlt\n")
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith(("LAKELET_", "BUNDLE_VAR_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LAKELET_PROGRESS", "off")
    fake = types.ModuleType("lakelet.pipeline")
    monkeypatch.setattr(FakePipeline, "result", Result())
    fake.Pipeline = FakePipeline
    monkeypatch.setitem(sys.modules, "lakelet.pipeline", fake)
    return tmp_path


# --- run --------------------------------------------------------------------------------------------------------------------------------


def test_run_tells_its_summary_on_stderr_and_nothing_on_stdout(project, capsys):
    assert main(["run", "a.py"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "Update abcdef of shop COMPLETED" in err
    assert "Next: lakelet show" in err


def test_run_hands_every_option_on(project):
    options = ["-t", "dev", "--select", "a,b", "--select", "`x,y`.c", "--full-refresh", "d", "--param", "k=v=w", "--param", "l="]
    (project / "databricks.yml").write_text("targets: {dev: {}}\nresources: {pipelines: {p: {libraries: [{file: {path: a.py}}]}}}\n")
    assert main(["run", *options, "--storage", "st", "--catalog", "c", "--schema", "s"]) == 0
    config, request = FakePipeline.seen
    assert (config.target, dict(config.parameters), config.storage) == ("dev", {"k": "v=w", "l": ""}, project / "st")
    assert (config.namespace.catalog, config.namespace.schema) == ("c", "s")
    assert (request.select, request.full_refresh, request.full_refresh_all) == (("a", "b", "`x,y`.c"), ("d",), False)
    assert main(["run", "--full-refresh-all"]) == 0
    assert FakePipeline.seen[1].full_refresh_all


def test_run_json_is_one_event_per_line(project, capsys):
    assert main(["run", "a.py", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["details"]["flow_progress"]["status"] for line in lines] == ["STARTING", "COMPLETED"]


def test_a_failed_critical_check_is_exit_code_1(project, monkeypatch):
    monkeypatch.setattr(FakePipeline, "result", Result(failed_checks=("main.default.orders.one_each",)))
    assert main(["run", "a.py"]) == 1


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("FAILED", 1), ("CANCELED", 130)])
def test_exit_code_of_an_update(project, monkeypatch, state, code):
    monkeypatch.setattr(FakePipeline, "result", Result(state=UpdateState(state)))
    assert main(["run", "a.py"]) == code


def test_errors_of_an_update_are_told_in_full(project, monkeypatch, capsys):
    error = LakeletError("FLOW_FAILED", "no space", dataset="main.default.orders", why="disk full", todo="Make room.")
    monkeypatch.setattr(FakePipeline, "result", Result(state=UpdateState.FAILED, errors=(error,)))
    assert main(["run", "a.py"]) == 1
    err = capsys.readouterr().err
    assert "[FLOW_FAILED] main.default.orders: no space" in err
    assert "    Make room.\n" in err


DEFINITIONS = DefinitionErrors(
    [
        LakeletError("UNKNOWN_DATASET", 'reads "ordrs"', where=Location("a.py", 3), nearest=("orders",)),
        LakeletError("CYCLE", "a → b → a"),
    ]
)


@pytest.mark.parametrize("command", ["run", "validate", "plan", "graph"])
def test_all_wrong_definitions_are_told_together_without_traceback(project, monkeypatch, capsys, command):
    monkeypatch.setattr(FakePipeline, "result", DEFINITIONS)
    assert main([command, "a.py"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        err.removeprefix(f"a: 1 source file, storage {project / '.lakelet'}\n")
        == '[UNKNOWN_DATASET] reads "ordrs"\n  a.py, line 3\n  Did you mean "orders"?\n\n[CYCLE] a → b → a\n\n2 errors\n'
    )


def test_an_environment_that_cannot_run_is_exit_code_three(project, monkeypatch):
    monkeypatch.setattr(FakePipeline, "result", LakeletError("JAVA_MISSING", "No Java"))
    assert main(["run", "a.py"]) == 3


def test_ctrl_c_is_130_and_a_word(project, monkeypatch, capsys):
    monkeypatch.setattr(FakePipeline, "result", KeyboardInterrupt())
    assert main(["run", "a.py"]) == 130
    assert capsys.readouterr().err.endswith("Interrupted. What was finished is kept.\n")


def test_a_defect_of_ours_is_one_line_and_how_to_report_it(project, monkeypatch, capsys):
    monkeypatch.setattr(FakePipeline, "result", ZeroDivisionError("division by zero\nmore"))
    assert main(["validate", "a.py"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("[INTERNAL] This is a defect in Lakelet: ZeroDivisionError: division by zero\n  Please report it")
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["--debug", "validate", "a.py"], ["validate", "a.py", "--debug"]])
def test_debug_shows_the_traceback(project, monkeypatch, capsys, arguments):
    monkeypatch.setattr(FakePipeline, "result", ZeroDivisionError("x"))
    assert main(arguments) == 1
    assert "Traceback" in capsys.readouterr().err


# --- validate, plan, graph ----------------------------------------------------------------------------------------------------------


def test_validate(project, capsys):
    assert main(["validate", "a.py"]) == 0
    assert capsys.readouterr().err == "a is valid: 1 dataset, 1 flow, 0 expectations\n"
    assert main(["validate", "a.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "valid": True,
        "pipeline": "a",
        "datasets": 1,
        "flows": 1,
        "expectations": 0,
        "notices": [],
    }


def test_validate_tells_what_has_no_effect(project, capsys, monkeypatch):
    monkeypatch.setattr(FakePipeline, "notices", (Notice("option x has no effect", Location("a.py", 3)),))
    assert main(["validate", "a.py"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == "a.py, line 3: option x has no effect"
    assert main(["validate", "a.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notices"] == [{"text": "option x has no effect", "where": "a.py, line 3"}]


def test_plan_and_graph_go_to_stdout(project, capsys):
    assert main(["plan", "a.py"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "stream  orders   streaming table  it has not run yet"
    assert main(["plan", "a.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["strategy"] == "stream"
    assert main(["graph", "a.py"]) == 0
    assert "a.py:3" in capsys.readouterr().out
    assert main(["graph", "a.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"][0]["name"] == "main.default.orders"
    assert main(["graph", "a.py", "--mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n")
    assert main(["graph", "a.py", "--svg"]) == 0
    assert capsys.readouterr().out.startswith("<svg ")
    assert main(["graph", "a.py", "--html"]) == 0
    assert "<title>a</title>" in capsys.readouterr().out
    assert main(["graph", "a.py", "--html", "--json"]) == 2


def test_plan_explains_what_is_named_and_refuses_an_unknown_name(project, capsys):
    assert main(["plan", "a.py", "--explain", "orders"]) == 0
    assert capsys.readouterr().out == "orders: stream, because it has not run yet\n  reads  no table of this pipeline\n"
    assert main(["plan", "a.py", "--explain", "orders,main.default.Orders", "--json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert (step["dataset"], step["strategy"], step["reason"]) == (str(NAME), "stream", "it has not run yet")
    assert main(["plan", "a.py", "--explain", "orders", "--explain", "order"]) == 2
    assert 'Did you mean "main.default.orders"?' in capsys.readouterr().err


# --- wrong usage --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "form"),
    [
        (["--map", "/Volumes/raw"], "[USAGE] --map /Volumes/raw: expected FROM=TO\n  For example: --map /Volumes/main/raw=data\n"),
        (["--table", "=data"], "[USAGE] --table =data: expected NAME=PATH\n  For example: --table main.sales.orders=data/orders\n"),
    ],
)
def test_a_map_or_table_without_both_sides_is_refused_with_the_right_form(project, capsys, option, form):
    assert main(["validate", "a.py", *option]) == 2
    assert capsys.readouterr().err == form


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["run", "--nonsense"], ["run", "--storage"], ["show", "--limit", "x"], ["sql"], ["sample"], []],
)
def test_wrong_usage_is_exit_code_two(project, arguments):
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["run", "a.py", "--param", "novalue"], "[USAGE] --param novalue: expected KEY=VALUE"),
        (["run", "b.py"], "[NO_SOURCES] b.py is not a file, folder, glob or pipeline of the bundle"),
        (["events", "--all", "--update", "x"], "[USAGE] --update and --all contradict each other"),
        (["show", "--storage", "nowhere"], "[USAGE] there is no storage nowhere"),
        (["show", "orders"], "[UNKNOWN_TABLE] the storage holds no table orders"),
    ],
)
def test_wrong_usage_that_we_find_ourselves(project, capsys, arguments, what):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", what)


def test_help_and_version():
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).output == "lakelet 0.1.0\n"
    shown = runner.invoke(app, ["--help"]).output
    assert "  sql         Run a query over the stored tables; without one, a shell.\n" in shown
    for command in ("run", "validate", "plan", "graph", "show", "sql", "events", "init", "doctor"):
        assert runner.invoke(app, [command, "--help"]).exit_code == 0


def test_help_lists_every_command_below_what_one_wants_each_on_a_whole_line():
    shown = CliRunner().invoke(app, ["--help"], terminal_width=80).output
    _, *sections = re.split(r"^(\w+):$", shown.partition("--help  ")[2], flags=re.MULTILINE)
    listed = {
        heading: [line.split()[0] for line in text.splitlines() if line]
        for heading, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert list(listed)[:5] == ["Run", "Look", "Quality", "Deploy", "Project"]
    assert {heading: set(GROUPS[heading]) for heading in list(listed)[:5]} == {
        heading: set(listed[heading]) for heading in list(listed)[:5]
    }
    assert {name for names in listed.values() for name in names} == set(typer.main.get_command(app).list_commands(None))
    assert "..." not in shown.partition("Run:")[2]
    assert max(map(len, shown.splitlines())) <= 80


# --- looking into a storage ---------------------------------------------------------------------------------------------------------


def test_an_empty_storage(project, capsys):
    assert main(["show"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Nothing is stored in {project / '.lakelet'} yet.\n")
    assert main(["show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["events", "--json"]) == 0
    assert capsys.readouterr().out == ""


@pytest.fixture
def stored(project):
    """A storage with a table, a private one, and a dataset that was never written."""
    import pyarrow as pa
    from deltalake import write_deltalake

    storage = Storage(project / ".lakelet")
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["a", "two\nlines"], "parts": [[1], None]})
    datasets = {}
    for name, private in (("orders", False), ("secret", True), ("empty", False)):
        full = f"main.default.{name}"
        datasets[full] = StoredDataset(full, "streaming_table", f"tables/main/default/{name}", private=private)
        if name != "empty":
            (storage.root / datasets[full].path).mkdir(parents=True)
            write_deltalake(str(storage.root / datasets[full].path), rows)
    storage.save(StorageRegistry(datasets=datasets))
    return storage.root


def test_show_lists_tables(stored, capsys):
    assert main(["show"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "dataset              kind             rows  version  columns",
        "main.default.empty   streaming table     -        -        0",
        "main.default.orders  streaming table     2        0        3",
    ]
    assert main(["show", "--json", "--all"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert [t["name"].rsplit(".")[-1] for t in tables] == ["empty", "orders", "secret"]
    assert tables[1] == {
        "name": "main.default.orders",
        "kind": "streaming_table",
        "path": (stored / "tables/main/default/orders").as_uri(),
        "rows": 2,
        "version": 0,
        "columns": [{"name": "id", "type": "bigint"}, {"name": "note", "type": "string"}, {"name": "parts", "type": "array<bigint>"}],
        "private": False,
        "active": True,
    }


def test_show_rows(stored, capsys):
    assert main(["show", "orders"]) == 0
    header = ["    id  note       parts", "bigint  string     array<bigint>"]
    assert capsys.readouterr().out.splitlines() == [*header, "     1  a          [1]", "     2  two lines  NULL"]
    assert main(["show", "default.orders", "--json", "--limit", "1"]) == 0
    assert capsys.readouterr().out == '[{"id": 1, "note": "a", "parts": [1]}]\n'
    assert main(["show", "ordres"]) == 2
    assert 'Did you mean "main.default.orders"?' in capsys.readouterr().err
    assert main(["show", "empty"]) == 2


def test_a_reader_that_goes_away_is_no_error(stored):
    command = f"{sys.executable} -m lakelet.cli.main show orders --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- doctor and sample --------------------------------------------------------------------------------------------------------------


def test_doctor_gives_one_line_per_check_and_the_remedy(monkeypatch, capsys):
    from lakelet.project import doctor

    found = [doctor.DoctorCheck("Java", True, "17.0.15"), doctor.DoctorCheck("archive", False, "not made yet", "Type: x", blocking=False)]
    monkeypatch.setattr(doctor, "examine", lambda: found)
    assert main(["doctor"]) == 0
    lines = ["ok       Java     17.0.15", "advice   archive  not made yet", "                  Type: x"]
    assert capsys.readouterr().out.splitlines() == lines
    found.append(doctor.DoctorCheck("jars", False, "missing", "Fetch."))
    assert main(["doctor"]) == 3
    assert capsys.readouterr().out.splitlines() == [*lines, "PROBLEM  jars     missing", "                  Fetch."]


# --- the process --------------------------------------------------------------------------------------------------------------------


def test_help_loads_nothing_heavy():
    code = (
        "import sys, lakelet.cli.main as m; m.main(['run', '--help']);"
        "sys.exit(any(x in sys.modules for x in ('pyspark', 'pandas', 'deltalake', 'pyarrow', 'numpy', 'yaml', 'rich', 'psutil')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_show_loads_neither_spark_nor_pandas(stored):
    code = "import sys, lakelet.cli.main as m; m.main(['show', 'orders']); sys.exit(any(x in sys.modules for x in ('pyspark', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=stored.parent, capture_output=True, check=False).returncode == 0


def test_the_process_ends_with_the_exit_code(tmp_path):
    command = [sys.executable, "-m", "lakelet.cli.main", "show", "--storage", "nowhere"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "[USAGE] there is no storage nowhere\n")


def test_errors_are_coloured_on_a_terminal_only(tmp_path):
    own, theirs = pty.openpty()
    command = [sys.executable, "-m", "lakelet.cli.main", "show", "--storage", "nowhere"]
    subprocess.run(command, cwd=tmp_path, stderr=theirs, check=False)
    os.close(theirs)
    assert os.read(own, 4096).startswith(b"\x1b[31m[USAGE]")
    os.close(own)


def test_nothing_is_written_outside_the_storage(stored):
    before = set(Path(stored.parent).rglob("*"))
    main(["show"])
    main(["events"])
    assert set(Path(stored.parent).rglob("*")) == before
