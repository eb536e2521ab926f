"""What a full refresh makes of a table that is defined in another way than it was."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from lakelet.analysis.results import AnalyzedDataset, AnalyzedFlow, UnanalyzedDataset
from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.flows.target_table import remade
from lakelet.language.model import ChangeSpec, Dataset, Flow, Kind
from lakelet.plan.kinds import APPEND, CHANGE
from lakelet.storage.root import StoredDataset

NAME = TableName("c", "s", "t")
WHERE = Location("p.py", 1)
PATH = "tables/c/s/t"


def analyzed(kind, *, changes=False):
    flow = Flow("c.s.t", NAME, lambda: None, WHERE, True, changes=ChangeSpec("x", (("id",),)) if changes else None)
    return AnalyzedDataset(
        Dataset(NAME, kind, WHERE), kind, StructType(), (AnalyzedFlow(flow, CHANGE if changes else APPEND, StructType()),)
    )


def stored(kind, path=PATH, epoch=0):
    return StoredDataset("c.s.t", kind, path, epoch=epoch)


def lies(root, *folders):
    for folder in folders:
        (root / PATH / folder / "_delta_log").mkdir(parents=True)
        (root / PATH / folder / "_delta_log" / f"{0:020d}.json").write_text("{}\n")


@pytest.mark.parametrize(
    ("before", "folders", "now", "changes", "path"),
    [
        ("streaming_table", [""], Kind.STREAMING_TABLE, False, PATH),
        ("streaming_table", [""], Kind.MATERIALIZED_VIEW, False, PATH),
        ("materialized_view", [""], Kind.STREAMING_TABLE, False, PATH),
        ("streaming_table", ["", "_changes"], Kind.STREAMING_TABLE, True, PATH),
        ("streaming_table", [""], Kind.STREAMING_TABLE, True, f"{PATH}~3"),
        ("streaming_table", ["", "_changes"], Kind.MATERIALIZED_VIEW, False, f"{PATH}~3"),
        ("streaming_table", [], Kind.STREAMING_TABLE, True, PATH),
    ],
)
def test_a_table_keeps_its_folder_unless_an_internal_log_comes_or_goes(tmp_path, before, folders, now, changes, path):
    lies(tmp_path, *folders)
    found = remade(tmp_path, stored(before, epoch=2), analyzed(now, changes=changes), taken={PATH})
    assert (found.kind, found.path) == (now.value, path)


def test_a_folder_that_another_table_has_is_not_taken(tmp_path):
    lies(tmp_path, "")
    found = remade(tmp_path, stored("streaming_table"), analyzed(Kind.STREAMING_TABLE, changes=True), taken={PATH, f"{PATH}~1"})
    assert found.path == f"{PATH}~2"


def test_a_table_in_the_place_of_a_sink_leaves_what_the_sink_wrote(tmp_path):
    outside = str(tmp_path / "elsewhere")
    found = remade(tmp_path, stored("sink", outside), analyzed(Kind.STREAMING_TABLE), taken={outside})
    assert (found.kind, found.path) == ("streaming_table", PATH)
    assert remade(tmp_path, stored("sink", outside), analyzed(Kind.SINK), taken={outside}).path == outside


def test_a_dataset_that_cannot_be_analysed_stays_as_it_is(tmp_path):
    assert remade(
        tmp_path, stored("streaming_table"), UnanalyzedDataset(Dataset(NAME, Kind.STREAMING_TABLE, WHERE)), taken=set()
    ) == stored("streaming_table")
