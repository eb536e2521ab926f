"""Which pipeline this is, from one update to the next, wherever its checkout lies. No Spark.

A pipeline of a bundle is known by the bundle's name and its key there. Files that no bundle names are known by themselves: two sets of
files that share one are the same pipeline. So a file may be run alone, or with its folder (docs/decisions: who owns a table).
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lakelet.files.paths import AnyPath


@dataclass(frozen=True)
class PipelineIdentity:
    """Record of a pipeline.

    Attributes:
        name: the key in the bundle, else the stem of the file or the name of the folder.
        bundle: name of the bundle, None without one, "" for the project file of Spark's own tool.
        root: folder of the project, absolute.
        beside: the same folder as seen from the storage, "" where the storage is not on this machine.
        files: sources below `root`; only without a bundle.
        formerly: names of pipelines whose tables this one has taken over.
    """

    name: str
    bundle: str | None = None
    root: str = ""
    beside: str = ""
    files: tuple[str, ...] = ()
    formerly: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, bundle: str | None, root: Path, files: Sequence[Path], storage: AnyPath) -> PipelineIdentity:
        """The identity of a pipeline whose sources are `files`."""
        beside = os.path.relpath(root, storage) if isinstance(storage, Path) else ""
        return cls(name, bundle, str(root), beside, tuple(os.path.relpath(file, root) for file in files))

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> PipelineIdentity:
        return cls(**{**stored, "files": tuple(stored["files"]), "formerly": tuple(stored["formerly"])})

    def as_stored(self) -> dict[str, Any]:
        return asdict(self) if self.bundle is None else {**asdict(self), "files": ()}

    def __str__(self) -> str:
        """The pipeline as errors name it."""
        where = self._source() if self.bundle is None else f"bundle {self.bundle}" if self.bundle else "its project file"
        return f"'{self.name}' ({where})"

    def _source(self) -> str:
        return os.path.join(self.root, self.files[0]) if len(self.files) == 1 else f"{len(self.files)} files in {self.root}"

    def is_same(self, now: PipelineIdentity, exists: Callable[[str], bool] = os.path.exists) -> bool:
        """Whether `now` is the pipeline that was recorded as this one."""
        if self.bundle is not None:
            return (self.bundle, self.name) == (now.bundle, now.name)
        if self._shares_file(now):
            return True
        moved = not any(exists(os.path.join(self.root, file)) for file in self.files)
        return now.bundle is None and (self.name == now.name or set(self.files) == set(now.files)) and moved

    def is_part_of(self, recorded: PipelineIdentity) -> bool:
        """Whether these are some of the files of a larger pipeline, which other sources name as a whole."""
        if self.bundle is not None or recorded.bundle is not None or (self.name, self.root) == (recorded.name, recorded.root):
            return False
        mine, whole = set(self._absolute()), set(recorded._absolute())
        return mine < whole or set(self._relative()) < set(recorded._relative())

    def _shares_file(self, other: PipelineIdentity) -> bool:
        return bool(set(self._absolute()) & set(other._absolute())) or bool(set(self._relative()) & set(other._relative()))

    def _absolute(self) -> Iterable[str]:
        return (os.path.normpath(os.path.join(self.root, file)) for file in self.files)

    def _relative(self) -> Iterable[str]:
        return (posixpath.normpath(posixpath.join(self.beside, file)) for file in self.files) if self.beside else ()
