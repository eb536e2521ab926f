"""The technique that tests ask for (IV-34)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.flows.views.deciding import FORCED, forced_technique
from lakelet.plan.refreshes import Technique


def test_the_environment_names_a_technique() -> None:
    assert forced_technique({}) is None
    assert forced_technique({FORCED: ""}) is None
    assert forced_technique({FORCED: "groups"}) is Technique.GROUPS
    with pytest.raises(LakeletError, match="LAKELET_REFRESH is 'fast'"):
        forced_technique({FORCED: "fast"})
