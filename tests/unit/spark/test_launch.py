"""The command line and the settings of a session, and a Java that does not come up. No Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.files.stores import S3
from lakelet.spark.launch import archives, java_process, session
from lakelet.spark.launch import environment as env
from lakelet.spark.partitions import MADE_BY_LAKELET

JAVA = env.Java(Path("/jdk/bin/java"), "17.0.9+9", 17, has_vector=True, home="/jdk")


@pytest.fixture
def delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> env.Jars:
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path / "cache"))
    for name in (archives.RECORD_CLASSES, java_process.DEBUG, "SPARK_CONF_DIR", "SPARK_HOME", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    jars = env.Jars(tmp_path / env.JAR_NAMES[0], tmp_path / env.JAR_NAMES[1])
    for path in jars.paths:
        path.touch()
    return jars


def test_small_and_unknown_inputs_get_the_quick_compiler_large_ones_the_full_one(delta: env.Jars) -> None:
    quick = "-XX:TieredStopAtLevel=1"
    assert quick in java_process.tuning_options(JAVA, delta, None)
    assert quick in java_process.tuning_options(JAVA, delta, 1000)
    assert quick not in java_process.tuning_options(JAVA, delta, java_process.FULL_COMPILER_BYTES)


def test_a_process_that_lasts_gets_both_compilers_all_of_their_threads_from_the_start(delta: env.Jars) -> None:
    options = java_process.tuning_options(JAVA, delta, 1000, lasts=True)
    assert "-XX:TieredStopAtLevel=1" not in options
    assert "-XX:-UseDynamicNumberOfCompilerThreads" in options


def installed(folder: Path, *, own_archive: bool) -> env.Java:
    """A Java in the folder, with or without an archive of its own classes."""
    for name in ["bin/java", *(["lib/server/classes.jsa"] if own_archive else [])]:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    return env.Java(folder / "bin" / "java", "17.0.9+9", 17, has_vector=own_archive, home=str(folder))


def test_the_archive_is_used_only_when_it_fits(delta: env.Jars, tmp_path: Path) -> None:
    java = installed(tmp_path / "jdk", own_archive=True)
    archive = archives.archive_path(java, delta)
    option = f"-XX:SharedArchiveFile={archive}"
    assert option not in java_process.tuning_options(java, delta, None)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert option in java_process.tuning_options(java, delta, None)
    os.utime(delta.delta_spark, (1, 1))
    assert option not in java_process.tuning_options(java, delta, None)


def test_a_java_without_an_archive_of_its_own_classes_gets_both_or_none(
    delta: env.Jars, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = installed(tmp_path / "jre", own_archive=False)
    archive, base = archives.archive_path(java, delta), archives.base_archive_path(java)
    assert base is not None
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert not any("SharedArchiveFile" in option for option in java_process.tuning_options(java, delta, None))
    base.touch()
    assert f"-XX:SharedArchiveFile={base}{os.pathsep}{archive}" in java_process.tuning_options(java, delta, None)
    monkeypatch.setenv(archives.RECORD_CLASSES, "new.jsa")
    assert java_process.tuning_options(java, delta, None)[-2:] == [f"-XX:SharedArchiveFile={base}", "-XX:ArchiveClassesAtExit=new.jsa"]


def test_the_vector_module_is_named_only_to_a_java_that_has_it(delta: env.Jars, tmp_path: Path) -> None:
    settings = session.session_settings(delta, app_name="a", master=None, conf={})
    option = f"--add-modules={env.VECTOR_MODULE}"
    assert option in java_process.java_command(JAVA, delta, [], settings)
    assert option not in java_process.java_command(installed(tmp_path / "jre", own_archive=False), delta, [], settings)


def test_a_local_session_stays_on_loopback_and_out_of_the_current_folder(delta: env.Jars) -> None:
    settings = session.session_settings(delta, app_name="a", master=None, conf={})
    assert settings["spark.master"] == f"local[{session.cores()}]"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.sql.catalogImplementation"] == "in-memory"
    assert not settings["spark.sql.warehouse.dir"].startswith(Path.cwd().as_uri())
    assert "spark.jars" not in settings


def test_a_cluster_gets_the_jars_and_its_sizes_when_its_cores_are_known(delta: env.Jars) -> None:
    settings = session.session_settings(delta, app_name="a", master="spark://127.0.0.1:7077", conf={}, input_bytes=0)
    assert settings["spark.jars"] == f"{delta.delta_spark.as_uri()},{delta.delta_storage.as_uri()}"
    assert "spark.sql.shuffle.partitions" not in settings
    assert "spark.driver.host" not in settings
    assert "spark.delta.logStore.file.impl" not in settings


def test_sizes_in_the_defaults_of_the_user_stay_on_this_machine_too(
    delta: env.Jars, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("# spark.sql.adaptive.enabled true\n  spark.sql.shuffle.partitions   7\n")
    settings = session.session_settings(delta, app_name="a", master=None, conf={}, input_bytes=0)
    assert not {"spark.sql.shuffle.partitions", MADE_BY_LAKELET} & settings.keys()
    assert settings["spark.sql.adaptive.enabled"] == "false"


def test_the_heap_of_the_driver_is_as_large_as_spark_s_own_variable_says(delta: env.Jars, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "5g")
    settings = session.session_settings(delta, app_name="a", master=None, conf={})
    assert "-Xmx5g" in java_process.java_command(JAVA, delta, [], settings)


def test_a_cluster_of_processes_of_this_machine_gets_the_jars_and_stays_on_loopback(delta: env.Jars) -> None:
    settings = session.session_settings(delta, app_name="a", master="local-cluster[2,1,1024]", conf={})
    assert settings["spark.jars"] == f"{delta.delta_spark.as_uri()},{delta.delta_storage.as_uri()}"
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.python.daemon.module" not in settings


def test_s3_comes_last_on_the_class_path_and_tells_no_secret(delta: env.Jars, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"AWS_ENDPOINT_URL": "http://127.0.0.1:5000", "AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "very-secret-word"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    more = [Path("/jars/hadoop-aws.jar"), Path("/jars/bundle.jar")]
    settings = session.session_settings(delta, app_name="a", master=None, conf={}, more=more, stores=[S3])
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:5000"
    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    assert "spark.sql.streaming.checkpointFileManagerClass" not in settings
    command = java_process.java_command(JAVA, delta, [], settings, more)
    assert command[2].startswith(delta.class_path)
    assert command[2].endswith("/jars/hadoop-aws.jar:/jars/bundle.jar")
    assert "very-secret-word" not in " ".join(command)
    cluster = session.session_settings(delta, app_name="a", master="spark://h:7077", conf={}, more=more, stores=[S3])
    assert cluster["spark.jars"].endswith("file:///jars/hadoop-aws.jar,file:///jars/bundle.jar")


def test_packages_without_s3_change_nothing_but_the_class_path(delta: env.Jars) -> None:
    more = [Path("/jars/kafka-clients.jar")]
    local = session.session_settings(delta, app_name="a", master=None, conf={}, more=more)
    assert {k: v for k, v in local.items() if "warehouse" not in k} == {
        k: v for k, v in session.session_settings(delta, app_name="a", master=None, conf={}).items() if "warehouse" not in k
    }
    assert java_process.java_command(JAVA, delta, [], local, more)[2].endswith(":/jars/kafka-clients.jar")
    cluster = session.session_settings(delta, app_name="a", master="spark://h:7077", conf={}, more=more)
    assert cluster["spark.jars"].endswith(",file:///jars/kafka-clients.jar")


def test_the_caller_s_settings_win(delta: env.Jars) -> None:
    conf = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.driver.memory": "5g"}
    settings = session.session_settings(delta, app_name="a", master=None, conf=conf)
    assert settings["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert "-Xmx5g" in java_process.java_command(JAVA, delta, [], settings)


def test_a_session_whose_page_is_off_keeps_little_of_its_queries(delta: env.Jars) -> None:
    kept = "spark.sql.ui.retainedExecutions"
    assert session.session_settings(delta, app_name="a", master=None, conf={})[kept] == "10"
    assert kept not in session.session_settings(delta, app_name="a", master=None, conf={"spark.ui.enabled": "true"})


def test_a_local_run_ignores_the_configuration_of_some_other_spark(delta: env.Jars, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    settings = session.session_settings(delta, app_name="a", master=None, conf={})
    assert "/opt/spark" not in java_process.java_command(JAVA, delta, [], settings)[2]
    cluster = session.session_settings(delta, app_name="a", master="yarn", conf={})
    assert "/opt/spark/conf" in java_process.java_command(JAVA, delta, [], cluster)[2]


def test_a_java_that_ends_at_once_is_told_with_its_own_words(delta: env.Jars) -> None:
    java = java_process.start_java(["/bin/sh", "-c", "echo 'Invalid maximum heap size: -Xmx1x'; exit 1"], loopback=True)
    with pytest.raises(LakeletError, match="Invalid maximum heap size") as caught:
        java_process.connect(java)
    assert caught.value.code == "SPARK_START_FAILED"
    assert str(env.cache_folder() / "logs") in (caught.value.todo or "")
    assert not java.connection.parent.exists()


def test_a_java_that_stays_silent_is_given_up(delta: env.Jars, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_process, "START_TIMEOUT_SECONDS", 0.05)
    java = java_process.start_java(["/bin/sleep", "60"], loopback=True)
    with pytest.raises(LakeletError, match="before it was ready"):
        java_process.connect(java)
    assert java.process.wait(timeout=5) != 0


def test_old_logs_are_removed(delta: env.Jars) -> None:
    logs = env.cache_folder() / "logs"
    logs.mkdir(parents=True)
    for age in range(30):
        log = logs / f"spark-{age}.log"
        log.touch()
        os.utime(log, (age, age))
    java = java_process.start_java([sys.executable, "-c", ""], loopback=True)
    java.process.wait(timeout=10)
    assert len(list(logs.iterdir())) == java_process.KEPT_LOGS
    assert java.log is not None
    assert java.log.exists()


def test_a_session_without_delta_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: SimpleNamespace(conf={}))
    with pytest.raises(LakeletError, match="without Delta") as caught:
        session.start_session()
    assert caught.value.code == "SESSION_WITHOUT_DELTA"
