"""Which datasets an update refreshes and resets (dlt-semantics 5.1; no Spark)."""

from __future__ import annotations

import pytest

from lakelet.errors import ExitCode, LakeletError, Location
from lakelet.graph import Graph, Node
from lakelet.model import Kind
from lakelet.names import Namespace
from lakelet.select import EVERYTHING, Request, Selection, select

NAMES = Namespace("main", "default")


def _node(name: str, kind: Kind) -> Node:
    return Node(NAMES.resolve(name), kind, (), (), (name,), (), (), Location("p.py", 1))


GRAPH = Graph(
    (
        _node("bronze", Kind.STREAMING_TABLE),
        _node("checked", Kind.VIEW),
        _node("Gold", Kind.MATERIALIZED_VIEW),
        _node("raw.letters", Kind.STREAMING_TABLE),
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
