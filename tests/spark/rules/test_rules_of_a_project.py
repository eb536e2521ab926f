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
    for wrong, code in (("amont > 0", "UNKNOWN_COLUMN"), ("amount + 1", "EXPECTATION_INVALID")):
        with pytest.raises(LakeletError, match=code):
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


def test_a_mistake_in_a_rule_file_is_one_error_in_its_own_line_wherever_it_is_met(orders):
    """validate and run, with two files that call `rules`, say what `rules check` says."""
    p = orders("datasets:\n  orders:\n    wran: {}\n    drop:\n      has_id: id IS NOT NULL")
    p.write(PIPELINE.replace("def orders", "def more").replace('"in_code"', '"other"'), "second.py")
    (checked,) = check_rules(p.pipeline, p.folder / "expectations")
    assert (str(checked.where), checked.nearest) == ("expectations/orders.yml, line 3", ("warn",))
    for errors in (p.refused(), validated(p)):
        assert [(e.code, str(e.where), e.nearest) for e in errors] == [("RULE_FILE_INVALID", "expectations/orders.yml, line 3", ("warn",))]

    p = orders("datasets:\n  orders:\n    warn: {a: 1 = 1}\n   drop: {}\n")  # not YAML
    (broken,) = p.refused()
    assert (broken.code, str(broken.where)) == ("RULE_FILE_INVALID", "expectations/orders.yml, line 4")

    p = orders(source=PIPELINE.replace('rules("orders", "warn")', 'rules("order", "warn")'))  # a mistake of the call is one of its line
    (called,) = p.refused()
    assert (called.code, called.where.source.strip()) == ("SOURCE_FAILED", '@dlt.expect_all(rules("order", "warn"))')
    assert called.nearest == ("orders", "ordres")

    shared = PIPELINE.replace('rules("orders", "warn")', 'rules("orders", "warn", columns=["kind"])')
    p = orders(f"datasets:\n  orders:\n    {KEYS}\ncolumns:\n  kind:\n    warn:\n      has_id: kind > 0", source=shared)
    (twice,) = p.refused()  # where it is written, also if only a call brings two rules of one name together
    assert (twice.code, str(twice.where)) == ("RULE_FILE_INVALID", "expectations/orders.yml, line 8")
    assert twice.what == "orders already has a rule 'has_id', from expectations/orders.yml"


def test_rules_on_missing_columns_and_on_other_types_are_refused_where_they_are_written(orders):
    p = orders(
        f"datasets:\n  orders:\n    warn:\n      euro: amount = \"EUR\"\n      positive: amont > 0\n      fine: kind = 'EUR'\n    {KEYS}"
    )
    p.write("CREATE MATERIALIZED VIEW m (\n  CONSTRAINT ok EXPECT (amount > '1.5'),\n  CONSTRAINT euro EXPECT (day < 'soon')\n) "
            "AS SELECT 1.5D AS amount, current_date() AS day", "m.sql")  # fmt: skip
    p.write("""
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    @dlt.expect_all_or_drop({
        "cents": "NOT amount IN ('a', 'b')",
        "tried": "try_cast('x' AS INT) IS NULL",
    })
    @dlt.expect("column", F.col("flag") == "maybe")
    @dlt.expect("gone", "gone BETWEEN 1 AND 'z'")
    @dlt.expect("nested", "part.n <> 'one'")
    @dlt.expect_or_fail("text", "kind > 5")
    def typed():
        return spark.sql("SELECT 1 AS amount, true AS flag, 2 AS gone, 'x' AS kind, named_struct('n', 1) AS part").drop("gone")
    """, "typed.py")  # fmt: skip
    expected = {
        ("expectations/orders.yml", 4, "expectation 'euro' compares 'EUR' with a value of type DOUBLE: amount = \"EUR\""),
        ("expectations/orders.yml", 5, "expectation 'positive' does not analyse: amont > 0"),
        ("m.sql", 3, "expectation 'euro' compares 'soon' with a value of type DATE: day < 'soon'"),
        ("typed.py", 7, "expectation 'cents' compares 'a' with a value of type BIGINT: NOT amount IN ('a', 'b')"),
        ("typed.py", 10, "expectation 'column' compares 'maybe' with a value of type BOOLEAN: "),
        ("typed.py", 11, "expectation 'gone' compares 'z' with a value of type BIGINT: gone BETWEEN 1 AND 'z'"),
        ("typed.py", 12, "expectation 'nested' compares 'one' with a value of type BIGINT: part.n <> 'one'"),
    }
    for errors in (p.refused(), validated(p)):
        assert {e.code for e in errors} == {"EXPECTATION_INVALID"}
        found = {
            (
                e.where.file if "expectations" in e.where.file else e.where.file.rsplit("/", 1)[-1],
                e.where.line,
                e.what.partition("Column<")[0],
            )
            for e in errors
        }
        assert found == expected
    euro = next(e for e in errors if "EUR" in e.what)
    assert "amount DOUBLE" in euro.todo
    assert "ansi" not in str(euro)
    assert next(e for e in errors if "amont" in e.what).nearest == ("amount",)


