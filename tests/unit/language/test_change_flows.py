"""Change data capture as declared: arguments, what they mean, and what is refused (CD-10)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.language import api
from lakelet.language.model import ChangeSpec, Flow, Kind, NullUpdates
from lakelet.language.registry import Registry, reading, recording


class Column:
    """Looks like pyspark's Column, as far as a declaration looks at one."""

    def __init__(self, text: str) -> None:
        self.text = text

    def alias(self, name: str) -> Column:
        return Column(f"{self.text} AS {name}")

    def __repr__(self) -> str:
        return f"Column<'{self.text}'>"


def declared(call: Callable[..., None], *args: Any, **kwargs: Any) -> Flow:
    registry = Registry(Namespace())
    with recording(registry):
        call(*args, **kwargs)
    (flow,) = registry.definitions(complete=False).flows
    return flow


def spec(**kwargs: Any) -> ChangeSpec:
    changes = declared(
        api.DP["create_auto_cdc_flow"], **{"target": "t", "source": "s", "keys": ["id"], "sequence_by": "seq"} | kwargs
    ).changes
    assert changes is not None
    return changes


def refused(**kwargs: Any) -> LakeletError:
    with pytest.raises(LakeletError) as caught:
        spec(**kwargs)
    return caught.value


def test_the_shortest_call_means_type_1_of_all_columns_in_the_targets_own_flow():
    flow = declared(api.DLT["apply_changes"], "t", "s", ["id"], "seq")
    assert (flow.name, str(flow.target), flow.default) == ("main.default.t", "main.default.t", False)
    assert flow.changes == ChangeSpec(source="s", keys=(("id",),), sequence_by="seq")


def test_both_modules_have_both_names():
    for module in (api.DLT, api.DP):
        assert declared(module["apply_changes"], "t", "s", ["id"], "seq").changes == declared(
            module["create_auto_cdc_flow"], "t", "s", ["id"], "seq"
        ).changes  # fmt: skip


def test_each_name_takes_all_arguments_of_the_older_one():
    older = {"where": "id > 0", "flow_name": "f", "once": False, "apply_as_truncates": None, "ignore_null_updates": None}
    found = [declared(api.DLT[name], "t", "s", ["id"], "seq", **older) for name in ("apply_changes", "create_auto_cdc_flow")]
    assert found[0].changes == found[1].changes == ChangeSpec(source="s", keys=(("id",),), sequence_by="seq", where="id > 0")
    assert found[0].name == found[1].name == "main.default.f"
    newer = [declared(api.DLT[name], "t", "s", ["id"], "seq", name="g") for name in ("apply_changes", "create_auto_cdc_flow")]
    assert [flow.name for flow in newer] == ["main.default.g"] * 2


def test_arguments_may_be_given_by_position_in_the_order_of_each_name():
    old = declared(
        api.DLT["apply_changes"], "t", "s", ["id"], "seq", "id > 0", True, "op = 'D'", "op = 'T'", None, ["op"], "1", None, None, "f", True
    )
    assert old.name == "main.default.f"
    assert old.changes == ChangeSpec(
        source="s", keys=(("id",),), sequence_by="seq", where="id > 0", ignore_null_updates=NullUpdates.ALL, apply_as_deletes="op = 'D'",
        apply_as_truncates="op = 'T'", except_column_list=(("op",),), once=True,
    )  # fmt: skip
    new = declared(
        api.DP["create_auto_cdc_flow"],
        "t",
        "s",
        ["id"],
        "seq",
        None,
        False,
        ["a"],
        None,
        None,
        "d",
        None,
        ["id", "a"],
        None,
        2,
        ["a"],
        None,
        "f",
    )
    assert new.changes == ChangeSpec(
        source="s", keys=(("id",),), sequence_by="seq", ignore_null_updates=NullUpdates.ON, ignore_null_columns=(("a",),),
        apply_as_deletes="d", column_list=(("id",), ("a",)), scd_type=2, track_history_column_list=(("a",),),
    )  # fmt: skip


