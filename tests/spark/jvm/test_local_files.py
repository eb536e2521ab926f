"""Hadoop's file system for local disks, in a process that goes on for long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakelet.jvm.local_files import use_quick_local_files


def modes(system: Any, jvm: Any, folder: Path) -> list[int]:
    """The permissions of a folder, a file and a file of whom only its owner may read, as a file system makes them."""
    made = [folder, folder / "new", folder / "private"]
    paths = [jvm.org.apache.hadoop.fs.Path(str(path)) for path in made]
    system.mkdirs(paths[0])
    for path in paths[1:]:
        system.create(path, True).close()
    system.setPermission(paths[2], jvm.org.apache.hadoop.fs.permission.FsPermission("600"))
    return [path.stat().st_mode for path in made]


def test_files_and_folders_get_the_permissions_that_hadoop_gives_them(spark: Any, tmp_path: Path) -> None:
    jvm, configuration = spark._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    plain = jvm.org.apache.hadoop.fs.LocalFileSystem()
    plain.initialize(jvm.java.net.URI("file:///"), configuration)
    wanted = modes(plain, jvm, tmp_path / "before")

    use_quick_local_files(spark.sparkContext)  # as the session of the tests does already
    quick = jvm.org.apache.hadoop.fs.FileSystem.getLocal(configuration)
    assert quick.getClass().getName() == "lakelet.LocalFiles"
    assert modes(quick, jvm, tmp_path / "after") == wanted