def test_a_fail_rule_of_a_file_fails_with_the_line_of_the_file(orders):
    source = PIPELINE.replace('expect_all(rules("orders", "warn"))', 'expect_all_or_fail(rules("orders", "fail"))')
    p = orders(f"datasets:\n  orders:\n    fail:\n      positive: amount > 0\n    {KEYS}", source=source)
    p.run(expect="FAILED")
    (error,) = p.result.errors
    assert str(error.where).startswith("expectations/orders.yml, line 4")
    assert error.what == "2 of 6 rows break the fail rule 'positive': amount > 0"
    assert error.why == 'The first such row (amount is NULL): {"id": 2, "amount": null, "kind": "b"}\nNothing of this batch was written.'
    assert p.quality() == {"positive": (4, 2), "has_id": (5, 1), "in_code": (5, 1)}


def validated(p):
    with pytest.raises(LakeletError) as refused:
        p.pipeline.check()
    return list(getattr(refused.value, "errors", [refused.value]))


SILENT = """\
datasets:
  orders:
    warn: {positive: amount > 0}
    drop: {has_id: {constraint: id IS NOT NULL, tags: [keys]}, has_kind: kind IS NOT NULL}
    fail:
      never_huge: amount < 1000
      never_zero: amount <> 0
  totals: {fail: {some: n > 0}}
  ordres: {warn: {x: 1 = 1}}
  shipped: {fail: {y: 1 = 1}}
layers: {silver: {drop: {known: kind IS NOT NULL}}}
columns: {kind: {warn: {short: length(kind) < 9}}}
"""


def test_EP16_rules_that_no_dataset_applies_are_noticed_with_what_applies_them(orders):
    p = orders(SILENT)
    p.write("CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n FROM orders", "totals.sql")
    p.helper("CREATE MATERIALIZED VIEW shipped AS SELECT 1 AS one", "of_another_pipeline.sql")
    expected = [
        (4, "the rule 'has_kind' of datasets.orders.drop", "give them the tag that it names, or ask without tag="),
        (6, "the rules 'never_huge', 'never_zero' of datasets.orders.fail",
         'write @dlt.expect_all_or_fail(rules("orders", "fail")) above the function in'),
        (8, "the rule 'some' of datasets.totals.fail", "CONSTRAINT some EXPECT (n > 0) ON VIOLATION FAIL UPDATE"),
        (9, "the rule 'x' of datasets.ordres.warn", "the pipeline has no dataset ordres; did you mean orders?"),
        (11, "the rule 'known' of layers.silver.drop", 'rules(…, "drop", layer="silver")'),
        (12, "the rule 'short' of columns.kind.warn", 'rules(…, "warn", columns=["kind"])'),
    ]  # fmt: skip
    found = [(notice.where.line, notice.text) for notice in p.pipeline.check().notices if notice.where.file == "expectations/orders.yml"]
    assert [line for line, _ in found] == [line for line, _, _ in expected]
    for (_, text), (_, rule, remedy) in zip(found, expected, strict=True):
        assert text.startswith(f"no dataset applies {rule}: ")
        assert remedy in text
    p.run()
    said = " ".join(event.message for event in p.events)
    assert all(text in said for _, text in found)

    asked = PIPELINE.replace("    @dlt.expect(", '    @dlt.expect_all_or_fail(rules("orders", "fail"))\n    @dlt.expect(')
    p.write(
        asked.replace(', tag="keys"', ', "drop", layer="silver", columns=["kind"]').replace(', "warn"))', ', "warn", columns=["kind"]))', 1)
    )
    p.write("CREATE MATERIALIZED VIEW totals (CONSTRAINT some EXPECT (n > 0) ON VIOLATION FAIL UPDATE) AS SELECT count(*) AS n FROM orders",
            "totals.sql")  # fmt: skip
    assert [notice.where.line for notice in p.pipeline.check().notices if notice.where.file == "expectations/orders.yml"] == [9]
