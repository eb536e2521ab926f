"""A shop whose data break in twelve ways over four deliveries, and what is true of each fault, known from what was written.

The first delivery is sound. Each fault begins with a delivery and counts there, and from then on, what `Fault.counts` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.spark.conftest import Project

SALES, FINANCE, DATA = "sales@example.com", "finance@example.com", "data@example.com"

PIPELINE = f"""
    import dlt
    from pyspark.sql import functions as F

    def files(folder, schema, **options):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").options(**options)
        if schema:
            reader = reader.schema(schema)
        return reader.load(spark.conf.get("landing") + "/" + folder)

    @dlt.table(table_properties={{"owner": "{SALES}"}})
    def bronze_orders():
        return files("orders", None, **{{
            "cloudFiles.schemaHints": "id BIGINT, amount DOUBLE, customer STRING",
            "cloudFiles.schemaEvolutionMode": "addNewColumns",
        }})

    @dlt.table(table_properties={{"owner": "{SALES}", "lakelet.quarantine": "true"}})
    @dlt.expect("amount_positive", "amount > 0")
    @dlt.expect_or_drop("has_customer", "customer IS NOT NULL")
    def silver_orders():
        return dlt.read_stream("bronze_orders").where("id IS NOT NULL").select("id", "amount", "customer")

    @dlt.table(table_properties={{"owner": "{SALES}"}})
    def gold_customers():
        return dlt.read("silver_orders").groupBy("customer").agg(F.count("*").alias("orders"), F.sum("amount").alias("amount"))

    @dlt.table(table_properties={{"owner": "{FINANCE}"}})
    @dlt.expect_or_fail("known_currency", "currency IN ('EUR', 'USD')")
    def silver_payments():
        return files("payments", "id BIGINT, currency STRING, amount DOUBLE")

    @dlt.table(table_properties={{"owner": "{FINANCE}"}})
    def gold_revenue():
        return dlt.read("silver_payments").groupBy("currency").agg(F.sum("amount").alias("amount"))

    @dlt.table(table_properties={{"owner": "{FINANCE}"}})
    def gold_accounts():
        return dlt.read("gold_revenue").join(dlt.read("gold_customers"), F.lit(True)).select("currency", "customer")

    @dlt.table(table_properties={{"owner": "{DATA}"}})
    def bronze_readings():
        return files("readings", "sensor STRING, at TIMESTAMP, value BIGINT, spread BIGINT")

    @dlt.table(table_properties={{"owner": "{DATA}"}})
    def silver_minutes():
        return (
            dlt.read_stream("bronze_readings")
            .withWatermark("at", "10 minutes")
            .groupBy("sensor", F.window("at", "1 minute").alias("minute"))
            .agg(F.count("*").alias("readings"))
        )

    @dlt.table(table_properties={{"owner": "{DATA}"}})
    def silver_ratios():
        return dlt.read_stream("bronze_readings").selectExpr("sensor", "value % spread AS ratio")

    @dlt.table(table_properties={{"owner": "{DATA}"}})
    def gold_ratios():
        return dlt.read("silver_ratios").groupBy("sensor").agg(F.max("ratio").alias("ratio"))
"""

RULES = f"""\
datasets:
  silver_orders:
    checks:
      one_row_each: {{unique: id, severity: critical, owner: {SALES}, description: An order is counted once.}}
"""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        kind: the name of the fault.
        dataset: where it shows, without catalog and schema.
        counts: by delivery (1 to 4) how many rows, records, columns or failures; 0 is left out.
        sample: a text that one of the rows has in it, where there are rows.
        file: the end of the name of the file that the first of them came in; None where no file is to blame.
        line: in that file; None where it is not a line.
        owner: of the dataset.
        affected: all that reads it, directly or not, by name.
    """

    kind: str
    dataset: str
    counts: Mapping[int, int]
    owner: str
    sample: str | None = None
    file: str | None = None
    line: int | None = None
    affected: frozenset[str] = frozenset()

    @property
    def since(self) -> int:
        """The delivery it began with."""
        return min(self.counts)

    @property
    def worse(self) -> bool:
        """Whether the last delivery has more of it than the one before."""
        return self.counts.get(4, 0) > self.counts.get(3, 0)


ORDERS = frozenset({"silver_orders", "gold_customers", "gold_accounts"})
PAYMENTS = frozenset({"gold_revenue", "gold_accounts"})
READINGS = frozenset({"silver_minutes", "silver_ratios", "gold_ratios"})

