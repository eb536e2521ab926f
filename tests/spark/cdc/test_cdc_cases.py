"""The numbered cases of change data capture through the engine: the same table as for the algebra (docs/semantics/change-data.md).

Cases with equal arguments share one target, with the case and the arrangement of its events as an additional key: file n of a feed holds
the n-th batch of all of them, and each file is a micro-batch. A case with a truncate has a table of its own, and its events one order.
"""

from __future__ import annotations

import random
import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lakelet.plan.selection import Request
from tests.cdc_cases import (
    BAD_CASES,
    CASES,
    CITIES,
    CURRENT,
    HISTORY,
    MIDNIGHT,
    NOON,
    NULLS,
    PAIRS,
    SNAPSHOT_CASES,
    Case,
    Feed,
    Record,
    SnapshotCase,
    shuffled,
)
from tests.cdc_feeds import random_feed, stated
from tests.spark.conftest import Project

HEAD = """
import dlt
from pyspark import pipelines as dp
from pyspark.sql import functions as F

def declare(table, columns, arguments, flow=None, target=True):
    @dlt.view(name=f"feed_of_{flow or table}")
    def feed():
        reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        return reader.json(spark.conf.get("landing") + "/" + (flow or table))

    if target:
        dlt.create_streaming_table(table)
    dp.create_auto_cdc_flow(table, f"feed_of_{flow or table}", flow_name=flow, **arguments)
"""


_FILES = 3
"""Micro-batches of a feed, at most: each takes a second."""


def declared(table: str, feed: Feed, **more: Any) -> str:
    """The call that makes a table for packed cases of a feed."""
    arguments = dict(feed.arguments, keys=["case", *feed.arguments["keys"]])
    if "column_list" in arguments:
        arguments["column_list"] = ["case", *arguments["column_list"]]
    return f"declare({table!r}, {f'`case` STRING, {feed.ddl}'!r}, {arguments!r}, **{more!r})\n"


def packed() -> dict[str, tuple[Feed, dict[str, Mapping[str, Any]]]]:
    """Table → its feed, and what arrives in it: case and arrangement → batches."""
    rng = random.Random(5)
    found: dict[str, tuple[Feed, dict[str, Any]]] = {}
    for case in CASES:
        arrangements = case.arrangements(rng, count=3)
        if case.feed.alone:
            found[f"{case.feed.name}_{case.id.lower()}"] = case.feed, {f"{case.id}/given": case.batches}
        else:
            _, arriving = found.setdefault(case.feed.name, (case.feed, {}))
            arriving.update({f"{case.id}/{name}": batches for name, batches in arrangements.items()})
    return found


def land(p: Project, table: str, arriving: Mapping[str, Any]) -> None:
    """File n holds the n-th batch of each case, the last one all that are left."""
    last = min(_FILES, max(len(batches) for batches in arriving.values())) - 1
    for n in range(last + 1):
        now = [(name, batch) for name, batches in arriving.items() for at, batch in enumerate(batches) if min(at, last) == n]
        p.arrive(f"{n:02}.json", *({"case": name, **e} for name, batch in now for e in batch), folder=table)


def plain(value: Any, *, sequence: bool) -> Any:
    """A struct in the place of a sequence is a tuple in the cases."""
    return tuple(value.values()) if sequence and isinstance(value, dict) else value


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Mapping[str, Any]:
    """Case and arrangement → rows of the table in the end, or the error that ended its flow."""
    p, tables = Project(tmp_path_factory.mktemp("cases"), spark), packed()
    p.write(HEAD + "".join(declared(table, feed) for table, (feed, _) in tables.items()))
    for table, (_, arriving) in tables.items():
        land(p, table, arriving)
    failed = {str(e.dataset): e for e in p.pipeline.run(Request()).errors}
    found: dict[str, Any] = {}
    for table, (_, arriving) in tables.items():
        error = failed.get(f"main.default.{table}")
        found |= dict.fromkeys(arriving, error) if error else rows_by_case(p, table, arriving)
    return found


