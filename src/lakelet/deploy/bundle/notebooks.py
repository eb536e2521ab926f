"""Which files are notebooks: a workspace keeps those without their extension."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_HEADS = {
    ".py": b"# Databricks notebook source",
    ".sql": b"-- Databricks notebook source",
    ".scala": b"// Databricks notebook source",
    ".r": b"# Databricks notebook source",
}


@lru_cache(maxsize=4096)
def _first_bytes(file: Path, changed: int) -> bytes:
    with file.open("rb") as opened:
        return opened.read(64)


def is_notebook(file: Path) -> bool:
    """Whether a file is a notebook: a Jupyter one, or source text that begins with the line of one."""
    suffix = file.suffix.lower()
    if suffix == ".ipynb":
        return True
    head = _HEADS.get(suffix)
    return (
        head is not None and file.is_file() and _first_bytes(file, file.stat().st_mtime_ns).removeprefix(b"\xef\xbb\xbf").startswith(head)
    )
