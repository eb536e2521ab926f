"""The description of a change table's state, as its property keeps it."""

from __future__ import annotations

import json

import pytest

from lakelet.base.errors import LakeletError
from lakelet.cdc.state import PROPERTY, ChangeState, NullRule
from lakelet.language.model import NullUpdates

STATE = ChangeState(True, named=True, tracked=("except", ("x",)), rules=(NullRule(), NullRule(NullUpdates.ON, (("a", "b"),))))


def test_the_property_gives_the_state_back():
    for state in (ChangeState(False), STATE):
        assert ChangeState.from_properties({PROPERTY: state.to_json()}) == state


@pytest.mark.parametrize("found", [None, 1, 2, 99])
def test_a_state_of_another_format_is_refused_and_so_is_one_that_is_not_described(found):
    written = json.dumps({**json.loads(STATE.to_json()), "format": found})
    for properties in ({}, {PROPERTY: written}) if found is None else ({PROPERTY: written},):
        with pytest.raises(LakeletError, match="FORMAT_UNKNOWN") as refused:
            ChangeState.from_properties(properties)
        assert refused.value.what == f"the state of the change table has format {found}; this Lakelet reads format 3"
