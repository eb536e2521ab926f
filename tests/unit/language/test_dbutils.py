"""`dbutils` and its like as pipeline files use them: loaded without Spark."""

from __future__ import annotations

import os
import pickle
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.base.redaction import redacted
from lakelet.language.dbutils import InjectedNames
from lakelet.language.loader import LoadedSources, loaded

TABLE = "\nimport dlt\n@dlt.table\ndef t():\n    return None\n"


class Run:
    """What one load left behind."""

    def __init__(self, found: LoadedSources, names: dict[str, Any]) -> None:
        self.found, self.names = found, names

    @property
    def notices(self) -> list[str]:
        return [notice.text for notice in self.found.notices]

    @property
    def error(self) -> LakeletError:
        (error,) = self.found.errors
        return error


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Load one file; what it puts into the list `seen` comes back."""
    monkeypatch.chdir(tmp_path)

    def load(text: str, **parameters: str) -> Run:
        file = tmp_path / "pipeline.py"
        file.write_text(textwrap.dedent(text) + TABLE)
        seen: dict[str, Any] = {}
        injected = {"spark": object(), "seen": seen}
        with loaded([file], import_roots=[tmp_path], namespace=Namespace(), injected=injected, parameters=parameters) as found:
            return Run(found, seen)

    return load


def values(run: Run) -> dict[str, Any]:
    assert [str(error) for error in run.found.errors] == []
    return run.names


# --- widgets --------------------------------------------------------------------------------------------------------------------------


def test_a_widget_is_answered_by_the_parameter_of_its_name_else_by_its_default(run):
    seen = values(
        run(
            """
            dbutils.widgets.text("env", "dev", "Environment")
            dbutils.widgets.dropdown("size", "s", ["s", "m"])
            dbutils.widgets.combobox("region", "eu", ["eu", "us"])
            dbutils.widgets.multiselect("days", "mo,tu", ["mo", "tu", "we"])
            seen["all"] = dbutils.widgets.getAll()
            seen["undefined"] = dbutils.widgets.get("only_parameter")
            seen["argument"] = getArgument("env"), dbutils.widgets.getArgument("none", "fallback")
            dbutils.widgets.remove("env")
            dbutils.widgets.removeAll()
            seen["left"] = dbutils.widgets.getAll()
            """,
            env="prod",
            only_parameter="p",
        )
    )
    assert seen == {
        "all": {"env": "prod", "size": "s", "region": "eu", "days": "mo,tu"},
        "undefined": "p",
        "argument": ("prod", "fallback"),
        "left": {},
    }


def test_an_unknown_widget_names_the_nearest_and_the_flag(run):
    error = run("dbutils.widgets.text('catalog', 'x')\ndbutils.widgets.get('catlog')").error
    assert (error.code, error.nearest, str(error.where)) == ("WIDGET_UNKNOWN", ("catalog",), "pipeline.py, line 2")
    assert "--param catlog=VALUE" in error.todo


def test_a_default_that_is_no_choice_is_refused(run):
    error = run("dbutils.widgets.dropdown('size', 'sm', ['s', 'm', 'small'])").error
    assert (error.code, error.todo) == ("ARGUMENT_INVALID", "Choices are s, m, small.")


def test_each_file_has_its_own_widgets(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("dbutils.widgets.text('a', '1')\n" + TABLE)
    two.write_text("dbutils.widgets.get('a')\n")
    with loaded([one, two], import_roots=[], namespace=Namespace(), injected={"spark": None}) as found:
        assert [error.code for error in found.errors] == ["WIDGET_UNKNOWN"]


# --- secrets --------------------------------------------------------------------------------------------------------------------------


def test_secrets_come_from_the_environment(run, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_PROD_SQL_PASSWORD", "hunter2!")
    monkeypatch.setenv("LAKELET_SECRET_KV_PROD_USER", "bob")
    seen = values(
        run(
            """
            seen["text"] = dbutils.secrets.get(scope="kv-prod", key="sql.password")
            seen["bytes"] = dbutils.secrets.getBytes("kv-prod", "user")
            seen["keys"] = [s.key for s in dbutils.secrets.list("kv-prod")]
            """
        )
    )
    assert seen == {"text": "hunter2!", "bytes": b"bob", "keys": ["sql_password", "user"]}


def test_a_missing_secret_names_its_variable_and_one_that_looks_like_it(run, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_PASSWRD", "x")
    error = run("dbutils.secrets.get('kv', 'password')").error
    assert (error.code, error.todo) == ("SECRET_MISSING", "Set the variable LAKELET_SECRET_KV_PASSWORD.")
    assert error.nearest == ("LAKELET_SECRET_KV_PASSWRD",)


def test_the_value_of_a_secret_is_in_no_error(run, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_TOKEN", "s3cr3t-value")
    error = run("token = dbutils.secrets.get('kv', 'token')\nraise ValueError(f'cannot log in with {token}')").error
    assert "s3cr3t-value" not in str(error) + repr(error) + repr(error.args)
    assert "cannot log in with [REDACTED]" in str(error)
    assert "s3cr3t" not in str(LakeletError("FLOW_FAILED", "x", why="user=a password=s3cr3t-value"))


# --- files ----------------------------------------------------------------------------------------------------------------------------


def test_ls_gives_files_and_folders_as_the_service_does(run, tmp_path):
    (tmp_path / "data/sub").mkdir(parents=True)
    (tmp_path / "data/a.json").write_text("12345")
    os.utime(tmp_path / "data/a.json", (1_700_000_000, 1_700_000_000))
    seen = values(
        run(
            f"""
            listed = dbutils.fs.ls("{tmp_path}/data/")
            seen["names"] = [(f.name, f.path, f.size, f.isDir()) for f in listed]
            seen["tuple"] = tuple(listed[0])
            seen["file"] = dbutils.fs.ls("file:{tmp_path}/data/a.json")[0].path
            seen["relative"] = dbutils.fs.ls("data")[1].path
            """
        )
    )
    assert seen["names"] == [("a.json", f"{tmp_path}/data/a.json", 5, False), ("sub/", f"{tmp_path}/data/sub/", 0, True)]
    assert seen["tuple"] == (f"{tmp_path}/data/a.json", "a.json", 5, 1_700_000_000_000)
    assert (seen["file"], seen["relative"]) == (f"file:{tmp_path}/data/a.json", "data/sub/")


def test_head_reads_the_beginning_of_a_file(run, tmp_path):
    (tmp_path / "a.txt").write_text("ähnlich\nund mehr")
    seen = values(run("seen['head'] = dbutils.fs.head('a.txt', 3), dbutils.fs.head('a.txt'), dbutils.fs.head('a.txt', max_bytes=1)"))
    assert seen["head"] == ("äh", "ähnlich\nund mehr", "\ufffd")


@pytest.mark.parametrize("call", ["ls('nothing/here')", "head('nothing/here')", "head('.')"])
def test_a_missing_path_raises_what_code_for_the_service_looks_for(run, call):
    seen = values(
        run(
            f"""
            try:
                dbutils.fs.{call}
            except Exception as error:
                seen["text"], seen["kind"] = str(error), isinstance(error, FileNotFoundError)
            """
        )
    )
    assert "java.io.FileNotFoundException" in seen["text"]
    assert seen["kind"]


@pytest.mark.parametrize("path", ["dbfs:/mnt/raw", "/Volumes/main/raw/v", "/mnt/raw"])
def test_a_path_of_a_workspace_that_is_not_here_is_refused_with_the_flag_to_add(run, path):
    error = run(f"dbutils.fs.ls('{path}/')").error
    assert (error.code, error.todo) == ("FILE_NOT_FOUND", f"Say where it lies on this machine: --map {path}=FOLDER")


def test_paths_go_through_the_mapping(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.csv").write_text("x")
    injected = InjectedNames({}, note=lambda notice: None, locate=lambda path: path.replace("/Volumes/m", str(tmp_path)))
    injected.frame(tmp_path / "p.py")
    tools = vars(injected.frame(tmp_path / "p.py").module)["dbutils"]
    assert [f.path for f in tools.fs.ls("/Volumes/m/raw")] == ["/Volumes/m/raw/a.csv"]


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        ("cp('a', 'b', True)", "cp -r a b"),
        ("mv('a', 'b')", "mv a b"),
        ("put('a', 'text')", "before the update"),
        ("mkdirs('new')", "mkdir -p"),
        ("rm('there', True)", "rm -r"),
        ("mount('s3a://b/x', '/mnt/x')", "--map /mnt/x=s3a://b/x"),
        ("unmount('/mnt/x')", "--map"),
    ],
)
def test_what_writes_is_refused_with_the_remedy_and_writes_nothing(run, tmp_path, call, remedy):
    (tmp_path / "there").mkdir()
    (tmp_path / "a").write_text("a")
    error = run(f"dbutils.fs.{call}").error
    assert (error.code, error.where.line) == ("DBUTILS_REFUSED", 1)
    assert remedy in error.todo
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "pipeline.py", "there"]


def test_making_a_folder_that_is_there_and_removing_what_is_not_change_nothing_and_are_taken(run, tmp_path):
    (tmp_path / "there").mkdir()
    assert values(run("seen['x'] = dbutils.fs.mkdirs('there'), dbutils.fs.rm('gone', True)"))["x"] == (True, False)


# --- the rest -------------------------------------------------------------------------------------------------------------------------


def test_exit_ends_the_file_and_no_except_clause_of_the_file_stops_it(run):
    text = """
        seen["before"] = True
        try:
            dbutils.notebook.exit("done")
        except Exception:
            seen["caught"] = True
        """
    found = run(text)
    assert (found.names, [e.code for e in found.found.errors]) == ({"before": True}, ["EMPTY_PIPELINE"])


def test_exit_within_a_dataset_function_is_refused(run, tmp_path):
    (tmp_path / "p.py").write_text("import dlt\n@dlt.table\ndef t():\n    dbutils.notebook.exit()\n")
    files = [tmp_path / "p.py"]
    with loaded(files, import_roots=[], namespace=Namespace(), injected={}) as found, pytest.raises(LakeletError) as caught:
        found.definitions.flows[0].query()
    assert caught.value.code == "DBUTILS_REFUSED"


def test_run_of_another_job_is_refused(run):
    error = run("dbutils.notebook.run('./other', 60)").error
    assert (error.code, "%run ./other" in error.todo) == ("DBUTILS_REFUSED", True)


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        ("dbutils.fs.lss('x')", "ls"),
        ("dbutils.widget.get('x')", "widgets"),
        ("dbutils.secrets.gett('x')", "get"),
        ("dbutils.jobs.taskValue", "taskValues"),
    ],
)
def test_an_unknown_member_names_the_nearest(run, call, nearest):
    error = run(call).error
    assert (error.code, error.nearest[0]) == ("DBUTILS_UNKNOWN", nearest)


def test_members_can_be_asked_for(run):
    assert values(run("seen['x'] = hasattr(dbutils, 'preview'), hasattr(dbutils.fs, 'ls')"))["x"] == (False, True)


def test_what_shows_or_restarts_has_no_effect_and_is_told_once(run):
    found = run(
        """
        display(1, "x", streamName="y")
        display(2)
        displayHTML("<b>")
        dbutils.library.restartPython()
        dbutils.jobs.taskValues.set("k", 1)
        seen["task"] = dbutils.jobs.taskValues.get("t", "k", default=1, debugValue=0)
        """
    )
    assert values(found) == {"task": 0}
    assert found.notices == [
        "display shows nothing in a pipeline",
        "displayHTML shows nothing in a pipeline",
        "dbutils.library.restartPython() has no effect here: nothing was installed, so nothing needs a restart",
        "dbutils.jobs.taskValues.set(...) has no effect here: no task of a job follows",
    ]


@pytest.mark.parametrize("start", ["dbutils.notebook.entry_point", "dbutils.entry_point"])
def test_a_file_can_ask_for_its_own_path(run, tmp_path, start):
    path = f"{start}.getDbutils().notebook().getContext().notebookPath().get()"
    assert values(run(f"seen['x'] = {path}"))["x"] == str(tmp_path / "pipeline")


def test_a_file_can_ask_for_its_user(run, monkeypatch):
    monkeypatch.setenv("USER", "jo")
    found = values(
        run(
            """
    context = dbutils.notebook.entry_point.getDbutils().notebook().getContext()
    seen["user"] = context.userName().get(), context.tags().apply("user"), context.tags().get("user").get()
    seen["other"] = context.tags().get("orgId").getOrElse("none here"), context.tags().get("orgId").isDefined()
    """
        )
    )
    assert found == {"user": ("jo", "jo", "jo"), "other": ("none here", False)}
    assert run("dbutils.notebook.getContext().tags().apply('orgId')").error.code == "DBUTILS_UNKNOWN"


def test_a_file_can_ask_for_the_address_and_the_token_of_a_workspace(run, monkeypatch):
    source = """
    context = dbutils.notebook.entry_point.getDbutils().notebook().getContext()
    seen["workspace"] = context.apiUrl().get(), context.apiToken().getOrElse(None), context.browserHostName().getOrElse("none")
    seen["ids"] = [context.jobId().isDefined(), context.clusterId().isDefined(), context.workspaceId().getOrElse("0")]
    import json
    seen["path"] = json.loads(context.toJson())["extraContext"]["notebook_path"] == context.notebookPath().get()
    """
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    found = run(source)
    assert values(found) == {"workspace": ("", "", "none"), "ids": [False, False, "0"], "path": True}
    assert [name in text for name, text in zip(("DATABRICKS_HOST", "DATABRICKS_TOKEN"), found.notices, strict=True)] == [True, True]

    monkeypatch.setenv("DATABRICKS_HOST", "https://adb-1.example.net/")
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi-1234567890")
    found = run(source)
    assert (values(found)["workspace"], found.notices) == (("https://adb-1.example.net/", "dapi-1234567890", "adb-1.example.net"), [])
    assert "dapi" not in redacted("the token dapi-1234567890")


def test_the_language_has_its_other_import_name_too_and_it_is_gone_afterwards(run, tmp_path):
    (tmp_path / "helper.py").write_text("from databricks import pipelines\nfrom databricks.pipelines import table\n")
    source = "import databricks.pipelines as dp\nfrom pyspark import pipelines\nimport helper\n"
    assert values(run(source + "seen['x'] = dp is pipelines is helper.pipelines"))["x"] is True
    assert not any(name.startswith("databricks.pipelines") for name in sys.modules)


def test_helper_modules_get_the_same_by_import_and_the_modules_are_gone_afterwards(run, tmp_path):
    (tmp_path / "helper.py").write_text(
        "from databricks.sdk.runtime import *\nfrom databricks.sdk.runtime import dbutils, display\n"
        "import databricks.sdk.runtime as runtime\n"
        "from pyspark.dbutils import DBUtils\n"
        "def facts(spark):\n    return DBUtils(spark) is dbutils, runtime.dbutils is dbutils, dbutils.widgets.get('a'), getArgument('a')\n"
    )
    before = {name for name in sys.modules if name.startswith(("databricks", "pyspark.dbutils"))}
    assert values(run("import helper\nseen['x'] = helper.facts(spark)", a="1"))["x"] == (True, True, "1", "1")
    assert {name for name in sys.modules if name.startswith(("databricks", "pyspark.dbutils"))} == before


def test_the_session_of_databricks_connect_is_that_of_the_update(run, tmp_path):
    (tmp_path / "helper.py").write_text(
        "import databricks.connect as connect\nfrom databricks.connect import DatabricksSession\n"
        "session = DatabricksSession.builder.remote(serverless=True).getOrCreate()\n"
        "same = connect.DatabricksSession.builder.getOrCreate() is session\n"
    )
    before = {name for name in sys.modules if name.startswith("databricks")}
    found = run("import helper\nseen['x'] = helper.session is spark, helper.same")
    assert values(found)["x"] == (True, True)
    assert found.notices == ["DatabricksSession.builder.remote has no effect here: the session is that of the update"]
    assert {name for name in sys.modules if name.startswith("databricks")} == before


def test_the_builder_of_databricks_connect_names_what_it_has(run):
    error = run("from databricks.connect import DatabricksSession\nDatabricksSession.builder.clusterID('x')").error
    assert (error.code, "no attribute 'clusterID'" in error.what, "clusterId" in error.what) == ("SOURCE_FAILED", True, True)


def test_the_runtime_module_has_no_other_names(run):
    error = run("from databricks.sdk.runtime import dbutil").error
    assert (error.code, "dbutil" in error.what) == ("SOURCE_FAILED", True)


def test_what_java_says_is_told_instead_of_which_of_its_functions_was_called(run):
    error = run("raise RuntimeError('An error occurred while calling o7.load.\\n: java.io.IOException: no such host\\n\\tat x.y')").error
    assert error.what == "loading the file failed: RuntimeError: java.io.IOException: no such host"


def test_a_dataset_stands_where_its_function_does_however_many_decorators_are_between(run):
    found = run("import dlt\n@dlt.table\n@dlt.expect('a', 'x')\n@dlt.expect_or_drop('b', 'y')\ndef many():\n    return None\n").found
    (where,) = (d.where for d in found.definitions.datasets if d.name.name == "many")
    assert (where.file, where.line) == ("pipeline.py", 2)


def test_errors_survive_a_pipe(run):
    error = run("dbutils.fs.ls('nowhere')").error
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), type(again)) == (str(error), type(error))


def test_dbutils_does_not_travel_to_workers_and_says_so(run):
    seen = values(run("seen['dbutils'] = dbutils"))
    with pytest.raises(LakeletError, match="Spark's workers"):
        pickle.dumps(seen["dbutils"])


def test_an_object_store_is_listed_and_read_as_a_folder_is(run, s3):
    s3.put("raw/a.csv", "id\n1\n")
    s3.put("raw/sub/b.csv", "x")
    seen = values(
        run(
            f"""
            seen["listed"] = [(f.path, f.name, f.size, f.modificationTime > 0) for f in dbutils.fs.ls("{s3.uri("raw")}")]
            seen["one"] = [f.path for f in dbutils.fs.ls("{s3.uri("raw/a.csv")}")]
            seen["head"] = dbutils.fs.head("{s3.uri("raw/a.csv")}", 2)
            seen["gone"] = dbutils.fs.rm("{s3.uri("gone")}")
            """
        )
    )
    assert [entry[1:3] for entry in seen["listed"]] == [("a.csv", 5), ("sub/", 0)]
    assert seen["listed"][0][::3] == (s3.uri("raw/a.csv"), True)
    assert (seen["one"], seen["head"], seen["gone"]) == ([s3.uri("raw/a.csv")], "id", False)
    assert run(f"dbutils.fs.ls('{s3.uri('nothing')}')").error.code == "FILE_NOT_FOUND"
