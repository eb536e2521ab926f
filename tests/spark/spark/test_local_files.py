"""Hadoop's file system for local disks, in a process that goes on for long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakelet.spark.launch.local_files import use_quick_local_files


def files(spark: Any) -> Any:
    """What Hadoop gives everybody for local paths."""
    return spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())


def name(spark: Any) -> str:
    return str(files(spark).getClass().getName())


def modes(spark: Any, folder: Path) -> list[int]:
    """The permissions of a folder, a file and a file of whom only its owner may read, as Hadoop makes them."""
    system, jvm = files(spark), spark._jvm
    made = [folder, folder / "new", folder / "private"]
    paths = [jvm.org.apache.hadoop.fs.Path(str(path)) for path in made]
    system.mkdirs(paths[0])
    for path in paths[1:]:
        system.create(path, True).close()
    system.setPermission(paths[2], jvm.org.apache.hadoop.fs.permission.FsPermission("600"))
    return [path.stat().st_mode for path in made]


def test_files_and_folders_get_the_permissions_that_hadoop_gives_them(spark: Any, tmp_path: Path) -> None:
    before, wanted = name(spark), modes(spark, tmp_path / "before")
    use_quick_local_files(spark.sparkContext)
    try:
        assert name(spark) == "lakelet.LocalFiles"
        assert modes(spark, tmp_path / "after") == wanted
    finally:
        files(spark).close()
        files(spark).setWriteChecksum(False)
    assert name(spark) == before
