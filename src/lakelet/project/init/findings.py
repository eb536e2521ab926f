"""Findings about a repository, as frozen values, and which texts are paths of Databricks. No Spark.

Positions are relative to the folder that was read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakelet.config.path_map import in_repository

_HOLE = re.compile(r"xhole(\d+)x")
_PARAMETER = re.compile(r"\{([\w.-]+)\}")
_UNKNOWN_PART = re.compile(r"[{*?\[]")


@dataclass(frozen=True, order=True)
class CodeLocation:
    """A line of a file, or of one cell of a Jupyter notebook."""

    file: str
    line: int
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.cell is None else f"{self.file}:cell {self.cell}:{self.line}"


class UnknownParts:
    """Parts of texts that are known only when the code runs. A text holds a token instead of each, which SQL reads as a word."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def token(self, name: str) -> str:
        """A word that stands for what `name` will be."""
        if name not in self._names:
            self._names.append(name)
        return f"xhole{self._names.index(name)}x"

    def shown(self, text: str) -> str:
        """The text with `{name}` instead of tokens."""
        return _HOLE.sub(lambda found: "{" + self._names[int(found[1])] + "}", text)

    def names_in(self, text: str) -> set[str]:
        """What the holes of a text stand for."""
        return {self._names[int(found[1])] for found in _HOLE.finditer(text)}

    @staticmethod
    def first_in(text: str) -> int | None:
        """Where the first hole begins; None where everything is known."""
        found = _HOLE.search(text)
        return found.start() if found else None


@dataclass(frozen=True)
class DatasetFound:
    """A dataset or sink that the code declares. `computed`: its name is known only when the code runs. `loaded`: found by running it."""

    name: str
    kind: str
    location: CodeLocation
    computed: bool = False
    loaded: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The name's parts in lower case, without `LIVE`."""
        return name_parts(self.name)


@dataclass(frozen=True)
class TableRead:
    """A table that the code reads by name. `within`: the dataset whose query reads it, where that is known."""

    name: str
    location: CodeLocation
    within: str | None = None

    @property
    def live(self) -> bool:
        return self.name.lower().startswith("live.")

    @property
    def parts(self) -> tuple[str, ...]:
        return name_parts(self.name)


@dataclass(frozen=True)
class PathFound:
    """A path that the code names. `fixed`: how many of its characters are known before it runs and are not a pattern.

    `format`: that of the files there, where the code says it beside the path. `read`: the code gives it to a reader.
    """

    path: str
    fixed: int
    location: CodeLocation
    format: str = ""
    read: bool = True


@dataclass(frozen=True)
class ParameterFound:
    """A piece of the pipeline's configuration that the code asks for.

    `default` is its value where the bundle gives it one (`configured`), else the code's own, None without.
    """

    key: str
    default: str | None
    location: CodeLocation
    configured: bool = False


@dataclass(frozen=True)
class RefusedFeature:
    """Something that this version does not execute."""

    code: str
    what: str
    location: CodeLocation


@dataclass(frozen=True)
class StrictExpression:
    """An expression that fails on a row in ANSI mode; `tolerant`: the function that gives NULL."""

    text: str
    tolerant: str
    location: CodeLocation


@dataclass(frozen=True)
class PackageImport:
    """A package that the code imports. `guarded`: inside of `try`, so that it may be missing."""

    module: str
    location: CodeLocation
    guarded: bool = False


