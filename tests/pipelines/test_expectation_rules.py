"""The rule files: what the loader gives to the decorators, and what it says about a file that cannot be used."""

import pytest

from expectations import RuleError, all_rules, rules

FILES = (
    "pipelines/bronze/router_logs.py",
    "pipelines/silver/event_types.py",
    "pipelines/silver/appointment_booked.py",
    "pipelines/gold/workforce.py",
    "pipelines/gold/conversations.py",
)


@pytest.fixture
def rule_file(tmp_path):
    def write(text, name="orders.yml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_rules_of_a_dataset_by_action():
    assert rules("router_logs", "drop") == {"has_event_type": "event_type IS NOT NULL"}
    assert rules("router_logs", "fail") == {}


def test_rules_of_the_layer_and_of_the_columns_are_added():
    assert rules("message_sent", "warn", layer="silver", columns=["conversation_id", "channel", "body_chars"]) == {
        "event_at_known": "event_at IS NOT NULL",
        "channel_known": "channel IN ('chat', 'sms', 'email', 'phone')",
        "body_chars_known": "body_chars IS NOT NULL",
    }


def test_every_rule_of_the_files_reaches_a_dataset(load_pipeline):
    datasets, reached = set(), set()
    for file in FILES:
        p = load_pipeline(file)
        datasets.update(p.datasets)
        reached.update(
            (name, rule.action.value, rule.text) for expectations in p.expectations.values() for name, rule in expectations.items()
        )

    assert {rule.owner for rule in all_rules() if rule.section == "datasets"} <= datasets
    assert {(rule.name, rule.action, rule.constraint) for rule in all_rules()} == reached


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets:\n  orders:\n    dorp:\n      has_id: id > 0", "orders.yml: datasets.orders.dorp.has_id: expected"),
        ("tables:\n  orders:", "orders.yml: tables.orders: expected datasets|layers|columns . owner . warn|drop|fail . name: SQL text"),
        ("datasets:\n  orders:\n    drop:\n      has_id:", "orders.yml: datasets.orders.drop.has_id: expected"),
        ("datasets:\n  orders:\n    drop: id > 0", "orders.yml: datasets.orders.drop: expected"),
        ("- orders", "got ['orders']"),
        ("datasets:\n  orders:\n    drop:\n      on: id > 0", "orders.yml: datasets.orders.drop.True: expected"),
        ("datasets:\n  orders:\n    warn:\n      a: x\n      a: y", "key 'a' is written twice"),
        ("datasets: [", "orders.yml"),
    ],
)
def test_a_broken_file_is_named_with_its_key(rule_file, text, message):
    with pytest.raises(RuleError) as error:
        rules("orders", "drop", folder=rule_file(text))
    assert message in str(error.value)
    assert "orders.yml" in str(error.value)


def test_two_rules_of_one_name_that_meet_on_a_dataset_are_refused(rule_file):
    rule_file("datasets:\n  orders:\n    warn:\n      known: a > 0")
    folder = rule_file("columns:\n  a:\n    drop:\n      known: a > 1", name="shared.yml")

    assert rules("orders", "warn", folder=folder) == {"known": "a > 0"}
    with pytest.raises(RuleError, match=r"shared\.yml: columns\.a\.drop\.known: orders already has .*/orders\.yml: datasets\.orders"):
        rules("orders", "warn", columns=["a"], folder=folder)


def test_a_dataset_that_no_file_knows_is_refused():
    with pytest.raises(RuleError, match="no file has a rule for rowter_logs"):
        rules("rowter_logs", "drop")


def test_an_unknown_action_is_refused():
    with pytest.raises(RuleError, match="warn, drop, fail"):
        rules("router_logs", "dorp")


def test_an_edited_file_is_read_again(rule_file):
    folder = rule_file("datasets:\n  orders:\n    warn:\n      known: a > 0")
    assert rules("orders", "warn", folder=folder) == {"known": "a > 0"}
    rule_file("datasets:\n  orders:\n    warn:\n      known: a > 1000")
    assert rules("orders", "warn", folder=folder) == {"known": "a > 1000"}
