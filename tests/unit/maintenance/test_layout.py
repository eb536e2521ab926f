"""When OPTIMIZE is worth its work, and what a table's properties say about it (MT-2 to MT-6)."""

from __future__ import annotations

import pytest

from lakelet.maintenance.layout import (
    LEAST_SECONDS,
    TARGET_BYTES,
    DataFile,
    MaintenanceSettings,
    OptimizeJob,
    OptimizeKind,
    job_for,
    saved_files,
    size,
)

MB = 1 << 20


def files(*sizes: int, partition: str = "") -> list[DataFile]:
    return [DataFile(f"{partition}{number}", one * MB, partition) for number, one in enumerate(sizes)]


def test_files_below_half_of_the_target_are_put_together_up_to_it():
    assert saved_files(files(*[10] * 10), 100 * MB) == 9
    assert saved_files(files(*[40] * 10), 100 * MB) == 5
    assert saved_files(files(*[50] * 10), 100 * MB) == 0
    assert saved_files(files(10), 100 * MB) == saved_files([], 100 * MB) == 0


def test_files_of_two_partitions_stay_apart():
    assert saved_files(files(1, 1, partition="a") + files(1, 1, partition="b"), 100 * MB) == 2


def test_a_table_is_left_alone_where_fewer_than_eight_files_would_be_saved():
    job = job_for(files(*[1] * 9), target=100 * MB)
    assert isinstance(job, OptimizeJob)
    assert (job.how, job.files, job.why) == (OptimizeKind.COMPACT, 1, "saves 8 of 9 files")
    assert job_for(files(*[1] * 8), target=100 * MB) == "OPTIMIZE would save 7 files; it is done from 8 on"
    assert job_for(files(99, 99), target=100 * MB) == "2 files, none to put together"
    assert job_for([], target=100 * MB) == "it has no rows"


def test_a_table_is_sorted_again_when_eight_files_or_a_full_one_came_since():
    old = files(*[99] * 3)
    for new in (files(*[1] * 8, partition="n"), files(60, 60, partition="n")):
        job = job_for([*old, *new], target=100 * MB, how=OptimizeKind.ZORDER, columns=("a", "b"), unsorted={file.path for file in new})
        assert isinstance(job, OptimizeJob)
        assert (job.how, job.columns, job.why) == (OptimizeKind.ZORDER, ("a", "b"), f"{len(new)} files not sorted by a, b")
    new = files(1, 1, partition="n")
    left = job_for([*old, *new], target=100 * MB, how=OptimizeKind.ZORDER, columns=("a",), unsorted={file.path for file in new})
    assert left == "OPTIMIZE would save 1 file; it is done from 8 on"


def test_properties_say_what_a_table_wants_whatever_their_case():
    assert MaintenanceSettings.of({}) == MaintenanceSettings(optimized=True, target_bytes=TARGET_BYTES, z_order=(), retention=7 * 86_400)
    given = {
        "Pipelines.autoOptimize.Managed": "FALSE",
        "pipelines.autoOptimize.zOrderCols": " a, `b` ,",
        "delta.targetFileSize": "10mb",
        "delta.deletedFileRetentionDuration": "interval 30 days",
    }
    assert MaintenanceSettings.of(given) == MaintenanceSettings(
        optimized=False, target_bytes=10 * MB, z_order=("a", "b"), retention=30 * 86_400
    )


def test_no_property_lets_a_removed_file_go_within_an_hour():
    assert MaintenanceSettings.of({"delta.deletedFileRetentionDuration": "interval 0 seconds"}).retention == LEAST_SECONDS == 3600


def test_sizes_are_read_as_databricks_writes_them():
    assert [size(text) for text in ("104857600", "100mb", "1 GB", "2k", "7B")] == [100 * MB, 100 * MB, 1 << 30, 2048, 7]
    for text in ("", "0", "-1", "much"):
        with pytest.raises(ValueError, match="targetFileSize"):
            size(text)
