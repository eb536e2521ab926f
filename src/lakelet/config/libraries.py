"""Source files of the libraries of a bundle's pipeline, and why a glob matches none. No Spark."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.text import counted
from lakelet.base.user_code import display_path
from lakelet.config.bundle import Bundle
from lakelet.config.path_map import in_repository, in_workspace, is_of_workspace
from lakelet.config.source_files import MOST_FILES, SUFFIXES, FolderWalk, glob_base, is_glob, matching
from lakelet.config.yaml_tree import ConfigNode, names_beside

_FILES, _FILE_PATH = "${workspace.root_path}/files", "${workspace.file_path}"  # two spellings of one folder
_KINDS = frozenset({"glob", "file", "notebook", "jar", "maven", "whl"})


def library_files(bundle: Bundle, spec: ConfigNode) -> tuple[Path, ...]:
    """Return the files of all library entries of a pipeline: each once, entry by entry, sorted within a glob.

    Raises CONFIG_INVALID for a file that does not exist and NOT_SUPPORTED_YET for jars.
    """
    return tuple(dict.fromkeys(file for entry in _library_entries(spec) for file in _entry_files(bundle, entry)))


def owns(bundle: Bundle, spec: ConfigNode, files: Iterable[Path]) -> bool:
    """Return whether all `files` are sources of a pipeline. Raises like `library_files`, but not for a pipeline with none of them."""
    wanted, there, problems = set(files), set[Path](), list[LakeletError]()
    for entry in _library_entries(spec):
        try:
            there.update(_entry_files(bundle, entry))
        except LakeletError as problem:
            problems.append(problem)
    if problems and wanted & there:
        raise problems[0]
    return wanted <= there


def path_in_bundle(bundle: Bundle, node: ConfigNode) -> Path:
    """Return the path of a value of the bundle, which is relative to the value's file. A path of a workspace may mean a file here."""
    text = bundle.text(replace(node, text=node.text.replace(_FILES, _FILE_PATH))) if _FILES in node.text else bundle.text(node)
    here = Path(os.path.normpath(node.file.parent / text))
    return here if here.exists() else in_repository(in_workspace(text), (bundle.synced, bundle.root), ("", *SUFFIXES)) or here


def unmatched_libraries(bundle: Bundle, spec: ConfigNode) -> str | None:
    """Why no library of a pipeline matches a file; None where it names none by a glob."""
    globs = [node for entry in _library_entries(spec) if (node := entry.get("glob", "include"))]
    return "\n".join(unmatched(bundle.text(node), node.file.parent) for node in globs) or None


def _library_entries(spec: ConfigNode) -> Iterator[ConfigNode]:
    libraries = spec.get("libraries")
    for entry in libraries.items("libraries") if libraries else []:
        entry.refuse_unknown(_KINDS, "a library")
        yield entry


def _entry_files(bundle: Bundle, entry: ConfigNode) -> list[Path]:
    return [file for kind, node in entry.entries("a library").items() for file in _library_files(bundle, kind, node)]


def _library_files(bundle: Bundle, kind: str, node: ConfigNode) -> Sequence[Path]:
    if kind == "whl":
        return []  # a package: what is installed here is imported, as with `environment.dependencies`
    if kind in ("jar", "maven"):
        raise LakeletError("NOT_SUPPORTED_YET", f"a library of kind {kind!r} is not supported yet", where=node.where)
    key = "include" if kind == "glob" else "path"
    node.refuse_unknown(frozenset({key}), f"a library of kind {kind!r}")
    value = node.get(key)
    if value is None:
        raise node.bad(f"a library of kind {kind!r} needs {key!r}")
    if kind == "glob":
        return _matching(bundle, value)
    path = path_in_bundle(bundle, value)
    choices = [path, *(path.with_name(path.name + suffix) for suffix in SUFFIXES)]
    hit = next((choice for choice in choices if choice.is_file()), None)
    if hit is not None:
        return [hit]
    why = f"it means {path}" if "${" in value.text else None
    if is_of_workspace(in_workspace(str(path))):
        why = f"{path} is a path in a workspace, which is not on this machine, and the repository has no such file."
    raise value.bad(f"the {kind} {value.text!r} does not exist", why=why, nearest=nearest_names(path.name, names_beside(path)))


def _matching(bundle: Bundle, value: ConfigNode) -> list[Path]:
    """The files of a glob; the folder before its wildcards may be a path of a workspace."""
    text = bundle.text(value)
    base = glob_base(text)
    if text.startswith("/") and not os.path.exists(base):
        there = path_in_bundle(bundle, replace(value, value=base, text=base))
        text = str(there / os.path.relpath(text, base)) if there.is_dir() and is_glob(text) else str(there)
    return matching(text, value.file.parent)


_FOLDERS_SHOWN = 3


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
    shown = ", ".join(
        f"{display_path(str(one))}{os.sep} ({counted(number, 'file')})" for one, number in folders.most_common(_FOLDERS_SHOWN)
    )
    named = ", ".join(f"*{kind}" for kind in kinds)
    lines.append(f"{named} lie in {shown}" if shown else f"no file {named} lies below {base}")
    return "\n".join(lines)


def _folders_of(folder: Path, kinds: tuple[str, ...]) -> Counter[Path]:
    """The folders below one that hold files of these kinds, with their number."""
    found: Counter[Path] = Counter()
    with suppress(LakeletError):  # too many files to look for
        found.update(file.parent for file in FolderWalk(folder, most=MOST_FILES).files(kinds))
    return found
