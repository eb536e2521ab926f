"""The first test of a run and each further one: pytest processes with one test of a kind and with eleven, in a project of two files.

    .venv/bin/python benchmarks/first_test.py --rounds 5

Kinds: `function` (YAML, one query on given rows) and `update` (YAML with rules: an update in a storage of its own). Wall time and processor
time (of Java and Python workers too) of whole processes count; a further test is a tenth of the difference. With `--rival` the package
sdp-test runs the same `function` files in the same environment, where it is installed. No other plugin of pytest is loaded. With
`--watch` the commands are `lakelet test` beside a `lakelet watch` of the project, whose Spark they use. Prints machine, load, medians.
Bars: 6 s, and 1 s.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

from processes import ENVIRONMENT, measured, watching

FURTHER = 10
BUNDLE = """
bundle: {name: shop}
include: ["resources/*.yml"]
"""
PIPELINE = """
resources:
  pipelines:
    shop: {name: shop, catalog: main, schema: gold, configuration: {bronze_schema: bronze}, libraries: [{glob: {include: "../code/**"}}]}
"""
SQL = """CREATE OR REFRESH MATERIALIZED VIEW gold.prices AS
SELECT CAST(sku AS STRING) AS id, CAST(price / 100 AS DECIMAL(16, 2)) AS price FROM ${bronze_schema}.products"""
PYTHON = """
from pyspark import pipelines as dp

@dp.table
@dp.expect_or_drop("has_id", "id IS NOT NULL")
def orders():
    return spark.readStream.table("bronze.orders")
"""
FUNCTION = """
  - name: price {0}
    model: prices.sql
    given: [{{table: "${{bronze_schema}}.products", rows: [{{sku: 1, price: {0}}}, {{sku: 2, price: 100}}]}}]
    expect: {{rows: [{{id: "1", price: {1}}}, {{id: "2", price: 1.00}}]}}
"""
UPDATE = """
  - name: order {0}
    model: orders.py
    given: [{{table: bronze.orders, rows: [{{id: {0}}}, {{id: null}}]}}]
    expect: {{rows: [{{id: {0}}}], rules: {{has_id: 1}}, dropped: 1}}
"""


def project(folder: Path, kind: str, tests: int) -> None:
    """Write the project with so many tests of one kind."""
    (folder / "code").mkdir()
    (folder / "resources").mkdir()
    (folder / "databricks.yml").write_text(BUNDLE)
    (folder / "resources" / "shop.yml").write_text(PIPELINE)
    (folder / "code" / "prices.sql").write_text(SQL)
    (folder / "code" / "orders.py").write_text(PYTHON)
    made = [FUNCTION.format(n, n / 100) if kind == "function" else UPDATE.format(n, "") for n in range(1, tests + 1)]
    (folder / "code" / "all.unit_tests.yml").write_text("tests:" + "".join(made))


def timed(kind: str, tests: int, plugin: str) -> tuple[float, float]:
    """Seconds of a pytest process: wall, processor."""
    with tempfile.TemporaryDirectory() as folder:
        project(Path(folder), kind, tests)
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]
        found = measured(line, Path(folder), {**ENVIRONMENT, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
        if f"{tests} passed" not in found.printed:
            raise SystemExit(found.printed)
    return found.wall, found.processor


def timed_beside_a_watch(kind: str, tests: int) -> tuple[float, float]:
    """Seconds of a `lakelet test` that uses the Spark of a watch: wall, and processor time without that of the watch."""
    with tempfile.TemporaryDirectory() as folder:
        project(Path(folder), kind, tests)
        with watching(Path(folder)) as findings:
            findings.get(timeout=120)  # the first validation: that tables from outside are missing, which the tests give
            found = measured([sys.executable, "-m", "lakelet", "test"], Path(folder))
        if f"{tests} passed" not in found.printed or "is not used" in found.printed:
            raise SystemExit(found.printed)
    return found.wall, found.processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rival", action="store_true", help="sdp-test too, with the files of the kind `function`")
    parser.add_argument("--watch", action="store_true", help="`lakelet test` beside a `lakelet watch` too")
    asked = parser.parse_args()
    runs = [("lakelet", kind, "lakelet.testing.plugin") for kind in ("function", "update")]
    runs += [("sdp-test", "function", "sdp_test.pytest_plugin")] * asked.rival
    runs += [("watch", "function", ""), ("watch", "update", "")] * asked.watch
    found: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for _ in range(asked.rounds):
        for name, kind, plugin in runs:
            for tests in (1, 1 + FURTHER):
                spent = timed_beside_a_watch(kind, tests) if name == "watch" else timed(kind, tests, plugin)
                found.setdefault((name, kind, tests), []).append(spent)
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {asked.rounds} rounds; seconds")
    for name, kind, _ in runs:
        one, all_ = ([statistics.median(run[i] for run in found[name, kind, n]) for i in (0, 1)] for n in (1, 1 + FURTHER))
        further = [(b - a) / FURTHER for a, b in zip(one, all_, strict=True)]
        said = [f"wall {wall:.2f}, processor {processor:.2f}" for wall, processor in (one, further)]
        print(f"{name:9} {kind:9} first: {said[0]}; further: {said[1]}")


if __name__ == "__main__":
    main()
