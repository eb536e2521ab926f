"""How much an update is going to read, guessed before Spark starts: what the session is set for follows from it."""

from __future__ import annotations

import fnmatch
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import PipelineConfig
from lakelet.files.paths import AnyPath, RemotePath, any_path
from lakelet.files.stores import stores_of
from lakelet.language.model import Kind
from lakelet.storage.root import INTERNAL, StorageRegistry, StoredDataset

_MUCH_CODE = 100_000  # bytes; with both compilers 500 datasets are analysed in 19.7 instead of 22.4 s (benchmarks/many_datasets.py)
_COMPRESSION = 8  # JSON lines against the Parquet files they become, or against the same lines compressed
_NO_FOLDERS = frozenset(("", ".", ".."))
_COMPRESSED = frozenset((".parquet", ".orc", ".avro", ".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".deflate", ".zip"))


def expected_bytes(config: PipelineConfig, registry: StorageRegistry, *, pipeline_id: str, again: bool = False) -> int | None:
    """A guess at what the update reads. Those are the files that came since the last update below folders that parameters and maps name,
    all files of tables from outside, and stored tables that it reads again. A pipeline of much code is as much work as a large input.

    `again`: of a full refresh, which reads all that there is. So may an update after one of another pipeline, or one that did not
    complete, or with code that was changed since. Counting stops where more would not change how the session is started. None if nothing
    can be guessed.
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
    folders, tables = _folders(named), _folders(table.path for table in config.tables.values())
    new = (size for at, since_when in ((folders, threshold), (tables, 0.0)) for folder in at for size in _sizes(folder, since_when))
    stored = _stored_sizes(config.storage, own if is_next else None)
    total = 0
    for size in itertools.chain(new, stored):
        total += size
        if total >= FULL_COMPILER_BYTES:
            return total
    return total if (folders or tables) and not isinstance(config.storage, RemotePath) else None


def _stored_sizes(storage: AnyPath, datasets: Mapping[str, StoredDataset] | None) -> Iterator[int]:
    """Sizes of the stored files that an update reads again, as `_sizes` counts: what each view was computed from the last time, and
    change tables, which take part in each MERGE. Other streaming tables are read from where the last update stopped. All files where that
    is not known.
    """
    active = [dataset for dataset in (datasets or {}).values() if dataset.active and dataset.quarantine_of is None]
    views = [dataset for dataset in active if dataset.kind is Kind.MATERIALIZED_VIEW]
    if isinstance(storage, RemotePath):  # listing all files of all tables costs more there than it gains
        yield from ((view.read_bytes or 0) * _COMPRESSION for view in views)
    elif datasets is None or any(view.read_bytes is None for view in views):
        yield from _sizes(storage / "tables", 0.0, "*.parquet")
    else:
        yield from ((view.read_bytes or 0) * _COMPRESSION for view in views)
        for changed in (storage / dataset.path / INTERNAL for dataset in active if dataset.kind is Kind.STREAMING_TABLE):
            yield from _sizes(changed, 0.0, "*.parquet")


def _folders(places: Iterable[str]) -> list[AnyPath]:
    """Those of the paths that are folders of this machine, or lie on a store; each once."""
    return [any_path(text) for text in dict.fromkeys(places) if stores_of(text) or os.path.isdir(text)]  # a long text is no folder either


def _sizes(folder: AnyPath, since: float, pattern: str = "*") -> Iterator[int]:
    """Bytes of the files below a folder that changed at or after `since`, of compressed ones as many as they are about without that.

    A store that does not answer counts as empty here; what it holds counts as it is.
    """
    if isinstance(folder, RemotePath):
        with suppress(LakeletError):
            yield from folder.sizes(since)
        return
    for parent, _, names in os.walk(folder):  # passes over what cannot be listed
        for name in fnmatch.filter(names, pattern):
            with suppress(OSError):  # it is gone by now, or a link to nothing
                found = os.stat(os.path.join(parent, name))
                if found.st_mtime >= since:
                    yield found.st_size * (_COMPRESSION if os.path.splitext(name)[1] in _COMPRESSED else 1)


__all__ = ["expected_bytes"]