def test_columns_are_names_or_columns_and_conditions_are_text_or_columns():
    seq, deleted = Column("struct(at, n)"), Column("=(op, D)")
    found = spec(keys=[Column("id"), "`odd.name`"], sequence_by=seq, apply_as_deletes=deleted, except_column_list=(Column("op"),))
    assert found.keys == (("id",), ("odd.name",))
    assert (found.sequence_by, found.apply_as_deletes, found.except_column_list) == (seq, deleted, (("op",),))


@pytest.mark.parametrize(("word", "meaning"), [("1", 1), ("2", 2), (1, 1), (2, 2), (None, 1)])
def test_scd_types(word, meaning):
    assert spec(stored_as_scd_type=word).scd_type == meaning


@pytest.mark.parametrize("word", ["SCD_TYPE_2", "SCD TYPE 2", "3", 0, 3, True, 2.5, [2], ""])
def test_other_words_for_the_scd_type_are_refused(word):
    assert refused(stored_as_scd_type=word).code == "ARGUMENT_INVALID"


BITEMPORAL: dict[str, Any] = {"stored_as_scd_type": "bitemporal", "system_sequence_by": "known"}


def test_a_bitemporal_table_and_its_system_sequence_need_one_another():
    """BT-1: in both modules, under both names."""
    wanted = ChangeSpec(source="s", keys=(("id",),), sequence_by="seq", scd_type=2, system_sequence_by="known")
    for module in (api.DLT, api.DP):
        for name in ("apply_changes", "create_auto_cdc_flow"):
            assert declared(module[name], "t", "s", ["id"], "seq", **BITEMPORAL).changes == wanted
    known = Column("known")
    assert spec(stored_as_scd_type="BITEMPORAL", system_sequence_by=known).system_sequence_by is known
    for given in (
        {"stored_as_scd_type": "bitemporal"},
        {"system_sequence_by": "at"},
        {"system_sequence_by": "at", "stored_as_scd_type": 2},
    ):
        error = refused(**given)
        assert (error.code, "bitemporal" in f"{error.what} {error.todo}") == ("CDC_CONTRADICTION", True)
        assert error.where.file.endswith(Path(__file__).name)
        assert "system_sequence_by" in error.what


@pytest.mark.parametrize("more", [{"columns_to_update": "cols"}, {"apply_as_truncates": "op = 'T'"}], ids=str)
def test_what_a_bitemporal_table_cannot_have_is_refused(more):
    """BT-11."""
    error = refused(**BITEMPORAL, **more)
    assert (error.code, error.where.file.endswith(Path(__file__).name), bool(error.todo)) == ("CDC_CONTRADICTION", True, True)


def test_a_system_sequence_is_text_or_a_column():
    assert refused(stored_as_scd_type="bitemporal", system_sequence_by=7).code == "ARGUMENT_INVALID"
    assert refused(stored_as_scd_type="bitemporal", system_sequence_by=" ").code == "ARGUMENT_INVALID"


def test_null_updates_have_three_forms_and_lists_may_name_fields():
    assert spec(ignore_null_updates=False).ignore_null_updates is NullUpdates.NONE
    assert spec(ignore_null_updates=None).ignore_null_updates is NullUpdates.NONE
    assert spec(ignore_null_updates=True).ignore_null_updates is NullUpdates.ALL
    on = spec(ignore_null_updates=False, ignore_null_updates_column_list=["a", "p.city", "A"])
    assert (on.ignore_null_updates, set(on.ignore_null_columns)) == (NullUpdates.ON, {("A",), ("p", "city")})
    but = spec(ignore_null_updates_except_column_list=["a"])
    assert (but.ignore_null_updates, but.ignore_null_columns) == (NullUpdates.EXCEPT, (("a",),))


@pytest.mark.parametrize(
    "given",
    [
        {"column_list": ["id"], "except_column_list": ["b"]},
        {"column_list": ["a"]},
        {"except_column_list": ["ID"]},
        {"stored_as_scd_type": 2, "track_history_column_list": ["a"], "track_history_except_column_list": ["b"]},
        {"track_history_column_list": ["a"]},
        {"track_history_except_column_list": ["a"]},
        {"ignore_null_updates": True, "ignore_null_updates_column_list": ["a"]},
        {"ignore_null_updates_column_list": ["a"], "ignore_null_updates_except_column_list": ["b"]},
        {"columns_to_update": "cols", "ignore_null_updates": True},
        {"columns_to_update": "cols", "ignore_null_updates_column_list": ["a"]},
        {"name": "f", "flow_name": "f"},
    ],
    ids=str,
)  # fmt: skip
def test_arguments_that_exclude_each_other(given):
    error = refused(**given)
    assert (error.code, error.where.file.endswith(Path(__file__).name), bool(error.todo)) == ("CDC_CONTRADICTION", True, True)


