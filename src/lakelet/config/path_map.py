"""Paths of user code as paths of this machine: `--map FROM=TO`, and paths of a workspace that mean files of the repository. No Spark.

Code for Databricks names its files in several spellings: `/Volumes/…`, `dbfs:/…` (which is `/dbfs/…` for Python's own functions),
`/mnt/…`, `s3a://bucket/…`. A map says what replaces a prefix; one map serves all spellings.

On Databricks the files of a repository lie below a folder of the workspace: a Git folder (`/Repos/…`, `/Workspace/Repos/…`), a user's
folder, or `files` of a deployed bundle. Code names them by the whole path: `/Workspace/Users/jo/shop/conf/a.json` is `conf/a.json` of the
project `shop`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.files.stores import scheme_of

DATABRICKS_ROOTS = frozenset({"Volumes", "mnt", "FileStore", "databricks-datasets", "databricks-results", "Workspace", "Repos", "dbfs"})
"""First folders of paths that Databricks has and a laptop does not."""

CLOUD_SCHEMES = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "r2"})
_ONE_SPELLING = {"s3": "s3a", "s3n": "s3a", "abfs": "abfss", "wasb": "wasbs"}
MAP_FORM = {"form": "FROM=TO", "example": "/Volumes/main/raw=data"}
MOVED_FORM = {"form": "OLD=NEW", "example": "/data/landing=/archive/landing"}
TABLE_FORM = {"form": "NAME=PATH", "example": "main.sales.orders=data/orders"}
_GLOB = re.compile(r"[*?\[\]{}]")
_ROOT = ""  # first component of an absolute path

Readable = Callable[[str], bool]
"""Whether a scheme can be read by whoever is going to read."""


def pairs_of(texts: Iterable[str] | None, option: str, *, form: str, example: str) -> list[tuple[str, str]]:
    """`FROM=TO` texts as pairs. Raises USAGE with the right form for a text without `=`, or with nothing on one side of it.

    Of several `=` the first one counts, unless what is behind a later one is there and what is behind the first is not: `FROM` may have
    folders like `day=1`.
    """
    found = []
    for text in texts or ():
        left, sign, right = text.partition("=")
        later = [(text[:at], text[at + 1 :]) for at in range(len(left) + 1, len(text)) if text[at] == "="]
        if later and not _exists(right):
            left, right = next((pair for pair in later if _exists(pair[1])), (left, right))
        if not sign or not left.strip() or not right.strip():
            raise LakeletError("USAGE", f"{option} {text}: expected {form}", todo=f"For example: {option} {example}")
        found.append((left.strip(), right.strip()))
    return found


def _exists(path: str) -> bool:
    """Whether a target is there; of one in cloud storage that is taken for granted."""
    target = resolved_target(path.strip(), Path.cwd()) if path.strip() else ""
    return bool(target) and (scheme_of(target) is not None or os.path.exists(target))


def resolved_target(text: str, base: Path) -> str:
    """Return the path of a setting: a URI unchanged, a path made absolute (relative to `base`)."""
    scheme = scheme_of(text)
    if scheme not in (None, "file"):
        return text.rstrip("/")
    plain = "/" + text.split(":", 1)[1].lstrip("/") if scheme == "file" else text
    return os.path.normpath(base / Path(plain).expanduser())


def moved_folders(pairs: Iterable[tuple[str, str]], base: Path) -> tuple[tuple[str, str], ...]:
    """Return the (old, new) pairs of `--moved`, relative paths made absolute. Raises USAGE for a new folder that is not there."""
    found = []
    for pair in pairs:
        old, new = (resolved_target(text, base) for text in pair)
        if old == new or (scheme_of(new) is None and not os.path.isdir(new)):
            why = "that is the same folder" if old == new else f"{new} is not a folder"
            raise LakeletError("USAGE", f"--moved {'='.join(pair)}: {why}", todo="Name the old folder and the one that has its files now.")
        found.append((old, new))
    return tuple(found)


@dataclass(frozen=True)
class _ParsedPath:
    """A path as components. The first one is empty for an absolute path, `s3a:` for a URI. `dbfs`: spelt as a path of DBFS."""

    parts: tuple[str, ...]
    dbfs: bool = False

    @property
    def rooted(self) -> bool:
        return bool(self.parts) and self.parts[0] == _ROOT

    @property
    def hosted(self) -> bool:
        """Whether only Databricks has such a path."""
        return self.dbfs or (self.rooted and len(self.parts) > 1 and self.parts[1] in DATABRICKS_ROOTS)

    def covers(self, path: _ParsedPath) -> bool:
        """Whether `path` is this prefix or lies below it. The root of DBFS does not cover local paths."""
        if self.dbfs and self.parts == (_ROOT,) and not path.hosted:
            return False
        return path.parts[: len(self.parts)] == self.parts


def _parsed(path: str) -> _ParsedPath:
    text = path.strip()
    scheme = scheme_of(text)
    if scheme == "dbfs":
        return _ParsedPath(_components("/" + text.split(":", 1)[1]), dbfs=True)
    if scheme not in (None, "file"):
        rest = text.split(":", 1)[1].lstrip("/")
        return _ParsedPath((f"{_ONE_SPELLING.get(scheme, scheme)}:", *_components(rest)))
    parts = _components("/" + text.split(":", 1)[1] if scheme else text)
    if parts[:2] == (_ROOT, "dbfs"):
        return _ParsedPath((_ROOT, *parts[2:]), dbfs=True)
    return _ParsedPath(parts)


def _components(path: str) -> tuple[str, ...]:
    parts: list[str] = [_ROOT] if path.startswith("/") else []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in (_ROOT, ".."):
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


@dataclass(frozen=True)
class MapEntry:
    """One `FROM=TO`: the prefix as written, and what replaces it (an absolute path or a URI)."""

    prefix: str
    target: str
    where: Location | None = None


@dataclass(frozen=True)
class PathMap:
    """Path prefixes of user code and the paths of this machine that replace them.

    `kept`: folders whose paths are never mapped, because they are Lakelet's (the storage). `root`: the project's folder, in which
    relative paths of files are looked up after the working directory. `parameters`: those of the pipeline, for errors. `moved`: folders
    whose files lie elsewhere now, with their new paths; the files themselves are those that streams have read. `repository`: the folders
    that hold the files of the repository, which code also names by their paths in a workspace.
    """

    entries: tuple[MapEntry, ...] = ()
    kept: tuple[str, ...] = ()
    root: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[tuple[str, str], ...] = ()
    repository: tuple[Path, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], base: Path, *, code: str = "USAGE", where: Location | None = None) -> PathMap:
        """From (prefix, target) pairs; relative targets lie in `base`. Raises `code` if a prefix has two targets, or is a pattern."""
        found: dict[tuple[str, ...], MapEntry] = {}
        for prefix, target in pairs:
            if _GLOB.search(prefix):
                what = f"{prefix} is not a prefix of paths: it holds a pattern"
                raise LakeletError(code, what, where=where, todo="Name the folder above the pattern; everything below it is mapped too.")
            entry = MapEntry(prefix, resolved_target(target, base), where)
            first = found.setdefault(_parsed(prefix).parts, entry)
            if first.target != entry.target:
                what = f"{prefix} is mapped twice: to {first.target} and to {entry.target}"
                raise LakeletError(code, what, where=where, todo="Name one target for it.")
        return cls(tuple(found.values()))

    def over(self, below: PathMap) -> PathMap:
        """This map, and what of `below` has a prefix that it does not have."""
        own = {_parsed(entry.prefix).parts for entry in self.entries}
        return PathMap((*self.entries, *(e for e in below.entries if _parsed(e.prefix).parts not in own)), self.kept + below.kept)

    def entry(self, path: str) -> MapEntry | None:
        """The entry with the longest prefix of `path`, or None."""
        parsed = _parsed(path)
        if not parsed.parts or any(_parsed(root).covers(parsed) for root in self.kept):
            return None
        covering = [(len(_parsed(entry.prefix).parts), entry) for entry in self.entries if _parsed(entry.prefix).covers(parsed)]
        return max(covering, key=lambda found: found[0])[1] if covering else None

    def mapped(self, path: str) -> str:
        """The path with its prefix replaced, or that of the repository's file which it means; else unchanged."""
        entry = self.entry(path)
        if entry is None:
            return self._of_repository(path) or path
        rest = "/".join(_parsed(path).parts[len(_parsed(entry.prefix).parts) :])
        slash = "/" if rest and path.strip().endswith("/") else ""
        return f"{entry.target.rstrip('/')}/{rest}{slash}" if rest else entry.target

    def name_of(self, path: str) -> str:
        """Return what code calls a path that the map leads to, in one spelling; empty for any other path."""
        parsed = _parsed(path)
        found = [(len(target.parts), entry, target) for entry in self.entries if (target := _parsed(entry.target)).covers(parsed)]
        if not found:
            return ""
        _, entry, target = max(found, key=lambda one: one[0])
        return "/".join((*_parsed(entry.prefix).parts, *parsed.parts[len(target.parts) :]))

    def anchored(self, path: str) -> str:
        """A relative path made absolute: in the working directory if it is there, else in the project's folder. Any other path unchanged.

        Code that was written for its project's folder runs from elsewhere, too, and whatever the folder is in which Spark's Java started.
        """
        if self.root is None or not path.strip() or path.startswith("/") or scheme_of(path.strip()) is not None:
            return path
        found = (f"{folder}/{path.removeprefix('./')}" for folder in (os.getcwd(), self.root))
        return next((choice for choice in found if os.path.exists(_glob_free(choice))), path)

    def located(self, path: str, *, readable: Readable, writing: bool = False, where: Location | None = None) -> str:
        """Return the path of this machine for a path of user code.

        Args:
            path: as the code names it; one that nothing maps and that is not a path of Databricks comes back unchanged.
            readable: whether the reader at hand knows a URI's scheme.
            writing: the path need not exist.

        Raises PATH_NOT_MAPPED with the flag to add, MAP_TARGET_MISSING if a path to read does not exist.
        """
        entry = self.entry(path)
        if entry is not None:
            if not writing and scheme_of(entry.target) is None and not os.path.exists(_glob_free(entry.target)):
                raise _target_missing(path, entry, where)
            return self.mapped(path)
        here = found_here(path, writing=writing) or self._of_repository(path)
        if here is not None:
            return here
        scheme = scheme_of(path.strip())
        if _parsed(path).hosted or (scheme in CLOUD_SCHEMES and not readable(scheme)):
            raise not_mapped(path, where, self._parameter(path))
        return path

    def _of_repository(self, path: str) -> str | None:
        """The file or folder of the repository that a path of a workspace means; None where this machine has the path, or for no file."""
        if not self.repository or not is_of_workspace(path) or os.path.exists(path.removeprefix("file:")):
            return None
        base = _glob_free(path.removeprefix("file:"))
        found = in_repository(base, self.repository)
        return None if found is None else str(found) + path.removeprefix("file:")[len(base) :]

    def _parameter(self, path: str) -> str | None:
        """Return the parameter whose value is the longest prefix of the path, or None (PF-2)."""
        begun = {key: value for key, value in self.parameters.items() if _parsed(value).parts and _parsed(value).covers(_parsed(path))}
        return max(begun, key=lambda key: len(begun[key]), default=None)


