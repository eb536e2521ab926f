"""The installed command, which tests run as a process of its own, and a Java whose starts are noted."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakelet.spark.launch.environment import find_java

LAKELET = Path(sys.executable).with_name("lakelet")
NEEDS_LAKELET = pytest.mark.skipif(not LAKELET.exists(), reason=f"{LAKELET} is not installed")

_SCRIPT = """\
#!/bin/sh
echo started >> "{home}/starts"
[ -e "{home}/forbidden" ] && exit 1
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class NotedJava:
    """A `JAVA_HOME` that notes each start of Java, and refuses it once the file `forbidden` is there.

    It must not lie in a project's folder: a new name in a folder that Python imports from is a change.
    """

    home: Path

    @classmethod
    def made(cls, home: Path) -> NotedJava:
        java = home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(_SCRIPT.format(home=home, java=find_java().executable.resolve()))
        java.chmod(0o755)
        return cls(home)

    @property
    def forbidden(self) -> Path:
        return self.home / "forbidden"

    @property
    def starts(self) -> int:
        return (self.home / "starts").read_text().count("started")


__all__ = ["LAKELET", "NEEDS_LAKELET", "NotedJava"]
