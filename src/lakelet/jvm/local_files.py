"""Hadoop's file system for local disks, without a process for each file that is made.

Where Hadoop lacks its native library it runs `chmod` for every new file and folder: some forty processes in a round of a small continuous
update, at 25 ms each on a busy machine. Java can set permissions itself. The two classes are compiled when they are needed, by the compiler
that comes with Spark; that takes half a second, so only processes that go on for long use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelet.jvm.java_sources import compiled

if TYPE_CHECKING:
    from pyspark import SparkContext

_NAME = "lakelet.LocalFiles"
_SOURCE = """
package lakelet;

public class LocalFiles extends org.apache.hadoop.fs.LocalFileSystem {
  public LocalFiles() { super(new Raw()); }

  public static class Raw extends org.apache.hadoop.fs.RawLocalFileSystem {
    public void setPermission(org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission)
        throws java.io.IOException {
      if (permission.getStickyBit()) {
        super.setPermission(path, permission);
      } else {
        java.util.Set found = java.nio.file.attribute.PosixFilePermissions.fromString(permission.toString());
        java.nio.file.Files.setPosixFilePermissions(pathToFile(path).toPath(), found);
      }
    }
  }
}
"""


def use_quick_local_files(context: SparkContext) -> None:
    """Let everything in the session's Java process write local files through these classes; nothing changes where they cannot be made.

    Hadoop gives all of a process the one file system that it keeps for `file:`, so that one is replaced.
    """
    from lakelet.jvm.errors import Py4JError

    jvm: Any = context._jvm
    systems = jvm.org.apache.hadoop.fs.FileSystem
    configuration = context._jsc.hadoopConfiguration()
    loader, named = configuration.getClassLoader(), configuration.get("fs.file.impl")
    if named is not None or systems.getLocal(configuration).getClass().getName() == _NAME:  # somebody chose one, or they are used
        return
    try:
        ours = compiled(context, _SOURCE)
    except Py4JError:
        return
    configuration.setClassLoader(ours)
    configuration.set("fs.file.impl", _NAME)
    try:
        systems.getLocal(configuration).close()  # takes it out of what is kept
        systems.getLocal(configuration)
    finally:
        configuration.setClassLoader(loader)
        configuration.unset("fs.file.impl")
