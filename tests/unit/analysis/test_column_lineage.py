"""What a column is made of, read off the text of an analysed plan (EL-11)."""

from __future__ import annotations

import random

import pytest

from lakelet.analysis.column_lineage import TracedPlan, traced_columns

ORDERS = "LocalRelation <empty>, [id#0L, customer#1L, amount#2, day#3, kind#4, tags#5]"
CUSTOMERS = "LocalRelation <empty>, [customer#7L, name#8, country#9]"
DATASETS = {0: "orders", 7: "customers", 10: "orders"}


def traced(plan: str) -> dict[str, str]:
    """The inputs of each column as one text."""
    text = plan.strip("\n").replace("ORDERS", ORDERS).replace("CUSTOMERS", CUSTOMERS)
    return {c.name: " ".join(f"{i.dataset}.{i.column}" for i in c.inputs) for c in traced_columns(text, DATASETS)}


def test_a_column_is_made_of_those_that_its_expression_names() -> None:
    assert traced("""
Project [id#0L, upper(kind#4) AS kind#10, concat(cast(id#0L as string), day#3) AS key#11, now() AS at#12]
+- Filter (amount#2 > 0.0)
   +- ORDERS""") == {"id": "orders.id", "kind": "orders.kind", "key": "orders.day orders.id", "at": ""}


def test_text_in_an_expression_is_no_column() -> None:
    assert traced("""
Project [id#0L, regexp_replace(kind#4, [^(0-9, ]#3, x
y, 1) AS regexp_replace(kind, [^(0-9, ]#3, x
y, 1)#25, amount#2]
+- ORDERS""") == {"id": "orders.id", "regexp_replace(kind, [^(0-9, ]#3, x\ny, 1)": "orders.kind", "amount": "orders.amount"}


def test_an_aggregate_has_its_own_list_behind_that_of_its_groups() -> None:
    assert traced("""
Project [c1#159L, s#160, n#163L]
+- Filter (max(id)#165L > cast(3 as bigint))
   +- Aggregate [(customer#1L + 1)], [(customer#1L + 1) AS c1#159L, sum(amount#2) AS s#160, count(1) AS n#163L, max(id#0L) AS max(id)#165L]
      +- ORDERS""") == {"c1": "orders.customer", "s": "orders.amount", "n": ""}
    assert traced("Aggregate [max(amount#2) AS most#20]\n+- ORDERS") == {"most": "orders.amount"}


def test_a_copy_of_a_placeholder_is_known_by_its_columns() -> None:
    assert traced("""
Project [id#0L, amount#19 AS other#24]
+- Join Inner, (id#0L = customer#18L)
   :- SubqueryAlias a
   :  +- ORDERS
   +- SubqueryAlias b
      +- LocalRelation <empty>, [id#17L, customer#18L, amount#19, day#20, kind#21, tags#22]""") == {
        "id": "orders.id",
        "other": "orders.amount",
    }


def test_a_union_adds_up_by_position() -> None:
    assert traced("""
Union false, false
:- Project [id#0L, kind#4]
:  +- ORDERS
+- Project [customer#7L AS id#75L, name#8 AS kind#76]
   +- CUSTOMERS""") == {"id": "customers.customer orders.id", "kind": "customers.name orders.kind"}


def test_common_table_expressions_are_followed_by_position() -> None:
    assert traced("""
WithCTE
:- CTERelationDef 0, false
:  +- SubqueryAlias a
:     +- Project [id#0L, (amount#2 * cast(2 as double)) AS dbl#121]
:        +- ORDERS
:- CTERelationDef 1, false
:  +- SubqueryAlias b
:     +- Project [id#0L, dbl#121]
:        +- SubqueryAlias a
:           +- CTERelationRef 0, true, [id#0L, dbl#121], false, false
+- Project [id#122L, dbl#125]
   +- Join Inner, (id#122L = id#124L)
      :- SubqueryAlias x
      :  +- CTERelationRef 0, true, [id#122L, dbl#123], false, false
      +- SubqueryAlias y
         +- CTERelationRef 1, true, [id#124L, dbl#125], false, false""") == {"id": "orders.id", "dbl": "orders.amount"}


