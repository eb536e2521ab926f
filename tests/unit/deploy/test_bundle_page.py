"""The page about bundles names every key that a resource may have."""

from __future__ import annotations

import re

import pytest

from lakelet.deploy.bundle import LOOKUP_KINDS
from lakelet.deploy.bundle.resource_forms import RESOURCES
from lakelet.deploy.desired_state import ResourceKind
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "bundle.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", list(ResourceKind))
def test_the_page_has_the_keys_of_every_kind(kind: ResourceKind) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == set(RESOURCES[kind].fields) - {"lifecycle"}


def test_the_page_has_the_kinds_of_lookups() -> None:
    assert {kind for kind in LOOKUP_KINDS if f"`{kind}`" not in PAGE} == set()