def only_on_databricks(path: str) -> bool:
    """Whether only Databricks has such a path."""
    return _parsed(path).hosted


def needs_map(path: str) -> bool:
    """Whether a path means nothing on this machine without `--map`: one of Databricks, or of an object store."""
    return only_on_databricks(path) or scheme_of(path) in CLOUD_SCHEMES


def found_here(path: str, *, writing: bool = False) -> str | None:
    """A path of Databricks that this machine has after all, as this machine names it; else None. To be written, its folder must exist."""
    parsed = _parsed(path)
    if not parsed.hosted:
        return None
    plain = "/".join(parsed.parts)
    if not parsed.dbfs:
        return path if _is_there(_glob_free(plain), writing) else None
    slash = "/" if path.strip().endswith("/") else ""
    return next((found + slash for found in (f"/dbfs{plain}", plain) if _is_there(_glob_free(found), writing)), None)


def _is_there(base: str, writing: bool) -> bool:
    """Whether a path exists (or could be made). An empty `/mnt` is a part of every Linux and means nothing."""
    if base.strip("/") in DATABRICKS_ROOTS | {""}:
        return not writing and os.path.isdir(base) and os.listdir(base) != []
    above = os.path.dirname(base)
    return os.path.exists(base) or (writing and above.strip("/") not in DATABRICKS_ROOTS | {""} and os.path.exists(above))


