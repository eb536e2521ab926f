"""Which files of a bundle's folder are uploaded (`sync`, `.gitignore`, and what a checkout never means), and which are notebooks."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.config.bundle_files import synced_paths
from lakelet.config.yaml_tree import ConfigNode, Problems, elements
from lakelet.deploy.desired_state import SourceFile

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NEVER = frozenset({".git", ".databricks", ".lakelet", "__pycache__"})
_ENVIRONMENT = "pyvenv.cfg"
_INSIDE = re.compile(r"/\*\*\s*$")
"""`a/**` is what `a` holds and not `a` itself, which pathspec takes for it; `a/*` and `a/*/**` mean the same to both."""


@dataclass(frozen=True)
class SyncedFiles:
    """The files of a deployment.

    Attributes:
        base: the folder that becomes `workspace.file_path`: the bundle's, or one above it where `sync.paths` lie outside.
        files: absolute paths, sorted.
        starts: the folders that were searched: the bundle's, or `sync.paths`.
    """

    base: Path
    files: tuple[Path, ...]
    starts: tuple[Path, ...]


def synced_files(root: Path, sync: ConfigNode | None, problems: Problems) -> SyncedFiles:
    """The files that a deployment uploads.

    Args:
        root: the folder of the bundle.
        sync: its section `sync`, references filled in.

    `sync.paths` are relative to the file they are written in, patterns to the bundle's folder.
    """
    starts = _searched_folders(root, sync, problems)
    base = Path(os.path.commonpath([root, *starts]))
    include, exclude = (_patterns(sync, key) for key in ("include", "exclude"))
    files = set()
    for start in starts:
        files |= set(_unignored(start, _GitignoreFiles.above(start, root)))
    if include is not None:
        files |= {file for file in _all_below(root) if include.match_file(_below(file, root))}
    if exclude is not None:
        files = {file for file in files if not (file.is_relative_to(root) and exclude.match_file(_below(file, root)))}
    return SyncedFiles(base, tuple(sorted(files)), tuple(starts))


def with_digests(synced: SyncedFiles) -> tuple[SourceFile, ...]:
    """The files with their size and the SHA-256 of their content, by path. Raises CONFIG_INVALID for one that cannot be read."""
    found = []
    for file in synced.files:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise LakeletError("CONFIG_INVALID", f"{file} cannot be read", why=str(error)) from error
        found.append(SourceFile(_below(file, synced.base), file, hashlib.sha256(content).hexdigest(), len(content)))
    return tuple(sorted(found, key=lambda one: one.path))


def _searched_folders(root: Path, sync: ConfigNode | None, problems: Problems) -> Sequence[Path]:
    starts = []
    for node, path in synced_paths(sync):
        if path.is_dir():
            starts.append(path)
        else:
            beside = [one.name for one in path.parent.iterdir() if one.is_dir()] if path.parent.is_dir() else []
            problems.bad(node, f"sync.paths names {node.text}, which is not a folder", nearest=nearest_names(path.name, beside))
    return starts or [root]


def _patterns(sync: ConfigNode | None, key: str) -> GitIgnoreSpec | None:
    texts = [node.text for node in elements(sync.get(key) if sync else None)]
    return _gitignore_spec(text.removeprefix("./") for text in texts) if texts else None


def _gitignore_spec(lines: Iterable[str]) -> GitIgnoreSpec:
    try:
        from pathspec import GitIgnoreSpec
    except ImportError as missing:
        what = "the files of a deployment are chosen with pathspec, which is not installed"
        raise LakeletError("SDK_MISSING", what, why=str(missing), todo="pip install 'lakelet[deploy]'") from None
    return GitIgnoreSpec.from_lines(lines)


@dataclass(frozen=True)
class _GitignoreFiles:
    """The `.gitignore` files from the top of a repository down to a folder: the last pattern that matches a path decides.

    What lies in a folder that is ignored is never asked for. `everything`: the folder itself is ignored, or one above it.
    """

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()
    everything: bool = False

    @classmethod
    def above(cls, folder: Path, root: Path) -> _GitignoreFiles:
        """Those that hold for a folder: of the Git repository that it lies in, else from the bundle's folder downwards."""
        line = [folder, *folder.parents]
        top = next((one for one in line if (one / ".git").exists()), None) or (root if folder.is_relative_to(root) else folder)
        ignored = cls()
        way = line[: line.index(top) + 1][::-1]
        for one, below in pairwise(way):
            ignored = ignored.with_file(one)
            if ignored.covers(below, folder=True):
                return cls(everything=True)
        return ignored

    def with_file(self, folder: Path) -> _GitignoreFiles:
        file = folder / ".gitignore"
        if not file.is_file():
            return self
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        return _GitignoreFiles((*self.specs, (folder, _gitignore_spec(one for line in lines for one in _as_pathspec(line)))))

    def covers(self, path: Path, *, folder: bool = False) -> bool:
        for base, spec in reversed(self.specs):
            text = _below(path, base) + ("/" if folder else "")
            for pattern in reversed(spec.patterns):
                if pattern.include is not None and _matches_itself(pattern, text):
                    return bool(pattern.include)
        return self.everything


def _as_pathspec(line: str) -> tuple[str, ...]:
    """A line of `.gitignore` as pathspec reads it like Git."""
    return (_INSIDE.sub("/*", line), _INSIDE.sub("/*/**", line)) if _INSIDE.search(line) else (line,)


def _matches_itself(pattern: Any, path: str) -> bool:
    """Whether a pattern of Git matches the path itself. pathspec matches folders above it too; the slash of that folder is noted then."""
    found = pattern.match_file(path)
    if found is None:
        return False
    return found.match.groupdict().get("ps_d") is None or found.match.end("ps_d") == len(path)


def _unignored(folder: Path, ignored: _GitignoreFiles) -> Iterator[Path]:
    ignored = ignored.with_file(folder)
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if not _is_never(path) and not ignored.covers(path, folder=True):
                    yield from _unignored(path, ignored)
            elif entry.is_file() and entry.name not in _NEVER and not ignored.covers(path):
                yield path


def _all_below(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not _is_never(Path(entry.path)):
                    yield from _all_below(Path(entry.path))
            elif entry.is_file():
                yield Path(entry.path)


def _is_never(folder: Path) -> bool:
    return folder.name in _NEVER or (folder / _ENVIRONMENT).exists()


def _below(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix()


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
    return file.suffix.lower() == ".ipynb" or (
        file.is_file() and begins_notebook(file.name, lambda: _first_bytes(file, file.stat().st_mtime_ns))
    )


def begins_notebook(name: str, content: Callable[[], bytes]) -> bool:
    """Whether a file of this name is a notebook. `content`: gives what is in it, or the begin of that, where the name does not decide."""
    suffix = PurePosixPath(name).suffix.lower()
    head = _HEADS.get(suffix)
    return suffix == ".ipynb" or (head is not None and content().removeprefix(b"\xef\xbb\xbf").startswith(head))
