"""How much an update is going to read, guessed before Spark starts: what the session is set for follows from it."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import PipelineConfig
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import LOG, AnyPath, RemotePath, any_path
from lakelet.files.stores import stores_of
from lakelet.language.model import Kind
from lakelet.storage.root import INTERNAL, StorageRegistry, StoredDataset

_MUCH_CODE = 100_000  # bytes; with both compilers 500 datasets are analysed in 19.7 instead of 22.4 s (benchmarks/many_datasets.py)
_COMPRESSION = 8  # JSON lines against the Parquet files they become, or against the same lines compressed
_LOOK_BACK = 5  # commits
_MOST_FILES = 20_000  # of a folder that code names: looking at them takes a tenth of a second
_PATH_IN_CODE = re.compile(r"""(["'`])([^"'`\s{}]*/[^"'`\s{}]*)\1""")
_NO_FOLDERS = frozenset(("", ".", ".."))
_COMPRESSED = frozenset((".parquet", ".orc", ".avro", ".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".deflate", ".zip"))


def expected_bytes(config: PipelineConfig, registry: StorageRegistry, *, pipeline_id: str, again: bool = False) -> int | None:
    """A guess at what the update reads. Those are the files that came since the last update below folders that parameters, maps and code
    name, all files of tables from outside, and stored tables that it reads again. A pipeline of much code is as much work as a large input.

    `again`: of a full refresh, which reads all that there is. So may an update after one of another pipeline, or one that did not
    complete, or with code that was changed since. Counting stops where more would not change how the session is started. None if nothing
    can be guessed: what waits in a topic is not known.
    """
    from lakelet.spark.launch.java_process import FULL_COMPILER_BYTES

    if sum(file.stat().st_size for file in config.files) >= _MUCH_CODE:
        return FULL_COMPILER_BYTES
    last = registry.last_update if not again and registry.pipeline_id == pipeline_id else None
    threshold = datetime.fromisoformat(last.started).timestamp() if last else 0.0
    is_next = last is not None and last.clean and not any(file.stat().st_mtime >= threshold for file in config.files)
    own = {key: dataset for key, dataset in registry.datasets.items() if dataset.owner in (None, pipeline_id)}
    named = [config.paths.mapped(v) for v in config.parameters.values() if "/" in v] + [entry.target for entry in config.paths.entries]
    named += [os.path.join(config.root, v) for v in config.parameters.values() if v not in _NO_FOLDERS and "/" not in v]
    folders = _folders([*named, *_folders_in_code(config)])
    tables = _folders(table.path for table in config.tables.values())
    new = (size for at, since_when in ((folders, threshold), (tables, 0.0)) for folder in at for size in _sizes(folder, since_when))
    stored = _stored_sizes(config.storage, own if is_next else None)
    total = 0
    for size in itertools.chain(new, stored):
        total += size
        if total >= FULL_COMPILER_BYTES:
            return total
    return total if (folders or tables) and not isinstance(config.storage, RemotePath) and not config.packages else None


def _stored_sizes(storage: AnyPath, datasets: Mapping[str, StoredDataset] | None) -> Iterator[int]:
    """Sizes of what an update reads again, as `_sizes` counts: what each view was computed from the last time, and of change tables what
    their last batch wrote again. Other streaming tables are read from where the last update stopped. All tables where that is not known.
    """
    active = [dataset for dataset in (datasets or {}).values() if dataset.active and dataset.quarantine_of is None]
    views = [dataset for dataset in active if dataset.kind is Kind.MATERIALIZED_VIEW]
    if isinstance(storage, RemotePath):  # listing all files of all tables costs more there than it gains
        yield from ((view.read_bytes or 0) * _COMPRESSION for view in views)
    elif datasets is None or any(view.read_bytes is None for view in views):
        yield from _table_sizes(storage / "tables")
    else:
        yield from ((view.read_bytes or 0) * _COMPRESSION for view in views)
        for dataset in active:
            if dataset.kind is Kind.STREAMING_TABLE:
                yield _last_written(TableLog(storage / dataset.path / INTERNAL)) * _COMPRESSION


def _last_written(log: TableLog) -> int:
    """The bytes that the newest commit with files wrote; 0 where there is no table."""
    newest = log.version()
    for version in range(newest, max(-1, newest - _LOOK_BACK), -1):
        with suppress(FileNotFoundError):
            written = sum(action["add"]["size"] for action in log.actions(version, "add"))
            if written:
                return int(written)
    return log.bytes() or 0


def _table_sizes(folder: Path) -> Iterator[int]:
    """Sizes of the tables below a folder, as `_sizes` counts. Files that no newest version has are left out where its log says a size."""
    for parent, folders, names in os.walk(folder):
        size = TableLog(Path(parent)).bytes() if LOG in folders else None
        if size is None:
            yield from _file_sizes(parent, fnmatch.filter(names, "*.parquet"), 0.0)
        else:
            folders.clear()
            yield size * _COMPRESSION


def _folders_in_code(config: PipelineConfig) -> Iterator[str]:
    """Folders of this machine that the code names as one text, up to the first `*`, in any language.

    Left out are Delta tables, what holds the project or the working directory, and what Lakelet stores: they are no landing folders. So are
    folders of very many files, which take long to look through: what waits there is not known.
    """
    here = Path.cwd()
    around = {str(path) for path in (config.root, *config.root.parents, here, *here.parents)}
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in config.files)
    for named in dict.fromkeys(found[2] for text in texts for found in _PATH_IN_CODE.finditer(text)):
        whole, star, _ = named.partition("*")
        path = os.path.normpath(config.paths.anchored(config.paths.mapped(whole.rpartition("/")[0] if star else whole)))
        ours = path in around or f"{path}/".startswith(f"{config.storage}/")
        if path.startswith("/") and not ours and not os.path.isdir(os.path.join(path, LOG)) and _has_few_files(path):
            yield path


def _has_few_files(folder: str) -> bool:
    found = 0
    for _, _, names in os.walk(folder):
        found += len(names)
        if found > _MOST_FILES:
            return False
    return True


def _folders(places: Iterable[str]) -> list[AnyPath]:
    """Those of the paths that are folders of this machine, or lie on a store; without those below another one."""
    there = [text for text in dict.fromkeys(places) if stores_of(text) or os.path.isdir(text)]  # a long text is no folder either
    ends = {text: text.rstrip("/") + "/" for text in there}
    return [any_path(text) for text in there if not any(ends[text].startswith(end) and ends[text] != end for end in ends.values())]


def _sizes(folder: AnyPath, since: float) -> Iterator[int]:
    """Bytes of the files below a folder that changed at or after `since`, of compressed ones as many as they are about without that.

    A store that does not answer counts as empty here; what it holds counts as it is.
    """
    if isinstance(folder, RemotePath):
        with suppress(LakeletError):
            yield from folder.sizes(since)
        return
    for parent, _, names in os.walk(folder):  # passes over what cannot be listed
        yield from _file_sizes(parent, names, since)


def _file_sizes(parent: str, names: Iterable[str], since: float) -> Iterator[int]:
    """As `_sizes`, of some files of one folder."""
    for name in names:
        with suppress(OSError):  # it is gone by now, or a link to nothing
            found = os.stat(os.path.join(parent, name))
            if found.st_mtime >= since:
                yield found.st_size * (_COMPRESSION if os.path.splitext(name)[1] in _COMPRESSED else 1)


__all__ = ["expected_bytes"]
