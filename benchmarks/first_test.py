"""The first test of a run and each further one: pytest processes with one test of a kind and with eleven, in a project of two files.

    .venv/bin/python benchmarks/first_test.py --rounds 5

Kinds: `function` (YAML, one query on given rows) and `update` (YAML with rules: an update in a storage of its own). Wall time and processor
time (of Java and Python workers too) of whole processes count; a further test is a tenth of the difference. With `--rival` the package
sdp-test runs the same `function` files in the same environment, where it is installed. No other plugin of pytest is loaded. With
`--watch` the commands are `lakelet test` beside a `lakelet watch` of the project that has run for half a minute, whose Spark they use.

With `--starter` there is a third kind, as a user meets it: `lakelet new project demo`, `lakelet run` once, then `lakelet test` as it is
typed, with all plugins of pytest that the environment has. The whole command counts, with all tests of the new project. Each round is a
new project.

Prints machine, load, medians. Bars: 6 s, and 1 s.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

from figures import quartiles
from processes import ENVIRONMENT, Measured, measured, watching

FURTHER = 10
WARM_SECONDS = 30
"""After so long a watch has done all that it does in idle time (decision 49)."""
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
            time.sleep(WARM_SECONDS)
            found = measured([sys.executable, "-m", "lakelet", "test"], Path(folder))
        if f"{tests} passed" not in found.printed or "is not used" in found.printed:
            raise SystemExit(found.printed)
    return found.wall, found.processor


def starter(folder: Path) -> tuple[Measured, Measured]:
    """What `lakelet run` and then `lakelet test` cost in a new project, as a user types them."""
    command = [sys.executable, "-m", "lakelet"]
    done = [
        measured([*command, *words.split()], folder / where)
        for words, where in (("new project demo", "."), ("run", "demo"), ("test", "demo"))
    ]
    for each in done:
        if each.code:
            raise SystemExit(each.printed)
    if " passed" not in done[2].printed:
        raise SystemExit(done[2].printed)
    return done[1], done[2]


def tell_starter(rounds: int) -> None:
    """Print what the first `lakelet test` of new projects cost, and which plugins were there."""
    runs, tests = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            run, test = starter(Path(folder))
        runs.append(run)
        tests.append(test)
    plugins = sorted({each.dist.metadata["Name"] for each in entry_points(group="pytest11") if each.dist})
    print(f"starter: plugins of pytest: {', '.join(plugins)}; {tests[0].printed.strip().splitlines()[-1]}")
    for name, found in (("lakelet run", runs), ("lakelet test", tests)):
        wall, processor = quartiles([each.wall for each in found]), quartiles([each.processor for each in found])
        print(f"starter: first {name}: wall {wall}, processor {processor}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rival", action="store_true", help="sdp-test too, with the files of the kind `function`")
    parser.add_argument("--watch", action="store_true", help="`lakelet test` beside a `lakelet watch` too")
    parser.add_argument("--starter", action="store_true", help="a new project, as its user tests it, too")
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
    if asked.starter:
        tell_starter(asked.rounds)


if __name__ == "__main__":
    main()