def flag_for(path: str) -> str:
    """The flag that maps a path: the path itself up to its first glob character, without a file name after it."""
    text = path.strip()
    scheme = scheme_of(text)
    head = text[: len(scheme) + 1] if scheme else ""
    parts = text[len(head) :].split("/")
    plain = next((at for at, part in enumerate(parts) if _GLOB.search(part)), None)
    kept = parts if plain is None else parts[:plain]
    prefix = head + "/".join(kept).rstrip("/")
    kind = "FILE" if plain is None and "." in parts[-1].lstrip(".") else "FOLDER"
    return f"--map {argument(prefix)}={kind}"


def not_mapped(path: str, where: Location | None = None, parameter: str | None = None) -> LakeletError:
    """The error for a path of Databricks, or of a cloud that cannot be read here, which the map does not cover.

    `parameter`: the one of the pipeline that the path begins with.
    """
    todo = f"Say where it lies: {flag_for(path)}. A shorter prefix serves all paths below it."
    why = None
    if parameter is not None:
        why = f"It begins with the parameter {parameter!r} of the pipeline, which has no value for this machine."
        todo = f'Give it one: --param {parameter}=FOLDER, or parameters = {{ {parameter} = "FOLDER" }} in [tool.lakelet] of pyproject.toml.'
    what = f"{path} does not exist on this machine, and no --map says what replaces it"
    return LakeletError("PATH_NOT_MAPPED", what, where=where, why=why, todo=todo)


