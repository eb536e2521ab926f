"""Executes every block of docs/cookbook.md: the files it shows are put into a copy of the project, its tests are run there."""

import inspect
import json
import re
import shutil

import pytest

from lakelet.cli.main import main

BLOCK = re.compile(r"^```(\w+)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def blocks(pytestconfig):
    text = (pytestconfig.rootpath / "docs/cookbook.md").read_text(encoding="utf-8")
    named = [(file, body) for _, file, body in BLOCK.findall(text)]
    assert len(named) == len(re.findall(r"^```(python|yaml)$", text, re.MULTILINE)), "a block does not start with its file name"
    return named


@pytest.fixture
def project(tmp_path, pytestconfig, blocks):
    """A copy of the project with the cookbook's files in it."""
    for folder in ("pipelines", "expectations"):
        shutil.copytree(pytestconfig.rootpath / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "databricks.yml").touch()
    for file, body in blocks:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(body, encoding="utf-8")
    return tmp_path


@pytest.mark.long
def test_the_cookbook_works_as_printed(project, blocks, spark, load_pipeline):
    def load_here(path, **given):
        return load_pipeline(project / path, **given)

    fixtures = {"spark": spark, "load_pipeline": load_here}
    ran = 0
    for file, body in blocks:
        if not file.startswith("tests/"):
            continue
        names = {}
        exec(compile(body, str(project / file), "exec"), names)
        for name, test in names.items():
            if name.startswith("test_"):
                test(**{argument: fixtures[argument] for argument in inspect.signature(test).parameters})
                ran += 1
    assert ran == 6


def test_the_line_of_recipe_1_declares_the_same_table(project, spark, load_pipeline, pytestconfig):
    text = (pytestconfig.rootpath / "docs/cookbook.md").read_text(encoding="utf-8")
    (line,) = re.findall(r'^    "refund_issued": .*,$', text, re.MULTILINE)
    types = project / "pipelines/silver/event_types.py"
    types.write_text(types.read_text(encoding="utf-8").replace("EVENT_TYPES = {\n", "EVENT_TYPES = {\n" + line + "\n"), encoding="utf-8")

    one, other = load_pipeline(types), load_pipeline(project / "pipelines/silver/refund_issued.py")
    assert one.datasets["refund_issued"].cluster_by == other.datasets["refund_issued"].cluster_by == ("event_date", "conversation_id")
    assert set(one.expectations["refund_issued"]) == set(other.expectations["refund_issued"])


BUNDLE = """
bundle: {name: shop}
resources:
  pipelines:
    shop:
      name: shop
      catalog: main
      schema: default
      configuration: {landing: LANDING}
      libraries: [{glob: {include: pipelines/**}}]
"""


PAYMENTS = {"a": 1, "b": -2, "c": 0}


@pytest.mark.slow
def test_the_commands_of_recipe_9_give_rows_back_that_a_rule_dropped(tmp_path, pytestconfig, blocks, spark, monkeypatch, capsys):
    text = (pytestconfig.rootpath / "docs/cookbook.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(sh|sql)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    update, show, replay = [line.partition(" #")[0].rstrip() for language, body in found if language == "sh" for line in body.splitlines()]
    (correct,) = [body for language, body in found if language == "sql"]
    (body,) = [body for file, body in blocks if file == "pipelines/bronze/payments.py"]
    for file, content in {
        "databricks.yml": BUNDLE.replace("LANDING", str(tmp_path / "landing")),
        "pipelines/bronze/payments.py": body,
        "landing/payments/1.json": "".join(f'{{"payment_id": "{name}", "amount": {amount}}}\n' for name, amount in PAYMENTS.items()),
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    monkeypatch.chdir(tmp_path)

    def typed(command):
        assert main(command.split()[1:]) == 0, capsys.readouterr().err
        return capsys.readouterr()

    typed(update)
    shown = typed(show)
    assert re.search(r"payments_quarantine: 2 rows held", shown.err)
    assert re.search(r"amount_positive +2", shown.out)
    spark.sql(correct.replace("/…/", f"{tmp_path}/"))
    assert "payments: 2 held rows judged, 1 released, 1 still held" in typed(replay).err
    rows = json.loads(typed("lakelet show payments --json --order-by payment_id").out)
    assert [(row["payment_id"], row["amount"]) for row in rows] == [("a", 1.0), ("b", 2.0)]