@dataclass
class FileReading:
    """Findings about one file. `declares`: it is pipeline code; `hooks`: it declares event hooks.

    `left_out`: why it is left out, although it looks like pipeline code.
    `helpers`: files of the repository that it imports, `roots` the folders from which it does. `incomplete`: names of datasets
    are known only when it runs. `unresolved`: so are names of what it reads.
    `given`: parameters that it sets itself. `import_paths`: what it puts on `sys.path`. `strict`: what ANSI mode may stop.
    `scripts`: how many of its statements declare nothing, `stored`: how many a table.
    """

    path: Path
    file: str
    declares: bool = False
    hooks: bool = False
    left_out: str = ""
    datasets: list[DatasetFound] = field(default_factory=list)
    tables: list[TableRead] = field(default_factory=list)
    paths: list[PathFound] = field(default_factory=list)
    parameters: list[ParameterFound] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    refused: list[RefusedFeature] = field(default_factory=list)
    imports: list[PackageImport] = field(default_factory=list)
    helpers: list[Path] = field(default_factory=list)
    roots: list[Path] = field(default_factory=list)
    import_paths: set[str] = field(default_factory=set)
    strict: list[StrictExpression] = field(default_factory=list)
    incomplete: bool = False
    unresolved: bool = False
    scripts: int = 0
    stored: int = 0

    def with_values(self, values: Mapping[str, str]) -> FileReading:
        """The same with values of the pipeline's configuration instead of parameters."""

        def filled(text: str) -> str:
            return _PARAMETER.sub(lambda found: values.get(found[1], found[0]), text)

        def known(path: PathFound) -> PathFound:
            text = filled(path.path)
            end = _UNKNOWN_PART.search(text)
            return path if text == path.path else replace(path, path=text, fixed=end.start() if end else len(text))

        datasets = [replace(one, name=filled(one.name)) for one in self.datasets]
        return replace(
            self,
            datasets=[replace(one, computed=one.computed and "{" in one.name) for one in datasets],
            tables=[replace(one, name=filled(one.name), within=one.within and filled(one.within)) for one in self.tables],
            paths=[known(one) for one in self.paths],
            parameters=[replace(one, default=values.get(one.key, one.default), configured=one.key in values) for one in self.parameters],
        )

    def take(self, other: FileReading) -> None:
        """Add what a notebook says that this one runs by `%run`."""
        for name in ("datasets", "tables", "paths", "parameters", "refused", "imports", "helpers", "roots", "strict"):
            getattr(self, name).extend(getattr(other, name))
        self.given |= other.given
        self.incomplete |= other.incomplete
        self.unresolved |= other.unresolved
        self.declares |= other.declares
        self.hooks |= other.hooks


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a dotted name in lower case, without back quotes and without `LIVE`."""
    parts = tuple(part.strip("` ").lower() for part in re.findall(r"`(?:[^`]|``)*`|[^.]+", name))
    return parts[1:] if len(parts) > 1 and parts[0] == "live" else parts


def same_table(read: tuple[str, ...], declared: tuple[str, ...]) -> bool:
    """Whether two names can mean one table: as far as both say something that is known, they say the same."""
    return all(a == b or "{" in a or "{" in b for a, b in zip(reversed(read), reversed(declared), strict=False))


_DATABRICKS_PATH = re.compile(
    r"(/Volumes/|/?dbfs[:/]|/mnt/|/databricks-datasets(/|$)|/FileStore/|/Workspace/|s3[an]?://|abfss?://|wasbs?://|gs://|adl://|hdfs://|file:/)",
    re.IGNORECASE,
)
_PATH_PATTERN = re.compile(r"[*?\[{]")


def is_databricks_path(text: str) -> bool:
    """Whether the text begins like a path of Databricks or of an object store."""
    return bool(_DATABRICKS_PATH.match(text)) and "\n" not in text and len(text) < 1000


def path_found(text: str, holes: UnknownParts, location: CodeLocation, format: str = "", *, read: bool = True) -> PathFound:
    """The path as the report shows it. `read`: the code gives it to a reader; else it only stands there."""
    ends = [len(text)]
    hole = holes.first_in(text)
    ends += [hole] if hole is not None else []
    pattern = _PATH_PATTERN.search(text)
    ends += [pattern.start()] if pattern else []
    return PathFound(holes.shown(text), min(ends), location, holes.shown(format), read)


def is_here(path: str, roots: Sequence[Path]) -> bool:
    """Whether a path means something on this machine: relative to the repository, absolute, or a path of the workspace to a file of it."""
    if in_repository(path, roots) is not None:
        return True
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        return False
    return (roots[0] / path).exists()


def only_heads(paths: Sequence[PathFound]) -> set[str]:
    """Texts that name no place of their own: the beginnings from which the code puts other paths together.

    Such a text stands in the code and is not read, another path begins with it, and it ends amid a name, at a slash, or above a volume.
    """
    bare = {one.path for one in paths} - {one.path for one in paths if one.read}
    longer = {text: [one.path for one in paths if one.path.startswith(text) and one.path != text] for text in bare}
    return {text for text, found in longer.items() if found and (_is_open(text) or not all(one[len(text)] == "/" for one in found))}


def _is_open(text: str) -> bool:
    parts = [part for part in text.split("/") if part]
    return text.endswith("/") or len(parts) < (3 if parts[:1] == ["Volumes"] else 2)


def prefix(found: PathFound) -> str:
    """The part of a path that is worth a mapping: a volume, a mount, a bucket, the folder of anything else; empty if nothing is known."""
    whole = found.fixed == len(found.path)
    known = found.path[: found.fixed]
    if not whole:
        known = known[: known.rfind("/") + 1]  # the last part is not complete
    scheme = re.match(r"(/?dbfs(?=/)|[A-Za-z][A-Za-z0-9+.-]*:/*)", known)
    begin = scheme.end() if scheme else 0
    parts = [part for part in known[begin:].split("/") if part]
    if not parts:
        return known[:begin] if scheme and not whole else ""
    lead = known[:begin] if scheme else "/" if known.startswith("/") else ""
    lead += "/" if scheme and not lead.endswith("/") and not lead.endswith(":") else ""
    depth = _depth_of_mapping(parts, lead)
    named_file = whole and not found.path.endswith("/") and "." in parts[-1]
    kept = parts[:depth]
    if named_file and len(kept) == len(parts) and len(parts) > 1:
        kept = kept[:-1]
    return lead + "/".join(kept)


def _depth_of_mapping(parts: list[str], lead: str) -> int:
    first = parts[0].lower()
    if first == "volumes":
        return 4
    if first in ("mnt", "databricks-datasets", "filestore"):
        return 2
    if "://" in lead and not lead.lower().startswith(("file:", "dbfs:")):
        return 1
    return 2 if lead.lower().startswith(("dbfs", "/dbfs")) else len(parts)
