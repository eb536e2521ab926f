"""Sessions as `lakelet.spark.launch.session` starts them, and the fetch of Delta's jars with the real Ivy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.spark.launch import environment as env
from lakelet.spark.launch import java_process
from lakelet.spark.launch.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A process of its own: one Delta table, one Python worker; then what a stranger would notice.
SCRIPT = """
import json, os, sys
from lakelet.spark.launch.session import start_session
spark = start_session()
spark.range(3).write.format("delta").save(sys.argv[1])
from pyspark.sql.functions import udf
print(json.dumps({
    "interpreter": spark.range(1).select(udf(lambda _: __import__("sys").executable)("id")).first()[0],
    "zone": spark.conf.get("spark.sql.session.timeZone"),
    "ui": spark.sparkContext.uiWebUrl,
    "rows": spark.read.format("delta").load(sys.argv[1]).count(),
    "secret": "PYSPARK_GATEWAY_SECRET" in os.environ,
}))
"""


@pytest.mark.long
def test_a_session_is_quiet_and_leaves_nothing_behind_but_what_was_asked_for(tmp_path: Path) -> None:
    here, table, cache = tmp_path / "here", tmp_path / "table", tmp_path / "cache"
    here.mkdir()
    cache.mkdir()
    (cache / "jars").symlink_to(env.jars().delta_spark.parent)
    environment = {**os.environ, "LAKELET_CACHE": str(cache)}
    environment.pop("LAKELET_DEBUG", None)
    done = subprocess.run([sys.executable, "-c", SCRIPT, table], cwd=here, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {"interpreter": sys.executable, "zone": "UTC", "ui": None, "rows": 3, "secret": False}
    assert list(here.iterdir()) == []
    assert list(table.rglob(".*.crc")) == []
    assert len(list((cache / "logs").glob("spark-*.log"))) == 1


SOURCE = """
from pyspark.sql.datasource import DataSource, DataSourceReader

class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "demo"

    def schema(self):
        return "n int"

    def reader(self, schema):
        return Numbers()

class Numbers(DataSourceReader):
    def read(self, partition):
        yield (7,)
"""
READING = """
import sys
from lakelet.spark.launch import forks
from lakelet.spark.launch.session import start_session
from lakelet.autoloader import register
spark = start_session(input_bytes=0)
register(spark)
print(len(forks._servers))
if sys.argv[1:]:
    print(spark.read.format("demo").load().first()["n"])
"""


@pytest.mark.long
def test_python_is_started_for_packages_with_data_sources_only(tmp_path: Path) -> None:
    (tmp_path / "pyspark_demo.py").write_text(SOURCE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    without = subprocess.run([sys.executable, "-c", READING], capture_output=True, text=True, timeout=300)
    assert (without.stderr, without.stdout) == ("", "0\n")
    found = subprocess.run([sys.executable, "-c", READING, "demo"], env=environment, capture_output=True, text=True, timeout=300)
    assert (found.stderr, found.stdout) == ("", "1\n7\n")


def test_the_running_session_is_given_back_also_in_another_thread(spark: SparkSession) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(start_session(app_name="other", conf={"spark.x": "1"})))
    thread.start()
    thread.join()
    assert start_session() is spark
    assert found[0].sparkContext is spark.sparkContext


def test_java_s_command_line_is_the_one_that_spark_s_launcher_prints() -> None:
    home = env.spark_home()
    command = [str(env.find_java().executable), "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"]
    arguments = ["org.apache.spark.deploy.SparkSubmit", "--conf", "spark.driver.memory=1g", "pyspark-shell"]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    printed = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=True).stdout
    options = [word for word in printed.replace("\0", "\n").split() if word.startswith(("-XX", "-D", "--")) and word != "--conf"]
    assert tuple(options) == java_process.MODULE_OPTIONS


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux only")
def test_the_full_compiler_of_a_process_that_lasts_leaves_the_processors_to_others() -> None:
    options = java_process.tuning_options(env.require_java(), env.ensure_jars(), None, lasts=True)
    gateway = next((env.spark_home() / "jars").glob("py4j-*.jar"))
    command = [str(env.find_java().executable), *options, "-cp", str(gateway), "py4j.GatewayServer", "--die-on-broken-pipe", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # its port: it is there
        java_process.compile_in_pauses(java_process.JavaProcess(process, Path(), None))
        found: dict[str, set[int]] = {}
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            with suppress(OSError):  # it has ended
                found.setdefault((thread / "comm").read_text()[:2], set()).add(os.getpriority(os.PRIO_PROCESS, int(thread.name)))
        process.kill()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert (found["C1"], found["C2"]) == ({own}, {max(own, 10)})


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository folder with the two jars, named as the mirror, and an empty cache."""
    root = tmp_path / "mirror"
    for path in env.jars().paths:
        name = path.name.removesuffix(f"-{env.DELTA_VERSION}.jar")
        folder = root / "io" / "delta" / name / env.DELTA_VERSION
        folder.mkdir(parents=True)
        shutil.copy(path, folder)
        project = f"<modelVersion>4.0.0</modelVersion><groupId>io.delta</groupId><artifactId>{name}</artifactId>"
        (folder / f"{path.stem}.pom").write_text(f"<project>{project}<version>{env.DELTA_VERSION}</version></project>")
    monkeypatch.setenv("LAKELET_MAVEN", root.as_uri())
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LAKELET_JARS", raising=False)
    return root


@pytest.mark.long
def test_jars_come_from_a_named_mirror_once(mirror: Path) -> None:
    fetched = env.ensure_jars()
    assert sorted(path.name for path in fetched.delta_spark.parent.iterdir()) == sorted(env.JAR_NAMES)
    shutil.rmtree(mirror)
    assert env.ensure_jars() == fetched


@pytest.mark.long
def test_a_mirror_that_lacks_a_jar_is_the_reason_given(mirror: Path) -> None:
    shutil.rmtree(mirror / "io" / "delta" / "delta-storage")
    with pytest.raises(LakeletError) as caught:
        env.fetch_jars()
    assert "delta-storage" in (caught.value.why or "")
    assert list((env.cache_folder() / "jars").iterdir()) == []


@pytest.mark.long
def test_a_table_with_deletion_vectors_is_read_also_by_the_session_of_a_small_run(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.range(100).coalesce(1).write.format("delta").mode("append").save(str(tmp_path / "table"))
    spark.sql(f"DELETE FROM {table} WHERE id < 3")
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 97


def test_a_small_table_that_is_sent_to_every_task_takes_little_memory(spark: SparkSession) -> None:
    from pyspark.sql.functions import broadcast

    def free() -> int:
        return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().head()._2()._2())

    before = free()
    joined = spark.range(10).join(broadcast(spark.range(5)), "id")
    assert joined.count() == 5
    assert before - free() < 8_000_000
