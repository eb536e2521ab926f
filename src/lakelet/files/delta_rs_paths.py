"""How a path is named to delta-rs: the one way from a path to what that library opens.

delta-rs takes `%20` in a folder's name for a blank, panics at `[`, splits at a backslash and refuses a line end, whether it is given a
path or a URI. A table in such a folder is opened through links to its files, which lie in a folder of a plain name.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from pathlib import Path
from typing import Any

from lakelet.files.paths import AnyPath
from lakelet.files.remote import delta_options
from lakelet.files.scratch import scratch_folder

_PLAIN = re.compile(r"[\w /.@+=,:~()-]*")
_numbers = itertools.count()


def open_table(path: AnyPath, **options: Any) -> Any:
    """The Delta table at a path, to be read. Raises delta-rs's TableNotFoundError."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    if isinstance(path, Path) and not (path / "_delta_log").is_dir():
        raise TableNotFoundError(f"there is no table at {path}")
    return DeltaTable(_readable(path), storage_options=delta_options(path), **options)


def _readable(path: AnyPath) -> str:
    """Return the location that delta-rs opens to read the table at `path`."""
    if not isinstance(path, Path) or _PLAIN.fullmatch(str(path.resolve())):
        return str(path)
    folder = Path(_links()) / str(next(_numbers))
    folder.mkdir()
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                os.symlink(entry.path, folder / entry.name)
    return str(folder)


@functools.lru_cache(maxsize=1)
def _links() -> str:
    """The folder of this process for its links."""
    return os.path.realpath(scratch_folder("links"))
