"""What stands on the page: changes, the datasets in their layers, documents, and the files that carry them."""

from __future__ import annotations

import json

import pytest

from lakelet.base.errors import LakeletError
from lakelet.dashboard.catalog import dataset_views
from lakelet.dashboard.changes import percent, what_changed
from lakelet.dashboard.documents import SourceTexts
from lakelet.dashboard.page import documents, script, write_folder
from lakelet.dashboard.tables import StoredTables
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.summaries import DefinitionPlace
from tests.event_logs import HOSTILE, Log, many, shop, shop_tables, site, store_table


def said(log: Log) -> list[str]:
    return [" ".join(f"{c.tone} {c.about} {c.rule} {c.text}".split()) for c in what_changed(reduce_events(log.rows))]


def test_changes_since_the_last_update_the_gravest_first() -> None:
    assert said(shop(14)) == [
        "bad main.silver.payments failed: 3 rows broke expectations whose action is fail",
        "bad main.silver.orders order_id is unique check failed: 17 duplicates, expected 0 duplicates",
        "warning 1 flow skipped because of failures: daily_sales",
        "warning main.silver.orders known_currency pass rate fell from 99.04% to 96.14% (2,142 rows)",
        "warning main.silver.customers has_email pass rate fell from 97.54% to 96.25% (41 rows)",
        "neutral main.bronze.orders_raw new columns gift_note, channel, brought by 0302-06.json",
    ]


def test_a_flow_that_is_well_again_and_rules_that_were_edited_are_changes() -> None:
    log = Log()
    first = log.update()
    first.define("main.s.a", rules={"r": ("id > 0", "warn"), "gone": ("true", "warn")})
    first.define("main.s.old")
    first.flow("main.s.a", 1, 2, status="FAILED", error=("FLOW_FAILED", "no"))
    second = log.update()
    second.define("main.s.a", rules={"r": ("id >= 0", "drop"), "new": ("true", "fail")})
    second.flow("main.s.a", 1, 2, rows=3, rules={"r": (3, 0)})
    assert said(log) == [
        "good main.s.a is up to date again, after it failed",
        "neutral main.s.a r the rule was changed, text: id > 0 → id >= 0; action: warn → drop",
        "neutral main.s.a new new rule, action fail",
        "neutral main.s.a gone the rule was removed",
        "neutral main.s.old is no longer defined",
    ]


def test_a_rule_that_was_not_measured_in_between_is_compared_with_its_last_measurement() -> None:
    log = Log()
    log.update().flow("a", 1, 2, rows=10, rules={"r": (10, 0)})
    log.update().flow("a", None, status="IDLE")
    log.update().flow("a", 1, 2, rows=10, rules={"r": (5, 5)})
    assert said(log) == ["warning a r pass rate fell from 100% to 50.00% (5 rows)"]


@pytest.mark.parametrize(("rate", "text"), [(1.0, "100%"), (0.999999, "99.99%"), (0.0, "0%"), (0.0000001, "0.01%"), (0.5, "50.00%")])
def test_only_what_is_complete_is_a_hundred_percent(rate, text) -> None:
    assert percent(rate) == text


def test_layers_come_from_the_folder_then_from_the_schema_else_from_the_depth() -> None:
    log = Log()
    update = log.update()
    update.define("main.s.raw", source=("pipelines/bronze/raw.py", 1))
    update.define("main.gold.sales", reads=["main.s.plain"])
    update.define("main.s.plain", reads=["main.s.raw", "main.s.view"])
    views = {view.name: view for view in dataset_views(reduce_events(log.rows))}
    assert {name: view.layer for name, view in views.items()} == {
        "main.s.raw": "bronze", "main.s.plain": "1", "main.gold.sales": "gold", "main.s.view": "0",
    }  # fmt: skip
    assert views["main.s.view"].definition is None
    assert list(views) == ["main.s.raw", "main.s.view", "main.s.plain", "main.gold.sales"]


def test_a_dataset_shows_its_latest_update_in_which_it_was_not_excluded() -> None:
    log = Log()
    first = log.update()
    first.define("a")
    first.flow("a", 1, 2, rows=7, rules={})
    log.update().flow("a", None, status="EXCLUDED")
    (item,) = site(log).overview()["datasets"]
    assert (item["state"], item["wrote"], item["update"]) == ("COMPLETED", 7, 0)


