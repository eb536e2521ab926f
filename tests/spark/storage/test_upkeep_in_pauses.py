"""What commits of a continuous update leave out is made up for in its pauses."""

from __future__ import annotations

from deltalake import DeltaTable

from lakelet.storage.delta.later_upkeep import EVERY, FILES, LATER
from lakelet.storage.delta.transaction import Transaction


def commit(spark, path, number):
    transaction = Transaction(spark, path)
    transaction.commit(transaction.write(spark.range(number, number + 1).coalesce(1)), user_metadata={})


def files(path):
    return len(DeltaTable(str(path)).file_uris())


def checkpoints(path):
    return sorted(file.name for file in (path / "_delta_log").glob("*.checkpoint.parquet"))


def test_a_pause_compacts_the_table_and_writes_its_checkpoint(spark, tmp_path):
    path = tmp_path / "numbers"
    spark.range(0).write.format("delta").option("delta.autoOptimize.autoCompact", "true").save(str(path))
    with LATER.on():
        for number in range(FILES):
            commit(spark, path, number)
            assert (checkpoints(path), LATER._owed[str(path)].commits) == ([], number + 1)
        assert files(path) == FILES
        LATER.do_one(spark)
        assert files(path) == 1
        LATER.do_one(spark)
        assert len(checkpoints(path)) == 1
        version = DeltaTable(str(path)).version()
        LATER.do_one(spark)
        assert (len(checkpoints(path)), DeltaTable(str(path)).version()) == (1, version)
    assert sorted(row.id for row in spark.read.format("delta").load(str(path)).collect()) == list(range(FILES))
    assert EVERY < FILES
