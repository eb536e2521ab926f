"""What `lakelet doctor` finds. Every machine here is made up: foreign packages are folders on the path with a few metadata."""

from __future__ import annotations

import fcntl
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.files.stores import HDFS, S3
from lakelet.project import doctor
from lakelet.project.doctor import DoctorCheck
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env

Install = Callable[[str, str], Path]

HEALTHY_JAVA = env.Java(Path("/jdk/bin/java"), "17.0.9+9", 17, has_vector=True, home="/jdk")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make it look as if a distribution were installed, before all others on the path."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])

    def add(distribution: str, version: str) -> Path:
        metadata = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        return site

    return add


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Callable[[env.Java | LakeletError], None]:
    """Replace the Java of this machine."""

    def replace(found: env.Java | LakeletError) -> None:
        def find() -> env.Java:
            if isinstance(found, LakeletError):
                raise found
            return found

        monkeypatch.setattr(env, "find_java", find)

    return replace


def test_this_machine_can_run_pipelines() -> None:
    checks = doctor.examine()
    assert [check.name for check in checks if not check.ok and check.blocking] == []
    assert doctor.can_run(checks)


def test_every_failed_check_has_a_finding_of_one_line_and_a_remedy(java: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    java(LakeletError("JAVA_MISSING", "No Java", todo="Type: get java"))
    monkeypatch.setattr(doctor, "_version", lambda _: None)
    monkeypatch.setenv("LAKELET_JARS", "/nowhere")
    failed = [check for check in doctor.examine() if not check.ok]
    assert len(failed) >= 6
    assert all(check.finding and "\n" not in check.finding and check.remedy for check in failed)


def test_only_blocking_findings_forbid_a_run() -> None:
    slow = DoctorCheck("class-data archive", False, "none", "make one", blocking=False)
    assert doctor.can_run([slow])
    assert not doctor.can_run([slow, DoctorCheck("Java", False, "none", "get one")])


def test_old_java(java: Callable[..., None]) -> None:
    java(env.Java(Path("/jdk/bin/java"), "11.0.2", 11, has_vector=False, home="/jdk"))
    check = doctor.check_java()
    assert not check.ok
    assert check.finding.startswith("11.0.2")
    assert "Java 17 or newer" in check.remedy


def test_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    assert not doctor.check_python().ok


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("4.2.0", "4.2.0"),
        ("4.2.1", "4.2.1"),
        ("4.2.7", "4.2.7; not tested: Lakelet's tests have passed with 4.2.0 and 4.2.1"),
        ("4.1.0", "4.1.0; Delta 4.4.0 is built for Spark 4.2"),
        ("4.20.0", "4.20.0; Delta 4.4.0 is built for Spark 4.2"),
    ],
)
def test_a_pyspark_of_the_line_that_delta_is_built_for_is_taken_and_others_are_refused(install: Install, version: str, found: str) -> None:
    home = install("pyspark", version) / "pyspark"
    (home / "jars").mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "version.py").write_text(f'__version__: str = "{version}"\n')
    (home / "jars" / f"spark-core_2.13-{version}.jar").touch()
    loaded = {name: sys.modules.pop(name) for name in list(sys.modules) if name == "pyspark"}
    try:
        check = doctor.check_pyspark()
    finally:
        sys.modules.update(loaded)
    assert (check.finding, check.ok) == (found, "built for" not in found)
    assert check.ok or "pyspark==4.2.0" in check.remedy


def test_databricks_connect_is_blamed_and_both_repairs_are_told(install: Install) -> None:
    install("databricks-connect", "16.1.7")
    check = doctor.check_pyspark()
    assert not check.ok
    assert "databricks-connect 16.1.7" in check.finding
    assert "uninstall -y databricks-connect" in check.remedy
    assert "--force-reinstall" in check.remedy


@pytest.mark.parametrize(
    ("version_file", "jar", "told"),
    [
        ('__version__ = "3.5.2"\n', "spark-core_2.13-4.2.0.jar", "of another version"),
        ('__version__ = "4.2.0"\n', "other.jar", "holds no Spark jars"),
    ],
)
def test_a_pyspark_that_was_overwritten_is_seen_although_its_metadata_are_right(
    install: Install, version_file: str, jar: str, told: str
) -> None:
    home = install("pyspark", env.SPARK_VERSION) / "pyspark"
    (home / "jars").mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "version.py").write_text(version_file)
    (home / "jars" / jar).touch()
    loaded = {name: sys.modules.pop(name) for name in list(sys.modules) if name == "pyspark"}
    try:
        check = doctor.check_pyspark()
    finally:
        sys.modules.update(loaded)
    assert not check.ok
    assert told in check.finding


def test_delta_spark_whose_jar_is_not_there(install: Install) -> None:
    install("delta-spark", "4.4.1")
    assert "4.4.1; Lakelet needs 4.4.0" in doctor.check_delta().finding


def test_pandas_3(install: Install) -> None:
    install("pandas", "3.1.1")
    check = doctor.check_pandas()
    assert not check.ok
    assert "pandas>=2.2,<3" in check.remedy


def test_missing_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path))
    monkeypatch.delenv("LAKELET_JARS", raising=False)
    check = doctor.check_jars()
    assert not check.ok
    assert check.blocking
    assert "lakelet doctor --fetch" in check.remedy


