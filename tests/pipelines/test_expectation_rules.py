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

    assert {rule.subject for rule in all_rules() if rule.section == "datasets"} <= datasets
    assert {(rule.name, rule.action, rule.constraint) for rule in all_rules()} == reached


def test_a_dataset_that_no_file_knows_is_refused():
    with pytest.raises(RuleError, match="no file has a rule for rowter_logs"):
        rules("rowter_logs", "drop")


def test_an_unknown_action_is_refused():
    with pytest.raises(RuleError, match="warn, drop, fail"):
        rules("router_logs", "dorp")
