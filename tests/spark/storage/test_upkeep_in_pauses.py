"""What commits of a continuous update leave out is made up for in its pauses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from deltalake import DeltaTable

from lakelet.jvm import later_checkpoint
from lakelet.storage.delta.deferred_upkeep import DEFERRED, EVERY, FILES
from lakelet.storage.delta.transaction import Transaction


def commit(spark, path, number):
    transaction = Transaction(spark, path)
    transaction.commit(transaction.write(spark.range(number, number + 1).coalesce(1)), user_metadata={})


def files(path):
    return len(DeltaTable(str(path)).file_uris())


def checkpoints(path):
    return sorted(file.name for file in (path / "_delta_log").glob("*.checkpoint.parquet"))


@pytest.mark.long
def test_a_pause_compacts_the_table_and_writes_its_checkpoint(spark, tmp_path):
    path = tmp_path / "numbers"
    spark.range(0).write.format("delta").option("delta.autoOptimize.autoCompact", "true").save(str(path))
    with DEFERRED.on():
        for number in range(FILES):
            commit(spark, path, number)
            assert (checkpoints(path), DEFERRED._owed[str(path)].commits) == ([], number + 1)
        assert files(path) == FILES
        DEFERRED.do_one(spark)
        assert files(path) == 1
        DEFERRED.do_one(spark)
        assert len(checkpoints(path)) == 1
        version = DeltaTable(str(path)).version()
        DEFERRED.do_one(spark)
        assert (len(checkpoints(path)), DeltaTable(str(path)).version()) == (1, version)
    assert sorted(row.id for row in spark.read.format("delta").load(str(path)).collect()) == list(range(FILES))
    assert EVERY < FILES


@pytest.mark.slow
def test_a_table_that_does_not_ask_for_it_is_never_compacted(spark, tmp_path):
    path = tmp_path / "numbers"
    spark.range(0).write.format("delta").save(str(path))
    with DEFERRED.on():
        for number in range(FILES):
            commit(spark, path, number)
            DEFERRED.do_one(spark)
    assert files(path) == FILES
    assert len(checkpoints(path)) == FILES // EVERY


@pytest.mark.slow
def test_replaced_files_do_not_count(spark, tmp_path):
    path = tmp_path / "numbers"
    spark.range(3).write.format("delta").option("delta.autoOptimize.autoCompact", "true").save(str(path))
    with DEFERRED.on():
        for number in range(FILES // 4 + 1):  # each commit names four files: two that come, two that go
            transaction = Transaction(spark, path)
            written = transaction.write(spark.range(number).repartition(2))
            transaction.commit([*written, *transaction.removals()], user_metadata={}, replace=True)
        assert DEFERRED._owed[str(path)].files < 4


def test_a_commit_without_its_checkpoint_runs_no_job(spark, tmp_path):
    path = tmp_path / "numbers"
    spark.range(0).write.format("delta").save(str(path))
    tracker = spark.sparkContext.statusTracker()
    with DEFERRED.on():
        for number in range(EVERY + 1):
            transaction = Transaction(spark, path)
            written = transaction.write(spark.range(number, number + 1).coalesce(1))
            spark.sparkContext.setJobGroup(f"commit {number}", "")
            version = transaction.commit(written, user_metadata={})
            assert (version, len(tracker.getJobIdsForGroup(f"commit {number}"))) == (number + 1, 0)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_the_class_of_transactions_is_there_once_however_often_and_from_how_many_threads_it_is_asked_for(spark, tmp_path):
    """py4j calls a method of another class of the same name; flows of a first round ask at the same time."""
    spark.range(0).write.format("delta").save(str(tmp_path / "numbers"))

    def begun(_: int) -> str:
        later_checkpoint._function.cache_clear()
        return str(Transaction(spark, tmp_path / "numbers")._txn.getClass().getName())

    with DEFERRED.on(), ThreadPoolExecutor(4) as threads:
        assert set(threads.map(begun, range(16))) == {"lakelet.LaterCheckpoint"}
