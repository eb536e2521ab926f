"""`--select state:modified`: which datasets an update after an edit brings up to date."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.plan.explanation import graph_json, plan_text
from lakelet.plan.selection import Request
from tests.spark.conftest import Project

PIPELINE = """
    import dlt

    @dlt.table
    def numbers():
        return spark.range(4)

    @dlt.table
    @dlt.expect_or_drop("positive", "id > 0")
    def doubled():
        return dlt.read("numbers").selectExpr("id * 2 AS id")

    @dlt.table
    def total():
        return dlt.read("doubled").groupBy().sum("id")

    @dlt.table
    def other():
        return dlt.read("numbers")
"""
EDITED = PIPELINE.replace("id * 2", "id * 3")
IDLE, DONE, LEFT_OUT = "IDLE", "COMPLETED", "EXCLUDED"


def test_an_edited_dataset_and_what_reads_it_are_selected(project: Callable[..., Project]) -> None:
    made = project(PIPELINE).run().write(EDITED)
    made.run(select=("state:modified",))
    assert made.statuses() == {"numbers": LEFT_OUT, "doubled": DONE, "total": LEFT_OUT, "other": LEFT_OUT}
    made.write(PIPELINE).run(select=("state:modified+",))
    assert made.statuses() == {"numbers": LEFT_OUT, "doubled": DONE, "total": DONE, "other": LEFT_OUT}
    assert made.rows("total") == [12]
    made.run(select=("state:modified+",))
    assert set(made.statuses().values()) == {LEFT_OUT}


def test_before_the_first_update_everything_is_new(project: Callable[..., Project]) -> None:
    made = project(PIPELINE)
    assert made.pipeline.check().changes == ()
    made.run(select=("state:modified",))
    assert set(made.statuses().values()) == {DONE}


def test_a_dataset_that_failed_or_was_left_out_stays_changed(project: Callable[..., Project]) -> None:
    made = project(PIPELINE).run().write(PIPELINE.replace("id * 2", "id / (id * 0)"))
    made.run(expect="FAILED")
    assert [change.text for change in made.pipeline.check().changes] == ["code: doubled (pipeline.py)"]
    made.write(EDITED).run(select=("other",))
    assert [change.dataset for change in made.pipeline.plan().changes] == ["main.default.doubled"]


def test_plan_says_what_changed_and_why(project: Callable[..., Project]) -> None:
    made = project(PIPELINE).run().write(EDITED.replace("id > 0", "id >= 0").replace("@dlt.table", '@dlt.table(comment="x")', 1))
    assert plan_text(made.pipeline.plan()).split("\n\n")[1].splitlines() == [
        "2 datasets changed since the last update:",
        "  main.default.numbers  settings: comment",
        "  main.default.doubled  code: doubled (pipeline.py); rules: positive",
    ]


def test_a_saved_manifest_takes_the_place_of_the_last_update(project: Callable[..., Project], tmp_path: Path) -> None:
    made = project(PIPELINE)
    checked, file = made.pipeline.check(), tmp_path / "manifest.json"
    file.write_text(json.dumps(graph_json(checked.graph, checked.definitions)))
    made.write(EDITED).run()
    made.run(select=(f"state:modified:{file}+",))
    assert {name for name, status in made.statuses().items() if status != LEFT_OUT} == {"doubled", "total"}


@pytest.mark.parametrize(("select", "said"), [("state:new", "the state 'new'"), ("state:modified:none.json", "none.json cannot be read")])
def test_an_unknown_state_and_a_missing_manifest_are_refused(project: Callable[..., Project], select: str, said: str) -> None:
    with pytest.raises(LakeletError, match=said) as refused:
        project(PIPELINE).pipeline.plan(Request(select=(select,)))
    assert refused.value.code == "USAGE"


def test_a_changed_module_counts_only_where_it_is_used(project: Callable[..., Project]) -> None:
    made = project()
    made.helper("def clean(frame):\n    return frame\n", "cleaning.py")
    made.write(PIPELINE.replace("import dlt", "import dlt, cleaning").replace('dlt.read("doubled")', 'cleaning.clean(dlt.read("doubled"))'))
    made.run()
    made.helper("def clean(frame):\n    return frame.limit(1)\n", "cleaning.py")
    assert [(c.dataset, c.code) for c in made.pipeline.check().changes] == [("main.default.total", ("clean (cleaning.py)",))]