def rows_by_case(p: Project, table: str, arriving: Mapping[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list, {name: [] for name in arriving})
    for row in p.table(table).to_pylist():
        found[row.pop("case")].append(tuple(plain(v, sequence=n in ("__START_AT", "__END_AT")) for n, v in row.items()))
    return found


def _case_test(case: Case) -> Callable[[Mapping[str, Any]], None]:
    def test(held: Mapping[str, Any]) -> None:
        mine = {name: rows for name, rows in held.items() if name.split("/")[0] == case.id}
        assert len(mine) >= (1 if case.ordered or case.feed.alone else 6)
        wrong = {name: rows for name, rows in mine.items() if isinstance(rows, Exception) or not case.right(rows)}
        assert not wrong, f"expected {case.rows}, found { ({n: str(r) for n, r in wrong.items()}) }"

    return test


for _case in CASES:
    globals()[f"test_{_case.id}_in_one_batch_in_many_and_in_any_order"] = pytest.mark.long(_case_test(_case))


# ------------------------------------------------------------------------------------------------------- refused batches


@pytest.mark.long
def test_C15_C16_a_batch_without_sequences_or_keys_fails_its_flow_and_leaves_the_target_untouched(project):
    p = project(HEAD + "".join(f"declare({c.id!r}, {c.feed.ddl!r}, {dict(c.feed.arguments)!r})\n" for c in BAD_CASES))
    for case in BAD_CASES:
        p.arrive("good.json", *case.good, folder=case.id)
    p.run()
    versions = p.versions()
    for case in BAD_CASES:
        p.arrive("bad.json", *case.bad, folder=case.id)
    p.run(expect="FAILED")
    assert p.errors() == {case.id: case.code for case in BAD_CASES}
    assert p.versions() == versions
    assert {case.id: p.rows(case.id) for case in BAD_CASES} == {case.id: [(1, "a")] for case in BAD_CASES}


# ------------------------------------------------------------------------------------------------------- several flows


def both_orders(p: Project, first: str, second: str, one: Record, other: Record) -> list[Any]:
    """What two flows into one table leave there when either's event comes first."""
    found = []
    for table, order in (("t1", ((first, one), (second, other))), ("t2", ((second, other), (first, one)))):
        for flow, event in order:
            p.arrive("0.json", event, folder=f"{table}_{flow}")
            p.run()
        found.append(p.rows(table))
    return found


@pytest.mark.long
def test_C63_two_flows_into_one_table_are_ordered_by_the_sequence(project):
    feed, lines = PAIRS, []
    for table in ("t1", "t2"):
        for n, flow in enumerate(("a", "b")):
            lines.append(f"declare({table!r}, {feed.ddl!r}, {dict(feed.arguments)!r}, flow='{table}_{flow}', target={n == 0})\n")
    p = project(HEAD + "".join(lines))
    for table in ("t1", "t2"):
        for flow in ("a", "b"):
            (p.landing / f"{table}_{flow}").mkdir()
    one, other = {"id": 1, "x": "a", "seq": 10, "op": "u"}, {"id": 1, "x": "b", "seq": 20, "op": "u"}
    assert both_orders(p, "a", "b", one, other) == [[(1, "b", None)]] * 2


@pytest.mark.long
def test_C62_a_snapshot_applied_once_beside_changes_gives_way_to_them_in_either_order(project):
    hydrating = """
    @dlt.view
    def all_rows():
        return spark.createDataFrame([(1, "s", 0), (2, "t", 0)], "id INT, value STRING, seq INT")

    common = {"keys": ["id"], "sequence_by": "seq", "except_column_list": ["seq"]}
    """
    once = "dp.create_auto_cdc_flow('people', 'all_rows', once=True, name='hydrate', **common)\n"
    feed = "declare('people', 'id INT, value STRING, seq INT', common, flow='changes')\n"
    p = project()
    (p.landing / "changes").mkdir()
    p.write(HEAD + textwrap.dedent(hydrating) + feed + once).run()
    assert p.rows("people") == [(1, "s"), (2, "t")]
    p.arrive("0.json", {"id": 1, "value": "n", "seq": 5}, folder="changes")
    p.run()
    assert p.rows("people") == [(1, "n"), (2, "t")]
    p.write(HEAD + textwrap.dedent(hydrating) + feed).run(full_refresh=["people"])
    assert p.rows("people") == [(1, "n")]
    p.write(HEAD + textwrap.dedent(hydrating) + feed + once).run()
    assert p.rows("people") == [(1, "n"), (2, "t")]


@pytest.mark.slow
def test_C64_a_column_that_comes_later_is_null_in_the_rows_before_it(project):
    p = project()
    for columns in ("id INT, seq INT, v STRING", "id INT, seq INT, v STRING, z STRING"):
        tables = (("latest", {}), ("history", {"stored_as_scd_type": 2, "except_column_list": ["seq"]}))
        calls = [f"declare({name!r}, {columns!r}, {dict(more, keys=['id'], sequence_by='seq')!r})\n" for name, more in tables]
        p.write(HEAD + "".join(calls))
        number = columns.count(",")
        for name, _ in tables:
            new = {"id": number, "seq": number, "v": "new", "z": "grown"}
            p.arrive(f"{number}.json", new, {"id": 9, "seq": number, "v": "same"}, folder=name)
        p.run()
    assert p.rows("latest", "id", "seq", "v", "z") == [(2, 2, "new", None), (3, 3, "new", "grown"), (9, 3, "same", None)]
    assert p.rows("history", "id", "v", "z", "__START_AT", "__END_AT") == [
        (2, "new", None, 2, None),
        (3, "new", "grown", 3, None),
        (9, "same", None, 2, None),
    ]


@pytest.mark.slow
def test_values_that_differ_by_a_microsecond_or_inside_a_map_are_different(project):
    columns = "id INT, at TIMESTAMP, seen TIMESTAMP_NTZ, tags MAP<STRING, STRING>"
    arguments = {"keys": ["id"], "sequence_by": "at", "except_column_list": [], "stored_as_scd_type": 2}
    p = project(
        HEAD
        + f"declare('dated', {columns!r}, {arguments!r})\n"
        + f"declare('seen', {columns!r}, {dict(arguments, except_column_list=['at', 'tags'])!r})\n"
        + f"declare('tagged', {columns!r}, {dict(arguments, except_column_list=['at', 'seen'])!r})\n"
    )
    moments = [f"2024-01-01T00:00:00.00000{n}" for n in (1, 3, 2, 4)]
    for number, (moment, tag) in enumerate(zip(moments, "aabb", strict=True)):
        event = {"id": 1, "at": moment, "seen": moment, "tags": {"tag": tag, "more": "x"}}
        for folder in ("dated", "seen", "tagged"):
            p.arrive(f"{number}.json", event, folder=folder)
    p.run()

    def microseconds(table: str) -> list[Any]:
        found = p.rows(table, "__START_AT", "__END_AT")
        return [(start.microsecond, end and end.microsecond) for start, end in found]

    assert microseconds("dated") == microseconds("seen") == [(1, 2), (2, 3), (3, 4), (4, None)]
    assert microseconds("tagged") == [(1, 2), (2, 3), (3, 4), (4, None)]


# ---------------------------------------------------------------------------------------------------------- snapshots

COPIES = """
def declare_copies(table, columns, arguments, copies):
    def following(latest):
        for version, rows in copies:
            if latest is None or version > latest:
                return spark.createDataFrame(rows, columns), version
        return None

    dlt.create_streaming_table(table)
    dp.create_auto_cdc_from_snapshot_flow(table, following, [columns.split()[0]], **arguments)
"""


def copies(table: str, case: SnapshotCase, *, until: int | None = None) -> str:
    """The call that declares a target from the snapshots of a case."""
    columns = ", ".join(f"{name} {kind}" for name, kind in case.columns.items())
    found = [(version, list(rows)) for version, rows in case.snapshots[:until]]
    return f"declare_copies({table!r}, {columns!r}, {dict(case.arguments)!r}, {found!r})\n"


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.adaptive_too
def test_D5_D6_C59_C60_C61_snapshots_from_a_function_all_in_one_update_or_one_per_update(project):
    p = project()
    for until in (1, 2, 3):
        calls = [copies(case.id, case) + copies(f"{case.id}_slowly", case, until=until) for case in SNAPSHOT_CASES]
        p.write(HEAD + COPIES + "".join(calls)).run()
    wanted = {case.id: sorted(case.rows, key=repr) for case in SNAPSHOT_CASES}
    assert {case.id: p.rows(case.id) for case in SNAPSHOT_CASES} == wanted
    assert {case.id: p.rows(f"{case.id}_slowly") for case in SNAPSHOT_CASES} == wanted
    versions = p.versions()
    p.run()
    assert p.versions() == versions


@pytest.mark.slow
def test_D5_periodic_snapshots_carry_the_time_of_their_update(project):
    (case,) = (case for case in SNAPSHOT_CASES if case.id == "D5")
    call = f"dp.create_auto_cdc_from_snapshot_flow('people', 'whole', ['Key'], **{dict(case.arguments)!r})\n"
    p = project()
    for number, (_, rows) in enumerate(case.snapshots):
        view = f"@dlt.view\ndef whole():\n    return spark.createDataFrame({list(rows)!r}, 'Key INT, Value STRING')\n"
        p.write(HEAD + view + "dlt.create_streaming_table('people')\n" + call).run()
        assert len(p.rows("people")) == (2, 4)[number]
    times = sorted({row[2] for row in p.rows("people")})
    assert len(times) == 2
    name = {times[0]: MIDNIGHT, times[1]: NOON, None: None}
    assert sorted([(*row[:2], name[row[2]], name[row[3]]) for row in p.rows("people")], key=repr) == sorted(case.rows, key=repr)


@pytest.mark.long
def test_snapshots_that_cannot_be_applied_leave_the_target_as_the_last_good_one_did(project):
    gives = {
        "repeated": "(spark.createDataFrame([(1, 'b'), (1, 'c')], 'id INT, value STRING'), 2)",
        "older": "(spark.createDataFrame([(1, 'b')], 'id INT, value STRING'), 0)",
        "the_same": "(spark.createDataFrame([(1, 'b')], 'id INT, value STRING'), 1)",
        "unversioned": "(spark.createDataFrame([(1, 'b')], 'id INT, value STRING'), None)",
        "bare": "spark.createDataFrame([(1, 'b')], 'id INT, value STRING')",
        "without_key": "(spark.createDataFrame([(None, 'b')], 'id INT, value STRING'), 2)",
    }
    source = """
def declare_one(table, later):
    def following(latest):
        return (spark.createDataFrame([(1, "a")], "id INT, value STRING"), 1) if latest is None else later()

    dlt.create_streaming_table(table)
    dp.create_auto_cdc_from_snapshot_flow(table, following, ["id"])

def declare_nothing():
    dlt.create_streaming_table("nothing")
    dp.create_auto_cdc_from_snapshot_flow("nothing", lambda latest: None, ["id"])
"""
    p = project(HEAD + source + "".join(f"declare_one({name!r}, lambda: None)\n" for name in gives)).run()
    p.write(HEAD + source + "declare_nothing()\n" + "".join(f"declare_one({name!r}, lambda: {given})\n" for name, given in gives.items()))
    p.run(expect="FAILED")
    codes = dict.fromkeys(gives, "CDC_SNAPSHOT_INVALID") | {"without_key": "CDC_NULL_KEY", "nothing": "CDC_NO_SNAPSHOT"}
    assert p.errors() == codes
    assert {name: p.rows(name) for name in gives} == {name: [(1, "a")] for name in gives}


@pytest.mark.slow
def test_a_table_keeps_its_columns_when_its_snapshots_are_gone_and_functions_read_tables_of_the_pipeline(project):
    source = """
@dlt.table
def numbers():
    return spark.range(2)

dlt.create_streaming_table("copied")
"""
    call = "dp.create_auto_cdc_from_snapshot_flow('copied', lambda latest: {}, ['id'], 2)\n"
    below = "@dlt.table\ndef below():\n    return dlt.read('copied').groupBy('__START_AT').count()\n"
    p = project(HEAD + source + call.format("(spark.read.table('numbers'), 7) if latest is None else None") + below).run()
    assert p.rows("copied") == [(0, 7, None), (1, 7, None)]
    p.write(HEAD + source + call.format("None") + below).run()
    assert p.rows("copied") == [(0, 7, None), (1, 7, None)]
    assert p.rows("below") == [(7, 2)]


# -------------------------------------------------------------------------------------------------------- convergence


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 11))])
def test_random_feeds_converge_to_the_stated_tables(project, seed):
    rng = random.Random(seed)
    feeds = {"latest": (PAIRS, 3), "nulls": (NULLS, 3), "history": (PAIRS, 0), "history_nulls": (NULLS, 0)}
    p, calls, wanted = project(), [], {}
    for table, (feed, truncates) in feeds.items():
        history = {"stored_as_scd_type": 2} if table.startswith("history") else {"apply_as_truncates": "op = 't'"}
        events = random_feed(seed, truncates=truncates)
        for n, batch in enumerate(shuffled(events, rng, most=4)):
            p.arrive(f"{n}.json", *batch, folder=table)
        calls.append(f"declare({table!r}, {feed.ddl!r}, {dict(feed.arguments, **history)!r})\n")
        ignored = ("x", "y") if feed is NULLS else ()
        wanted[table] = sorted(stated(events, scd_type=2 if table.startswith("history") else 1, ignore_null=ignored), key=repr)
    p.write(HEAD + "".join(calls)).run()
    assert {table: p.rows(table) for table in feeds} == wanted, f"seed {seed}"


def test_the_packed_cases_are_those_of_the_algebra():
    feeds = {feed.name for feed, _ in packed().values()}
    assert feeds == {case.feed.name for case in CASES}
    assert {CURRENT.name, HISTORY.name, CITIES.name} <= feeds