def test_C58_truncate_with_scd_type_2_is_a_mistake_of_the_definition():
    assert refused(stored_as_scd_type="2", apply_as_truncates="op = 'T'").code == "CDC_CONTRADICTION"


@pytest.mark.parametrize(
    "given",
    [
        {"keys": []}, {"keys": None}, {"keys": "id"}, {"keys": Column("id")}, {"keys": ["s.id"]}, {"keys": [1]}, {"keys": [""]},
        {"sequence_by": None}, {"sequence_by": " "}, {"sequence_by": 7}, {"sequence_by": ["a", "b"]},
        {"apply_as_deletes": True}, {"apply_as_truncates": ""}, {"source": None}, {"source": Column("s")}, {"target": None},
        {"column_list": "id"}, {"except_column_list": "op"}, {"ignore_null_updates": "yes"}, {"ignore_null_updates_column_list": "a"},
        {"columns_to_update": ["a"]}, {"columns_to_update": "s.cols"}, {"once": "yes"}, {"name": 5},
    ],
    ids=str,
)  # fmt: skip
def test_arguments_of_a_wrong_type_or_value_are_refused(given):
    assert refused(**given).code == "ARGUMENT_INVALID"


def test_empty_lists_are_lists_that_were_left_out():
    lists = ["column_list", "except_column_list", "track_history_column_list", "track_history_except_column_list"]
    nulls = ["ignore_null_updates_column_list", "ignore_null_updates_except_column_list"]
    found = spec(**{name: [] for name in lists + nulls}, stored_as_scd_type=2)
    assert [getattr(found, name) for name in lists] == [None] * 4
    assert found.ignore_null_updates is NullUpdates.NONE


class Tables:
    """Remembers which table was opened how."""

    def table(self, name: str, *, streaming: bool) -> tuple[str, bool]:
        return name, streaming

    def batch_or_stream(self, name: str) -> tuple[str, None]:
        return name, None


def opened(flow: Flow) -> Any:
    with reading(Tables()):
        return flow.query()


def test_the_source_is_a_stream_and_either_for_once_and_a_batch_for_snapshots():
    assert opened(declared(api.DLT["apply_changes"], "t", "LIVE.s", ["id"], "seq")) == ("LIVE.s", True)
    assert opened(declared(api.DLT["apply_changes"], "t", "s", ["id"], "seq", once=True)) == ("s", None)
    assert opened(declared(api.DLT["apply_changes_from_snapshot"], "t", "s", ["id"])) == ("s", False)


def test_snapshots_come_from_a_table_once_per_update_or_from_a_function():
    periodic = declared(api.DP["create_auto_cdc_from_snapshot_flow"], "t", "s", ["id"], 2, ["a"]).changes
    assert periodic == ChangeSpec(source="s", keys=(("id",),), scd_type=2, track_history_column_list=(("a",),), snapshots="periodic")

    def following(latest: Any) -> Any:
        return ("frame", 1) if latest is None else None

    for call, name in (("apply_changes_from_snapshot", "snapshot_and_version"), ("create_auto_cdc_from_snapshot_flow", "source")):
        flow = declared(api.DLT[call], "t", keys=["id"], stored_as_scd_type="2", **{name: following})
        assert flow.changes == ChangeSpec(source=None, keys=(("id",),), scd_type=2, snapshots=following)
        assert opened(flow) == "frame"
    newer = declared(api.DLT["create_auto_cdc_from_snapshot_flow"], "t", keys=["id"], snapshot_and_version=following)
    assert newer.changes == ChangeSpec(source=None, keys=(("id",),), snapshots=following)


