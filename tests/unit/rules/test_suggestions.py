"""What the profile of a table suggests, and the YAML of it."""

from __future__ import annotations

import yaml

from lakelet.config.rule_files import read_all
from lakelet.rules.suggestions import ColumnProfile, suggested_yaml, suggestions

PROFILE = [
    ColumnProfile("id", "bigint", 100, 99, "1", "100"),
    ColumnProfile("amount", "decimal(10,2)", 80, 60, "-2.50", "99.00"),
    ColumnProfile("kind", "string", 100, 2, values=("it's", "x")),
    ColumnProfile("note", "string", 0, 0),
    ColumnProfile("day", "date", 100, 3, "2026-03-01", "2026-04-01"),
    ColumnProfile("odd name", "string", 50, 50),
    ColumnProfile("share", "double", 100, 90, "0.0", "NaN"),
    ColumnProfile("items", "array<int>", 100, 0),
    ColumnProfile("größe", "int", 100, 40, "-5", "9"),
]
NEARLY = [
    ColumnProfile("a", "int", 995, 400, "-3", "70", negative=10),
    ColumnProfile("b", "double", 989, 400, "-3.5", "70.5", negative=11),
    ColumnProfile("kind", "string", 1000, 3, values=("purchase", "purchse", "refund"), common=("purchase", "refund"), others=4),
    ColumnProfile("country", "string", 990, 31, common=("DE", "FR"), others=9),
]


def test_nulls_ranges_sets_and_unique_columns_are_suggested():
    found = {(s.action, s.rule): s.constraint for s in suggestions("orders", 100, PROFILE)}
    assert found == {
        ("drop", "has_id"): "id IS NOT NULL",
        ("checks", "id_unique"): "id",
        ("warn", "amount_in_range"): "amount IS NULL OR (amount BETWEEN -2.50 AND 99.00)",
        ("drop", "has_kind"): "kind IS NOT NULL",
        ("warn", "kind_known"): r"kind IN ('it\'s', 'x')",
        ("drop", "has_day"): "day IS NOT NULL",
        ("warn", "day_in_range"): "day >= DATE '2026-03-01'",
        ("checks", "odd name_unique"): "odd name",
        ("drop", "has_share"): "share IS NOT NULL",
        ("drop", "has_items"): "items IS NOT NULL",
        ("drop", "has_größe"): "`größe` IS NOT NULL",
        ("warn", "größe_in_range"): "`größe` BETWEEN -5 AND 9",
    }
    coverage = {s.rule: s.coverage for s in suggestions("orders", 100, PROFILE)}
    assert (coverage["id_unique"], coverage["amount_in_range"]) == (1, 0.8)


def test_rules_that_nearly_all_rows_meet_are_suggested_with_the_rows_that_break_them():
    found = {(s.action, s.rule): (s.constraint, s.dropped) for s in suggestions("orders", 1000, NEARLY) if s.dropped}
    assert found == {  # `b` has one NULL and one negative number too many
        ("drop", "has_a"): ("a IS NOT NULL", 5),
        ("warn", "a_not_negative"): ("a IS NULL OR (a >= 0)", 10),
        ("warn", "kind_common"): ("kind IN ('purchase', 'refund')", 4),
        ("drop", "has_country"): ("country IS NOT NULL", 10),
        ("warn", "country_common"): ("country IS NULL OR (country IN ('DE', 'FR'))", 9),
    }
    text = suggested_yaml(list(suggestions("orders", 1000, NEARLY)))
    assert "      has_a: a IS NOT NULL  # today 5 of 1,000 rows dropped" in text.splitlines()
    assert (
        "      a_not_negative: a IS NULL OR (a >= 0)  # today 10 of 1,000 rows break it; 99.5% of the rows have a value"
        in text.splitlines()
    )
    assert "      kind_known: kind IN ('purchase', 'purchse', 'refund')  # today 0 of 1,000 rows break it" in text.splitlines()


def test_an_empty_table_suggests_nothing():
    assert list(suggestions("orders", 0, [ColumnProfile("id", "bigint", 0, 0)])) == []


def test_the_yaml_is_a_rule_file_and_says_what_each_rule_would_have_dropped(tmp_path):
    text = suggested_yaml(list(suggestions("orders", 100, PROFILE)))
    (tmp_path / "orders.yml").write_text(text)
    assert {r.name: r.constraint for r in read_all(tmp_path)[0]}["kind_known"] == r"kind IN ('it\'s', 'x')"
    assert [c.arguments for c in read_all(tmp_path)[1]] == [{"columns": ("id",)}, {"columns": ("odd name",)}]
    assert "      has_id: id IS NOT NULL  # today 0 of 100 rows dropped" in text.splitlines()
    assert "      id_unique: {unique: id}  # today no duplicates in 100 rows" in text.splitlines()
    assert "# today 0 of 100 rows break it; 80.0% of the rows have a value" in text
    assert list(yaml.safe_load(text)["datasets"]["orders"]) == ["drop", "warn", "checks"]
