"""Which source files belong to one pipeline. Pure.

Files of one folder are one pipeline, except where two of them declare a dataset of the same name, or each is a chain of its
own. Folders side by side are one pipeline if code of one reads what the other declares.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.base.names import Namespace
from lakelet.config.update_config import PipelineConfig
from lakelet.project.init.findings import FileReading, same_table
from lakelet.project.init.repository import PipelineSettings

_PLAIN_FOLDERS = frozenset(
    (
        *("src", "pipelines", "pipeline", "transformations", "transformation", "notebooks", "notebook", "code", "sql", "python", "dlt"),
        *("sdp", "resources", "etl", "scripts", "lib", "app", "files", "ldp", "data_ingestion", "resource", "sources", "labs"),
    )
)
_WHOLE = frozenset(("src", "pipelines", "pipeline", "transformations", "transformation", "etl"))
OUTSIDE = ("samples", "system", "information_schema", "hive_metastore")
_LAYER = re.compile(
    r"^(\d+[\s._-]*)?(raw|bronze|silver|gold|cdc|ingest(ion)?|staging|landing|transform\w*|views?|marts?|curated|clean\w*)$", re.IGNORECASE
)


@dataclass
class PipelineFiles:
    """The files of one pipeline, in order.

    Attributes:
        folder: where they lie together.
        key: its name in the bundle.
        helpers: files that they import.
        catalog, schema: where the project file puts its tables; None where it does not say.
        values: its configuration, by key.
        roots: folders that its modules are imported from, where the project file says so.
        settings: the file that says it, as the report names it.
    """

    files: list[FileReading]
    folder: Path
    key: str = ""
    helpers: list[FileReading] = field(default_factory=list)
    catalog: str | None = None
    schema: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[Path, ...] = ()
    settings: str = ""

    @property
    def readings(self) -> list[FileReading]:
        return [*self.files, *self.helpers]


def grouped(folder: Path, files: Sequence[FileReading], settings: Sequence[PipelineSettings] = ()) -> list[PipelineFiles]:
    """The pipelines that the files of a repository make up: those of settings files, the rest by folder."""
    given = [_of_settings(one, files, folder) for one in settings]
    taken = {reading.path for group in given for reading in group.files}
    groups = [group for group in given if group.files] + _by_folder(folder, [one for one in files if one.path not in taken])
    _name(groups, folder)
    return sorted(groups, key=lambda group: group.files[0].file)


def _of_settings(settings: PipelineSettings, files: Sequence[FileReading], folder: Path) -> PipelineFiles:
    named = [one for one in files if one.path in settings.sources]
    group = PipelineFiles(named, _common(named) if named else folder, slug(settings.name))
    group.catalog, group.schema, group.values = settings.catalog, settings.schema, settings.configuration
    group.settings = settings.file.relative_to(folder).as_posix()
    return group


def _by_folder(folder: Path, files: Sequence[FileReading]) -> list[PipelineFiles]:
    hooks = [one for one in files if one.hooks and not one.declares]
    parts = _below(folder, [one for one in files if one not in hooks])
    for one in hooks if parts else []:
        max(parts, key=lambda part: _shared(one, part)).append(one)
    return [PipelineFiles(sorted(part, key=lambda one: one.file), _common(part)) for part in parts]


def _shared(file: FileReading, part: Sequence[FileReading]) -> int:
    """How much of the file's path is also that of a file of `part`: event hooks belong to the pipeline that lies nearest."""
    return max(len(os.path.commonpath([file.path, one.path])) for one in part)


def group_of(files: Sequence[FileReading], key: str, config: PipelineConfig) -> PipelineFiles:
    """One pipeline of the project file, which says which files are its own."""
    group = PipelineFiles(list(files), _common(files), key, values=config.parameters, roots=config.import_roots)
    declared, default = config.namespace, Namespace()
    group.catalog = declared.catalog if declared.catalog != default.catalog else None
    group.schema = declared.schema if declared.schema != default.schema else None
    return group


def _below(folder: Path, files: Sequence[FileReading]) -> list[list[FileReading]]:
    own = [one for one in files if one.path.parent == folder]
    inner: dict[str, list[FileReading]] = {}
    for one in files:
        if one.path.parent != folder:
            inner.setdefault(one.path.relative_to(folder).parts[0], []).append(one)
    parts = [(name, part) for name, below in inner.items() for part in _below(folder / name, below)]
    parts += [("", part) for part in _split(own)]
    return _joined(parts)


def _joined(parts: list[tuple[str, list[FileReading]]]) -> list[list[FileReading]]:
    """Join what lies side by side: parts that read each other, and layers of which at least two do."""
    groups = [part for _, part in parts]
    names = {id(part): name for name, part in parts}
    linked = False

    def joins(a: list[FileReading], b: list[FileReading]) -> bool:
        beside = all(not names.get(id(part)) or _LAYER.match(names[id(part)]) for part in (a, b))
        return a is not b and _open_link(a, b, exact=not beside) and not _clash(a, b)

    while pair := next(((a, b) for a in groups for b in groups if joins(a, b)), None):
        linked = True
        groups = [g for g in groups if g is not pair[0] and g is not pair[1]]
        joined = [*pair[0], *pair[1]]
        names[id(joined)] = names.get(id(pair[0])) or names.get(id(pair[1]), "")
        groups.append(joined)
    layers = [g for g in groups if _LAYER.match(names.get(id(g), "")) or not names.get(id(g))]
    if len(layers) > 1 and (linked or all(_LAYER.match(names.get(id(g), "")) for g in layers)):
        whole = [one for g in layers for one in g]
        if not any(_clash(a, b) for a in layers for b in layers if a is not b):
            groups = [*(g for g in groups if not any(g is layer for layer in layers)), whole]
    return groups


