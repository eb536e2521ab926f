"""Table names: parts, defaults, quoting."""

from __future__ import annotations

import pytest

from lakelet.base.errors import nearest_names
from lakelet.base.names import Namespace, quoted_if_needed, split_name


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("t", "c.s.t"),
        ("x.t", "c.x.t"),
        ("y.x.t", "y.x.t"),
        ("LIVE.t", "c.s.t"),
        ("live.`t`", "c.s.t"),
        ("`a.b`.t", "c.a.b.t"),
        ("y.x.`a``b`", "y.x.a`b"),
    ],
)
def test_a_name_gets_the_parts_it_lacks_from_the_namespace(text, full):
    assert str(Namespace("c", "s").resolve(text)) == full


@pytest.mark.parametrize("text", ["", "a..b", "a.b.c.d", ".a", "a.", "`a"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(ValueError, match="name"):
        Namespace("c", "s").resolve(text)


def test_names_do_not_differ_by_case():
    assert Namespace("C", "s").resolve("T").key == Namespace("c", "S").resolve("t").key


def test_only_names_that_spark_takes_bare_are_written_without_back_quotes():
    bare, others = ("a", "_b", "Order2"), ("größe", "日本", "1st", "a b", "a.b", "it`s", "TRUE", "null", "a\n")
    assert [quoted_if_needed(name) for name in bare] == list(bare)
    assert [quoted_if_needed(name) for name in others] == [f"`{name.replace('`', '``')}`" for name in others]


def test_quotes_protect_dots():
    assert split_name("`a.b`.c") == ("a.b", "c")


def test_nearest_names_compare_full_and_last_parts():
    assert nearest_names("orders_clen", ["main.shop.orders_clean", "main.shop.customers"])[0] == "main.shop.orders_clean"
    assert nearest_names("zzz", ["main.shop.orders_clean"]) == ()
