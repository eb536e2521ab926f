"""A broker of Apache Kafka on loopback, for tests: one process in KRaft mode from the jars of a Maven repository, and a client of it.

By hand: `python -m tests.kafka FOLDER` starts one until Ctrl-C and prints its address.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway

from lakelet.spark.launch import environment as env
from tests.servers import awaited, gateway_of, server_process, stay

_VERSION = "4.1.2"
_MODULES = (
    *("kafka_2.13", "kafka-clients", "kafka-server-common", "kafka-group-coordinator-api", "kafka-group-coordinator", "kafka-server"),
    *("kafka-transaction-coordinator", "kafka-metadata", "kafka-storage-api", "kafka-tools-api", "kafka-raft", "kafka-storage"),
    *("kafka-coordinator-common", "kafka-share-coordinator"),
)
# What the modules depend on; the rest of it is only for their command lines.
_OTHERS = """
com.github.luben:zstd-jni:1.5.6-10
at.yawk.lz4:lz4-java:1.10.1
org.xerial.snappy:snappy-java:1.1.10.7
org.scala-lang:scala-library:2.13.16
org.pcollections:pcollections:4.0.2
org.hdrhistogram:HdrHistogram:2.2.2
com.dynatrace.hash4j:hash4j:0.22.0
com.github.ben-manes.caffeine:caffeine:3.2.0
org.jspecify:jspecify:1.0.0
org.apache.logging.log4j:log4j-api:2.25.3
org.apache.logging.log4j:log4j-core:2.25.3
net.sourceforge.argparse4j:argparse4j:0.7.0
commons-validator:commons-validator:1.10.1
commons-beanutils:commons-beanutils:1.11.0
commons-digester:commons-digester:2.1
commons-logging:commons-logging:1.3.5
commons-collections:commons-collections:3.2.2
com.fasterxml.jackson.core:jackson-databind:2.19.4
com.fasterxml.jackson.core:jackson-annotations:2.19.4
com.fasterxml.jackson.core:jackson-core:2.19.4
com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.19.4
com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.19.4
com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.19.4
org.yaml:snakeyaml:2.4
net.sf.jopt-simple:jopt-simple:5.0.4
org.bitbucket.b_c:jose4j:0.9.6
com.yammer.metrics:metrics-core:2.2.0
org.scala-lang:scala-reflect:2.13.16
com.typesafe.scala-logging:scala-logging_2.13:3.9.5
org.slf4j:slf4j-api:1.7.36
com.google.re2j:re2j:1.8
"""
_JARS = {
    **{f"{module}-{_VERSION}.jar": ("org.apache.kafka", module, _VERSION) for module in _MODULES},
    **{f"{module}-{version}.jar": (group, module, version) for group, module, version in (line.split(":") for line in _OTHERS.split())},
}
BROKER = env.JarPackage("a broker of Apache Kafka, for tests", _JARS, 44_490_981, "")
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},LOCKED://127.0.0.1:{locked},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},LOCKED://127.0.0.1:{locked}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,LOCKED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.locked.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="{password}";
log.dirs={logs}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
log.retention.check.interval.ms=500
log.initial.task.delay.ms=100
"""
_QUIET = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Record:
    """A record of a topic, as it is read back."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int


@dataclass
class Broker:
    """The client is a Java process with the broker's own jars, driven by py4j.

    `servers`: the broker's address; `locked`: the address at which the user ann needs `password`; `start`: starts the broker, also
    again after its death, at the same address and with its data, and returns its process id.
    """

    servers: str
    locked: str
    password: str
    gateway: JavaGateway
    start: Callable[[], int]
    pid: int

    @property
    def java(self) -> Any:
        return self.gateway.jvm

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Make a topic; `config`: its settings, `_` for `.`."""
        new = self.java.org.apache.kafka.clients.admin.NewTopic(topic, partitions, 1)
        new.configs({key.replace("_", "."): value for key, value in config.items()})
        with self._admin() as admin:
            admin.createTopics([new]).all().get()

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        with self._admin() as admin:
            admin.deleteTopics([topic]).all().get()
            while topic in set(admin.listTopics().names().get()):
                time.sleep(0.05)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records of a partition before an offset, as retention does."""
        lang, client = self.java.java.lang, self.java.org.apache.kafka
        # By reflection: py4j takes the field of that name.
        at = lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete").getMethod(
            "beforeOffset", self._array(lang.Class, lang.Long.TYPE)
        )
        with self._admin() as admin:
            wanted = at.invoke(None, self._array(lang.Object, lang.Long.valueOf(str(before))))
            admin.deleteRecords({client.common.TopicPartition(topic, partition): wanted}).all().get()

    def send(self, topic: str, *records: tuple[Any, Any], headers: Mapping[str, bytes] | None = None, partition: int | None = None) -> None:
        """Append records, each a key and a value: bytes, text, or None."""
        client = self.java.org.apache.kafka.clients.producer
        serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
        producer = client.KafkaProducer({"bootstrap.servers": self.servers, "key.serializer": serializer, "value.serializer": serializer})
        try:
            for key, value in records:
                record = client.ProducerRecord(topic, partition, _bytes(key), _bytes(value))
                for name, content in (headers or {}).items():
                    record.headers().add(name, content)
                producer.send(record)
            producer.flush()
        finally:
            producer.close()

    def records(self, topic: str) -> list[Record]:
        """Every record that the topic has now, by partition and offset."""
        client = self.java.org.apache.kafka
        deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        settings = {"bootstrap.servers": self.servers, "key.deserializer": deserializer, "value.deserializer": deserializer}
        consumer = client.clients.consumer.KafkaConsumer(settings)
        found: list[Record] = []
        try:
            parts = [client.common.TopicPartition(topic, info.partition()) for info in consumer.partitionsFor(topic)]
            consumer.assign(parts)
            consumer.seekToBeginning(parts)
            ends = consumer.endOffsets(parts)
            while any(consumer.position(part) < ends[part] for part in parts):
                records = consumer.poll(self.java.java.time.Duration.ofMillis(200)).iterator()
                while records.hasNext():
                    record = records.next()
                    found.append(Record(record.key(), record.value(), record.partition(), record.offset()))
        finally:
            consumer.close()
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def values(self, topic: str) -> list[str]:
        """The values of `records` as text."""
        return [(one.value or b"").decode() for one in self.records(topic)]

    def _array(self, kind: Any, value: Any) -> Any:
        made = self.gateway.new_array(kind, 1)
        made[0] = value
        return made

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin = self.java.org.apache.kafka.clients.admin.Admin.create({"bootstrap.servers": self.servers})
        try:
            yield admin
        finally:
            admin.close()


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@contextmanager
def kafka_broker(folder: Path) -> Iterator[Broker]:
    """Start a broker and its client, and end them by their processes. `folder` gets the broker's data and logs."""
    jars = [str(path) for path in env.ensure_package(BROKER)]
    (port, locked, controller), password = _free_ports(3), f"pw-{uuid.uuid4().hex}"
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(port=port, locked=locked, password=password, controller=controller, logs=folder / "data"))
    java = [str(env.require_java().executable), *_QUIET, "-cp", os.pathsep.join([*jars, *map(str, _py4j())])]
    storage = [*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", _cluster_id(), "-c", str(properties)]
    subprocess.run(storage, check=True, capture_output=True, timeout=120)
    with ExitStack() as processes:
        log = folder / "broker.log"

        def start() -> int:
            broker = processes.enter_context(server_process([*java, "kafka.Kafka", str(properties)], log))
            awaited(broker, log, lambda: _listening(port))
            return broker.pid

        pid = start()
        client_log = folder / "client.log"
        client = processes.enter_context(server_process([*java, "py4j.GatewayServer", "0"], client_log))
        gateway = processes.enter_context(gateway_of(client, client_log))
        yield Broker(f"127.0.0.1:{port}", f"127.0.0.1:{locked}", password, gateway, start, pid)


def _py4j() -> Sequence[Path]:
    return list((env.spark_home() / "jars").glob("py4j-*.jar"))


def _cluster_id() -> str:
    """Sixteen bytes as Kafka writes them."""
    import base64

    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        found = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


def _listening(port: int) -> bool | None:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return None


if __name__ == "__main__":
    with kafka_broker(Path(sys.argv[1])) as running:
        stay(running.servers)
