"""HDFS on loopback, for tests: a name node and a data node in one Java process, from Hadoop's own mini cluster.

By hand: `python -m tests.hdfs FOLDER` starts one until Ctrl-C; prints what a process needs to use it, and the URI of an empty folder.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lakelet.spark.launch import environment as env
from tests.servers import gateway_of, server_process, stay

_VERSION = "3.5.0"
"""That of the Hadoop in pyspark, whose jars it needs."""
_JARS = {f"hadoop-client-minicluster-{_VERSION}.jar": ("org.apache.hadoop", "hadoop-client-minicluster", _VERSION)}
CLUSTER = env.JarPackage("Hadoop's mini cluster, for tests", _JARS, 56_006_450, "")
_QUIET = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass
class HdfsServer:
    """`url`: the name node. `java`: its process. `client`: Java's own file system. `bucket`: an empty folder, in which `uri` lies."""

    url: str
    java: Any
    client: Any
    bucket: str = "lake"

    packages: ClassVar[tuple[str, ...]] = ("hdfs_native",)
    """What a worker needs beside pyspark and pyarrow to reach it."""

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to use it: a name, which the name node believes. The address stands in the URI."""
        return {"HADOOP_USER_NAME": getpass.getuser()}

    @property
    def secrets(self) -> list[str]:
        """What may stand nowhere: this name node believes every name."""
        return []

    def uri(self, path: str = "", scheme: str = "hdfs") -> str:
        return f"{scheme}://{self.url.rpartition('/')[2]}/{self.bucket}/{path}"

    def make_bucket(self) -> None:
        self.client.mkdirs(self._path(""))

    def put(self, path: str, content: bytes | str) -> None:
        """Put one file, as somebody else would: without Lakelet."""
        stream = self.client.create(self._path(path))
        stream.write(content.encode() if isinstance(content, str) else content)
        stream.close()

    def objects(self) -> list[str]:
        """All files in the folder, by their paths in it."""
        found, top = self.client.listFiles(self._path(""), True), f"/{self.bucket}/"
        paths = []
        while found.hasNext():
            paths.append(str(found.next().getPath().toUri().getPath()).removeprefix(top))
        return sorted(paths)

    def content(self, path: str) -> bytes:
        """The bytes of one file."""
        stream = self.client.open(self._path(path))
        found = bytes(stream.readAllBytes())
        stream.close()
        return found

    def name_it(self, name: str, folder: Path) -> None:
        """Write into a folder the files of Hadoop by which `hdfs://NAME` stands for this name node."""
        values = {
            "dfs.nameservices": name,
            f"dfs.ha.namenodes.{name}": "one",
            f"dfs.namenode.rpc-address.{name}.one": self.url.removeprefix("hdfs://"),
            f"dfs.client.failover.proxy.provider.{name}": "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        }
        properties = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")
        (folder / "core-site.xml").write_text("<configuration></configuration>")

    def _path(self, path: str) -> Any:
        return self.java.org.apache.hadoop.fs.Path(f"/{self.bucket}/{path}")


@contextmanager
def hdfs_server(folder: Path) -> Iterator[HdfsServer]:
    """Start a name node and a data node, and end them by their process. `folder` gets their data and logs."""
    folder.mkdir(parents=True, exist_ok=True)
    log, jars = folder / "hdfs.log", (*env.ensure_jars().paths, *env.ensure_package(CLUSTER))
    class_path = os.pathsep.join([f"{env.spark_home()}/jars/*", *map(str, jars)])
    java = [str(env.require_java().executable), *_QUIET, f"-Dtest.build.data={folder}", "-cp", class_path]
    with server_process([*java, "py4j.GatewayServer", "0"], log) as process, gateway_of(process, log) as gateway:
        jvm: Any = gateway.jvm
        settings = jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        builder = getattr(jvm, "org.apache.hadoop.hdfs.MiniDFSCluster$Builder")(settings, jvm.java.io.File(str(folder / "data")))
        cluster = builder.numDataNodes(1).build()
        cluster.waitActive()
        yield HdfsServer(f"hdfs://127.0.0.1:{cluster.getNameNodePort()}", jvm, cluster.getFileSystem())


if __name__ == "__main__":
    with hdfs_server(Path(sys.argv[1])) as running:
        running.make_bucket()
        stay(running.uri(), running.environment)
