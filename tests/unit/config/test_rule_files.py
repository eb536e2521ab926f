"""Rule files: what the loader reads from them, and what it says about mistakes, with file, line and nearest name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from expectations import RuleError, rules
from lakelet.base.errors import DefinitionErrors
from lakelet.config.rule_files import read_all, read_rule_file
from tests.paths import ROOT

ORDERS = """\
datasets:
  orders:
    warn:
      known: a > 0
    drop:
      has_id:
        constraint: id IS NOT NULL
        tags: [validity, keys]
        description: An order without a number cannot be refunded.
        owner: sales@example.com
      paid: {constraint: amount >= 0, tags: validity}
    checks:
      one_row_each: {unique: id, severity: critical, owner: sales@example.com}
      filled: {rows: {at_least: 1}}
"""


@pytest.fixture
def rule_file(tmp_path):
    def write(text, name="orders.yml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return write


def errors(folder):
    """What the engine says about the files, as one text for each mistake."""
    with pytest.raises(DefinitionErrors) as refused:
        read_all(folder)
    assert {error.code for error in refused.value.errors} == {"RULE_FILE_INVALID"}
    hints = [f"; did you mean {' or '.join(map(repr, error.nearest))}?" if error.nearest else "" for error in refused.value.errors]
    return [f"{e.where.file}:{e.where.line}: {e.what}{hint}" for e, hint in zip(refused.value.errors, hints, strict=True)]


def test_no_file_of_the_package_is_a_link():
    assert [path for path in (ROOT / "src" / "lakelet").rglob("*") if path.is_symlink()] == []


def test_the_loader_needs_nothing_but_the_standard_library_and_yaml():
    text = (ROOT / "expectations" / "__init__.py").read_text(encoding="utf-8")
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"collections", "difflib", "functools", "pathlib", "typing", "yaml"}


def test_the_loader_gives_the_same_rules_where_lakelet_cannot_be_imported(tmp_path):
    folder = tmp_path / "expectations"
    shutil.copytree(ROOT / "expectations", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "orders.yml").write_text(ORDERS)
    program = """
