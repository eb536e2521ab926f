"""A stored dataset is found by the end of its name, whatever schema it lies in. No Spark."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.inspection.table_lookup import find_dataset
from lakelet.storage.root import StorageRegistry, StoredDataset

NAMES = ("main.default.boxes", "main.hall.boxes", "main.hall.bags", "lake.desk.bags", "lake.desk.totals", "main.hall.`odd.one`")
REGISTRY = StorageRegistry(
    datasets={name.lower(): StoredDataset(name, "streaming_table", f"tables/{number}") for number, name in enumerate(NAMES)}
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("boxes", "main.default.boxes"),
        ("Totals", "lake.desk.totals"),
        ("desk.totals", "lake.desk.totals"),
        ("desk.bags", "lake.desk.bags"),
        ("hall.bags", "main.hall.bags"),
        ("`odd.one`", "main.hall.`odd.one`"),
    ],
)
def test_a_dataset_is_found_in_a_schema_of_its_own(asked, found):
    assert find_dataset(REGISTRY, asked).name == found


def test_several_datasets_of_one_name_are_listed():
    with pytest.raises(LakeletError) as error:
        find_dataset(REGISTRY, "bags")
    assert error.value.code == "UNKNOWN_TABLE"
    assert "several schemas have a table bags\n  lake.desk.bags\n  main.hall.bags" in str(error.value)


def test_no_dataset_of_the_name_is_an_error_with_the_nearest_one():
    with pytest.raises(LakeletError) as error:
        find_dataset(REGISTRY, "total")
    assert error.value.nearest[0] == "lake.desk.totals"
