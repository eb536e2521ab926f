"""Options of change flows that differ between the flows of a table, or change between updates (docs/semantics/change-options.md)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lakelet.language.model import ChangeSpec, NullUpdates
from tests import cdc_algebra as algebra
from tests.spark.conftest import Project

pytestmark = pytest.mark.long

HEAD = """
import dlt
from pyspark import pipelines as dp

COLUMNS = "id INT, x STRING, y STRING, seq INT, op STRING, cols ARRAY<STRING>"

@dlt.view
def everything():
    return spark.createDataFrame([(1, "s", "t", 0, "u", None), (2, "s", "t", 0, "u", None)], COLUMNS)

def declare(flow, options):
    @dlt.view(name="feed_of_" + flow)
    def feed():
        return spark.readStream.schema(COLUMNS).json(spark.conf.get("landing") + "/" + flow)

    common = {"keys": ["id"], "sequence_by": "seq", "except_column_list": ["op", "seq", "cols"]}
    source = "everything" if options.get("once") else "feed_of_" + flow
    dp.create_auto_cdc_flow(flow.split("-")[0], source, name=flow, **{**common, **options})
"""
DELETES = {"apply_as_deletes": "op = 'd'"}
NULLS = {**DELETES, "ignore_null_updates": True}
PROPERTIES: Mapping[str, Mapping[str, str]] = {"written": {}, "merged": {"delta.enableChangeDataFeed": "true"}}
"""Small tables are written again as a whole, those that keep a change feed are merged."""

Flows = Mapping[str, Mapping[str, Any]]


def pipeline(flows: Flows) -> str:
    """A pipeline with each flow twice. A flow's name is its table's and, after a dash, its own."""
    text = HEAD
    for way, properties in PROPERTIES.items():
        for table in dict.fromkeys(name.split("-")[0] for name in flows):
            text += f"dlt.create_streaming_table({table + '_' + way!r}, table_properties={properties!r})\n"
        text += "".join(f"declare({_name(name, way)!r}, {options!r})\n" for name, options in flows.items())
    return text


def _name(flow: str, way: str) -> str:
    table, *own = flow.split("-")
    return "-".join([f"{table}_{way}", *own])


def update(p: Project, flows: Flows, name: str, expect: str = "COMPLETED", **arriving: Sequence[Mapping[str, Any]]) -> None:
    """One update with these flows after events arrived in the feeds, which have underscores for dashes."""
    for flow in flows:
        for way in PROPERTIES:
            p.arrive(f"{name}.json", *arriving.get(flow.replace("-", "_"), ()), folder=_name(flow, way))
    p.write(pipeline(flows)).run(expect=expect)


def held(p: Project, table: str, *columns: str) -> list[Any]:
    """The rows of a table, which must be the same whichever way it was written."""
    one, other = (p.rows(f"{table}_{way}", *columns) for way in PROPERTIES)
    assert one == other, table
    return one


def u(id: int, x: str | None, y: str | None, seq: int, **more: Any) -> dict[str, Any]:
    return {"id": id, "x": x, "y": y, "seq": seq, "op": "u", **more}


def d(id: int, seq: int) -> dict[str, Any]:
    return {"id": id, "seq": seq, "op": "d"}


def test_a_target_that_gets_or_loses_ignore_null_updates_keeps_what_its_rows_and_tombstones_said(project):
    p = project()
    before = {"on": DELETES, "off": NULLS, "named": DELETES, "past": {**DELETES, "stored_as_scd_type": 2}}
    first = [u(1, "a", "b", 5), d(2, 5), u(3, "c", "d", 5), u(4, "e", None, 5)]
    update(p, before, "1", on=first, off=first, named=first, past=first)
    assert held(p, "on") == held(p, "off") == held(p, "named") == [(1, "a", "b"), (3, "c", "d"), (4, "e", None)]

    after = {
        "on": NULLS,
        "off": DELETES,
        "named": {**DELETES, "columns_to_update": "cols"},
        "past": {**DELETES, "stored_as_scd_type": 2, "ignore_null_updates": True},
    }
    stale = [u(1, None, "old", 3), u(2, "old", "old", 4), d(3, 3), u(4, "old", "old", 2)]
    late = u(1, None, "c", 7, cols=["y"])
    update(p, after, "2", on=[*stale, late], off=[*stale, late], named=[*stale, late], past=[*stale, late])
    assert held(p, "on") == held(p, "named") == [(1, "a", "c"), (3, "c", "d"), (4, "e", None)]
    # What came while nulls were ignored said nothing with its nulls, and says nothing now.
    assert held(p, "off") == [(1, None, "c"), (3, "c", "d"), (4, "e", "old")]
    assert [row for row in held(p, "past") if row[0] == 1] == [(1, "a", "b", 5, 7), (1, "a", "c", 7, None), (1, None, "old", 3, 5)]


@pytest.mark.slow
def test_each_event_says_what_the_options_of_its_own_flow_let_it_say(project):
    p = project()
    flows = {
        "pair-hydrate": {"once": True},
        "pair-changes": NULLS,
        "two-plain": DELETES,
        "two-nulls": NULLS,
        "listed-plain": DELETES,
        "listed-named": {**DELETES, "columns_to_update": "cols"},
        "buried-deletes": {**DELETES, "apply_as_truncates": "op = 't'"},
        "buried-upserts": {},
    }
    truncate = {"seq": 4, "op": "t"}
    update(
        p,
        flows,
        "1",
        pair_changes=[u(1, None, "n", 5)],
        two_plain=[u(1, "a", None, 10), u(2, "a", "b", 3)],
        listed_plain=[u(1, "a", "b", 3)],
        buried_deletes=[u(1, "a", "b", 3), d(2, 9), truncate],
    )
    update(
        p,
        flows,
        "2",
        two_nulls=[u(1, "old", "old", 5), u(2, None, "c", 6)],
        listed_named=[u(1, None, "ignored", 5, cols=["x"])],
        buried_upserts=[u(1, "late", "late", 2), u(2, "late", "late", 5), u(3, "new", "new", 5)],
    )
    assert held(p, "pair") == [(1, "s", "n"), (2, "s", "t")]
    assert held(p, "two") == [(1, "a", None), (2, "a", "c")]
    assert held(p, "listed") == [(1, None, "b")]
    assert held(p, "buried") == [(3, "new", "new")]


@pytest.mark.slow
def test_columns_that_a_flow_does_not_select_any_more_are_null_in_new_rows_and_stay_in_old_versions(project):
    p = project()
    narrow, two = {"except_column_list": ["op", "seq", "cols", "y"]}, {"stored_as_scd_type": 2}
    update(p, {"now": {}, "past": two}, "1", now=[u(1, "a", "b", 1), u(2, "a", "b", 1)], past=[u(1, "a", "b", 1)])
    update(p, {"now": narrow, "past": {**two, **narrow}}, "2", now=[u(1, "c", "lost", 2)], past=[u(1, "c", "lost", 2)])
    assert held(p, "now") == [(1, "c", None), (2, "a", "b")]
    assert held(p, "past") == [(1, "a", "b", 1, 2), (1, "c", None, 2, None)]


@pytest.mark.slow
def test_other_tracked_columns_count_for_all_versions_from_the_next_batch_on(project):
    p = project()
    two, only_x = {"stored_as_scd_type": 2}, {"stored_as_scd_type": 2, "track_history_column_list": ["x"]}
    events = [u(1, "a", "b", 1), u(1, "a", "c", 2), u(2, "a", "b", 1), u(2, "a", "c", 2)]
    update(p, {"more": only_x, "less": two}, "1", more=events, less=events)
    assert held(p, "more", "id", "y", "__START_AT") == [(1, "c", 1), (2, "c", 1)]
    update(p, {"more": two, "less": only_x}, "2", more=[u(1, "a", "d", 3)], less=[u(1, "a", "d", 3)])
    assert held(p, "more", "id", "y", "__START_AT") == [(1, "b", 1), (1, "c", 2), (1, "d", 3), (2, "b", 1), (2, "c", 2)]
    assert held(p, "less", "id", "y", "__START_AT") == [(1, "d", 1), (2, "c", 1)]


@pytest.mark.in_ci(every=4)
@pytest.mark.parametrize("properties", ["{}", '{"delta.enableChangeDataFeed": "true"}'], ids=["written again", "merged"])
@pytest.mark.parametrize("kind", [1, 2])
def test_events_of_one_sequence_that_two_flows_bring_say_together_what_each_says(project, kind, properties):
    p = project(f"""
        import dlt

        for feed in ("sparing", "whole"):
            @dlt.view(name=feed)
            def rows(feed=feed):
                return spark.readStream.schema("id INT, at INT, x STRING, y STRING").json(spark.conf.get("landing") + "/" + feed)

        dlt.create_streaming_table("t", table_properties={properties})
        for feed in ("sparing", "whole"):
            dlt.create_auto_cdc_flow(
                target="t", source=feed, name=feed + "_flow", keys=["id"], sequence_by="at", ignore_null_updates=feed == "sparing",
                except_column_list=["at"], stored_as_scd_type={kind},
            )
    """)
    p.arrive("1.json", {"id": 1, "at": 1, "x": "a", "y": "b"}, {"id": 2, "at": 1, "x": "a", "y": "b"}, folder="whole")
    p.arrive("1.json", {"id": 3, "at": 1, "x": "a"}, folder="sparing")
    p.run()
    p.arrive("2.json", {"id": 1, "at": 1, "y": "c"}, {"id": 3, "at": 1, "y": "b"}, {"id": 3, "at": 2, "x": "d"}, folder="sparing")
    p.arrive("2.json", {"id": 2, "at": 1, "y": "c"}, folder="whole")
    p.run()
    p.arrive("3.json", {"id": 1, "at": 2, "x": "d"}, {"id": 2, "at": 2}, folder="sparing")
    p.run()
    newest = {1: ("d", "c"), 2: (None, "c"), 3: ("d", "b")}
    if kind == 1:
        assert p.rows("t", "id", "x", "y") == [(key, *values) for key, values in newest.items()]
    else:
        assert p.rows("t", "id", "x", "y", "__START_AT", "__END_AT") == [
            (1, "a", "c", 1, 2), (1, "d", "c", 2, None), (2, None, "c", 1, None), (3, "a", "b", 1, 2), (3, "d", "b", 2, None)
        ]  # fmt: skip


MIXED: Mapping[str, Mapping[str, Any]] = {
    "named": {"columns_to_update": "cols"},
    "all": {"ignore_null_updates": True},
    "x": {"ignore_null_updates_column_list": ["x"]},
    "y": {"ignore_null_updates_column_list": ["y"]},
}


def spec_of(flow: str, kind: int) -> ChangeSpec:
    """The options of a flow of MIXED as the algebra has them."""
    nulls = {"named": NullUpdates.NONE, "all": NullUpdates.ALL}.get(flow, NullUpdates.ON)
    listed, named = ((flow,),) if nulls is NullUpdates.ON else (), ("cols",) if flow == "named" else None
    more: Any = {"ignore_null_updates": nulls, "ignore_null_columns": listed, "columns_to_update": named}
    return ChangeSpec(source="s", keys=(("id",),), sequence_by="seq", scd_type=kind, apply_as_deletes="op = 'd'", **more)


def event_of(record: Mapping[str, Any]) -> algebra.ChangeEvent:
    sets = None if record.get("cols") is None else frozenset((name,) for name in record["cols"])
    values = {(name,): record.get(name) for name in ("x", "y")}
    return algebra.ChangeEvent(
        (record["id"],), record["seq"], values, algebra.Op.DELETE if record["op"] == "d" else algebra.Op.UPSERT, sets
    )


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize("kind", [1, 2])
def test_events_of_one_sequence_from_flows_of_all_options_give_what_the_algebra_gives(project, kind):
    p, rng, state = project(), random.Random(kind), algebra.State()
    flows = {f"t-{name}": {**DELETES, **options, "stored_as_scd_type": kind} for name, options in MIXED.items()}
    for number in range(3):
        batch: dict[str, list[Any]] = {name: [] for name in MIXED}
        for key in range(80):
            flow, seq = rng.choice(list(MIXED)), rng.randint(1, 3)
            names = {"cols": rng.choice([["x"], ["y"], ["x", "y"], None])} if flow == "named" else {}
            upsert = u(key, rng.choice(["a", "b", None]), rng.choice(["c", "e", None]), seq, **names)
            batch[flow].append(d(key, seq) if rng.random() < 0.12 else upsert)
        update(p, flows, str(number), **{f"t_{name}": records for name, records in batch.items()})
        for flow, records in batch.items():
            state = algebra.folded(spec_of(flow, kind), state, map(event_of, records))
    times = ("__START_AT", "__END_AT") if kind == 2 else ()
    rows = algebra.rows(spec_of("all", kind), state)
    expected = [(*row.key, row.values[("x",)], row.values[("y",)], *((row.start, row.end) if kind == 2 else ())) for row in rows]
    assert held(p, "t", "id", "x", "y", *times) == sorted(expected, key=repr)
