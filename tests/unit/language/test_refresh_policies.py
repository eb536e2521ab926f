"""How a definition says its refresh policy, in Python and in SQL (IV-43). No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.language import sql
from lakelet.language.datasets import materialized_view
from lakelet.language.model import RefreshPolicy
from lakelet.language.registry import Registry, recording


def python_policy(**given: Any) -> RefreshPolicy:
    registry = Registry(Namespace())
    with recording(registry):
        materialized_view(lambda: None, name="v", **given)
    (found,) = registry.definitions().datasets
    assert registry.notices == []
    return found.refresh_policy


def sql_policy(clause: str) -> RefreshPolicy:
    registry = Registry(Namespace())
    with recording(registry):
        cell = sql.Cell(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT 1", 1)
        sql.declare([cell], Path("shop.sql"), configuration={}, session=None)
    (found,) = registry.definitions().datasets
    assert registry.notices == []
    return found.refresh_policy


@pytest.mark.parametrize("policy", RefreshPolicy)
def test_a_policy_is_spelled_in_both_languages_and_gets_no_notice(policy: RefreshPolicy) -> None:
    assert python_policy(refresh_policy=policy.value) is policy
    assert sql_policy(f"REFRESH POLICY {policy.value.replace('_', ' ').upper()}") is policy


def test_without_a_policy_it_is_auto() -> None:
    assert python_policy() is sql_policy("") is RefreshPolicy.AUTO


@pytest.mark.parametrize("given", ["sometimes", "FULL", "", 3, ["full"]])
def test_any_other_value_is_refused_with_the_four(given: object) -> None:
    with pytest.raises(LakeletError) as raised:
        python_policy(refresh_policy=given)
    assert (raised.value.code, raised.value.what) == (
        "ARGUMENT_INVALID",
        f"refresh_policy {given!r} is none of auto, incremental, incremental_strict, full",
    )
