"""A Java that is a shell script, and jars that are small zip files."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from lakelet.spark.launch import environment as env

MakeJava = Callable[..., Path]


def calls(java: Path) -> int:
    """How often the script was called."""
    return len((java.parent / "calls").read_text().splitlines())


def put_jars(folder: Path) -> Path:
    """Make Delta's two jars in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in env.JAR_NAMES:
        with zipfile.ZipFile(folder / name, "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "")
    return folder