import json, sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("lakelet", "pyspark"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refused())
from expectations import all_rules, rules
datasets = sorted({r.subject for r in all_rules() if r.section == "datasets"})
actions = ("warn", "drop", "fail")
print(json.dumps([{d: {a: rules(d, action=a) for a in actions} for d in datasets}, rules("orders", tag="keys"), sorted(sys.modules)]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    found, tagged, modules = json.loads(done.stdout)
    assert found == {d: {a: rules(d, action=a, folder=folder) for a in ("warn", "drop", "fail")} for d in found}
    assert found["orders"] == {"warn": {"known": "a > 0"}, "drop": {"has_id": "id IS NOT NULL", "paid": "amount >= 0"}, "fail": {}}
    assert len(found) > 3  # those of this repository's pipelines too
    assert tagged == {"has_id": "id IS NOT NULL"}
    assert [name for name in modules if name.partition(".")[0] in ("lakelet", "pyspark")] == []


def test_a_rule_is_text_or_a_mapping_with_more_about_it(rule_file):
    first, second, third = read_all(rule_file(ORDERS))[0]
    assert (first.name, first.constraint, first.line, first.tags, first.owner) == ("known", "a > 0", 4, (), None)
    assert (second.name, second.constraint, second.line, second.tags) == ("has_id", "id IS NOT NULL", 6, ("validity", "keys"))
    assert (second.description, second.owner) == ("An order without a number cannot be refunded.", "sales@example.com")
    assert (third.constraint, third.tags) == ("amount >= 0", ("validity",))


def test_rules_are_chosen_by_action_by_tag_or_by_both(rule_file):
    folder = rule_file(ORDERS)
    assert rules("orders", action="drop", folder=folder) == {"has_id": "id IS NOT NULL", "paid": "amount >= 0"}
    assert rules("orders", tag="validity", folder=folder) == {"has_id": "id IS NOT NULL", "paid": "amount >= 0"}
    assert rules("orders", "drop", tag="keys", folder=folder) == {"has_id": "id IS NOT NULL"}
    assert rules("orders", "warn", tag="keys", folder=folder) == {}
    with pytest.raises(RuleError, match="give action= or tag="):
        rules("orders", folder=folder)
    with pytest.raises(RuleError, match=r"no rule has this tag; did you mean 'validity'\?"):
        rules("orders", tag="validty", folder=folder)


def test_checks_of_a_table_have_a_kind_with_arguments_and_a_severity(rule_file):
    first, second = read_all(rule_file(ORDERS))[1]
    assert (first.dataset, first.name, first.kind, first.arguments) == ("orders", "one_row_each", "unique", {"columns": ("id",)})
    assert (first.severity, first.owner, first.line) == ("critical", "sales@example.com", 13)
    assert (second.kind, second.arguments, second.severity) == ("rows", {"at_least": 1}, "warning")


def test_a_dataset_with_checks_alone_has_no_rules(rule_file):
    folder = rule_file("datasets:\n  orders:\n    checks:\n      filled: {rows: {at_least: 1}}")
    assert rules("orders", "drop", folder=folder) == {}


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        ("unique: [a, b]", {"columns": ("a", "b")}),
        ("complete: a", {"column": "a"}),
        ("complete: {column: a, at_least: 0.95}", {"column": "a", "at_least": 0.95}),
        ("rows: 7", {"at_least": 7, "at_most": 7}),
        ("fresh: {column: at, within: 2 days}", {"column": "at", "within": 172800.0}),
        ("fresh: {column: at, within: 1.5 hours}", {"column": "at", "within": 5400.0}),
        ("references: {columns: a, table: t}", {"columns": ("a",), "table": "t"}),
        ("references: {columns: [a, b], table: t, to: [c, d]}", {"columns": ("a", "b"), "table": "t", "to": ("c", "d")}),
        ("values: {column: a, in: [x, y]}", {"column": "a", "in": ("x", "y")}),
        ("mean: {column: a, at_least: 3, at_most: 4.5}", {"column": "a", "at_least": 3, "at_most": 4.5}),
        ("quantile: {column: a, q: 0.95, at_most: 30}", {"column": "a", "q": 0.95, "at_most": 30}),
        ("no_rows: 'SELECT 1'", {"query": "SELECT 1"}),
    ],
)
def test_every_kind_of_check_has_its_arguments(rule_file, check, arguments):
    _, (found,) = read_all(rule_file(f"datasets:\n  orders:\n    checks:\n      c:\n        {check}"))
    assert (found.kind, found.arguments) == (check.split(":")[0], arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "datasets:\n  orders:\n    dorp:\n      has_id: id > 0",
            "orders.yml:3: datasets.orders: unknown action 'dorp'; did you mean 'drop'?",
        ),
        ("dataset:\n  orders:", "orders.yml:1: the file: unknown section 'dataset'; did you mean 'datasets'?"),
        ("tables:\n  orders:", "orders.yml:1: the file: unknown section 'tables' (known: datasets, layers, columns)"),
        ("layers:\n  silver:\n    checks:\n      a: {rows: 1}", "orders.yml:3: layers.silver: unknown action 'checks'"),
        ("datasets:\n  orders:\n    drop:\n      has_id:", "orders.yml:4: datasets.orders.drop.has_id: expected SQL text, or a mapping"),
        (
            "datasets:\n  orders:\n    drop:\n      has_id: 5",
            "orders.yml:4: datasets.orders.drop.has_id: expected SQL text, or a mapping with",
        ),
        (
            "datasets:\n  orders:\n    drop: id > 0",
            "orders.yml:3: datasets.orders.drop: expected a name, each with its own entry; got 'id > 0'",
        ),
        ("- orders", "orders.yml:1: the file: expected datasets, layers, columns, each with its own entry; got ['orders']"),
        ("datasets:\n  orders:\n    drop:\n      on: id > 0", "orders.yml:4: datasets.orders.drop: YAML does not read 'on' as a name"),
        (
            "datasets:\n  orders:\n    warn:\n      a: x\n      a: y",
            "orders.yml:5: datasets.orders.warn: key 'a' is written twice, first in line 4",
        ),
        ("datasets: [", "orders.yml:1: not YAML: "),
        ("datasets: \x07", "orders.yml:1: not YAML: "),
        (
            "datasets:\n  orders:\n    drop:\n      a:\n        constraint: x\n        ownr: me",
            "orders.yml:6: datasets.orders.drop.a: unknown key 'ownr'; did you mean 'owner'?",
        ),
        ("datasets:\n  orders:\n    drop:\n      a:\n        tags: [x]", "datasets.orders.drop.a: has no constraint"),
        (
            "datasets:\n  orders:\n    drop:\n      a: {constraint: x, tags: {b: c}}",
            "tags: expected a name or a list of names, got {'b': 'c'}",
        ),
        (
            "datasets:\n  orders:\n    checks:\n      a: {uniqe: id}",
            "orders.yml:4: datasets.orders.checks.a: unknown check 'uniqe'; did you mean 'unique'?",
        ),
        ("datasets:\n  orders:\n    checks:\n      a: {unique: a, rows: 1}", "got unique and rows"),
        (
            "datasets:\n  orders:\n    checks:\n      a: {rows: {at_lest: 1}}",
            "unknown argument 'at_lest'; did you mean 'at_least' or 'at_most'?",
        ),
        ("datasets:\n  orders:\n    checks:\n      a: {rows: {}}", "rows needs at_least or at_most"),
        ("datasets:\n  orders:\n    checks:\n      a: {fresh: {column: a}}", "fresh needs within"),
        (
            "datasets:\n  orders:\n    checks:\n      a: {fresh: {column: a, within: soon}}",
            "expected a duration such as 6 hours or 2 days, got 'soon'",
        ),
        (
            "datasets:\n  orders:\n    checks:\n      a: {rows: 1, severity: criticl}",
            "unknown severity 'criticl'; did you mean 'critical'?",
        ),
        ("datasets:\n  orders:\n    checks:\n      a: {mean: a}", "mean needs column, at_least, at_most"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_nearest_name(rule_file, text, message):
    assert message in errors(rule_file(text))[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "datasets:\n  orders:\n    dorp:\n      has_id: id > 0",
            r"/orders\.yml: datasets\.orders: unknown 'dorp' .*; did you mean 'drop'\?",
        ),
        ("layers: {silver: {checks: {a: {rows: 1}}}}", r"layers\.silver: unknown 'checks' \(known: warn, drop, fail\)"),
        ("datasets:\n  orders:\n    drop: {has_id: 5}", r"datasets\.orders\.drop\.has_id: expected SQL text, got 5"),
        ("datasets:\n  orders:\n    drop: {has_id: {tags: [a]}}", r"datasets\.orders\.drop\.has_id: expected SQL text, got ''"),
        ("datasets:\n  orders:\n    drop: id > 0", r"datasets\.orders\.drop: expected names, each with its own entry; got 'id > 0'"),
        ("- orders", r"/orders\.yml: expected datasets, layers, columns, each with its own entry"),
        ("datasets: [", r"/orders\.yml: not YAML: "),
    ],
)
def test_the_loader_itself_refuses_what_would_turn_rules_off(rule_file, text, message):
    """Where Lakelet does not check the files, as on Databricks."""
    with pytest.raises(RuleError, match=message):
        rules("orders", "drop", folder=rule_file(text))


