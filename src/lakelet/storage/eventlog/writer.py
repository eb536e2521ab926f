"""Writes events to the event log table in batches, from one thread. No Spark."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.paths import AnyPath, RemotePath
from lakelet.storage.eventlog import table
from lakelet.storage.eventlog.events import Event, error_struct
from lakelet.storage.eventlog.reading import coded, log_failure

Listener = Callable[[Event], None]

_STACK = pa.list_(
    pa.struct([("declaring_class", pa.string()), ("method_name", pa.string()), ("file_name", pa.string()), ("line_number", pa.int64())])
)
_EXCEPTION = pa.struct([("class_name", pa.string()), ("message", pa.string()), ("stack", _STACK)])
_ORIGIN_TEXTS = [
    "cloud",
    "region",
    "user_id",
    "pipeline_id",
    "pipeline_type",
    "pipeline_name",
    "cluster_id",
    "update_id",
    "maintenance_id",
    "table_id",
    "table_name",
    "dataset_name",
    "sink_name",
    "flow_id",
    "flow_name",
    "request_id",
    "materialization_name",
    "uc_resource_id",
    "host",
    "ingestion_source_catalog_name",
    "ingestion_source_schema_name",
    "ingestion_source_table_name",
    "ingestion_source_connection_name",
    "ingestion_source_table_version",
]

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        (
            "sequence",
            pa.struct(
                [("control_plane_seq_no", pa.int64()), ("data_plane_id", pa.struct([("instance", pa.string()), ("seq_no", pa.int64())]))]
            ),
        ),
        ("origin", pa.struct([*((name, pa.string()) for name in _ORIGIN_TEXTS), ("org_id", pa.int64()), ("batch_id", pa.int64())])),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("message", pa.string()),
        ("level", pa.string()),
        ("maturity_level", pa.string()),
        ("error", pa.struct([("fatal", pa.bool_()), ("exceptions", pa.list_(_EXCEPTION))])),
        ("details", pa.string()),
        ("event_type", pa.string()),
    ]
)
"""Columns of the event log (EL-1)."""


class EventWriter:
    """Numbers events, shows each to the listeners at once, and appends them to the log in batches.

    The log is opened by `start`; until then events wait in memory, so an update that analysis refuses writes nothing.
    """

    def __init__(self, path: AnyPath, *, listeners: Sequence[Listener] = (), interval: float = 2.0) -> None:
        self._path, self._listeners, self._interval = path, tuple(listeners), interval
        self._queue: queue.Queue[Event | None] = queue.Queue()
        self._sequence = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failure: LakeletError | None = None

    def emit(self, event: Event) -> Event:
        """Number the event, pass it to the listeners, and queue it for the log. Listeners are called by one thread at a time, in order."""
        with self._lock:
            self._sequence += 1
            event = replace(event, sequence=self._sequence)
            self._queue.put(event)
            for listener in self._listeners:
                listener(event)
        return event

    def add_listener(self, listener: Listener) -> None:
        """Let one more listener have the events from now on."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    @property
    def failure(self) -> LakeletError | None:
        """The error of the writing thread, after which nothing more is written; None so far."""
        return self._failure

    def start(self) -> None:
        """Begin to write what is queued. Raises STORAGE_FAILED or EVENT_LOG_FAILED for a log that cannot be written to."""
        ready(self._path)
        self._thread = threading.Thread(target=self._write_forever, name="lakelet-events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the rest, put small files of the log together where they are many, and stop. Raises what the writing thread raised."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        _compact_log(self._path)

    def _write_forever(self) -> None:
        try:
            ended = False
            while not ended:
                batch, ended = self._collect_batch()
                if batch:
                    append(self._path, batch)
        except BaseException as failure:  # delta-rs panics, too; raised again in the thread that closes the writer
            self._failure = log_failure(failure, self._path)

    def _collect_batch(self) -> tuple[list[Event], bool]:
        """Wait for one event, then take what comes within the interval; the end mark ends the wait."""
        batch: list[Event] = []
        deadline: float | None = None
        while True:
            try:
                event = self._queue.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return batch, False
            if event is None:
                return batch, True
            batch.append(event)
            deadline = deadline or time.monotonic() + self._interval


def ready(path: AnyPath) -> AnyPath:
    """Return the path of a log to which events can be added. Raises STORAGE_FAILED, and EVENT_LOG_FAILED for an incomplete log."""
    if not isinstance(path, RemotePath):
        with coded(path):
            table.prepare(path)
    return path


def append(path: AnyPath, events: Sequence[Event]) -> None:
    """Append the events to the log in one commit; the table is made if it is absent. Raises STORAGE_FAILED, EVENT_LOG_FAILED."""
    with coded(path):
        reached("events.before_flush")
        rows = pa.Table.from_pylist([event_row(event) for event in events], schema=SCHEMA)
        table.append(path, rows)
        reached("events.flushed")


def _compact_log(path: AnyPath) -> None:
    """Compact the log where it has many small files. A full disk or a store that is away does no harm: all is in the log."""
    from deltalake.exceptions import DeltaError

    with suppress(LakeletError, DeltaError, OSError):
        table.compact(path)


def event_row(event: Event) -> Mapping[str, Any]:
    """The event in the columns of the log."""
    origin = {k: v for k, v in vars(event.origin).items() if v is not None}
    return {
        "id": event.id,
        "sequence": {
            "control_plane_seq_no": int(event.timestamp.timestamp() * 1_000_000),
            "data_plane_id": {"instance": event.origin.update_id or event.origin.maintenance_id, "seq_no": event.sequence},
        },
        "origin": {"pipeline_type": "WORKSPACE", **origin},
        "timestamp": event.timestamp,
        "message": event.message,
        "level": event.level.value,
        "maturity_level": event.maturity.value,
        "error": error_struct(event.error),
        "details": event.details_json(),
        "event_type": event.event_type.value,
    }
