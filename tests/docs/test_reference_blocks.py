"""Blocks of the reference and of other pages that need no Spark: commands are understood, settings read, rules and statements declared."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main

from expectations import rules
from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace
from lakelet.cli.main import app, main
from lakelet.config.path_map import PathMap
from lakelet.config.rule_files import read_rule_file
from lakelet.config.tool_settings import read_tool_settings
from lakelet.config.update_config import PipelineConfig, load_config
from lakelet.language import sql
from lakelet.language.api import dlt_modules
from lakelet.language.registry import Registry, recording
from tests.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:- run: |\$ )?(?:\.venv/bin/)?lakelet +(.*)$", re.MULTILINE)
"""A line of a block that is typed: in a shell, behind a prompt, or as a step of CI."""


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [body for found, body in BLOCK.findall(text) if found == language]


def typed(page: Path) -> list[str]:
    """The command lines in the blocks of a page, without what a shell does with them."""
    bodies = [body for language, body in BLOCK.findall(page.read_text(encoding="utf-8")) if language in ("sh", "text", "yaml")]
    return [re.split(r" [|>;]|  +#| #", line)[0].strip() for body in bodies for line in COMMAND.findall(body)]


def test_the_command_line_understands_every_command_of_every_block() -> None:
    group: Any = typer.main.get_command(app)
    understood = 0
    for page in PAGES:
        for line in typed(page):
            words = shlex.split(line)
            try:
                with group.make_context("lakelet", words, resilient_parsing=False) as context:
                    found: Any = group
                    while isinstance(found, click.Group):
                        _, found, words = found.resolve_command(context, words)
                        context = found.make_context(found.name, words, parent=context)
                        words = context.protected_args + context.args if isinstance(found, click.Group) else []
            except (click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
                pass  # --help and --version
            except click.ClickException as problem:
                raise AssertionError(f"{page.relative_to(ROOT)}: lakelet {line}\n{problem.format_message()}") from None
            understood += 1
    assert understood > 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one file, which is the current folder."""
    (tmp_path / "pipeline.py").write_text("import dlt\n")
    for name in ("data/raw", "data/orders"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "number", "expected"),
    [
        (
            "reference/configuration.md",
            0,
            lambda c: (str(c.storage).endswith("/lake"), c.parameters) == (True, {"landing": "sample/landing"}),
        ),
        ("reference/paths-and-tables.md", 0, lambda c: c.paths.mapped("/Volumes/main/shop/raw/a.json") == str(c.root / "data/raw/a.json")),
        ("reference/paths-and-tables.md", 1, lambda c: [t.path for t in c.tables.values()] == [str(c.root / "data/orders")]),
        ("reference/report.md", 0, lambda c: read_tool_settings(c.root, c.root).report),
    ],
)
def test_settings_are_read_as_the_page_says(page: str, number: int, expected: Any, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(blocks(page, "toml")[number])
    found: PipelineConfig = load_config(["pipeline.py"])
    assert expected(found), found


def test_the_rule_file_of_the_page_is_valid_and_its_calls_give_these_rules(folder: Path) -> None:
    (block,) = blocks("reference/rules.md", "yaml")
    (folder / "expectations").mkdir()
    (folder / "expectations" / "orders.yml").write_text(block)
    here = folder / "expectations"
    assert read_rule_file(here / "orders.yml").errors == ()
    has_id = {"has_id": "id IS NOT NULL"}
    assert rules("orders", "drop", folder=here) == has_id
    assert rules("orders", tag="keys", folder=here) == has_id
    assert rules("orders", "drop", layer="silver", columns=["channel"], folder=here) == {**has_id, "has_event_id": "event_id IS NOT NULL"}


def test_the_sink_of_the_page_is_declared_with_its_flow() -> None:
    (block,) = blocks("reference/sinks.md", "python")
    registry = Registry(Namespace())
    with recording(registry), dlt_modules():
        exec(compile(block, "sinks.py", "exec"), {"__name__": "sinks"})
    found = registry.definitions()
    assert [(one.sink.format, dict(one.sink.options)) for one in found.sinks if one.sink] == [("delta", {"path": "/data/mart/orders"})]
    assert [str(flow.name).rpartition(".")[2] for flow in found.flows] == ["send"]


def test_the_statements_of_the_page_are_understood_and_a_mistake_is_shown_as_there() -> None:
    (block,), (shown,) = blocks("reference/sql.md", "sql"), [b for b in blocks("reference/sql.md", "text") if b.startswith("[SQL_SYNTAX]")]
    found = declared(block)
    assert found.errors == []
    names = {dataset.name.name for dataset in found.definitions().datasets}
    assert names == {"orders", "customers", "by_customer"}
    wrong = next(line for line in shown.splitlines() if " | " in line).partition(" | ")[2]
    right = wrong.replace("DORP", "DROP")
    assert right in block
    assert str(declared(moved(block, right, wrong)).errors[0]).splitlines() == shown.splitlines()


def moved(block: str, right: str, wrong: str) -> str:
    """The block with the mistake on line 4, as the page shows it."""
    before, after = block.split(right)
    return "\n" * (3 - before.count("\n")) + before + wrong + after


def declared(text: str) -> Registry:
    registry = Registry(Namespace())
    with recording(registry):
        sql.declare([sql.Cell(text, 1)], Path("pipelines/shop.sql"), configuration={"shop.floor": "10", "landing": "/l"}, session=None)
    return registry


def test_a_path_that_nothing_maps_is_refused_in_the_words_of_the_page() -> None:
    (shown,) = [block for block in blocks("reference/paths-and-tables.md", "text") if block.startswith("[")]
    code, dataset, path, file, line = re.findall(r"\[(\w+)\] (\S+): (\S+) .*\n +(\S+), line (\d+)\n", shown)[0]
    with pytest.raises(LakeletError) as refused:
        PathMap().located(path, readable=lambda scheme: False, where=Location(file, int(line)))
    refused.value.dataset = dataset
    assert refused.value.code == code
    assert str(refused.value).splitlines() == shown.splitlines()


def test_the_runs_of_the_page_about_object_stores_have_their_storage_parameters_and_master_there(folder: Path) -> None:
    (block,) = blocks("cloud.md", "sh")
    configured = []
    for words in (shlex.split(line) for line in COMMAND.findall(block)):
        command: Any = typer.main.get_command(app).get_command(click.Context(click.Command("lakelet")), words[0])  # type: ignore[attr-defined]
        given = command.make_context(words[0], words[1:]).params
        params = dict(pair.split("=", 1) for pair in given.get("param") or ())
        configured.append(load_config(["pipeline.py"], storage=given["storage"], params=params, master=given.get("master"), environ={}))
    assert {str(one.storage) for one in configured} == {"s3a://lake/shop"}
    assert [one.parameters.get("landing") for one in configured] == ["s3a://lake/landing", None, "s3a://lake/landing"]
    assert [one.master for one in configured] == [None, None, "spark://head:7077"]


def test_types_for_editors_are_written_by_the_command_of_the_page(folder: Path) -> None:
    (block,) = blocks("reference/editor.md", "sh")
    for line in COMMAND.findall(block):
        assert main(shlex.split(line)) == 0
    page = (ROOT / "docs/reference/editor.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(typings/[^`]*)`", page, re.MULTILINE)
    assert named
    assert [name for name in named if not (folder / name).exists()] == []
    (settings,) = blocks("reference/editor.md", "ini")
    assert "plugins = lakelet.project.editor.mypy_plugin" in settings
