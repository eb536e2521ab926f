"""What an error says about a glob that matches no file: the whole pattern, and where files of that kind lie."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.base.text import counted
from lakelet.base.user_code import display_path
from lakelet.config.folder_walk import MOST_FILES, FolderWalk
from lakelet.config.source_files import SUFFIXES, glob_base, is_glob

_SHOWN = 3


def unmatched(pattern: str, base: Path) -> str:
    """The reason for a `pattern`, relative to `base`, that matches nothing."""
    whole = os.path.normpath(base / pattern)
    suffix = Path(pattern).suffix
    kinds = (suffix,) if suffix and not is_glob(suffix) else SUFFIXES
    start = Path(os.path.normpath(base / glob_base(pattern)))
    lines = [f"looked for {whole}"]
    if not start.is_dir():
        lines.append(f"there is no folder {start}")
    folders = (start.is_dir() and _folders_of(start, kinds)) or (base.is_dir() and _folders_of(base, kinds)) or Counter()
    shown = ", ".join(f"{display_path(str(one))}{os.sep} ({counted(number, 'file')})" for one, number in folders.most_common(_SHOWN))
    named = ", ".join(f"*{kind}" for kind in kinds)
    lines.append(f"{named} lie in {shown}" if shown else f"no file {named} lies below {base}")
    return "\n".join(lines)


def _folders_of(folder: Path, kinds: tuple[str, ...]) -> Counter[Path]:
    """The folders below one that hold files of these kinds, with their number."""
    found: Counter[Path] = Counter()
    with suppress(LakeletError):  # too many files to look for
        found.update(file.parent for file in FolderWalk(folder, most=MOST_FILES).files(kinds))
    return found
