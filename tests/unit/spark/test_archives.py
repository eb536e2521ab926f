"""The class-data archive and what is kept beside it. No Spark: Java and the warm-up process are shell scripts, the jars small zip files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.spark.launch import archives
from lakelet.spark.launch import environment as env
from tests.unit.spark.fake_java import MakeJava, put_jars

pytestmark = pytest.mark.usefixtures("cache")


def test_the_archive_s_name_follows_java_and_the_jars(make_java: MakeJava, cache: Path) -> None:
    make_java()
    put_jars(cache / "jars")
    java, delta = env.find_java(), env.jars()
    first = archives.archive_path(java, delta)
    assert first == archives.archive_path(java, delta)
    assert f"17.0.9+9-spark-{env.SPARK_VERSION}-delta-{env.DELTA_VERSION}" in first.name
    os.utime(delta.delta_spark, (1, 1))
    after_new_jar = archives.archive_path(java, delta)
    other_java = replace(java, full_version="17.0.10+1")
    assert len({first, after_new_jar, archives.archive_path(other_java, delta)}) == 3


def test_a_script_that_starts_a_java_shares_the_archive_of_that_java(make_java: MakeJava, cache: Path) -> None:
    java = make_java(own_archive=True)
    put_jars(cache / "jars")
    own = archives.archive_path(env.find_java(), env.jars())
    script = make_java(home="shims", own_archive=False)
    script.write_text(f'#!/bin/sh\nexec {java} "$@"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(script.parents[1]))
        behind = env.find_java()
    assert behind.executable == script
    assert behind.has_archive
    assert archives.archive_path(behind, env.jars()) == own


@pytest.fixture
def warm_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replace the Python that the warm-up process runs in by a shell script."""

    def replace(script: str) -> None:
        fake = tmp_path / "python"
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(fake))

    return replace


def test_the_archive_appears_where_sessions_look_for_it(make_java: MakeJava, cache: Path, warm_up: Callable[[str], None]) -> None:
    make_java()
    put_jars(cache / "jars")
    warm_up('echo classes > "$LAKELET_RECORD_CLASSES"')
    made = archives.make_archive()
    assert made == archives.archive_path(env.find_java(), env.jars())
    assert made.read_text() == "classes\n"
    assert {path.name for path in made.parent.iterdir()} == {made.name, ".lock"}


def test_a_java_without_an_archive_of_its_own_classes_gets_one(make_java: MakeJava, cache: Path, warm_up: Callable[[str], None]) -> None:
    java = make_java(own_archive=False)
    java.write_text(java.read_text().replace("*)", "-Xshare:dump) echo base > ${2#-XX:SharedArchiveFile=} ;;\n  *)", 1))
    put_jars(cache / "jars")
    warm_up('echo classes > "$LAKELET_RECORD_CLASSES"')
    base = archives.base_archive_path(env.find_java())
    assert base is not None
    made = archives.make_archive()
    assert base.read_text() == "base\n"
    assert {path.name for path in made.parent.iterdir()} == {made.name, base.name, ".lock"}
    assert made == archives.archive_path(env.find_java(), env.jars())
    (java.parents[1] / "lib" / "server").mkdir(parents=True)
    (java.parents[1] / "lib" / "server" / "classes.jsa").touch()
    assert archives.base_archive_path(env.find_java()) is None
    assert made != archives.archive_path(env.find_java(), env.jars())  # it was made on the other one


def test_the_archive_of_java_s_own_classes_that_cannot_be_made_is_told(make_java: MakeJava, cache: Path) -> None:
    java = make_java(own_archive=False)
    java.write_text(java.read_text().replace("*)", "-Xshare:dump) echo no room >&2; exit 1 ;;\n  *)", 1))
    put_jars(cache / "jars")
    with pytest.raises(LakeletError, match="no room") as caught:
        archives.make_archive()
    assert caught.value.code == "ARCHIVE_FAILED"


def test_only_the_newest_archives_are_kept(make_java: MakeJava, cache: Path, warm_up: Callable[[str], None]) -> None:
    make_java()
    put_jars(cache / "jars")
    (cache / "archives").mkdir()
    for age in range(5):
        (cache / "archives" / f"{age}.jsa").touch()
        os.utime(cache / "archives" / f"{age}.jsa", (age, age))
    warm_up('echo classes > "$LAKELET_RECORD_CLASSES"')
    made = archives.make_archive()
    assert {path.name for path in made.parent.iterdir()} == {made.name, "4.jsa", "3.jsa", ".lock"}


def test_a_warm_up_that_fails_is_told_with_its_last_words(make_java: MakeJava, cache: Path, warm_up: Callable[[str], None]) -> None:
    make_java()
    put_jars(cache / "jars")
    warm_up("echo 'no space left' >&2; exit 1")
    with pytest.raises(LakeletError, match="no space left") as caught:
        archives.make_archive()
    assert caught.value.code == "ARCHIVE_FAILED"
    assert [path.name for path in (cache / "archives").iterdir()] == [".lock"]
