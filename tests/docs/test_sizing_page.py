"""The table of the page about sizing says what a session gets."""

from __future__ import annotations

import re

import pytest

from lakelet.autoloader.micro_batches import pack
from lakelet.autoloader.source_spec import FilePart
from lakelet.spark.partitions import INTERPRETED_BYTES, SHUFFLE, SPLIT_BYTES, query_sizes, session_sizes
from tests.paths import ROOT
from tests.unit.spark.test_partitions import session

SNAPSHOT = "spark.databricks.delta.snapshotPartitions"
PAGE = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\d,]+) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) GB \|$", PAGE, re.MULTILINE)


def test_the_page_has_a_row_for_each_size_of_a_cluster() -> None:
    assert [row[0] for row in ROWS] == ["2", "10", "100", "1,000"]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_says_what_a_session_with_so_many_cores_gets(row: tuple[str, ...]) -> None:
    cores = int(row[0].replace(",", ""))
    little, much = session_sizes(cores, INTERPRETED_BYTES - 1), session_sizes(cores, None)
    assert (much[SHUFFLE], little[SNAPSHOT], much[SNAPSHOT]) == row[1:4]
    limit = round(float(row[4]) * 1024**3)
    assert limit == int(much[SHUFFLE]) * SPLIT_BYTES
    assert (SHUFFLE in query_sizes(session(cores), limit), SHUFFLE in query_sizes(session(cores), limit + 1)) == (False, True)
    assert query_sizes(session(cores), 100 * 1024**3)[SHUFFLE] == "800"


@pytest.mark.parametrize("cores", [100, 1000])
def test_files_of_100_kb_keep_all_cores_busy_in_the_number_that_the_page_says(cores: int) -> None:
    files = [FilePart(f"/{number}.json", 100_000, 0) for number in range(26 * cores)]
    assert {len(task) for task in pack(files, cores, lambda _: False)} == {13}
    assert f"{26 * cores:,} files" in PAGE or f"are {26 * cores:,}." in PAGE
