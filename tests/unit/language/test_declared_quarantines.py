"""What a definition may say about a quarantine (QU-3, QU-4, QU-12), without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import Namespace, TableName
from lakelet.language.declaration_checks import check_properties
from lakelet.language.model import Action, ChangeSpec, Dataset, Definitions, Expectation, Flow, Kind
from lakelet.language.registry import Registry
from lakelet.storage.ownership import Owner, refused
from lakelet.storage.root import StorageRegistry as StoredRegistry
from lakelet.storage.root import StoredDataset

HERE = Location("p.py", 3)
RULE = Expectation("small", "n < 10", Action.DROP, HERE)
TABLE = Dataset(TableName("c", "s", "t"), Kind.STREAMING_TABLE, HERE, table_properties={"lakelet.quarantine": "true"}, expectations=(RULE,))
FLOW = Flow("c.s.t", TABLE.name, lambda: None, HERE, True)


def checked(*datasets: Dataset, flow: Flow = FLOW) -> tuple[list[LakeletError], list[str]]:
    registry = Registry(Namespace())
    check_properties(Definitions(datasets, (flow,)), registry)
    return registry.errors, [notice.text for notice in registry.notices]


@pytest.mark.parametrize(
    ("dataset", "kept"),
    [
        (TABLE, True),
        (replace(TABLE, table_properties={"LAKELET.Quarantine": " TRUE "}), True),
        (replace(TABLE, table_properties={"lakelet.quarantine": "false"}), False),
        (replace(TABLE, table_properties={}), False),
        (replace(TABLE, expectations=(replace(RULE, action=Action.FAIL),)), False),
    ],
)
def test_rows_are_kept_where_the_property_says_so_and_a_rule_drops(dataset: Dataset, kept: bool) -> None:
    assert dataset.keeps_dropped is kept
    assert checked(dataset)[0] == []
    assert str(dataset.quarantine) == "c.s.t_quarantine"


def test_a_table_without_a_drop_rule_is_told_that_the_property_has_no_effect() -> None:
    assert checked(replace(TABLE, expectations=())) == ([], ["lakelet.quarantine has no effect on c.s.t: it has no rule that drops rows"])


WRONG = {
    "PROPERTY_INVALID lakelet.quarantine is 'on': true or false is expected": replace(TABLE, table_properties={"lakelet.quarantine": "on"}),
    "PROPERTY_UNKNOWN Lakelet has no property lakelet.quarantines": replace(TABLE, table_properties={"lakelet.quarantines": "true"}),
    "QUARANTINE_REFUSED lakelet.quarantine is set for a view, which stores no rows of its own": replace(TABLE, kind=Kind.VIEW),
}


@pytest.mark.parametrize("told", WRONG)
def test_what_cannot_be_is_refused_by_name(told: str) -> None:
    (error,) = checked(WRONG[told])[0]
    assert f"{error.code} {error.what}" == told
    assert error.where == HERE


def test_a_quarantine_needs_a_name_of_its_own_and_a_table_that_appends_rows() -> None:
    same = replace(TABLE, name=TableName("c", "s", "T_Quarantine"), table_properties={})
    (error,) = checked(TABLE, same)[0]
    assert error.what == "its quarantine would be called c.s.T_Quarantine, which p.py, line 3 defines"
    changes = ChangeSpec("feed", (("id",),), sequence_by="n")
    (error,) = checked(TABLE, flow=replace(FLOW, changes=changes))[0]
    assert (error.code, "made of several events" in error.what) == ("QUARANTINE_REFUSED", True)


def test_a_name_that_the_storage_knows_otherwise_is_refused() -> None:
    owner = Owner("me", frozenset({"me"}), None)  # type: ignore[arg-type]
    own = StoredDataset("c.s.t_quarantine", Kind.STREAMING_TABLE, "x", owner="me", quarantine_of="c.s.t")
    assert refused(StoredRegistry(datasets={own.name: own}), owner, [TABLE]) == []
    other = replace(own, quarantine_of=None)
    (error,) = refused(StoredRegistry(datasets={own.name: other}), owner, [TABLE])
    assert (error.code, error.dataset) == ("QUARANTINE_REFUSED", "c.s.t")
    (error,) = refused(StoredRegistry(datasets={own.name: own}), owner, [replace(TABLE, name=TableName("c", "s", "t_quarantine"))])
    assert error.what == "the storage has the quarantine of c.s.t under this name"
