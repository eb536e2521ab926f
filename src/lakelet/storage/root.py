"""The storage root: one registry of names, and where everything lies. No Spark.

    <root>/system/registry.json     names, kinds, reset epochs, fingerprints
    <root>/system/lease-<id>.json   who updates this storage now
    <root>/system/events            event log (Delta)
    <root>/tables/<catalog>/<schema>/<name>
    <root>/checkpoints/<catalog>/<schema>/<target>/<flow>/<epoch>
    <root>/autoloader/<catalog>/<schema>/<target>/<flow>/<epoch>/<source number>

An environment is such a storage over another one, which it never writes to (`base_storage`).

Every write replaces a whole file, so a crash leaves the old or the new one, never half of one.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.base.names import Namespace, TableName
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.files.delta_log import TableLog
from lakelet.files.durable import before, write_atomically
from lakelet.files.paths import LOG, AnyPath, any_path, names_in
from lakelet.files.stores import scheme_of
from lakelet.language.model import Kind
from lakelet.storage.base_storage import BaseStorage, load_base
from lakelet.storage.lease import Lease

FORMAT = 5
"""2: pipelines are recorded, and which of them owns a table. 3: which description a table has. 4: which tables are quarantines. 5: how much
a view was computed from."""
INTERNAL = "_changes"
"""Folder of a change table that holds the table with its hidden rows and columns (docs/decisions/0012-change-tables.md)."""
JSON_SCHEMAS = "json"
"""Folder, beside the states of a flow's sources, of the schema logs of its `from_json` (docs/semantics/json-columns.md)."""


@dataclass(frozen=True)
class StoredDataset:
    """What the storage knows of one table between updates.

    `columns` is the Spark schema JSON of a streaming table as last written. `fingerprint` and `input_versions` belong to a
    materialized view, or to a table with a REPLACE WHERE flow, and say what was computed last, and from what; `version` is the table
    version they describe. `owner` is the id of the
    pipeline that the table belongs to; None for sinks. `described`: digest of what was declared about the
    table when it was described last. `quarantine_of`: full name of the dataset whose quarantine it is; None for a dataset.
    `read_bytes`: the size of the files that the view was computed from the last time; None where that is not known.
    """

    name: str
    kind: Kind
    path: str
    epoch: int = 0
    private: bool = False
    active: bool = True
    columns: str | None = None
    fingerprint: str | None = None
    input_versions: Mapping[str, int] = field(default_factory=dict)
    version: int | None = None
    owner: str | None = None
    described: str | None = None
    quarantine_of: str | None = None
    read_bytes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))  # as stored, it is a text


@dataclass(frozen=True)
class StoredFlow:
    """`examined`: per input table, the version up to which no file can match the flow's partition filter `filter`.

    `resets`: how often its checkpoint was cleared while the table kept its rows. `target`: key of the table it writes to; two pipelines may
    have flows of one name. `recomputed`: how often a materialized view was computed as a whole again.
    """

    name: str
    filter: str = ""
    examined: Mapping[str, int] = field(default_factory=dict)
    resets: int = 0
    target: str = ""
    recomputed: int = 0

    @property
    def key(self) -> str:
        return _flow_key(self.target, self.name)


@dataclass(frozen=True)
class LastUpdate:
    """The newest update that started here. `clean`: it completed and wrote all its events."""

    id: str
    started: str
    clean: bool


