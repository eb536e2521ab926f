"""The lease on a storage: one living process updates it at a time (docs/decisions/0008-lease.md). No Spark."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.durable import write_atomically, writing
from lakelet.files.paths import AnyPath, names_in

FORMAT = 5
MAINTENANCE, PUBLISHING = "maintain-", "publish-"
"""Starts of the ids under which these commands hold a lease."""
_FILES = re.compile(r"lease-.*\.json")
_GIVE_UP_SECONDS = 3.0


class Lease:
    """The lease on the storage below `root`: files `system/lease-<id>.json`, one of each process that asks for it."""

    def __init__(self, root: AnyPath) -> None:
        self.root, self.system = root, root / "system"

    @contextmanager
    def held(self, update_id: str) -> Iterator[None]:
        """Hold the storage for one update.

        Raises LAKELET_STORAGE_BUSY if a living process holds it; what dead ones left is removed.
        """
        mine = self.system / f"lease-{update_id}.json"
        if isinstance(self.system, Path):
            with writing(mine):
                self.system.mkdir(parents=True, exist_ok=True)
        write_atomically(mine, _lease_text(update_id, _folder_identity(self.system)))
        try:
            self._wait_until_alone(mine)
            reached("lease.acquired")
            yield
        finally:
            try:
                mine.unlink(missing_ok=True)
            except OSError:  # nothing can be written any more; the file counts for nothing in this process, nor after its end
                _ended.add(update_id)

    def _lease_files(self) -> list[AnyPath]:
        return [self.system / name for name in sorted(names_in(self.system)) if _FILES.fullmatch(name)]

    def _wait_until_alone(self, mine: AnyPath) -> None:
        """Return when no other living process has a lease, else raise LAKELET_STORAGE_BUSY.

        Everybody puts a file first and reads the others' afterwards, so of two at once at least one sees the other. Whoever sees an
        earlier one gives up; the earliest waits for the others to do so, unless they had read them before it came
        (docs/decisions/0008-lease.md).
        """
        me = json.loads(mine.read_text())
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while others := [lease for lease in self._leases() if lease["update_id"] != me["update_id"]]:
            if time.monotonic() > deadline or any(_precedence(other) < _precedence(me) for other in others):
                raise self._busy_error(others[0])
            time.sleep(0.05)
        for file in self._lease_files():
            if file != mine and _lease_holder(file, self.system) is None:
                file.unlink(missing_ok=True)

    def refuse_if_busy(self) -> None:
        """Raises LAKELET_STORAGE_BUSY if a living process holds a lease; reads only."""
        for holder in self._leases():
            raise self._busy_error(holder)

    def _leases(self) -> list[Mapping[str, Any]]:
        """The leases of living processes."""
        found = [_lease_holder(file, self.system) for file in self._lease_files()]
        return [holder for holder in found if holder is not None]

    def _busy_error(self, holder: Mapping[str, Any]) -> LakeletError:
        process, since = f"process {holder['pid']} on {holder['host']}", f"{holder['since'][:19]} UTC"
        file, id = self.system / f"lease-{holder['update_id']}.json", holder["update_id"]
        command = next((start.rstrip("-") for start in (MAINTENANCE, PUBLISHING) if id.startswith(start)), None)
        return LakeletError(
            "LAKELET_STORAGE_BUSY",
            f"{f'`lakelet {command}`' if command else 'another update'} is running on {self.root}",
            why=f"{f'{command} of' if command else f'update {id[:8]} of'} {process} holds it since {since}",
            todo=f"Wait until it ends. If that process is gone for good, delete {file}.",
        )


def _folder_identity(folder: AnyPath) -> str:
    """Text that a folder of this machine keeps if it or one above it is renamed, and that a copy does not have; empty on a store."""
    if not isinstance(folder, Path):
        return ""
    try:
        found = folder.stat()
    except FileNotFoundError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def _lease_text(update_id: str, place: str) -> str:
    now = datetime.now(timezone.utc)
    process = psutil.Process()
    return json.dumps(
        {
            "format": FORMAT,
            "update_id": update_id,
            "host": socket.gethostname(),
            "pid": process.pid,
            "process_started": process.create_time(),
            "place": place,
            "since": now.isoformat(timespec="microseconds"),
        }
    )


_ended: set[str] = set()
"""Ids of updates of this process that have ended and whose leases could not be removed."""


def _lease_holder(lease: AnyPath, system: AnyPath) -> Mapping[str, Any] | None:
    """Return the holder of a lease; None if there is none, or it holds nothing.

    It holds nothing if it is not a lease, if its update or process has ended, or if the folder was copied while it was held.
    """
    try:
        holder = json.loads(lease.read_text())
        return holder if holder["update_id"] not in _ended and _is_alive(holder) and not _is_copy(holder, system) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _is_copy(holder: Mapping[str, Any], system: AnyPath) -> bool:
    """Whether a process of this host took the lease in another folder."""
    here = _folder_identity(system)
    return bool(holder["host"] == socket.gethostname() and holder.get("place", here) != here)


def _precedence(lease: Mapping[str, Any]) -> tuple[str, str]:
    return lease["since"], lease["update_id"]


def _is_alive(holder: Mapping[str, Any]) -> bool:
    """Whether the holder of a lease may still run. A process of another host cannot be checked, so it counts as alive."""
    if holder["host"] != socket.gethostname():
        return True
    try:
        process = psutil.Process(holder["pid"])
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - holder["process_started"]) < 2
    except psutil.NoSuchProcess:
        return False