def test_a_subquery_that_gives_a_value_is_followed_and_one_that_gives_a_condition_is_not() -> None:
    assert traced("""
Project [id#0L, scalar-subquery#26 [customer#1L] AS mx#27, exists#28 [] AS e#29]
:  :- Aggregate [max(name#8) AS max(name)#38]
:  :  +- Filter (customer#7L = outer(customer#1L))
:  :     +- CUSTOMERS
:  +- Project [1 AS 1#39]
:     +- LocalRelation <empty>, [customer#49L, name#50, country#51]
+- Filter (amount#2 > 1)
   +- ORDERS""") == {"id": "orders.id", "mx": "customers.name", "e": ""}


def test_windows_generators_and_grouping_sets() -> None:
    assert traced("""
Project [id#0L, t#72, p#71, place#182]
+- Window [rank(amount#2) windowspecdefinition(amount#2 DESC NULLS LAST) AS place#182], [amount#2 DESC NULLS LAST]
   +- Generate posexplode(tags#5), false, x, [p#71, t#72]
      +- ORDERS""") == {"id": "orders.id", "t": "orders.tags", "p": "orders.tags", "place": "orders.amount"}
    assert traced(
        """
Aggregate [country#68, name#69, spark_grouping_id#67L], [country#68, name#69, count(1) AS n#63L]
+- Expand [[customer#7L, name#8, country#65, name#66, 0], [customer#7L, name#8, null, null, 3]], """
        """[customer#7L, name#8, country#68, name#69, spark_grouping_id#67L]
   +- Project [customer#7L, name#8, country#9, country#9 AS country#65, name#8 AS name#66]
      +- CUSTOMERS"""
    ) == {"country": "customers.country", "name": "customers.name", "n": ""}


def test_a_stream_with_a_watermark() -> None:
    assert traced("""
~Aggregate [window#153-T86400000ms, kind#14], [window#153-T86400000ms, kind#14, sum(amount#12) AS x#143]
+- ~Project [named_struct(start, precise(ts#142-T86400000ms)) AS window#153-T86400000ms, kind#14, amount#12, ts#142-T86400000ms]
   +- ~EventTimeWatermark 91a4ba30-2540-4754-9a03-d09f3a9970b9, ts#142: timestamp, 1 days
      +- ~Project [id#10L, amount#12, day#13, kind#14, cast(day#13 as timestamp) AS ts#142]
         +- ~LocalRelation <empty>, [id#10L, customer#11L, amount#12, day#13, kind#14, tags#15]""") == {
        "window": "orders.day",
        "kind": "orders.kind",
        "x": "orders.amount",
    }


def test_what_cannot_be_traced_has_no_inputs() -> None:
    assert traced("MapInPandas <lambda>(id#0L)#77, [id#78L, z#79], false\n+- ORDERS") == {"id": "", "z": ""}
    assert traced("Relation [a#1,b#2] parquet") == {}
    plan = TracedPlan(f"Project [id#0L]\n+- {ORDERS}", DATASETS)
    assert [(c.name, len(c.inputs)) for c in plan.columns(("ID", "__START_AT"))] == [("ID", 1), ("__START_AT", 0)]


@pytest.mark.parametrize("seed", range(20))
def test_no_text_stops_it(seed: int) -> None:
    draw = random.Random(seed)
    parts = [
        "Project [",
        "a#1",
        ", ",
        "]",
        "\n+- ",
        "\n:  :- ",
        " AS b#2",
        "Union",
        "Expand [[",
        "], [",
        "scalar-subquery#3 [",
        ORDERS,
        "#",
        "\n",
        "(",
    ]
    text = "".join(draw.choice(parts) for _ in range(draw.randint(0, 400)))
    traced_columns(text, DATASETS)
    assert traced_columns("\n".join(f"{'   ' * i}{'+- ' if i else ''}Project [a#1]" for i in range(3000)), DATASETS)