@dataclass(frozen=True)
class StorageRegistry:
    """Content of `system/registry.json`. Keys of `datasets` are lower-case full names, those of `pipelines` their ids; `flow` finds flows.

    `pipeline_id`: the pipeline of the last update.
    """

    pipeline_id: str = ""
    namespace: Namespace = field(default_factory=Namespace)
    datasets: dict[str, StoredDataset] = field(default_factory=dict)
    flows: dict[str, StoredFlow] = field(default_factory=dict)
    last_update: LastUpdate | None = None
    pipelines: dict[str, PipelineIdentity] = field(default_factory=dict)

    @property
    def owner(self) -> str | None:
        """Id of the pipeline of the last update, None before the first one."""
        return self.pipeline_id if self.pipeline_id in self.pipelines else None

    def flow(self, target: str, name: str) -> StoredFlow:
        """What is known of a flow into the table `target` (key)."""
        return self.flows.get(_flow_key(target, name)) or StoredFlow(name, target=target)

    def to_json(self) -> str:
        return json.dumps(
            {
                "format": FORMAT,
                "pipeline_id": self.pipeline_id,
                "pipelines": {k: v.as_stored() for k, v in sorted(self.pipelines.items())},
                "namespace": asdict(self.namespace),
                "datasets": {k: asdict(v) for k, v in sorted(self.datasets.items())},
                "flows": {k: asdict(v) for k, v in sorted(self.flows.items())},
                "last_update": asdict(self.last_update) if self.last_update else None,
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str, *, source: str) -> StorageRegistry:
        """Raises FORMAT_UNKNOWN for another format, STORAGE_DAMAGED if it is empty or cut off.

        Unknown keys of a known format are Lakelet's error and raise TypeError.
        """
        data = _parsed_registry(text, source)
        if data["format"] != FORMAT:
            raise unknown_format(source, data["format"], FORMAT)
        last = data["last_update"]
        return cls(
            pipeline_id=data["pipeline_id"],
            namespace=Namespace(**data["namespace"]),
            datasets={k: StoredDataset(**v) for k, v in data["datasets"].items()},
            flows={k: StoredFlow(**v) for k, v in data["flows"].items()},
            last_update=LastUpdate(**last) if last else None,
            pipelines={k: PipelineIdentity.from_stored(v) for k, v in data["pipelines"].items()},
        )


def _flow_key(target: str, flow: str) -> str:
    return f"{target}|{flow.lower()}" if target else flow.lower()


class Storage:
    """Paths below one root, the registry in it, and the lease on it. Thread-safe."""

    def __init__(self, root: AnyPath) -> None:
        self.root = any_path(root)
        self._lock = threading.Lock()
        self._registry: StorageRegistry | None = None
        self.recovered: str | None = None
        """Why the registry as it was before its last change had to be taken, until one is stored again."""

    # ------------------------------------------------------------------------------------------------------ paths

    @property
    def system(self) -> AnyPath:
        return self.root / "system"

    @property
    def events(self) -> AnyPath:
        return self.system / "events"

    @property
    def registry_file(self) -> AnyPath:
        return self.system / "registry.json"

    def table_path(self, name: TableName) -> AnyPath:
        """Where a table lies: where the registry says, else where a new one will be made."""
        stored = self.registry().datasets.get(name.key)
        return self.at(stored.path if stored else new_table_path(name))

    def at(self, path: str) -> AnyPath:
        """Where a stored path lies, which is relative to the root unless it is one of a sink elsewhere.

        In an environment, what lies there of the main storage is copied first: see `BaseStorage.provide_table`.
        """
        scheme = scheme_of(path)
        if scheme == "file":
            return any_path("/" + path.split(":", 1)[1].lstrip("/"))
        if scheme is not None or path.startswith("/"):
            return any_path(path)
        if self.base is not None and isinstance(self.root, Path):
            self.base.provide_table(path, self.root)
        return self.root / path

    @functools.cached_property
    def base(self) -> BaseStorage | None:
        """The main storage, if this is an environment."""
        return load_base(self.root)

    def checkpoint(self, target: TableName, flow: str, epoch: str) -> AnyPath:
        return self.flow_folders(target)[0] / _folder_segment(flow) / epoch

    def flow_folders(self, target: TableName) -> tuple[AnyPath, AnyPath]:
        """Return the folder with all checkpoints of a table's flows, and the one with the states of their sources.

        In an environment they are the main storage's, to be read, until the table is computed there (`environments.provide`).
        """
        checkpoints, states = (self._at_or_below(folder) for folder in flow_folders(target))
        return checkpoints, states

    def _at_or_below(self, folder: str) -> AnyPath:
        own = self.root / folder
        return own if self.base is None or own.exists() else self.base.path / folder

    def source_state(self, target: TableName, flow: str, number: int) -> AnyPath:
        """Folder with the state of source `number` of a flow since its last reset."""
        return self.flow_folders(target)[1] / _folder_segment(flow) / self.reset_id(target.key, flow) / str(number)

    def json_schema(self, target: TableName, flow: str, key: str) -> AnyPath:
        """Folder with the schema log of a flow's `from_json` of that `schemaLocationKey`, since its last reset (JC-1)."""
        name = f"{_folder_segment(key)[:80]}-{crc32(key.encode()):08x}"
        return self.flow_folders(target)[1] / _folder_segment(flow) / self.reset_id(target.key, flow) / JSON_SCHEMAS / name

    def reset_id(self, target: str, flow: str) -> str:
        """Return what a reset of a flow into `target` (key) changes: the reset epoch, then `r` and the resets of its checkpoint, if any."""
        registry = self.registry()
        stored, known = registry.datasets.get(target), registry.flow(target, flow)
        return str(stored.epoch if stored else 0) + (f"r{known.resets}" if known.resets else "")

    # --------------------------------------------------------------------------------------------------- registry

    def registry(self) -> StorageRegistry:
        """What is stored; an empty registry where nothing was stored yet."""
        with self._lock:
            return self._load_registry()

    def reload(self) -> StorageRegistry:
        with self._lock:
            self._registry = None
            return self._load_registry()

    def _load_registry(self) -> StorageRegistry:
        if self._registry is None:
            try:
                self._registry = _read_registry(self.registry_file)
            except LakeletError as damage:
                if damage.code != "STORAGE_DAMAGED":
                    raise
                self._registry, self.recovered = self._kept_registry(damage), str(damage.what)
        return self._registry

    def _kept_registry(self, damage: LakeletError) -> StorageRegistry:
        """The registry as it was before its last change. Raises `damage` where that cannot be read, and tables are stored."""
        try:
            kept: StorageRegistry | None = _read_registry(before(self.registry_file))
        except LakeletError:
            kept = None
        if (kept is None or not kept.pipelines) and names_in(self.root / "tables"):
            raise damage
        return with_epochs_of_tables(kept or StorageRegistry(), self.at)

    def save(self, registry: StorageRegistry) -> None:
        """Replace the stored registry."""
        with self._lock:
            self._store_registry(registry)

    def remember(self, dataset: StoredDataset) -> None:
        """Store one dataset's entry."""
        with self._lock:
            registry = self._load_registry()
            self._store_registry(replace(registry, datasets={**registry.datasets, dataset.name.lower(): dataset}))

    def note_flow(self, flow: StoredFlow) -> None:
        """Keep one flow's entry for the next `save` or `remember`: losing it costs a look at a few log files, nothing else."""
        with self._lock:
            registry = self._load_registry()
            self._registry = replace(registry, flows={**registry.flows, flow.key: flow})

    def _store_registry(self, registry: StorageRegistry) -> None:
        write_atomically(self.registry_file, registry.to_json(), keep=self.recovered is None)
        self._registry, self.recovered = registry, None
        reached("registry.written")

    # ------------------------------------------------------------------------------------------------------ lease

    def lease(self, update_id: str) -> AbstractContextManager[None]:
        """See `Lease.held`."""
        return Lease(self.root).held(update_id)

    def refuse_if_busy(self) -> None:
        """See `Lease.refuse_if_busy`."""
        Lease(self.root).refuse_if_busy()


class ExistingTables(Mapping[str, str]):
    """Path by key of the tables in a storage: those it has registered, and any other Delta table where one of that name would lie.

    The others were written by sinks; they can be looked up and are not listed. `without`: keys of tables that are left out.
    """

    def __init__(self, storage: Storage, without: Collection[str] = ()) -> None:
        self._storage, self._without = storage, frozenset(without)
        datasets = storage.registry().datasets.items()
        self._known = {k: d.path for k, d in datasets if d.kind is not Kind.SINK and k not in self._without}

    @property
    def quarantines(self) -> frozenset[str]:
        """Keys of the quarantines among them."""
        return frozenset(key for key, d in self._storage.registry().datasets.items() if d.quarantine_of is not None)

    def apart_from(self, without: Collection[str]) -> ExistingTables:
        """These tables without some of them."""
        return ExistingTables(self._storage, {*self._without, *without})

    def __getitem__(self, key: str) -> str:
        if key not in self._known and key not in self._without and key.count(".") == 2:
            path = new_table_path(TableName(*key.split(".")))
            if (self._storage.at(path) / LOG).is_dir():
                self._known[key] = path
        return str(self._storage.at(self._known[key]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _read_registry(file: AnyPath) -> StorageRegistry:
    """The registry in a file, an empty one where there is no file. Raises STORAGE_DAMAGED, FORMAT_UNKNOWN."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return StorageRegistry()
    except UnicodeDecodeError:
        text = ""
    return StorageRegistry.from_json(text, source=str(file))


def _parsed_registry(text: str, source: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(data, dict) and "format" in data:
        return data
    todo = "Put a copy of the file back, from a backup. Without one, update into another storage: --storage DIR"
    found = f"it ends in the middle of its text, after {len(text)} characters" if text.strip() else "it is empty"
    what = f"{source} cannot be read: {found}"
    raise LakeletError("STORAGE_DAMAGED", what, why="It was written in part, or changed by another program.", todo=todo)


def with_epochs_of_tables(registry: StorageRegistry, at: Callable[[str], AnyPath]) -> StorageRegistry:
    """An older registry with the present reset epochs of its tables: a table that was reset since must not use older checkpoints."""
    datasets = {key: replace(d, epoch=max(d.epoch, _epoch_of(at(d.path)))) if d.path else d for key, d in registry.datasets.items()}
    return replace(registry, datasets=datasets)


def _epoch_of(table: AnyPath) -> int:
    """The reset epoch that the newest description in a table's log names; 0 without one."""
    described = TableLog(table).description() or {}
    return int(described.get("configuration", {}).get("lakelet.epoch", 0))


def new_table_path(name: TableName) -> str:
    return f"tables/{_table_folder(name)}"


def flow_folders(target: TableName) -> tuple[str, str]:
    """The folders below the root with all checkpoints of a table's flows, and with the states of their sources."""
    return f"checkpoints/{_table_folder(target)}", f"autoloader/{_table_folder(target)}"


def _table_folder(name: TableName) -> str:
    return "/".join(_folder_segment(part) for part in (name.catalog, name.schema, name.name))


def _folder_segment(text: str) -> str:
    """One folder name; lower case, because names do not differ by case but folders may."""
    return quote(text.lower(), safe=" -_.@+=,") if text not in (".", "..") else quote(text, safe="").replace(".", "%2E")