def test_numbers_of_the_overview_are_those_of_the_events() -> None:
    log, shown = shop(5), site(shop(5), tables=shop_tables())
    overview = shown.overview()
    item = next(d for d in overview["datasets"] if d["name"] == "main.silver.orders")
    newest = [
        r["details"]["flow_progress"]
        for r in log.rows
        if r["origin"].get("dataset_name") == item["name"] and r["event_type"] == "flow_progress"
    ]
    quality = [body["data_quality"] for body in newest if "data_quality" in body][-1]
    assert item["dropped"] == quality["dropped_records"]
    assert item["violations"] == sum(rule["failed_records"] for rule in quality["expectations"])
    passed = sum(rule["passed_records"] for rule in quality["expectations"])
    assert item["rate"] == passed / (passed + item["violations"])
    assert (item["rows"], item["held"], item["layer"]) == (574_800, 3120, "silver")


def test_a_check_that_was_not_run_neither_passed_nor_failed() -> None:
    log = Log()
    update = log.update()
    update.define("a")
    for name, success in (("unique", None), ("fresh", False), ("full", True), ("known", None)):
        update.check("a", name, success)
    shown = site(log)
    (item,) = shown.overview()["datasets"]
    assert item["checks"] == [1, 2, 4]
    assert {check["name"]: check["success"] for check in shown.quality()["checks"]} == {
        "unique": None, "fresh": False, "full": True, "known": None,
    }  # fmt: skip
    assert shown.overview()["recent"][-1]["check_counts"] == [1, 2, 4]
    assert said(log) == ["warning a fresh check failed: 17 duplicates, expected 0 duplicates"]


def test_datasets_rules_checks_and_columns_say_whose_they_are_and_what_they_mean() -> None:
    log = Log()
    update = log.update()
    about = {"r": {"owner": "money@example.com", "description": "Nothing is free.", "tags": ["money"]}}
    rules, said = {"r": ("paid > 0", "warn"), "s": ("id > 0", "drop")}, {"amount": "In euros."}
    update.define("a", owner="shop@example.com", tags=["daily", "key"], comment="Orders.", rules=rules, about=about,
                  columns=[("amount", "INT")], comments=said)  # fmt: skip
    update.check("a", "unique", True, owner="shop@example.com", description="Once each.", tags=["keys"])
    shown = site(log)
    (item,) = shown.overview()["datasets"]
    assert (item["owner"], item["tags"], item["about"]) == ("shop@example.com", ["daily", "key"], "Orders.")
    whose = {row["rule"]: (row["owner"], row["description"], row["tags"]) for row in shown.quality()["rows"]}
    assert whose == {"r": ("money@example.com", "Nothing is free.", ["money"]), "s": ("shop@example.com", "", [])}
    (check,) = shown.quality()["checks"]
    assert (check["owner"], check["description"], check["tags"]) == ("shop@example.com", "Once each.", ["keys"])
    page = shown.dataset(0)
    assert [column[4] for column in page["columns"]] == ["In euros."]
    assert {rule["name"]: rule["owner"] for rule in page["rules"]} == {"r": "money@example.com", "s": "shop@example.com"}


def test_each_flow_of_an_update_names_what_it_waited_for() -> None:
    runs = site(shop(3)).update(1)["runs"]
    names = [site(shop(3)).views[number].name for number in runs["d"]]
    waited = {name: sorted(names[k] for k in runs["waited"][i]) for i, name in enumerate(names)}
    assert waited["main.gold.daily_sales"] == ["main.silver.orders", "main.silver.payments"]
    assert waited["main.bronze.orders_raw"] == []


def test_columns_lead_up_and_down() -> None:
    shown = site(shop(2))
    position = shown.numbers["main.silver.orders"]
    columns = {
        name: ([shown.views[d].name for d, _ in above], sorted(shown.views[d].name for d, _ in below))
        for name, _, above, below, _ in shown.dataset(position)["columns"]
    }
    assert columns["amount"] == (
        ["main.bronze.orders_raw"],
        ["main.gold.customer_value", "main.gold.daily_sales", "main.gold.refund_rate", "main.silver.payments"],
    )


def test_updates_come_in_pages_that_stay_as_they_are_when_more_follow() -> None:
    log = many(4, 130)
    shown = site(log)
    assert (shown.pages, len(shown.page(0)["updates"]), len(shown.page(1)["updates"])) == (2, 100, 30)
    assert len(shown.overview()["recent"]) == 40
    shorter = Log("many")
    shorter.rows = [row for row in log.rows if row["origin"]["update_id"] in {u.id for u in log.updates[:120]}]
    assert site(shorter).page(0) == shown.page(0)


def test_an_empty_storage_has_a_page() -> None:
    assert [name for name, _ in documents(site(Log()))] == ["overview", "quality", "search"]


# --- files ----------------------------------------------------------------------------------------------------------------------------


