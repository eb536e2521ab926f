"""Checks of whole tables after an update: on the version that is stored, once per version, as events; data and state stay as they are."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from importlib.machinery import ModuleSpec

import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.cli.summary import summary
from lakelet.inspection.inspector import run_sql
from lakelet.quality.validation import PACKAGE
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.states import UpdateState
from lakelet.update.table_checks import TableChecks

pytestmark = [pytest.mark.spark, pytest.mark.long]

PIPELINE = """
    import dlt

    @dlt.table
    def orders():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .schema("id BIGINT, kind STRING, amount DOUBLE, customer BIGINT, at TIMESTAMP").load(spark.conf.get("landing")))

    @dlt.table
    def customers():
        return spark.range(3)

    @dlt.view
    def seen():
        return dlt.read("orders")
"""
CHECKS = """\
datasets:
  orders:
    checks:
      one_each: {unique: id, severity: critical}
      pairs: {unique: [id, kind]}
      filled: {rows: {at_least: 1}}
      small: {rows: {at_most: 2}, severity: info}
      mostly: {complete: {column: amount, at_least: 0.5}}
      kinds: {values: {column: kind, in: [a, b], at_least: 0.5}}
      fresh: {fresh: {column: at, within: 1 hour}}
      customers: {references: {columns: customer, table: customers, to: id}}
      mean: {mean: {column: amount, at_least: 0, at_most: 100}}
      tail: {quantile: {column: amount, q: 0.5, at_most: 1}}
      query: {no_rows: "SELECT * FROM {batch} WHERE amount < 0"}
      broken: {no_rows: "SELECT * FROM {batch} WHERE amuont < 0"}
      unknown: {unique: idd}
  seen:
    checks:
      a_view: {rows: 1}
  elsewhere:
    checks:
      not_ours: {rows: 1}
