"""What the tests of a start have: a cache of their own, and a Java that is a shell script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.spark.fake_java import MakeJava


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and none of the user's settings."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LAKELET_CACHE", str(folder))
    for name in ("JAVA_HOME", "LAKELET_JARS", "LAKELET_MAVEN"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def make_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeJava:
    """Put a `java` that claims a version on the path, or in a folder of its own; it notes each call in `calls` beside it."""

    def make(
        version: str = "17",
        *,
        full: str = "17.0.9+9",
        modules: str = "java.base@17\njdk.incubator.vector@17",
        home: str = "",
        own_archive: bool = True,
    ) -> Path:
        folder = tmp_path / (home or "path") / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        java = folder / "java"
        facts = {"java.home": folder.parent, "java.runtime.version": full, "java.specification.version": version}
        properties = "Property settings:\\n" + "".join(f"    {name} = {value}\\n" for name, value in facts.items())
        java.write_text(
            f"""#!/bin/sh
echo "$@" >> {folder}/calls
case "$1" in
  --list-modules) printf '{modules.replace(chr(10), chr(92) + "n")}\\n' ;;
  *) printf '{properties}' >&2 ;;
esac
"""
        )
        java.chmod(0o755)
        if own_archive:
            (folder.parent / "lib" / "server").mkdir(parents=True, exist_ok=True)
            (folder.parent / "lib" / "server" / "classes.jsa").touch()
        if not home:
            monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return java

    return make