def test_a_folder_has_the_page_and_one_script_per_document(tmp_path) -> None:
    shown = site(shop(3), tables=shop_tables())
    write_folder(shown, tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "data",
        "index.html",
        "page.js",
        "page.css",
        "icon.svg",
        "LICENSES.txt",
        "lakelet-report.txt",
    }
    for name, document in documents(shown):
        text = (tmp_path / "out" / "data" / f"{name}.js").read_text(encoding="utf-8")
        prefix = f'lakelet("{name}",'
        assert text.startswith(prefix)
        assert json.loads(text[len(prefix) :].rstrip().removesuffix(");")) == json.loads(json.dumps(document()))


def test_a_later_report_replaces_an_earlier_one_as_a_whole(tmp_path) -> None:
    write_folder(site(shop(3)), tmp_path / "out")
    write_folder(site(shop(2)), tmp_path / "out")
    assert not (tmp_path / "out" / "data" / "update-2.js").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_somebody_else_is_refused_and_stays(tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(LakeletError, match="is not a report"):
        write_folder(site(Log()), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_no_text_ends_the_script_that_carries_it() -> None:
    carried = script("overview", {"a": f"</script>{HOSTILE}\u2028\ud800"}).decode()
    assert "<" not in carried
    assert "\u2028" not in carried
    assert json.loads(carried[len('lakelet("overview",') :].rstrip().removesuffix(");"))["a"].startswith("</script>")


def test_source_text_is_read_below_the_project_only(tmp_path) -> None:
    (tmp_path / "secret.py").write_text("password")
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 300)))
    (project / "link.py").symlink_to(tmp_path / "secret.py")
    texts = SourceTexts(project)
    shown = texts.text(DefinitionPlace("a.py", 10))
    assert shown is not None
    assert (shown.first, shown.lines[0], len(shown.lines)) == (7, "line 7", 120)
    for outside in ("../secret.py", str(tmp_path / "secret.py"), "link.py", "gone.py", "."):
        found = texts.text(DefinitionPlace(outside, 1))
        assert found is not None
        assert found.lines == ()


def test_the_built_page_loads_nothing_from_elsewhere() -> None:
    from lakelet.dashboard.page import assets

    built = assets()
    page = built["index.html"].decode()
    assert "default-src 'none'" in page
    assert "<script>" not in page
    assert "style=" not in page
    for name in ("page.js", "page.css"):
        text = built[name].decode().replace("http://www.w3.org/2000/svg", "")
        assert [url for url in ("http:", "https:", "innerHTML", "eval(") if url in text] == []


# --- tables ---------------------------------------------------------------------------------------------------------------------------


def test_a_quarantine_shows_the_rows_that_are_held_first_and_counts_only_them(tmp_path) -> None:
    import pyarrow as pa

    at = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
    released = pa.array([None, "update 7", None], pa.string())
    held = pa.table({"id": [1, 2, 3], "_broken_rules": [["a"], ["a"], ["a", "b"]], "_quarantined_at": at, "_released_by": released})
    store_table(tmp_path, "main.s.orders", pa.table({"id": [7, None], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))}))
    store_table(tmp_path, "main.s.orders_quarantine", held)
    tables = StoredTables(tmp_path, sample_rows=10)
    facts = tables.facts(["main.s.orders", "main.s.gone"])["main.s.orders"]
    assert (facts.rows, facts.version, facts.columns, facts.held) == (2, 0, (("id", "bigint"), ("at", "timestamp")), 2)
    assert sorted(facts.sample.rows, key=str) == [("7", "1970-01-01T00:00:00Z"), (None, "1970-01-01T00:00:00.000001Z")]
    assert facts.quarantine is not None
    assert [row[:2] for row in facts.quarantine.rows] == [("3", '["a", "b"]'), ("1", '["a"]'), ("2", '["a"]')]
    store_table(tmp_path, "main.s.orders", pa.table({"id": [8], "at": pa.array([0], pa.timestamp("us", "UTC"))}))
    assert tables.facts(["main.s.orders"])["main.s.orders"].rows == 3


def test_a_report_without_sample_rows_has_none(tmp_path) -> None:
    import pyarrow as pa

    store_table(tmp_path, "main.s.orders", pa.table({"id": [7]}))
    facts = StoredTables(tmp_path, sample_rows=0).facts(["main.s.orders"])["main.s.orders"]
    assert (facts.sample.rows, facts.sample.note) == ((), "The report was written without sample rows.")


def test_transforms_of_a_dataset_stand_once_each_in_the_order_of_its_flows() -> None:
    log = Log()
    log.update().define("main.s.a", transforms=["drop(columns='x')", "flatten()", "drop(columns='x')"])
    pages = dict(documents(site(log)))
    assert pages["dataset-0"]()["transforms"] == ["drop(columns='x')", "flatten()"]