def test_a_storage_on_s3_asks_for_its_jars_and_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [check.name for check in doctor.examine()]
    assert "storage on S3" not in names
    monkeypatch.setenv("LAKELET_STORAGE", "s3://bucket/lake")
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path))
    monkeypatch.delenv("LAKELET_JARS", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    missing = next(check for check in doctor.examine() if check.name == "storage on S3")
    assert not missing.ok
    assert not missing.blocking
    assert "hadoop-aws-3.5.0.jar, " in missing.finding
    assert "lakelet doctor --fetch-store s3" in missing.remedy
    (tmp_path / "jars").mkdir()
    for jar in env.STORE_PACKAGES["s3"].jars:
        with zipfile.ZipFile(tmp_path / "jars" / jar, "w") as content:
            content.writestr("x", "x")
    assert "AWS_SECRET_ACCESS_KEY" in doctor.check_store(S3).remedy
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert doctor.check_store(S3).ok
    assert "Amazon, region eu-west-1" in doctor.check_store(S3).finding


def test_a_storage_on_hdfs_asks_for_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELET_STORAGE", "hdfs://node:8020/lake")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/conf")
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    found = next(check for check in doctor.examine() if check.name == "storage on HDFS")
    assert found.ok
    assert found.finding.endswith("; user ann, settings in /conf")
    monkeypatch.setattr(doctor, "_version", lambda package: None)
    missing = doctor.check_store(HDFS)
    assert (missing.ok, missing.blocking) == (False, True)
    assert missing.remedy.endswith("-m pip install hdfs-native")


def test_a_package_that_the_project_names_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LAKELET_JARS", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.lakelet]\npackages = ["kafka"]\n')
    missing = doctor.examine()[-1]
    assert (missing.name, missing.ok, missing.blocking) == ("package kafka", False, False)
    assert "the first run fetches them (10 MB)" in missing.finding
    assert missing.remedy == "Type: lakelet doctor --fetch (10 MB, once)"
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    for jar in env.PACKAGES["kafka"].jars:
        with zipfile.ZipFile(tmp_path / "cache" / "jars" / jar, "w") as content:
            content.writestr("x", "x")
    assert doctor.check_package("kafka").ok


def test_an_archive_for_another_java_is_told_apart_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: Callable[..., None]
) -> None:
    java(HEALTHY_JAVA)
    monkeypatch.setattr(env, "jars", lambda: env.Jars(tmp_path / "a.jar", tmp_path / "b.jar"))
    monkeypatch.setattr(archives, "archive_path", lambda *_: tmp_path / "archives" / "fitting.jsa")
    (tmp_path / "archives").mkdir()
    assert doctor.check_archive().finding.startswith("none yet")
    (tmp_path / "archives" / "stale.jsa").touch()
    assert doctor.check_archive().finding.startswith("the present ones are for another Java")
    assert not doctor.check_archive().blocking
    archives.failure_file(tmp_path / "archives" / "fitting.jsa").write_text("no space left\n")
    assert doctor.check_archive().finding.startswith("it could not be made (no space left)")
    (tmp_path / "archives" / "fitting.jsa").touch()
    assert doctor.check_archive().ok


def test_an_archive_that_is_being_made_asks_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: Callable[..., None]) -> None:
    java(HEALTHY_JAVA)
    monkeypatch.setattr(env, "jars", lambda: env.Jars(tmp_path / "a.jar", tmp_path / "b.jar"))
    monkeypatch.setattr(archives, "archive_path", lambda *_: tmp_path / "fitting.jsa")
    monkeypatch.setenv("LAKELET_ARCHIVE", "on")
    monkeypatch.delenv("CI", raising=False)
    assert "the next command that starts Spark leaves a process that makes it" in doctor.check_archive().finding
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check = doctor.check_archive()
        assert check.finding.startswith("a process in the background is making one")
        assert check.remedy == ""
    assert "lakelet doctor --archive" in doctor.check_archive().remedy


@pytest.mark.parametrize(("distribution", "owner"), [("dlt", "dltHub"), ("databricks-dlt", "Databricks' stub")])
def test_a_foreign_dlt_distribution_is_named(install: Install, distribution: str, owner: str) -> None:
    install(distribution, "1.31.0")
    check = doctor.check_foreign_dlt()
    assert not check.ok
    assert not check.blocking
    assert owner in check.finding
    assert f"uninstall -y {distribution}" in check.remedy


def test_a_module_dlt_without_a_distribution_is_found_too(install: Install) -> None:
    site = install("something", "1")
    (site / "dlt.py").touch()
    check = doctor.check_foreign_dlt()
    assert not check.ok
    assert str(site / "dlt.py") in check.finding


def test_our_own_dlt_in_place_is_no_foreign_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dlt", sys.modules[__name__])
    assert doctor.check_foreign_dlt().ok


def test_settings_that_cannot_be_read_are_a_check_that_fails_with_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.lakelet]\npackages = ["kafak"]\n')
    monkeypatch.chdir(tmp_path)
    (check,) = doctor.check_project()
    assert (check.name, check.ok) == ("settings", False)
    assert "there is no package 'kafak'" in check.finding
    assert "pyproject.toml, line 2" in check.finding
    assert "Lakelet fetches kafka" in check.remedy
