"""`lakelet quarantine replay`: held rows that pass the rules of now go into the dataset, once (docs/semantics/quarantine.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deltalake import DeltaTable

import lakelet
from lakelet.base.errors import LakeletError
from lakelet.cli.main import main
from tests.spark.conftest import Project
from tests.spark.flows.test_quarantine import WORKED, held, records

pytestmark = pytest.mark.long


def replayed(project: Project, name: str = "people") -> tuple[int, int]:
    """Replay a quarantine: held rows judged, and those released."""
    project.events = []
    result, found = project.pipeline.replay(name, listeners=[project.events.append])
    assert (result.state, found is not None) == ("COMPLETED", True), result.errors
    return found.judged, found.released


@pytest.fixture
def people(project: Any) -> Project:
    p: Project = project(WORKED)
    p.arrive("a.json", *records())
    p.run()
    return p


def test_rows_that_pass_the_mended_rules_go_into_the_table_once_and_stay_as_history(people):
    assert replayed(people) == (4, 0)
    assert people.rows("people", "id") == [1]
    people.write(WORKED.replace("age >= 0", "age >= 0 OR age IS NULL"))
    assert replayed(people) == (4, 1)
    assert people.rows("people", "id", "age") == [(1, 30), (2, None)]
    released = [r for r in people.table("people_quarantine").to_pylist() if r["_released_by"] is not None]
    update = people.events[-1].origin.update_id
    assert [(r["id"], r["_broken_rules"], r["_released_by"]) for r in released] == [(2, ["age_known", "age_ok"], update)]
    (batch,) = [e for e in people.events if e.body.get("data_quality")]
    assert (batch.body["status"], batch.body["metrics"]["num_output_rows"]) == ("RUNNING", 1)
    assert batch.body["data_quality"]["released_records"] == 1
    assert people.quality() == {"age_known": (3, 1), "id_ok": (2, 2), "age_ok": (2, 2)}
    before = people.versions()
    assert replayed(people) == (3, 0)
    people.run()
    assert people.versions() == before
    assert people.statuses() == {"people": "IDLE"}


@pytest.mark.slow
def test_rows_that_somebody_mended_are_judged_with_their_new_values(people):
    people.spark.sql(f"UPDATE delta.`{people.path('people_quarantine')}` SET id = 50, age = 5 WHERE age = -1")
    assert replayed(people) == (4, 1)
    assert people.rows("people", "id", "age") == [(1, 30), (50, 5)]
    people.arrive("b.json", {"id": 3, "age": -3})
    people.run()
    assert len(held(people, "people")) == 4


@pytest.mark.slow
def test_a_fail_rule_holds_a_row_too_and_without_rules_all_go(people):
    people.write(WORKED.replace("expect_or_drop", "expect_or_fail"))
    assert replayed(people) == (4, 0)
    people.write(WORKED.replace("expect_or_drop", "expect").replace('"true"', '"false"'))
    assert replayed(people) == (4, 4)
    assert people.rows("people", "id") == [1, 2, 3, None, None]
    assert held(people, "people") == []


def test_files_with_nothing_but_released_rows_are_not_written_again(people):
    lenient = WORKED.replace("expect_or_drop", "expect")
    people.write(lenient)
    assert replayed(people) == (4, 4)
    done = set(DeltaTable(people.path("people_quarantine")).file_uris())
    people.write(WORKED).arrive("b.json", {"id": 7, "age": -3})
    people.run()
    people.write(lenient)
    assert replayed(people) == (1, 1)
    assert done < set(DeltaTable(people.path("people_quarantine")).file_uris())
    assert people.rows("people", "id") == [1, 2, 3, 7, None, None]


def test_a_row_that_the_table_cannot_take_is_not_released(project):
    declared = 'schema="id BIGINT NOT NULL, age BIGINT, _rescued_data STRING", table_properties'
    p = project(WORKED.replace("table_properties", declared))
    p.arrive("a.json", *records())
    p.run()
    p.write(WORKED.replace("table_properties", declared).replace("id IS NOT NULL", "true"))
    result, found = p.pipeline.replay("people")
    assert (result.state, found, [e.code for e in result.errors]) == ("FAILED", None, ["NOT_NULL_VIOLATED"])
    assert len(held(p, "people")) == 4
    p.run()
    assert p.rows("people", "id") == [1]


def test_the_command_prints_how_many_rows_it_released_and_which_rules_hold_the_others(project, capsys, monkeypatch):
    p = project(WORKED)
    p.arrive("a.json", *records())
    monkeypatch.chdir(p.folder)
    assert lakelet.load("pipeline.py", storage="storage", parameters=p.parameters, spark=p.spark).run().state == "COMPLETED"
    p.write(WORKED.replace("age >= 0", "age >= 0 OR age IS NULL"))
    asked = ["pipeline.py", "--storage", "storage", "--param", f"landing={p.landing}"]
    assert main(["quarantine", "replay", "people", *asked]) == 0
    out, err = capsys.readouterr()
    first = err.splitlines().index("people: 4 held rows judged, 1 released, 3 still held")
    header, *broken = [line.split() for line in err.splitlines()[first + 1 :]]
    assert (out, header[0], sorted(broken)) == ("", "rule", [["age_known", "1"], ["age_ok", "2"], ["id_ok", "2"]])

    assert main(["quarantine", "replay", "people", *asked, "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert (said["dataset"], said["judged"], said["released"], said["held"]) == ("people", 3, 0, 3)
    assert {rule["name"]: rule["failed_records"] for rule in said["rules"]} == {"age_known": 0, "age_ok": 2, "id_ok": 2}
    assert main(["quarantine", "replay", "peopel", *asked]) == 2
    assert 'Did you mean "main.default.people"?' in capsys.readouterr().err


@pytest.mark.slow
def test_what_cannot_be_replayed_is_said_with_what_to_do(project):
    p = project("""
        import dlt

        @dlt.table(table_properties={"lakelet.quarantine": "true"})
        @dlt.expect_or_drop("low", "id < 5")
        def numbers():
            return spark.range(10)

        @dlt.table
        def plain():
            files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
            return files.load(spark.conf.get("landing"))
    """)
    p.run(select=["numbers"])
    for name, text in (("numbers", "computed again as a whole"), ("plain", "it has no quarantine")):
        with pytest.raises(LakeletError, match=text) as caught:
            p.pipeline.replay(name)
        assert caught.value.code == "QUARANTINE_REPLAY"


@pytest.mark.slow
def test_show_lists_the_quarantine_its_rules_and_its_rows(people, capsys):
    storage = ["--storage", str(people.storage.root)]
    assert main(["quarantine", "show", "people", *storage]) == 0
    out, err = capsys.readouterr()
    assert "main.default.people_quarantine: 4 rows held" in err
    assert [line.split() for line in out.splitlines()[:4]] == [
        ["rule", "held", "rows"],
        ["age_ok", "3"],
        ["id_ok", "2"],
        ["age_known", "1"],
    ]
    assert main(["quarantine", "show", "people_quarantine", "--json", "--limit", "2", *storage]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 2
    assert list(rows[0]) == [*(f.name for f in people.table("people").schema), *list(rows[0])[3:]]
    assert main(["show", *storage]) == 0
    assert "quarantine of main.default.people" in capsys.readouterr().out
    assert main(["quarantine", "show", "nothing", *storage]) == 2
    assert "UNKNOWN_TABLE" in capsys.readouterr().err
