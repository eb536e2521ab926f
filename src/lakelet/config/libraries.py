"""Source files of the libraries of a bundle's pipeline. No Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.config import source_files as found
from lakelet.config.bundle import Bundle
from lakelet.config.unmatched import unmatched
from lakelet.config.workspace_paths import in_repository, in_workspace, is_of_workspace
from lakelet.config.yaml_tree import Node

_FILES, _FILE_PATH = "${workspace.root_path}/files", "${workspace.file_path}"  # two spellings of one folder
_KINDS = frozenset({"glob", "file", "notebook", "jar", "maven", "whl"})


def library_files(bundle: Bundle, spec: Node) -> tuple[Path, ...]:
    """Return the files of all library entries of a pipeline: each once, entry by entry, sorted within a glob.

    Raises CONFIG_INVALID for a file that does not exist and NOT_SUPPORTED_YET for jars.
    """
    return tuple(dict.fromkeys(file for entry in _entries(spec) for file in _entry_files(bundle, entry)))


def owns(bundle: Bundle, spec: Node, files: Iterable[Path]) -> bool:
    """Return whether all `files` are sources of a pipeline. Raises like `library_files`, but not for a pipeline with none of them."""
    wanted, there, problems = set(files), set[Path](), list[LakeletError]()
    for entry in _entries(spec):
        try:
            there.update(_entry_files(bundle, entry))
        except LakeletError as problem:
            problems.append(problem)
    if problems and wanted & there:
        raise problems[0]
    return wanted <= there


def path_in_bundle(bundle: Bundle, node: Node) -> Path:
    """Return the path of a value of the bundle, which is relative to the value's file. A path of a workspace may mean a file here."""
    text = bundle.text(replace(node, text=node.text.replace(_FILES, _FILE_PATH))) if _FILES in node.text else bundle.text(node)
    here = Path(os.path.normpath(node.file.parent / text))
    return here if here.exists() else in_repository(in_workspace(text), (bundle.synced, bundle.root), ("", *found.SUFFIXES)) or here


def unmatched_libraries(bundle: Bundle, spec: Node) -> str | None:
    """Why no library of a pipeline matches a file; None where it names none by a glob."""
    globs = [node for entry in _entries(spec) if (node := entry.get("glob", "include"))]
    return "\n".join(unmatched(bundle.text(node), node.file.parent) for node in globs) or None


def _entries(spec: Node) -> Iterator[Node]:
    libraries = spec.get("libraries")
    for entry in libraries.items("libraries") if libraries else []:
        entry.refuse_unknown(_KINDS, "a library")
        yield entry


def _entry_files(bundle: Bundle, entry: Node) -> list[Path]:
    return [file for kind, node in entry.entries("a library").items() for file in _library(bundle, kind, node)]


def _library(bundle: Bundle, kind: str, node: Node) -> Sequence[Path]:
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
    choices = [path, *(path.with_name(path.name + suffix) for suffix in found.SUFFIXES)]
    hit = next((choice for choice in choices if choice.is_file()), None)
    if hit is not None:
        return [hit]
    beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    why = f"it means {path}" if "${" in value.text else None
    if is_of_workspace(in_workspace(str(path))):
        why = f"{path} is a path in a workspace, which is not on this machine, and the repository has no such file."
    raise value.bad(f"the {kind} {value.text!r} does not exist", why=why, nearest=nearest_names(path.name, beside))


def _matching(bundle: Bundle, value: Node) -> list[Path]:
    """The files of a glob; the folder before its wildcards may be a path of a workspace."""
    text = bundle.text(value)
    base = found.glob_base(text)
    if text.startswith("/") and not os.path.exists(base):
        there = path_in_bundle(bundle, replace(value, value=base, text=base))
        text = str(there / os.path.relpath(text, base)) if there.is_dir() and found.is_glob(text) else str(there)
    return found.matching(text, value.file.parent)


__all__ = ["library_files", "owns", "path_in_bundle", "unmatched_libraries"]