def _target_missing(path: str, entry: MapEntry, where: Location | None) -> LakeletError:
    return LakeletError(
        "MAP_TARGET_MISSING",
        f"{path} is mapped to {entry.target}, which does not exist",
        where=where,
        todo=f"Put the files there, or name another folder: --map {argument(entry.prefix)}=FOLDER",
    )


def argument(text: str) -> str:
    """Return the text quoted for a shell where needed."""
    return f"'{text}'" if re.search(r"[\s\"`$&;|<>()]", text) else text


def _glob_free(path: str) -> str:
    """The folder above the first component with a glob character; the path itself where there is none."""
    parts: Sequence[str] = path.split("/")
    kept = next((parts[:at] for at, part in enumerate(parts) if _GLOB.search(part)), parts)
    return "/".join(kept) or "/"


def python_path_hint(error: BaseException) -> str | None:
    """Return what to do where Python itself did not find a file of Databricks; None for any other error."""
    name = str(error.filename) if isinstance(error, FileNotFoundError) else ""
    if not name.startswith("/") or name.split("/")[1] not in DATABRICKS_ROOTS:
        return None
    return (
        f"Say where it lies: {flag_for(name)}. That counts for Spark, dbutils, and for what Python opens or lists (open, pathlib, os.path, "
        f"pandas); libraries that open files without Python see this machine as it is"
    )


WORKSPACE_ROOTS = ("/Workspace", "/Repos")
"""Folders of the machine, on Databricks, in which paths of a workspace lie."""
_OLD_WORKSPACE_ROOTS = ("/Users/", "/Shared/")
_DEPLOYED_FILES = "files"


def is_of_workspace(path: str) -> bool:
    """Whether a path lies in a workspace."""
    return path.removeprefix("file:").startswith(tuple(f"{root}/" for root in WORKSPACE_ROOTS))


def by_tail(path: str, roots: Sequence[Path]) -> Iterator[Path]:
    """Where a path of the workspace may lie below `roots`, the longest tail first."""
    parts = [part for part in path.removeprefix("file:").split("/") if part]
    for at in range(len(parts)):
        for root in roots:
            yield root.joinpath(*parts[at:])
            if root.name == parts[at]:
                yield root.joinpath(*parts[at + 1 :])


def in_workspace(path: str) -> str:
    """The path of a library as a path of the workspace: `/Users/…` was the spelling before `/Workspace/Users/…`."""
    return f"/Workspace{path}" if path.startswith(_OLD_WORKSPACE_ROOTS) else path


def in_repository(path: str, roots: Sequence[Path], suffixes: Sequence[str] = ("",)) -> Path | None:
    """The file or folder of the repository that a path of the workspace means; None if there is none.

    The last part alone does not say which file is meant, except below the root of the repository or of a deployment.
    `suffixes`: what may stand behind the path here; notebooks have none in a workspace.
    """
    parts = [part for part in path.removeprefix("file:").split("/") if part]
    if not is_of_workspace(path) or ".." in parts:
        return None
    for at in range(1, len(parts)):
        for root in roots:
            below_root = parts[at - 1] in (root.name, _DEPLOYED_FILES)
            whole = root.joinpath(*parts[at:])
            found = next((one for suffix in suffixes if (one := whole.with_name(whole.name + suffix)).exists()), None)
            if found is not None and (below_root or at < len(parts) - 1):
                return found
    return next((root for root in roots if parts[-1] == root.name), None)
