"""lakelet deploy, rollback and destroy as their users meet them: a bundle on disk, exit codes, what stdout and stderr say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lakelet.cli.main import main

BUNDLE = """
bundle:
  name: shop
variables:
  catalog:
    default: main
targets:
  dev:
    mode: development
    default: true
resources:
  pipelines:
    shop:
      name: shop
      catalog: ${var.catalog}
      schema: default
      serverless: true
      root_path: ${workspace.file_path}
      libraries:
        - glob:
            include: pipelines/**
      configuration:
        api_token: dapi00112233445566778899aabb
"""
ROOT = "/Users/dev.user@example.com/.bundle/shop/dev"


@pytest.fixture
def project(tmp_path, workspace, monkeypatch):
    """A bundle with one pipeline; the current folder. The workspace is that of the environment."""
    folder = tmp_path / "shop"
    (folder / "pipelines").mkdir(parents=True)
    (folder / "databricks.yml").write_text(BUNDLE)
    (folder / "pipelines/orders.py").write_text("import dlt\n\n@dlt.table\ndef orders():\n    return spark.range(3)\n")
    monkeypatch.chdir(folder)
    for name, value in workspace.environment.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def run(project, capsys):
    """Run a command and return exit code, stdout and stderr."""

    def call(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        out, err = capsys.readouterr()
        assert "dapi0011" not in out + err
        return code, out, err

    return call


def test_a_plan_says_what_would_be_done_and_does_nothing(run, workspace):
    code, out, err = run("deploy", "--plan", "--no-validate")
    assert code == 4
    assert out.splitlines()[0].split() == ["action", "resource", "field", "before", "after"]
    assert [" ".join(line.split()[:2]) for line in out.splitlines()[1:]] == [
        "upload databricks.yml",
        "upload pipelines/orders.py",
        "create pipelines.shop",
    ]
    assert "1 to create, 2 files to upload" in err
    assert workspace.writes == []


def test_what_only_one_side_has_is_said_on_stderr(run, project):
    (project / "pyproject.toml").write_text('[tool.lakelet.parameters]\napi_token = "dapi00112233445566778899aabb"\nday = "1"\n')
    _, out, err = run("deploy", "--plan", "--json", "--no-validate")
    assert "pyproject.toml, line 1: only here: the parameter day; pipelines.shop has none in its configuration" in err
    json.loads(out)


def test_a_plan_as_json_is_an_array_of_changes(run):
    code, out, _ = run("deploy", "--plan", "--json", "--no-validate")
    changes = json.loads(out)
    assert code == 4
    assert all(list(change) == ["action", "resource", "field", "before", "after"] for change in changes)
    settings = {change["field"]: change["after"] for change in changes if change["action"] == "create"}
    assert settings["name"] == "[dev dev_user] shop"
    assert settings["configuration.api_token"] == "[REDACTED]"


def test_a_plan_as_markdown_is_the_text_of_a_comment(run):
    code, out, _ = run("deploy", "--plan", "--markdown", "--no-validate")
    assert code == 4
    assert out.splitlines()[:6] == [
        "### Plan for shop, target dev",
        "",
        "**1 to create, 2 files to upload**",
        "",
        "| action | resource | field | before | after |",
        "|---|---|---|---|---|",
    ]


def test_a_wheel_is_built_uploaded_and_named_in_the_pipeline(run, project, workspace):
    build = "mkdir -p dist && cp pipelines/orders.py dist/shop-0.1-py3-none-any.whl"
    dependencies = "      environment: {dependencies: [dist/*.whl]}\n"
    (project / "databricks.yml").write_text(f"{BUNDLE}{dependencies}artifacts: {{wheel: {{type: whl, build: '{build}'}}}}\n")
    (project / ".gitignore").write_text("dist/\n")
    code, _, err = run("deploy", "--no-validate")
    assert code == 0, err
    wheel = f"{ROOT}/files/dist/shop-0.1-py3-none-any.whl"
    assert workspace.files[wheel] == (project / "pipelines/orders.py").read_bytes()
    (pipeline,) = workspace.pipelines.values()
    assert pipeline.spec["environment"] == {"dependencies": [f"/Workspace{wheel}"]}
    assert "Nothing to do" in run("deploy", "--no-validate")[2]

    (project / "databricks.yml").write_text(BUNDLE + "artifacts: {wheel: {type: whl, build: 'echo no compiler; exit 3'}}\n")
    code, _, err = run("deploy", "--no-validate")
    assert code == 2
    for text in ("[ARTIFACT_FAILED] the build of the artifact 'wheel' ended with exit code 3", "no compiler", "Try it in "):
        assert text in err


def test_deploying_twice_changing_rolling_back_and_destroying(run, project, workspace):
    code, out, err = run("deploy", "--no-validate")
    assert code == 0
    assert "Deployed shop to dev as number 1" in err
    source = (project / "pipelines/orders.py").read_bytes()
    assert workspace.files[f"{ROOT}/files/pipelines/orders.py"] == source
    (pipeline,) = workspace.pipelines.values()
    assert pipeline.spec["configuration"]["api_token"].startswith("dapi0011")
    before = len(workspace.writes)
    assert run("deploy", "--plan") == (0, "", run("deploy", "--plan")[2])  # nothing to do: the pipeline is not analysed either
    code, out, err = run("deploy")
    assert (code, out) == (0, "")
    assert "Nothing to do" in err
    assert len(workspace.writes) == before

    (project / "databricks.yml").write_text(BUNDLE.replace("serverless: true", "serverless: false"))
    code, out, err = run("deploy", "--no-validate", "--json")
    assert code == 0
    changes = [tuple(change.values()) for change in json.loads(out)]
    assert [(action, resource) for action, resource, *_ in changes] == [("upload", "databricks.yml"), ("change", "pipelines.shop")]
    assert changes[1] == ("change", "pipelines.shop", "serverless", True, False)
    assert pipeline.spec["serverless"] is False

    assert run("rollback", "--plan")[0] == 4
    code, out, err = run("rollback")
    assert code == 0
    assert "is as deployment 1 of " in err
    assert pipeline.spec["serverless"] is True

    code, out, err = run("destroy")
    assert code == 2
    assert "there is no terminal to ask on" in err
    assert ["delete", "pipelines.shop"] in [line.split()[:2] for line in out.splitlines()]
    assert "To delete it, too: --with-data pipelines.shop" in err
    assert workspace.pipelines
    code, out, err = run("destroy", "--yes")
    assert code == 0
    assert (workspace.pipelines, dict(workspace.files)) == ({}, {})
    assert run("destroy", "--yes")[0] == 2
    assert run("rollback")[0] == 2


def test_drift_is_no_change_but_is_shown(run, workspace):
    run("deploy", "--no-validate")
    (pipeline,) = workspace.pipelines.values()
    pipeline.spec["serverless"] = False
    code, out, err = run("deploy", "--plan")
    assert code == 0
    assert out.splitlines()[1].split() == ["drift", "pipelines.shop", "serverless", "false", "true"]
    assert "Nothing to do; 1 setting changed in the workspace and kept" in err
    assert run("deploy", "--plan", "--force", "--no-validate")[0] == 4


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["deploy", "--plan", "--json", "--markdown"], 2, "exclude each other"),
        (["deploy", "--var", "catalog"], 2, "expected KEY=VALUE"),
        (["deploy", "-t", "prd", "--no-validate"], 2, "prd"),
        (["rollback"], 2, "nothing was deployed"),
        (["destroy", "--yes"], 2, "nothing was deployed"),
    ],
)
def test_wrong_usage_is_told(arguments, code, said, run, workspace):
    found, _, err = run(*arguments)
    assert found == code
    assert said in err
    assert workspace.writes == []


def test_a_wrong_token_ends_with_code_3_and_is_not_shown(run, monkeypatch):
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapifedcba9876543210")
    code, out, err = run("deploy", "--no-validate", "--debug")
    assert code == 3
    assert "WORKSPACE_CREDENTIALS" in err
    assert "dapifedcba9876543210" not in out + err


def test_a_mistake_in_the_bundle_is_found_before_anything_is_uploaded(run, project, workspace):
    (project / "databricks.yml").write_text(BUNDLE.replace("serverless", "serverles"))
    code, _, err = run("deploy")
    assert code == 2
    assert 'Did you mean "serverless"' in err
    assert workspace.writes == []


@pytest.mark.spark
@pytest.mark.long
def test_a_mistake_of_the_pipeline_is_found_before_anything_is_uploaded(project, workspace):
    (project / "pipelines/sums.sql").write_text("CREATE MATERIALIZED VIEW sums AS SELECT nonsense FROM orders;\n")
    command = [sys.executable, "-m", "lakelet", "deploy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "nonsense" in done.stderr
    assert "pipelines/sums.sql" in done.stderr
    assert workspace.writes == []
    (project / "pipelines/sums.sql").write_text("CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n FROM orders;\n")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(workspace.pipelines) == 1


def test_help_needs_neither_spark_nor_the_sdk():
    code = "import sys; from lakelet.cli.main import main; main(['deploy', '--help']); print([m for m in sys.modules if m in BAD])"
    code = code.replace("BAD", "('databricks.sdk', 'pyspark', 'pandas', 'deltalake', 'requests')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
