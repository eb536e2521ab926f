"""Decision-support queries over orders, parts and suppliers: the 22 questions of TPC-H as views, on a small warehouse of its own rows.

The questions are those of the benchmark, in own words and without its limits on rows, which a table cannot answer in one way. The rows are
not those of its generator: keys are few and the values that the questions ask for are frequent, so that each answer has rows.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.view_refreshes.oracle import Oracle
from tests.view_refreshes.views import View, sql

Rows = list[tuple[Any, ...]]

_MONEY = ("DECIMAL(15,2)", pa.decimal128(15, 2))
_KEY, _INT, _TEXT, _DAY = ("BIGINT", pa.int64()), ("INT", pa.int32()), ("STRING", pa.string()), ("DATE", pa.date32())

COLUMNS: Mapping[str, Mapping[str, tuple[str, pa.DataType]]] = {
    "region": {"r_regionkey": _KEY, "r_name": _TEXT},
    "nation": {"n_nationkey": _KEY, "n_name": _TEXT, "n_regionkey": _KEY},
    "supplier": {"s_suppkey": _KEY, "s_name": _TEXT, "s_address": _TEXT, "s_nationkey": _KEY, "s_phone": _TEXT, "s_acctbal": _MONEY, "s_comment": _TEXT},
    "customer": {"c_custkey": _KEY, "c_name": _TEXT, "c_address": _TEXT, "c_nationkey": _KEY, "c_phone": _TEXT, "c_acctbal": _MONEY, "c_mktsegment": _TEXT, "c_comment": _TEXT},
    "part": {"p_partkey": _KEY, "p_name": _TEXT, "p_mfgr": _TEXT, "p_brand": _TEXT, "p_type": _TEXT, "p_size": _INT, "p_container": _TEXT, "p_retailprice": _MONEY},
    "partsupp": {"ps_partkey": _KEY, "ps_suppkey": _KEY, "ps_availqty": _INT, "ps_supplycost": _MONEY},
    "orders": {"o_orderkey": _KEY, "o_custkey": _KEY, "o_orderstatus": _TEXT, "o_totalprice": _MONEY, "o_orderdate": _DAY, "o_orderpriority": _TEXT, "o_shippriority": _INT, "o_comment": _TEXT},
    "lineitem": {"l_orderkey": _KEY, "l_partkey": _KEY, "l_suppkey": _KEY, "l_linenumber": _INT, "l_quantity": _MONEY, "l_extendedprice": _MONEY, "l_discount": _MONEY, "l_tax": _MONEY, "l_returnflag": _TEXT, "l_linestatus": _TEXT, "l_shipdate": _DAY, "l_commitdate": _DAY, "l_receiptdate": _DAY, "l_shipinstruct": _TEXT, "l_shipmode": _TEXT},
}  # fmt: skip

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (("BRAZIL", 1), ("CANADA", 1), ("CHINA", 2), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("KENYA", 0), ("SAUDI ARABIA", 4))
FIRST_DAY = date(1992, 1, 1)
SUPPLIERS, CUSTOMERS, PARTS = 12, 30, 30


def _cents(rng: random.Random, low: int, high: int) -> Decimal:
    return Decimal(rng.randrange(low * 100, high * 100)) / 100


def _phone(rng: random.Random) -> str:
    return f"{rng.choice((13, 17, 18, 23, 29, 30, 31))}-{rng.randrange(100, 1000)}"


def warehouse(rng: random.Random) -> dict[str, Rows]:
    """All rows but those of orders and their lines."""
    suppliers = [
        (
            n,
            f"Supplier {n}",
            f"Street {n}",
            rng.randrange(len(NATIONS)),
            _phone(rng),
            _cents(rng, -900, 9000),
            rng.choice(("quick", "Customer Complaints", "slow")),
        )
        for n in range(SUPPLIERS)
    ]
    segments, texts = ("BUILDING", "BUILDING", "MACHINERY"), ("special requests", "quiet")
    customers = [
        (
            n,
            f"Customer {n}",
            f"Road {n}",
            rng.randrange(len(NATIONS)),
            _phone(rng),
            _cents(rng, -900, 9000),
            rng.choice(segments),
            rng.choice(texts),
        )
        for n in range(CUSTOMERS)
    ]
    parts = [
        (
            n, f"{rng.choice(('forest', 'green', 'blue'))} {rng.choice(('green', 'red'))}", f"Maker {n % 3}", rng.choice(("Brand#12", "Brand#23", "Brand#34", "Brand#45")),
            rng.choice(("PROMO POLISHED BRASS", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN", "LARGE PLATED BRASS")),
            rng.choice((3, 9, 14, 15, 15, 23, 49)), rng.choice(("MED BOX", "SM CASE", "LG BOX", "SM PKG", "MED PACK")), _cents(rng, 900, 2000),
        )
        for n in range(PARTS)
    ]  # fmt: skip
    supplies = [(n, (n + shift * 5) % SUPPLIERS, rng.randrange(1, 400), _cents(rng, 1, 1000)) for n in range(PARTS) for shift in range(3)]
    return {
        "region": list(enumerate(REGIONS)),
        "nation": [(n, name, region) for n, (name, region) in enumerate(NATIONS)],
        "supplier": suppliers,
        "customer": customers,
        "part": parts,
        "partsupp": supplies,
    }


def order(rng: random.Random, key: int) -> tuple[tuple[Any, ...], Rows]:
    """An order and its lines."""
    day = FIRST_DAY + timedelta(days=rng.randrange(365 * 6 + 200))
    priority = rng.choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"))
    comment = rng.choice(("plain", "very special things and requests"))
    head = (key, rng.randrange(CUSTOMERS * 2 // 3), rng.choice(("F", "F", "O", "P")), _cents(rng, 900, 90_000), day, priority, 0, comment)
    lines = []
    for number in range(1, rng.randrange(1, 8)):
        shipped = day + timedelta(days=rng.randrange(1, 120))
        committed, received = day + timedelta(days=rng.randrange(30, 90)), shipped + timedelta(days=rng.randrange(1, 30))
        part = rng.randrange(PARTS)
        supplier = (part + rng.randrange(3) * 5) % SUPPLIERS
        figures = (Decimal(rng.randrange(1, 61)), _cents(rng, 900, 9000), Decimal(rng.randrange(11)) / 100, Decimal(rng.randrange(9)) / 100)
        flags = (rng.choice("RAN"), rng.choice("OF"))
        sent = (rng.choice(("DELIVER IN PERSON", "NONE")), rng.choice(("AIR", "MAIL", "SHIP", "AIR REG")))
        lines.append((key, part, supplier, number, *figures, *flags, shipped, committed, received, *sent))
    return head, lines


QUESTIONS: tuple[View, ...] = (
    sql("q01", """
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price, sum(l_extendedprice * (1 - l_discount)) AS reduced,
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge, avg(l_quantity) AS mean_quantity, avg(l_discount) AS mean_discount, count(*) AS lines
        FROM lineitem WHERE l_shipdate <= DATE'1998-09-02' GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
    """),
    sql("q02", """
        SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey
          AND n_regionkey = r_regionkey AND r_name = 'EUROPE' AND ps_supplycost = (
            SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
            WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
    """),
    sql("q03", """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE'1995-03-15' AND l_shipdate > DATE'1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate
    """),
    sql("q04", """
        SELECT o_orderpriority, count(*) AS orders FROM orders
        WHERE o_orderdate >= DATE'1993-07-01' AND o_orderdate < DATE'1994-07-01'
          AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority
    """),
    sql("q05", """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
          AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= DATE'1994-01-01'
        GROUP BY n_name ORDER BY revenue DESC
    """),
    sql("q06", """
        SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1996-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
    """),
    sql("q07", """
        SELECT seller, buyer, year, sum(volume) AS revenue FROM (
            SELECT a.n_name AS seller, b.n_name AS buyer, extract(YEAR FROM l_shipdate) AS year, l_extendedprice * (1 - l_discount) AS volume
            FROM supplier, lineitem, orders, customer, nation a, nation b
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = a.n_nationkey AND c_nationkey = b.n_nationkey
              AND ((a.n_name = 'FRANCE' AND b.n_name = 'GERMANY') OR (a.n_name = 'GERMANY' AND b.n_name = 'FRANCE'))
        ) GROUP BY seller, buyer, year
    """),
    sql("q08", """
        SELECT year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS share FROM (
            SELECT extract(YEAR FROM o_orderdate) AS year, l_extendedprice * (1 - l_discount) AS volume, b.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation a, nation b, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = a.n_nationkey
              AND a.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = b.n_nationkey AND p_type = 'ECONOMY ANODIZED STEEL'
        ) GROUP BY year
    """),
    sql("q09", """
        SELECT nation, year, sum(amount) AS profit FROM (
            SELECT n_name AS nation, extract(YEAR FROM o_orderdate) AS year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
            FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
            JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey JOIN orders ON o_orderkey = l_orderkey JOIN nation ON s_nationkey = n_nationkey
            WHERE p_name LIKE '%green%'
        ) GROUP BY nation, year
    """),
    sql("q10", """
        SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE'1993-10-01' AND o_orderdate < DATE'1995-01-01'
          AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address ORDER BY revenue DESC
    """),
    sql("q11", """
        SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value
        FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
        GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) > (
            SELECT sum(ps_supplycost * ps_availqty) * 0.05 FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
    """),
    sql("q12", """
        SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
               sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate GROUP BY l_shipmode
    """),
    sql("q13", """
        SELECT orders, count(*) AS customers FROM (
            SELECT c_custkey, count(o_orderkey) AS orders FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey
        ) GROUP BY orders
    """),
    sql("q14", """
        SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / sum(l_extendedprice * (1 - l_discount)) AS promotion
        FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE'1995-09-01'
    """),
    sql("q15", """
        WITH revenue AS (SELECT l_suppkey AS supplier, sum(l_extendedprice * (1 - l_discount)) AS total FROM lineitem WHERE l_shipdate >= DATE'1996-01-01' GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, s_address, s_phone, total FROM supplier JOIN revenue ON s_suppkey = supplier WHERE total = (SELECT max(total) FROM revenue)
    """),
    sql("q16", """
        SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 15, 9, 3)
          AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size
    """),
    sql("q17", """
        SELECT sum(l_extendedprice) / 7.0 AS yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND l_quantity < (SELECT 0.7 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)
    """),
    sql("q18", """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 150) AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
    """),
    sql("q19", """
        SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
            (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM PKG') AND l_quantity BETWEEN 1 AND 31)
            OR (p_brand = 'Brand#23' AND p_container IN ('MED BOX', 'MED PACK') AND l_quantity BETWEEN 10 AND 40)
            OR (p_brand = 'Brand#34' AND p_container IN ('LG BOX') AND l_quantity BETWEEN 20 AND 50))
    """),
    sql("q20", """
        SELECT s_name, s_address FROM supplier, nation
        WHERE s_suppkey IN (
            SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
              AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE'1994-01-01'))
          AND s_nationkey = n_nationkey AND n_regionkey IN (1, 2)
    """),
    sql("q21", """
        SELECT s_name, count(*) AS waits FROM supplier, lineitem l, orders, nation
        WHERE s_suppkey = l.l_suppkey AND o_orderkey = l.l_orderkey AND o_orderstatus = 'F' AND l.l_receiptdate > l.l_commitdate
          AND EXISTS (SELECT 1 FROM lineitem m WHERE m.l_orderkey = l.l_orderkey AND m.l_suppkey <> l.l_suppkey)
          AND NOT EXISTS (SELECT 1 FROM lineitem m WHERE m.l_orderkey = l.l_orderkey AND m.l_suppkey <> l.l_suppkey AND m.l_receiptdate > m.l_commitdate)
          AND s_nationkey = n_nationkey AND n_regionkey IN (2, 4)
        GROUP BY s_name
    """),
    sql("q22", """
        SELECT code, count(*) AS customers, sum(c_acctbal) AS balance FROM (
            SELECT substring(c_phone, 1, 2) AS code, c_acctbal FROM customer
            WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
              AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0)
              AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
        ) GROUP BY code
    """),
)  # fmt: skip

PIPELINE = '''
"""Tables that others write to."""

import dlt
'''


def pipeline_texts() -> dict[str, str]:
    """Texts of the pipeline's files by name."""
    text = PIPELINE
    for name, columns in COLUMNS.items():
        ddl = ", ".join(f"{column} {kind}" for column, (kind, _) in columns.items())
        reader = 'spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")'
        text += f'\n\n@dlt.table\ndef {name}():\n    return {reader}.schema("{ddl}").load(spark.conf.get("landing"))\n'
    views = "".join(f"\nCREATE OR REFRESH MATERIALIZED VIEW {view.name} AS\n{view.text};\n" for view in QUESTIONS)
    return {"pipeline.py": text, "questions.sql": views}