def test_all_mistakes_of_a_file_are_found_together(rule_file):
    folder = rule_file("datasets:\n  orders:\n    dorp:\n      a: x\n    warn:\n      b: 7\n      c: d > 0\nlayer: {}")
    found = read_rule_file(folder / "orders.yml")
    assert sorted(error.where.line for error in found.errors) == [3, 6, 8]
    assert [rule.name for rule in found.rules] == ["c"]


def test_anchors_and_merged_keys_are_read_as_yaml_means_them(rule_file):
    shared = "datasets:\n  a:\n    drop: &common\n      has_id: id > 0\n      known: x > 0\n"
    folder = rule_file(shared + "  b:\n    drop:\n      <<: *common\n      known: x > 1")
    assert rules("b", "drop", folder=folder) == {"has_id": "id > 0", "known": "x > 1"}


def test_two_rules_of_one_name_that_meet_on_a_dataset_are_refused(rule_file):
    rule_file("datasets:\n  orders:\n    warn:\n      known: a > 0")
    folder = rule_file("columns:\n  a:\n    drop:\n      known: a > 1", name="shared.yml")

    assert rules("orders", "warn", folder=folder) == {"known": "a > 0"}
    with pytest.raises(RuleError, match=r"/shared\.yml: orders already has a rule 'known', from .*/orders\.yml"):
        rules("orders", "warn", columns=["a"], folder=folder)


def test_a_dataset_that_no_file_knows_is_refused_with_the_nearest_name(rule_file):
    with pytest.raises(RuleError, match=r"no file has a rule for ordres; .*; did you mean 'orders'\?"):
        rules("ordres", "drop", folder=rule_file(ORDERS))


def test_an_edited_file_is_read_again(rule_file):
    folder = rule_file("datasets:\n  orders:\n    warn:\n      known: a > 0")
    assert rules("orders", "warn", folder=folder) == {"known": "a > 0"}
    rule_file("datasets:\n  orders:\n    warn:\n      known: a > 1000")
    assert rules("orders", "warn", folder=folder) == {"known": "a > 1000"}
