"""`lakelet rules` on a stored pipeline: all rules with where they are written, mistakes, rows that break one, suggestions."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.rules.checking import check_rules, list_rules
from lakelet.rules.suggestions import suggest
from lakelet.rules.trial import try_rule
from tests.paths import ROOT

pytestmark = pytest.mark.spark

PIPELINE = """
    import dlt
    from rules_of_orders import rules

    @dlt.table
    @dlt.expect_all(rules("orders", "warn"))
    @dlt.expect_all_or_drop(rules("orders", tag="keys"))
    @dlt.expect("in_code", "amount < 100")
    def orders():
        return spark.createDataFrame(
            [(1, 10.0, "a"), (2, None, "b"), (None, 3.0, "a"), (4, -1.0, "b"), (5, 7.0, "a"), (5, 8.0, "b")],
            "id BIGINT, amount DOUBLE, kind STRING")
"""
RULES = """\
datasets:
  orders:
    warn:
      positive: amount > 0
      always: 1 = 1
      never: kind = 'z'
      impossible: id > 1 AND false
      every: kind IN ('a', 'b')
    drop:
      has_id: {constraint: id IS NOT NULL, tags: [keys], owner: sales@example.com}
      unused: amount IS NOT NULL
    checks:
      one_each: {unique: idd}
      filled: {rows: {at_least: 1}}
  ordres:
    checks:
      filled: {rows: {at_least: 1}}
"""

LOADER = (ROOT / "expectations" / "__init__.py").read_text().replace("Path(__file__).parent", 'Path(__file__).parent / "expectations"')
"""Under another name than the module that the tests of this repository's pipelines have loaded."""
KEYS = "drop:\n      has_id: {constraint: id > 0, tags: [keys]}"


@pytest.fixture
def orders(project):
    def make(rules=RULES, source=PIPELINE):
        made = project(source)
        (made.folder / "expectations").mkdir(exist_ok=True)
        made.helper(LOADER, "rules_of_orders.py")
        (made.folder / "expectations" / "orders.yml").write_text(rules)
        return made

    return make


@pytest.mark.long
def test_rules_of_a_project_are_listed_checked_tried_and_suggested(orders):
    p = orders().run()
    folder, storage = p.folder / "expectations", p.storage.root

    known = {rule.name: rule for rule in list_rules(p.pipeline, folder)}
    assert {name: (r.where.line, r.action, r.used) for name, r in known.items()} == {
        "positive": (4, "warn", True),
        "always": (5, "warn", True),
        "never": (6, "warn", True),
        "impossible": (7, "warn", True),
        "every": (8, "warn", True),
        "has_id": (10, "drop", True),
        "in_code": (8, "warn", True),
        "unused": (11, "drop", False),
    }
    assert known["in_code"].where.file.endswith("pipeline.py")
    assert known["has_id"].as_json() == {
        "dataset": "main.default.orders", "rule": "has_id", "constraint": "id IS NOT NULL", "action": "drop",
        "file": "expectations/orders.yml", "line": 10, "tags": ["keys"], "description": None, "owner": "sales@example.com", "used": True,
    }  # fmt: skip

    found = [(f.severity, f.where.line, f.problem, f.nearest) for f in check_rules(p.pipeline, folder)]
    assert found == [
        ("error", 13, "check 'one_each': main.default.orders has no column 'idd'", ("id",)),
        ("warning", 5, "the rule 'always' can never fail: 1 = 1", ()),
        ("warning", 6, "the rule 'never' holds for none of the 5 stored rows: kind = 'z'", ()),
        ("warning", 7, "the rule 'impossible' can never hold: id > 1 AND false", ()),
        ("warning", 11, "no dataset uses the rule 'unused' of datasets.orders", ()),
        ("warning", 17, "check 'filled': the pipeline has no table ordres", ("main.default.orders",)),
        ("info", 8, "the rule 'every' holds for all of the 5 stored rows of main.default.orders", ()),
    ]

    trial = try_rule(storage, folder, "positive", "orders", limit=1)
    assert (trial.rows, trial.failed, len(trial.examples), str(trial.where)) == (5, 2, 1, "expectations/orders.yml, line 4")
    assert try_rule(storage, folder, "in_code", "orders", limit=9).failed == 1  # NULL breaks it
    text = try_rule(storage, folder, "id > 1 -- more", "main.default.orders", limit=9)
    assert (text.rule, text.failed, text.examples[0]["id"]) == (None, 1, 1)
    with pytest.raises(LakeletError, match="RULE_UNKNOWN") as unknown:
        try_rule(storage, folder, "positve", "orders", limit=1)
    assert unknown.value.nearest == ("positive",)
    for wrong in ("amont > 0", "amount + 1"):
        with pytest.raises(LakeletError, match="EXPECTATION_INVALID"):
            try_rule(storage, folder, wrong, "orders", limit=1)
    with pytest.raises(LakeletError, match="UNKNOWN_TABLE"):
        try_rule(storage, folder, "1 = 1", "ordres", limit=1)

    suggested = {(s.action, s.rule): (s.constraint, s.dropped, s.coverage) for s in suggest(storage, folder, "orders")}
    assert suggested == {  # id 5 comes twice, so it is not unique; `has_id` and `every` are written already
        ("warn", "id_in_range"): ("id BETWEEN 0 AND 5", 0, 1.0),
        ("warn", "amount_in_range"): ("amount IS NULL OR (amount BETWEEN -1.0 AND 10.0)", 0, 0.8),
        ("drop", "has_kind"): ("kind IS NOT NULL", 0, 1.0),
    }


def test_mistakes_that_analysis_finds_stand_where_the_rule_is_written(orders):
    p = orders(f"datasets:\n  orders:\n    warn:\n      positive: amont > 0\n      total: amount + 1\n    {KEYS}")
    found = check_rules(p.pipeline, p.folder / "expectations")
    assert [(f.severity, f.where.file, f.where.line, f.rule, f.nearest) for f in found] == [
        ("error", "expectations/orders.yml", 4, "positive", ("amount",)),
        ("error", "expectations/orders.yml", 5, "total", ()),
    ]
    assert "is double, not boolean" in found[1].problem


def test_mistakes_in_rule_files_are_found_without_loading_the_pipeline(orders):
    p = orders("datasets:\n  orders:\n    wran: {}\n    drop:\n      a: 5", source="raise SystemExit")
    found = check_rules(p.pipeline, p.folder / "expectations")
    assert [(f.where.line, f.nearest) for f in found] == [(3, ("warn",)), (5, ())]


def test_a_name_that_is_declared_twice_stands_where_the_rule_is_written(orders):
    twice = PIPELINE.replace('"in_code"', '"positive"')
    p = orders(
        f"datasets:\n  orders:\n    warn:\n      positive: amount > 0\n    {KEYS}",
        source=twice,
    )
    (found,) = check_rules(p.pipeline, p.folder / "expectations")
    assert (found.severity, found.where.file, found.where.line) == ("error", "expectations/orders.yml", 4)
