"""The page as a folder of files that opens from disk: built assets, and the documents as scripts.

A page that was opened from disk may not fetch JSON but may load scripts: each document is a call of one function with its name and value.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.dashboard.documents import Document, Site

MARKER = "lakelet-report.txt"
"""In a folder that a report may replace."""
_ABOUT = "This folder is a report written by `lakelet report`. Open index.html. The next report replaces the folder as a whole.\n"


def assets() -> dict[str, bytes]:
    """The built files of the page by name."""
    folder = files("lakelet.dashboard") / "static"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def script(name: str, document: Document) -> bytes:
    """A document as a script: `lakelet("<name>", {…});`. What could end a script element or a line of one is escaped."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=_unknown)
    for character, escape in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, escape)
    return f"lakelet({json.dumps(name)},{text});\n".encode("utf-8", "backslashreplace")


def _unknown(value: Any) -> Any:
    raise TypeError(f"a document holds {type(value).__name__}")


def documents(site: Site) -> Iterator[tuple[str, Document]]:
    """Every document of the site with its name; `data/<name>.js` is its file."""
    yield "overview", site.overview()
    yield "quality", site.quality()
    yield "search", site.search()
    for number in range(len(site.views)):
        yield f"dataset-{number}", site.dataset(number)
    for number in range(site.pages):
        yield f"updates-{number}", site.page(number)
    for number in range(len(site.history.updates)):
        yield f"update-{number}", site.update(number)


def write_folder(site: Site, folder: Path) -> None:
    """Write the page into `folder`, in place of an earlier one. It is there as a whole or not at all.

    Raises USAGE if the folder holds something else than a report.
    """
    refuse_foreign(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = (folder.with_name(f".{folder.name}.{word}-{os.getpid()}") for word in ("new", "old"))
    try:
        (new / "data").mkdir(parents=True)
        (new / MARKER).write_text(_ABOUT, encoding="utf-8")
        for name, content in assets().items():
            (new / name).write_bytes(content)
        for name, document in documents(site):
            (new / "data" / f"{name}.js").write_bytes(script(name, document))
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def refuse_foreign(folder: Path) -> None:
    """Raise USAGE for a file, and for a folder with other files than a report's: the report would replace them."""
    if folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir())):
        return
    if folder.exists() or folder.is_symlink():
        what = f"{folder} is not a report: it would be replaced as a whole"
        raise LakeletError("USAGE", what, todo="Name a new or empty folder: lakelet report --out report")
