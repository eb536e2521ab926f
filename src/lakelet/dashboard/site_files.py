"""The page as a folder of files that opens from disk: built assets, and the documents as scripts.

A page that was opened from disk may not fetch JSON but may load scripts: each document is a call of one function with its name and value.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
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
    """Write the page into `folder`, in place of an earlier one. A process that dies leaves the old page or the new one.

    Raises USAGE if the folder holds something else than a report.
    """
    refuse_foreign(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clear(folder)
    new, old = (folder.with_name(f".{folder.name}.{word}-{os.getpid()}") for word in ("new", "old"))
    try:
        (new / "data").mkdir(parents=True)
        (new / MARKER).write_text(_ABOUT, encoding="utf-8")
        for name, content in assets().items():
            (new / name).write_bytes(content)
        for name, document in documents(site):
            (new / "data" / f"{name}.js").write_bytes(script(name, document))
        reached("report.written")
        if not folder.exists():
            new.rename(folder)
        elif not exchange(new, folder):
            folder.rename(old)
            new.rename(folder)
        reached("report.replaced")
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _clear(folder: Path) -> None:
    """Remove what processes that died have left beside the folder; an old page that has no new one goes back to its place."""
    for left in folder.parent.glob(f".{folder.name}.*-*"):
        word, _, process = left.name.removeprefix(f".{folder.name}.").partition("-")
        if word not in ("new", "old") or not process.isdigit() or _is_alive(int(process)):
            continue
        if word == "old" and not folder.exists():
            left.rename(folder)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def refuse_foreign(folder: Path) -> None:
    """Raise USAGE for a file, and for a folder with other files than a report's: the report would replace them."""
    if folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir())):
        return
    if folder.exists() or folder.is_symlink():
        what = f"{folder} is not a report: it would be replaced as a whole"
        raise LakeletError("USAGE", what, todo="Name a new or empty folder: lakelet report --out report")


# --- two folders change places ------------------------------------------------------------------------------------------------------------


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2, too


def exchange(one: Path, other: Path) -> bool:
    """Let two paths of one file system change places, both of which exist; False where the system or the file system cannot."""
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        library, system = ctypes.CDLL(None, use_errno=True), platform.system()
        if system == "Linux":
            return bool(library.renameat2(_HERE, first, _HERE, second, _EXCHANGE) == 0)
        return system == "Darwin" and bool(library.renamex_np(first, second, _EXCHANGE) == 0)
    except (AttributeError, OSError, TypeError):  # a C library without the call
        return False
