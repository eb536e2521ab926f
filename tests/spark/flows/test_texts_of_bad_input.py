"""The first record of each kind of bad input is kept as text, with the column of a value that did not fit."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.spark.expectations.samples import SamplePolicy, texts_of_records
from tests.spark.conftest import Project

pytestmark = pytest.mark.spark

PIPELINE = """
    import dlt

    @dlt.table(table_properties={properties})
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.schemaHints", "amount DOUBLE, name STRING").load(spark.conf.get("landing")))
"""


def bad_input(project: Project) -> dict[str, Any]:
    [event] = [event for event in project.events if event.event_type == "source_records"]
    return {key: value for key, value in event.body.items() if key.endswith(("_text", "_column"))}


def delivered(project: Any, rows: str = "3", **properties: str) -> Project:
    p: Project = project(PIPELINE.format(properties=properties))
    p.parameters["lakelet.sampleRows"] = rows
    p.arrive("1.json", {"amount": 1.0, "name": "ada"}, {"amount": "cheap", "name": "bob"}, '{"name": "eve')
    p.run()
    return p


def test_the_first_broken_record_and_the_first_rescued_value_are_shown(project: Any) -> None:
    found = bad_input(delivered(project))
    assert found.pop("first_text").startswith('{"amount":"cheap"')
    assert found == {"corrupt_text": '{"name": "eve', "rescued_text": "cheap", "rescued_column": "amount"}


def test_nothing_is_kept_without_the_setting(project: Any) -> None:
    assert bad_input(delivered(project, rows="0")) == {}


def test_a_broken_record_is_hidden_where_a_column_is_personal_and_a_rescued_value_where_it_is_its_own(project: Any) -> None:
    found = bad_input(delivered(project, **{"lakelet.personalColumns": "name"}))
    assert (found["corrupt_text"], found["rescued_column"], found["rescued_text"]) == ("***", "amount", "cheap")


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ('{"amount":"cheap","_file_path":"/a.json"}', "amount", "cheap"),
        ('{"place":{"zip":"x"}}', "place", '{"zip": "x"}'),
        ('{"note":"' + "x" * 600, "note", "x" * 200 + "…"),
        ("no JSON", None, "no JSON"),
        ('{"cut', None, '{"cut'),
    ],
)
def test_the_column_of_a_rescued_value_is_the_first_name_in_the_rescued_data(text: str, column: str | None, value: str) -> None:
    assert texts_of_records({"rescued_text": text}, SamplePolicy(3)) == {"rescued_column": column, "rescued_text": value}


def test_a_text_whose_column_is_not_known_is_hidden_where_a_column_is_personal() -> None:
    assert texts_of_records({"rescued_text": '{"cut'}, SamplePolicy(3, frozenset({"name"})))["rescued_text"] == "***"