def test_one_snapshot_with_its_version_may_be_given_instead_of_a_function():
    flow = declared(api.DLT["apply_changes_from_snapshot"], "t", snapshot_and_version=("frame", 7), keys=["id"], stored_as_scd_type=1)
    assert opened(flow) == "frame"
    assert callable(flow.changes.snapshots)
    assert [flow.changes.snapshots(latest) for latest in (None, 6, 7)] == [("frame", 7), ("frame", 7), None]


def test_snapshot_flows_refuse_what_excludes_each_other():
    for code, given in (
        ("CDC_CONTRADICTION", {"source": "s", "snapshot_and_version": lambda latest: None}),
        ("CDC_CONTRADICTION", {"source": "s", "track_history_column_list": ["a"]}),
        ("ARGUMENT_INVALID", {}),
        ("ARGUMENT_INVALID", {"source": 7}),
        ("CDC_CONTRADICTION", {"source": "s", "stored_as_scd_type": "bitemporal"}),
    ):
        with pytest.raises(LakeletError) as caught:
            declared(api.DLT["apply_changes_from_snapshot"], "t", keys=["id"], **given)
        assert caught.value.code == code


def flows_into_one(*calls: dict[str, Any], appending: bool = False) -> list[str]:
    registry = Registry(Namespace())
    with recording(registry):
        api.create_streaming_table("t")
        if appending:
            api.append_flow(target="t", name="appended")(lambda: None)
        for number, given in enumerate(calls):
            api.DP["create_auto_cdc_flow"](
                **{"target": "t", "source": "s", "keys": ["id"], "sequence_by": "q", "name": f"f{number}"} | given
            )
        registry.definitions()
    return [e.code for e in registry.errors]


def test_several_change_flows_may_share_a_target_if_they_agree():
    assert flows_into_one({}, {"keys": ["ID"], "sequence_by": "other"}) == []
    assert flows_into_one({}, {"once": True, "source": "all"}) == []
    assert flows_into_one({}, {"keys": ["id", "region"]}) == ["CDC_FLOWS_DIFFER"]
    assert flows_into_one({}, {"stored_as_scd_type": 2}) == ["CDC_FLOWS_DIFFER"]
    assert flows_into_one({"stored_as_scd_type": 2}, BITEMPORAL) == ["CDC_FLOWS_DIFFER"]
    assert flows_into_one(BITEMPORAL, {**BITEMPORAL, "system_sequence_by": "other"}) == []
    assert flows_into_one({"stored_as_scd_type": 2}, {"stored_as_scd_type": 2, "track_history_column_list": ["a"]}) == ["CDC_FLOWS_DIFFER"]
    assert flows_into_one({}, {"name": "f0"}) == ["DUPLICATE_FLOW"]


def test_changes_and_appends_do_not_share_a_target():
    assert flows_into_one({}, appending=True) == ["CDC_FLOWS_DIFFER"]


@pytest.mark.parametrize("first", ["snapshot", "events"])
@pytest.mark.parametrize("once", [True, False])
def test_a_snapshot_flow_does_not_share_its_target_with_events_and_the_error_names_the_way_to_begin_with_a_copy(first, once):
    registry = Registry(Namespace())

    def snapshot():
        api.DP["create_auto_cdc_from_snapshot_flow"]("t", "copy", keys=["id"], once=once)

    def events():
        api.DP["create_auto_cdc_flow"]("t", "s", ["id"], "q", name="changes")

    with recording(registry):
        api.create_streaming_table("t")
        for declare in (snapshot, events) if first == "snapshot" else (events, snapshot):
            declare()
        registry.definitions()
    (problem,) = registry.errors
    assert problem.code == "CDC_FLOWS_DIFFER"
    assert "'main.default.changes'" in problem.what
    assert "'main.default.t'" in problem.what
    assert "they differ in events or snapshots" in str(problem.why)
    assert ("create_auto_cdc_flow(once=True)" in str(problem.todo)) is once


def test_the_target_of_changes_has_no_query_of_its_own():
    registry = Registry(Namespace())
    with recording(registry):
        api.DLT["table"](lambda: None, name="t")
        api.DLT["apply_changes"]("t", "s", ["id"], "q", flow_name="f")
        registry.definitions()
    assert [(e.code, e.dataset) for e in registry.errors] == [("CDC_FLOWS_DIFFER", "main.default.t")]
    assert Kind.TABLE in {d.kind for d in registry.definitions().datasets}