FAULTS = (
    Fault("warn", "silver_orders", {2: 2, 3: 4, 4: 4}, SALES, "-5.0", affected=ORDERS - {"silver_orders"}),
    Fault("drop", "silver_orders", {2: 1, 3: 1, 4: 1}, SALES, "209", affected=ORDERS - {"silver_orders"}),
    Fault("rescued", "bronze_orders", {2: 1, 3: 2, 4: 1}, SALES, "cheap", "orders/2.json", 4, ORDERS),
    Fault("broken", "bronze_orders", {3: 1, 4: 3}, SALES, '{"id": 3', "orders/3.json", 6, ORDERS),
    Fault("undecodable", "bronze_orders", {4: 1}, SALES, "caf", "orders/4.json", 11, ORDERS),
    Fault("schema", "bronze_orders", {3: 1}, SALES, "coupon", "orders/3.json", affected=ORDERS),
    Fault("fail", "silver_payments", {3: 1, 4: 1}, FINANCE, "XXX", affected=PAYMENTS),
    Fault("stale", "gold_revenue", {3: 1, 4: 1}, FINANCE, affected=frozenset({"gold_accounts"})),
    Fault("late", "silver_minutes", {3: 1, 4: 2}, DATA),
    Fault("error", "silver_ratios", {4: 1}, DATA, affected=frozenset({"gold_ratios"})),
    Fault("skipped", "gold_ratios", {4: 1}, DATA),
    Fault("check", "silver_orders", {4: 1}, SALES, affected=ORDERS - {"silver_orders"}),
)
"""A value that is rescued is NULL, which breaks `amount_positive` too. Undecodable lines are among the broken ones. `fail` counts the rows
of the stopped batch that break the rule; `stale`, `error`, `skipped` and `check` count failures."""


@dataclass
class FaultyShop:
    """The shop in a project: `open` writes its code, `deliver` lands the files of one delivery and runs an update.

    Attributes:
        project: where it lies.
        updates: ids of the updates of the deliveries, in order.
    """

    project: Project
    updates: list[str] = field(default_factory=list)

    def open(self) -> FaultyShop:
        self.project.write(PIPELINE)
        self.project.parameters["lakelet.sampleRows"] = "3"
        rules = self.project.folder / "expectations"
        rules.mkdir(exist_ok=True)
        (rules / "shop.yml").write_text(RULES)
        return self

    def deliver(self, number: int) -> None:
        """Land delivery 1 to 4 and run its update, which fails from the third on."""
        for folder, records in self.records(number).items():
            self.project.arrive(f"{number}.json", *records, folder=folder)
        if number == 4:
            with (self.project.landing / "orders" / "4.json").open("ab") as file:
                file.write(b'{"id": 410, "amount": 1.0, "customer": "caf\xe9"}\n')
        self.project.run(expect="COMPLETED" if number < 3 else "FAILED")
        self.updates.append(self.project.result.update_id)

    @staticmethod
    def records(number: int) -> dict[str, list[Any]]:
        """The lines of each file of a delivery; a text is written as it is."""
        n = number * 100
        orders: list[Any] = [{"id": n + i, "amount": 10.0, "customer": "ada"} for i in range(3)]
        if number >= 2:
            orders += [{"id": n + 3, "amount": "cheap", "customer": "bob"}]
            orders += [{"id": n + 4, "amount": -5.0, "customer": "bob"}, {"id": n + 9, "amount": 1.0, "customer": None}]
        if number == 3:
            orders[5:5] = [
                '{"id": 3',
                {"id": 305, "amount": -5.0, "customer": "bob", "coupon": "x"},
                {"id": 306, "amount": "dear", "customer": "bob"},
            ]
        if number == 4:
            orders[5:5] = [
                '{"id": 4',
                '{"id": 5',
                {"id": 404, "amount": -5.0, "customer": "bob"},
                {"id": 405, "amount": 0.0, "customer": "bob"},
            ]
        payments = [{"id": n, "currency": "EUR", "amount": 1.0}] + [{"id": n + 1, "currency": "XXX", "amount": 1.0}] * (number >= 3)
        readings = [{"sensor": "s", "at": f"2026-03-01T{9 + number:02d}:00:00Z", "value": 7, "spread": 0 if number == 4 else 2}]
        readings += [{"sensor": "s", "at": f"2026-03-01T08:0{i}:00Z", "value": 1, "spread": 2} for i in range(max(number - 2, 0))]
        return {"orders": orders, "payments": payments, "readings": readings}
