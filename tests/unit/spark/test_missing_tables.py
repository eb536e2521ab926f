"""The error about a table that nobody knows is one of Lakelet's and one of Spark's."""

from __future__ import annotations

import copy
import pickle

import pytest
from pyspark.errors import AnalysisException

from lakelet.base.errors import LakeletError, Location
from lakelet.spark.errors.missing_tables import MissingTable


@pytest.mark.parametrize("passed_on", [lambda error: error, copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_it_says_the_same_as_either_also_when_it_was_copied(passed_on):
    error = MissingTable("main.a.t", 'the query reads "main.a.t"', where=Location("p.py", 3), todo="Map it.", nearest=("main.a.u",))
    error.dataset = "main.a.d"

    found = passed_on(error)

    assert isinstance(found, LakeletError)
    assert isinstance(found, AnalysisException)
    assert str(found) == str(error)
    assert (found.code, found.dataset, found.where) == ("UNKNOWN_DATASET", "main.a.d", Location("p.py", 3))
    assert (found.getCondition(), found.getSqlState()) == ("TABLE_OR_VIEW_NOT_FOUND", "42P01")
    assert found.getMessageParameters() == {"relationName": "main.a.t"}
    assert found.getMessage() == "[TABLE_OR_VIEW_NOT_FOUND] The table or view main.a.t cannot be found."
    assert "main.a.t" in repr(found)