@dataclass
class Warehouse:
    """The stored tables of a project, and the functions that change them."""

    project: Any
    rng: random.Random
    orders: int = 0
    history: list[str] = field(default_factory=list)

    def load(self) -> None:
        for name, rows in warehouse(self.rng).items():
            self._insert(name, rows)
        self.insert(120)

    def insert(self, count: int = 6) -> None:
        """New orders with their lines, in a commit each."""
        made = [order(self.rng, key) for key in range(self.orders, self.orders + count)]
        self.orders += count
        self._insert("orders", [head for head, _ in made])
        self._insert("lineitem", [line for _, lines in made for line in lines])
        self.history.append(f"insert {count} orders")

    def delete(self, count: int = 6) -> None:
        """Old orders with their lines."""
        low = self.rng.randrange(self.orders)
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            self._sql(f"DELETE FROM {self._name(name)} WHERE {key} BETWEEN {low} AND {low + count - 1}")

    def update(self) -> None:
        """Something changes in each of the tables that change seldom, and in some lines and orders."""
        r = self.rng.randrange
        self._sql(
            f"UPDATE {self._name('lineitem')} SET l_discount = 0.06, l_receiptdate = date_add(l_receiptdate, 9) WHERE l_partkey = {r(PARTS)}"
        )
        self._sql(
            f"UPDATE {self._name('orders')} SET o_custkey = {r(CUSTOMERS)}, o_orderdate = date_add(o_orderdate, 40) WHERE o_orderkey % 17 = {r(17)}"
        )
        statement = self.rng.choice((
            f"UPDATE {self._name('customer')} SET c_acctbal = c_acctbal + 1000, c_nationkey = {r(len(NATIONS))} WHERE c_custkey = {r(CUSTOMERS)}",
            f"UPDATE {self._name('supplier')} SET s_nationkey = {r(len(NATIONS))} WHERE s_suppkey = {r(SUPPLIERS)}",
            f"UPDATE {self._name('part')} SET p_brand = 'Brand#23', p_size = 15 WHERE p_partkey = {r(PARTS)}",
            f"UPDATE {self._name('partsupp')} SET ps_supplycost = ps_supplycost / 2, ps_availqty = 300 WHERE ps_partkey = {r(PARTS)}",
            f"UPDATE {self._name('nation')} SET n_regionkey = {r(len(REGIONS))} WHERE n_nationkey = {r(len(NATIONS))}",
        ))  # fmt: skip
        self._sql(statement)

    def rounds(self) -> Iterator[Callable[[], None]]:
        """What happens before each refresh: each function alone, then all of them at once."""

        def all_at_once() -> None:
            self.insert()
            self.delete()
            self.update()

        yield from (self.insert, self.delete, self.update, all_at_once)

    def rows(self) -> dict[str, pa.Table]:
        spark = self.project.spark
        return {name: spark.read.format("delta").load(str(self.project.path(name))).toArrow() for name in COLUMNS}

    def answers(self, oracle: Oracle) -> Any:
        return oracle.answers(self.rows(), QUESTIONS, {}, zone="UTC")

    def _insert(self, name: str, rows: Rows) -> None:
        columns = COLUMNS[name]
        arrays = [pa.array(list(values), kind) for values, (_, kind) in zip(zip(*rows, strict=True), columns.values(), strict=True)]
        write_deltalake(str(self.project.path(name)), pa.Table.from_arrays(arrays, names=[*columns]), mode="append")

    def _name(self, name: str) -> str:
        return f"delta.`{self.project.path(name)}`"

    def _sql(self, text: str) -> None:
        self.project.spark.sql(text)
        self.history.append(text.replace(str(self.project.folder), ""))