"""
SUITE = {
    "name": "customers",
    "expectations": [
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "id", "max_value": 2}, "severity": "warning"},
        {"type": "expect_nothing", "kwargs": {}, "severity": "info"},
    ],
}


def order(number, *, kind="a", amount=5.0, customer=1, at="2026-03-01T00:00:00Z"):
    return {"id": number, "kind": kind, "amount": amount, "customer": customer, "at": at}


@pytest.fixture
def orders(project):
    def make(checks=CHECKS, suite=None):
        made = project(PIPELINE)
        (made.folder / "expectations").mkdir()
        declare(made, checks)
        if suite:
            (made.folder / "expectations" / "customers.json").write_text(json.dumps(suite))
        made.arrive("1.json", order(1), order(2, kind="c", amount=None), order(3, kind="b", customer=9), order(3, amount=-1.0))
        return made

    return make


def declare(project, checks):
    (project.folder / "expectations" / "orders.yml").write_text(checks)


def results(project):
    """(success, observed, version) of each check that the last update reported, by name."""
    found = [e.body for e in project.events if e.event_type == "table_check"]
    assert len({(b["dataset"], b["name"]) for b in found}) == len(found)
    return {b["name"]: (b["success"], b["observed"], b["table_version"]) for b in found}


class Import:
    """The import of Great Expectations: notes how far the flows of an update are then. A test before may have made it: that is put back."""

    def __init__(self, project):
        self.project, self.flows = project, None
        self.known = {name: sys.modules[name] for name in sys.modules if name.split(".")[0] == PACKAGE}

    def __enter__(self):
        for name in self.known:
            del sys.modules[name]
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_):
        sys.meta_path.remove(self)
        sys.modules.update(self.known)

    def find_spec(self, name, path=None, target=None):
        if name != PACKAGE:
            return None
        self.flows = self.flows or self.project.statuses()
        return ModuleSpec(PACKAGE, self) if self.known else None

    def create_module(self, spec):
        self.spec = self.known[PACKAGE].__spec__
        sys.modules.update(self.known)
        return self.known[PACKAGE]

    def exec_module(self, module):
        module.__spec__ = self.spec


def test_checks_are_made_of_each_version_once_and_change_no_data(orders):
    p = orders(suite=SUITE)
    with Import(p) as imported:
        p.run()
    assert imported.flows == {"orders": "COMPLETED", "customers": "COMPLETED"}, "no flow waits for the package"
    version = p.version("orders")
    assert results(p) == {
        "one_each": (False, "2 of 4 rows", version),
        "pairs": (True, "0 of 4 rows", version),
        "filled": (True, "4", version),
        "small": (False, "4", version),
        "mostly": (True, "1 of 4 rows", version),
        "kinds": (True, "1 of 4 rows", version),
        "fresh": (False, "newest 2026-03-01T00:00:00Z", version),
        "customers": (False, "1 row", version),
        "mean": (True, "3", version),
        "tail": (False, "5", version),
        "query": (False, "1 row", version),
        "broken": (False, None, version),
        "unknown": (False, None, version),
        "column_max_to_be_between_id": (True, "2", p.version("customers")),
        "nothing": (False, None, p.version("customers")),
    }
    said = {e.body["name"]: e.body["message"] for e in p.events if e.event_type == "table_check"}
    assert said["unknown"] == "the table has no column 'idd'; did you mean 'id'?"
    assert said["broken"].startswith("could not be judged: ")
    assert said["nothing"].startswith("not an expectation: ")
    levels = {e.body["name"]: (e.level, e.maturity) for e in p.events if e.event_type == "table_check"}
    assert (levels["one_each"], levels["pairs"], levels["tail"], levels["small"]) == (
        ("ERROR", "EVOLVING"), ("INFO", "EVOLVING"), ("WARN", "EVOLVING"), ("INFO", "EVOLVING"),
    )  # fmt: skip
    assert p.result.failed_checks == ("main.default.orders.one_each",)
    assert len(p.rows("orders")) == 4
    assert not p.spark.catalog.tableExists("tmp_view")

    view = run_sql(p.storage.root, "SELECT check_name, success, observed, table_version FROM table_checks", spark=p.spark)
    assert {r["check_name"]: (r["success"], r["observed"], r["table_version"]) for r in view.rows} == results(p)

    ran = reduce_events(event.as_json() for event in p.events).updates[-1]
    text = [line.text for line in summary(ran, UpdateState.COMPLETED)]
    assert "Table checks: 6 held, 9 failed; 1 critical one: exit code 1" in text
    shown = [" ".join(line.split()) for line in text]
    assert "orders one_each critical expected no two rows with the same id 2 of 4 rows" in shown

    p.run()  # nothing new: no check is made, the critical one still fails
    assert results(p) == {}
    assert p.result.failed_checks == ("main.default.orders.one_each",)
    assert [e.message for e in p.events if "still fails" in e.message] == [
        f"version {version} of main.default.orders still fails critical checks: one_each"
    ]

    declare(p, CHECKS.replace("at_most: 2}", "at_most: 9}"))
    p.run()  # another check: only its result is new
    assert results(p) == {"small": (True, "4", version)}

    declare(p, "datasets:\n  orders:\n    checks:\n      filled: {rows: {at_least: 5}, severity: critical}")
    p.arrive("2.json", order(5))
    p.run()
    assert results(p) == {"filled": (True, "5", p.version("orders"))}
    assert p.result.failed_checks == ()


@pytest.mark.slow
def test_without_the_package_checks_that_need_it_refuse_the_pipeline_and_say_what_installs_it(orders, monkeypatch):
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    now = datetime.now(timezone.utc).isoformat()
    fresh, unique = "fresh: {fresh: {column: at, within: 1 hour}}", "one_each: {unique: id, severity: info}"
    p = orders(f"datasets:\n  orders:\n    checks:\n      {fresh}\n      {unique}\n  elsewhere:\n    checks:\n      some: {{rows: 1}}")
    with pytest.raises(LakeletError) as invalid:
        p.pipeline.validate()
    for errors in (invalid.value.errors, p.refused()):
        assert [(e.code, e.exit_code, str(e.where), e.why) for e in errors] == [
            ("QUALITY_MISSING", ExitCode.ENVIRONMENT, "expectations/orders.yml, line 5", "the checks: main.default.orders.one_each")
        ]
        assert errors[0].todo == "Install the extra: pip install 'lakelet[quality]'. Or remove the checks."

    declare(p, f"datasets:\n  orders:\n    checks:\n      {fresh}\n  elsewhere:\n    checks:\n      some: {{rows: 1}}")
    p.arrive("2.json", order(7, at=now))
    p.run()  # freshness needs no package, and a check of another pipeline's table is not made
    assert {name: found[0] for name, found in results(p).items()} == {"fresh": True}


@pytest.mark.slow
def test_a_version_is_checked_though_its_table_moves_on_after_the_flows(orders, monkeypatch):
    p = orders("datasets:\n  orders:\n    checks:\n      one_each: {unique: id, severity: critical}")
    check, versions = TableChecks._check, []

    def late(*arguments):
        versions.append(p.version("orders"))
        rows = p.spark.read.format("delta").load(str(p.path("orders")))
        rows.write.format("delta").mode("append").save(str(p.path("orders")))
        return check(*arguments)

    monkeypatch.setattr(TableChecks, "_check", late)
    p.run()
    assert len(p.rows("orders")) == 8
    assert results(p) == {"one_each": (False, "2 of 4 rows", versions[0])}
    assert p.result.failed_checks == ("main.default.orders.one_each",)


@pytest.mark.slow
def test_a_table_that_gets_no_rows_grows_stale_by_itself(orders, monkeypatch):
    from lakelet.update import table_checks

    class Clock(datetime):
        at = "2026-03-01T00:30:00+00:00"

        @classmethod
        def now(cls, tz=None):
            return datetime.fromisoformat(cls.at)

    monkeypatch.setattr(table_checks, "datetime", Clock)
    p = orders("datasets:\n  orders:\n    checks:\n      fresh: {fresh: {column: at, within: 1 hour}, severity: critical}").run()
    assert results(p) == {"fresh": (True, "newest 2026-03-01T00:00:00Z", p.version("orders"))}
    Clock.at = "2026-03-01T00:59:00+00:00"
    assert results(p.run()) == {}
    Clock.at = "2026-03-01T01:01:00+00:00"
    p.run()
    assert results(p) == {"fresh": (False, "newest 2026-03-01T00:00:00Z", p.version("orders"))}
    assert p.result.failed_checks == ("main.default.orders.fresh",)
    assert results(p.run()) == {}
    assert p.result.failed_checks == ("main.default.orders.fresh",)


def test_a_mistake_in_a_check_refuses_the_update(orders):
    p = orders("datasets:\n  orders:\n    checks:\n      one_each: {uniqe: id}")
    found = p.refused()
    assert {error.code for error in found} == {"RULE_FILE_INVALID"}
    assert (found[0].where.line, found[0].nearest) == (4, ("unique",))
