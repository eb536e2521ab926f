"""Which datasets an update refreshes and resets (RE-3 to RE-7; no Spark)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelet.base.errors import ExitCode, LakeletError, Location
from lakelet.base.names import Namespace
from lakelet.language.model import Kind
from lakelet.plan.graph import Graph, GraphNode
from lakelet.plan.selection import EVERYTHING, Request, Selection, below_failed, refuse_in_continuous, select

NAMES = Namespace("main", "default")


def _node(name: str, kind: Kind) -> GraphNode:
    return GraphNode(NAMES.resolve(name), kind, (), (), (name,), (), (), Location("p.py", 1))


GRAPH = Graph(
    (
        _node("bronze", Kind.STREAMING_TABLE),
        _node("checked", Kind.VIEW),
        _node("Gold", Kind.MATERIALIZED_VIEW),
        replace(_node("raw.letters", Kind.STREAMING_TABLE), flows=("main.raw.letters", "main.default.letters_flow")),
    )
)
BRONZE, GOLD, LETTERS = "main.default.bronze", "main.default.gold", "main.raw.letters"


def selected(**request: object) -> Selection:
    return select(Request(**request), GRAPH, NAMES)  # type: ignore[arg-type]


def test_everything_stored_is_refreshed_and_nothing_reset_unless_asked() -> None:
    assert select(EVERYTHING, GRAPH, NAMES) == Selection(frozenset({BRONZE, GOLD, LETTERS}), frozenset())


def test_select_leaves_the_rest_out_and_takes_names_of_any_length_and_case() -> None:
    assert selected(select=("GOLD",)).refresh == {GOLD}
    assert selected(select=("raw.letters", "main.default.Bronze")).refresh == {LETTERS, BRONZE}


def test_full_refresh_of_one_refreshes_all_the_same() -> None:
    assert selected(full_refresh=("gold",)) == Selection(frozenset({BRONZE, GOLD, LETTERS}), frozenset({GOLD}))


def test_with_select_the_ones_to_reset_take_part_too() -> None:
    assert selected(select=("bronze",), full_refresh=("gold",)) == Selection(frozenset({BRONZE, GOLD}), frozenset({GOLD}))


def test_full_refresh_all_resets_everything_stored() -> None:
    assert selected(full_refresh_all=True) == Selection(frozenset({BRONZE, GOLD, LETTERS}), frozenset({BRONZE, GOLD, LETTERS}))


@pytest.mark.parametrize("names", [{"select": ("gold",)}, {"full_refresh": ("gold",)}])
def test_full_refresh_all_goes_with_no_names(names: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(LakeletError) as caught:
        selected(full_refresh_all=True, **names)
    assert (caught.value.code, caught.value.exit_code) == ("USAGE", ExitCode.INVALID)


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(LakeletError) as caught:
        selected(select=("bronce",))
    assert caught.value.code == "UNKNOWN_SELECTION"
    assert "--select" in caught.value.what
    assert caught.value.nearest[0].rsplit(".")[-1] == "bronze"


def test_a_view_is_refused_because_it_is_never_stored() -> None:
    with pytest.raises(LakeletError, match="a view, which is never stored"):
        selected(full_refresh=("checked",))


@pytest.mark.parametrize("text", ["", "a.b.c.d", "a..b"])
def test_a_text_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(LakeletError) as caught:
        selected(select=(text,))
    assert caught.value.code == "UNKNOWN_SELECTION"


def test_a_checkpoint_is_reset_by_the_name_of_its_flow_and_brings_its_table_into_a_selection() -> None:
    everything = selected(reset_checkpoint=("BRONZE", "letters_flow"))
    assert everything.checkpoints == {"bronze", "main.default.letters_flow"}
    assert everything.refresh == {BRONZE, GOLD, LETTERS}
    assert everything.reset == frozenset()
    assert selected(select=("gold",), reset_checkpoint=("letters_flow",)).refresh == {GOLD, LETTERS}
    assert everything.without_resets() == Selection(everything.refresh, frozenset())


@pytest.mark.parametrize(("name", "text"), [("gold", "a materialized view"), ("bronz", "no flow"), ("checked", "a view")])
def test_only_flows_with_a_checkpoint_can_have_it_reset(name: str, text: str) -> None:
    with pytest.raises(LakeletError, match=text) as caught:
        selected(reset_checkpoint=(name,))
    assert caught.value.code == "UNKNOWN_SELECTION"
    assert caught.value.exit_code is ExitCode.INVALID


@pytest.mark.parametrize("other", [{"select": ("gold",)}, {"full_refresh": ("gold",)}, {"full_refresh_all": True}])
def test_refreshing_what_failed_goes_with_nothing_else(other: dict[str, object]) -> None:
    with pytest.raises(LakeletError, match="--refresh-failed"):
        selected(refresh_failed=True, **other)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"select": ("bronze",)}, "which --select leaves out"),
        ({"replace_where": (("letters_flow", "a"), ("main.default.letters_flow", "b"))}, "twice"),
        ({"refresh_failed": True}, "goes with no other selection"),
    ],
)
def test_a_condition_for_one_update_that_would_have_no_effect_is_refused(request_: dict[str, object], text: str) -> None:
    with pytest.raises(LakeletError, match=text) as caught:
        selected(**{"replace_where": (("letters_flow", "a"),), **request_})
    assert caught.value.code == "USAGE"


def test_what_failed_comes_with_what_is_below_and_without_what_was_left_out() -> None:
    def node(name: str, *inputs: str, kind: Kind = Kind.STREAMING_TABLE) -> GraphNode:
        return replace(_node(name, kind), inputs=tuple(NAMES.resolve(i) for i in inputs))

    graph = Graph((node("a"), node("v", "a", kind=Kind.VIEW), node("b", "v"), node("c", "b"), node("d", "b"), node("apart")))
    keys = {name: NAMES.resolve(name).key for name in ("a", "b", "c", "d", "gone")}
    found = below_failed(graph, not_done=frozenset({keys["a"], keys["gone"]}), excluded=frozenset({keys["d"]}))
    assert select(Request(refresh_failed=True), graph, NAMES, failed=found).refresh == {keys["a"], keys["b"], keys["c"]}


@pytest.mark.parametrize("request_", [Request(select=("gold",)), Request(refresh_failed=True)])
def test_a_continuous_update_keeps_everything_up_to_date(request_: Request) -> None:
    with pytest.raises(LakeletError, match="--triggered"):
        refuse_in_continuous(request_)
    refuse_in_continuous(Request(full_refresh_all=True, reset_checkpoint=("bronze",)))


def test_a_text_in_place_of_several_names_is_read_as_on_the_command_line() -> None:
    assert Request(select="orders").select == ("orders",)
    assert Request(select="orders, `a,b`").select == ("orders", "`a,b`")
    assert Request(full_refresh="orders,refunds", reset_checkpoint=["f"]) == Request(
        full_refresh=("orders", "refunds"), reset_checkpoint=("f",)
    )
    assert Request(select="").select == ("",)