def _split(files: Sequence[FileReading]) -> list[list[FileReading]]:
    """The files of one folder: together, unless names clash or each file is a chain of its own."""
    parts: list[list[FileReading]] = [[one] for one in files]
    while pair := next(((a, b) for a in parts for b in parts if a is not b and _open_link(a, b) and not _clash(a, b)), None):
        parts = [*(p for p in parts if p is not pair[0] and p is not pair[1]), [*pair[0], *pair[1]]]
    clash = any(_clash(a, b) for a in parts for b in parts if a is not b)
    single = [part for part in parts if len(part) == 1]
    alone = len(single) > 1 and all(_is_chain(part[0]) for part in single) and not _is_one_whole(files[0].path.parent)
    return parts if clash or alone else [list(files)] if files else []


def _is_one_whole(folder: Path) -> bool:
    """Whether the folder's name says that what lies in it is one pipeline."""
    return slug(folder.name) in _WHOLE or bool(_LAYER.match(folder.name))


def _is_chain(file: FileReading) -> bool:
    """Whether the file reads what it declares itself."""
    return any(same_table(read.parts, one.parts) for read in file.tables for one in file.datasets)


def _open_link(a: Iterable[FileReading], b: Iterable[FileReading], *, exact: bool = False) -> bool:
    """Whether `a` reads what `b` declares and it does not declare itself, or the other way round.

    `exact`: names with a schema or a catalog do not count, other pipelines may make what they name.
    """
    return _reads(a, b, exact) or _reads(b, a, exact)


def _reads(a: Iterable[FileReading], b: Iterable[FileReading], exact: bool) -> bool:
    own = [one.parts for file in a for one in file.datasets if not one.computed]
    there = [one.parts for file in b for one in file.datasets if not one.computed]
    for read in (read for file in a for read in file.tables):
        if read.parts[0] in OUTSIDE and len(read.parts) == 3:
            continue
        if exact and len(read.parts) > 1:
            continue
        if not any(same_table(read.parts, one) for one in own) and any(same_table(read.parts, one) for one in there):
            return True
    return False


def _clash(a: Iterable[FileReading], b: Iterable[FileReading]) -> bool:
    mine = {one.parts for file in a for one in file.datasets if not one.computed}
    return any(one.parts in mine for file in b for one in file.datasets if not one.computed)


# --------------------------------------------------------------------------------------------------------------- names


def _common(files: Sequence[FileReading]) -> Path:
    folders = [one.path.parent for one in files]
    first = folders[0]
    while not all(folder.is_relative_to(first) for folder in folders):
        first = first.parent
    return first


def _name(groups: list[PipelineFiles], root: Path) -> None:
    """Give each group a key: the nearest folder's name that is not a generic one, the files' where a folder holds several groups."""
    for group in groups:
        if group.key:
            continue
        shared = sum(other.folder == group.folder for other in groups) > 1
        group.key = (slug(_stem(group.files)) if shared else "") or _of_folder(group.folder, root)
    for length in range(1, 8):
        for group in _twice(groups):
            group.key = _longer(group, root, length)
    for group in _twice(groups):
        group.key = f"{slug(group.folder.name)}_{group.key}"
    for number, group in enumerate(_twice(groups), 2):
        group.key += f"_{number}"
    for group in groups:
        if (root / group.key).exists():  # as an argument of `lakelet run` it would mean the folder
            group.key += "_pipeline"


def _twice(groups: list[PipelineFiles]) -> list[PipelineFiles]:
    keys = [group.key for group in groups]
    return [group for group, key in zip(groups, keys, strict=True) if keys.count(key) > 1]


def _of_folder(folder: Path, root: Path) -> str:
    named = [part for part in folder.relative_to(root).parts if not _is_plain(part)]
    return slug(named[-1] if named else root.name)


def _is_plain(part: str) -> bool:
    return slug(part).lower() in _PLAIN_FOLDERS or bool(_LAYER.match(part))


def _longer(group: PipelineFiles, root: Path, length: int) -> str:
    parts = [part for part in group.folder.relative_to(root).parts if not _is_plain(part)]
    stem = [_stem(group.files)] if len(group.files) == 1 and length > 1 else []
    return "_".join(filter(None, map(slug, [*parts, *stem][-length - 1 :]))) or group.key


def _stem(files: Sequence[FileReading]) -> str:
    """What the files' names begin with, without extensions and without numbers in front."""
    names = [re.sub(r"^\d+[a-z]?(\.\d+)*[\s._-]+", "", file.path.name.rsplit(".", 1)[0]) for file in files]
    return os.path.commonprefix(names).strip()  # noqa: RUF071 - names, not paths


def slug(text: str) -> str:
    """The text as a key of YAML: letters, digits and underscores, beginning with a letter."""
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    found = re.sub(r"^[\d_]+(?=[a-z])", "", found)
    return found if not found[:1].isdigit() else f"p_{found}"
